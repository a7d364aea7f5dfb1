package graph

import (
	"slices"
	"testing"
)

// TestExchange: an edge from 5 to 1, with edges 1 to 3 and 4 to 5 there.
func TestExchange(t *testing.T) {
	s := NewTopologicalSort([]int32{0, 1, 2, 3, 4, 5, 6})
	s.Exchange([]int32{5, 4}, []int32{1, 3})
	if want := []int32{0, 4, 2, 5, 1, 3, 6}; !slices.Equal(s.Position, want) {
		t.Errorf("positions %v, want %v", s.Position, want)
	}
	if want := []int32{0, 4, 2, 5, 1, 3, 6}; !slices.Equal(s.Vertex, want) {
		t.Errorf("vertices %v, want %v", s.Vertex, want)
	}
}
