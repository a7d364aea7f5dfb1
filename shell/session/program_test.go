package session

import (
	"testing"
)

func TestWorse(t *testing.T) {
	order := []int{0, 1, 3, 2, 130}
	for i, a := range order {
		for j, b := range order {
			if got, want := Worse(a, b), order[max(i, j)]; got != want {
				t.Errorf("Worse(%d, %d) = %d, want %d", a, b, got, want)
			}
		}
	}
}
