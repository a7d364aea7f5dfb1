package top

import (
	"fmt"
	"slices"
	"testing"
)

// bigRound has as many ports as a fabric of 11,664 hosts on three tiers of switches
// (pgft:m=18/18/36,w=1/18/18,p=1/1/1), most of them alike.
func bigRound() round {
	r := testRound(69984, "leaf")
	for i := range r.rows {
		r.rows[i].name = fmt.Sprintf("leaf-%d/%d", i/36, i%36+1)
		r.rows[i].peer = fmt.Sprintf("spine-%d/%d", i%648, i/648)
	}
	return r
}

// BenchmarkRound is what a round takes, but for its datagrams.
func BenchmarkRound(b *testing.B) {
	t := newTable(Options{Name: "net"})
	r := bigRound()
	for b.Loop() {
		next := r
		next.rows = slices.Clone(r.rows)
		t.add(next)
		t.lines(200, 0, 50)
	}
}

// BenchmarkKey is what a key takes that sorts anew.
func BenchmarkKey(b *testing.B) {
	t := newTable(Options{Name: "net"})
	t.add(bigRound())
	s := &screen{table: t, height: 50}
	keys := []string{"w", "d", "e"}
	for i := 0; b.Loop(); i++ {
		s.press(keys[i%3])
		t.lines(200, 0, 50)
	}
}

// BenchmarkFilter is what a letter of the filter takes.
func BenchmarkFilter(b *testing.B) {
	t := newTable(Options{Name: "net"})
	t.add(bigRound())
	s := &screen{table: t, height: 50}
	for i := 0; b.Loop(); i++ {
		s.filter([]string{"leaf-1", "spine-64*/3", ""}[i%3])
		t.lines(200, 0, 50)
	}
}
