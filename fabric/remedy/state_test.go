package remedy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// badRuns returns in how many of the latest n runs it was proposed to isolate the link.
func badRuns(p *Past, s *State, n int) (bad int) {
	for _, t := range s.Runs[max(0, len(s.Runs)-n):] {
		if slices.ContainsFunc(p.Bad, t.Equal) {
			bad++
		}
	}
	return bad
}

// TestRepeatedRun: a run on findings of an earlier run does not count again, also if another run
// was between.
func TestRepeatedRun(t *testing.T) {
	s := new(State)
	for _, e := range []Entry{run(0), isolation(0, "runs"), run(0), isolation(1, "runs"), run(5), run(9), isolation(9, "runs")} {
		s.Add(&e)
	}
	if got := fmt.Sprint(badRuns(s.at(a), s, 5), badRuns(s.at(b), s, 2), len(s.Runs)); got != "2 1 3" {
		t.Errorf("bad runs of 5, of 2, and runs: %s; want 2 1 3", got)
	}
	for _, e := range []Entry{run(0), isolation(10, "runs"), run(9), isolation(11, "runs")} {
		s.Add(&e)
	}
	if got := fmt.Sprint(badRuns(s.at(a), s, 5), len(s.Runs), s.Runs[2].Equal(at(9))); got != "2 3 true" {
		t.Errorf("bad runs of 5, runs, and whether the latest is last: %s; want 2 3 true", got)
	}
}

// TestPlannedAgain: a plan that is made again does not hide the journal of the first, and one of
// yesterday does not count.
func TestPlannedAgain(t *testing.T) {
	s := new(State)
	for _, test := range []struct {
		minutes int
		want    time.Time
	}{{0, at(0)}, {15, at(0)}, {24*60 - 1, at(0)}, {24 * 60, at(24 * 60)}, {60, at(60)}} { // at last the clock was set back
		e := isolation(test.minutes, "")
		if s.Add(&e); !s.at(a).Planned.Equal(test.want) {
			t.Errorf("after %d min: %v, want %v", test.minutes, s.at(a).Planned, test.want)
		}
	}
}

// TestMovedCable: the link to which the other end of an isolated port was moved has a past of its
// own.
func TestMovedCable(t *testing.T) {
	s := new(State)
	moved := isolation(2, "")
	moved.Port, moved.Peer, moved.Name = b, Place{0x30, 9}, "spine-1/7 - leaf-9/9"
	for _, e := range []Entry{run(0), isolation(0, ""), {At: at(1), Kind: KindApplied, Action: Isolate, Port: a, Peer: b, Name: "leaf-1/3 - spine-1/7"}, run(2), moved} {
		s.Add(&e)
	}
	want := []*Past{
		{Port: a, Name: "leaf-1/3 - spine-1/7", Bad: []time.Time{at(0)}, Isolated: at(1), Last: at(1), Times: 1},
		{Port: b, Peer: moved.Peer, Name: moved.Name, Bad: []time.Time{at(2)}, Planned: at(2)},
	}
	if diff := cmp.Diff(want, s.Ports); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
