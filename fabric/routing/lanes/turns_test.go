package lanes

import (
	"testing"
)

// TestTurnsTogether: turns around a ring, of which all but two are in the set, close no cycle each by
// itself, but both together. The set stays as it was.
func TestTurnsTogether(t *testing.T) {
	n := &Network{Base: []int32{0}}
	for s := range int32(4) { // channel 2s leads to the next switch, and 2s+1 to the one before
		next, before := (s+1)%4, (s+3)%4
		n.From, n.To = append(n.From, s, s), append(n.To, next, before)
		n.Reverse, n.Base = append(n.Reverse, 2*next+1, 2*before), append(n.Base, 2*s+2)
	}
	turns := NewTurns(n)
	turns.Add(0, 2)
	turns.Add(2, 4)
	last := []Turn{{4, 6}, {6, 0}}
	for range 2 {
		if !turns.AdmitsAll(last[:1]) || !turns.AdmitsAll(last[1:]) || turns.AdmitsAll(last) {
			t.Error("want each of two turns, and not both")
		}
	}
	turns.AddAll(last[:1])
	if !turns.Admits(last[0].From, last[0].To) || turns.Admits(last[1].From, last[1].To) {
		t.Error("the first turn was not added")
	}
}
