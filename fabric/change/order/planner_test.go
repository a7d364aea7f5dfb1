package order

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// needsDrain is a change whose plan waits.
func needsDrain(t *testing.T) (Input, *Schedule) {
	t.Helper()
	for _, c := range hardCases(t, true, 100) {
		if s, err := Plan(t.Context(), c.in); err == nil && s.Wait() > 0 && len(s.Rounds[0].Writes) > 0 {
			return c.in, s
		}
	}
	t.Fatal("no plan waits")
	return Input{}, nil
}

// TestProveRefuses: a schedule from elsewhere may be anything.
func TestProveRefuses(t *testing.T) {
	for _, c := range []struct {
		what string
		do   func(in *Input, s *Schedule)
		want string
	}{
		{"as planned", func(*Input, *Schedule) {}, ""},
		{"no change", func(_ *Input, s *Schedule) { s.Rounds[0].Writes[0].Change = 1000 }, "change 1000 does not exist"},
		{"a negative change", func(_ *Input, s *Schedule) { s.Rounds[0].Writes[0].Change = -1 }, "change -1 does not exist"},
		{"a short block", func(_ *Input, s *Schedule) { s.Rounds[0].Writes[0].Data = []byte{1} }, "neither of the old nor of the new tables"},
		{"twice in a round", func(_ *Input, s *Schedule) {
			s.Rounds[0].Writes = append(s.Rounds[0].Writes, s.Rounds[0].Writes[0])
		}, "written twice"},
		{"a write too few", func(_ *Input, s *Schedule) { s.Rounds[len(s.Rounds)-1].Writes = nil }, "is not that of the new tables"},
		{"another entry", func(_ *Input, s *Schedule) { s.Rounds[len(s.Rounds)-1].Writes[0].Data[3] ^= 1 }, "is not that of the new tables"},
		{"a short drain", func(_ *Input, s *Schedule) {
			for r := range s.Rounds {
				s.Rounds[r].Drain /= 2
			}
		}, "may deadlock"},
		{"no bound on drains", func(in *Input, _ *Schedule) { in.Drain = nil }, "may deadlock"},
		{"lanes that do not differ", func(in *Input, s *Schedule) {
			in.number()
			in.Changes = append(in.Changes, certificate.Change{Attr: mad.AttrSLtoVLMappingTable, Node: in.Changes[0].Node})
			in.at = append(in.at, place{s: -1})
			s.Rounds = append(s.Rounds, certificate.Round{Writes: []certificate.Write{{Change: len(in.at) - 1}}})
		}, "SL2VL"},
		{"pairs lost", func(in *Input, _ *Schedule) {
			in.New = in.New.Clone()
			for lid := range in.New.Row(0) {
				in.New.Row(0)[lid] = mad.NoPort
			}
		}, "is not that of the new tables"},
	} {
		in, s := needsDrain(t)
		c.do(&in, s)
		_, err := Prove(t.Context(), in, s)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.what, err, c.want)
		}
	}
}

// TestPlanRefuses: with no bound on drains, or pairs that are lost, there is no plan
// unless that is accepted.
func TestPlanRefuses(t *testing.T) {
	in, waits := needsDrain(t)
	for r, round := range waits.Rounds {
		if round.Drain != 0 && round.Drain != 2*time.Second { // a switch, and the one behind the link
			t.Errorf("round %d waits %v", r, round.Drain)
		}
	}
	in.Drain = slices.Clone(in.Drain)
	in.Drain[0] = 0
	if s, err := Plan(t.Context(), in); err == nil && s.Wait() > 0 {
		t.Error("a plan waits where a switch keeps packets for ever")
	}
	in.AcceptCreditLoops = true
	if s, err := Plan(t.Context(), in); err != nil || s.Figures.Cycle == nil {
		t.Errorf("a credit loop that is accepted: %v", err)
	}
	whole, _ := graphs(t, "fattree:k=4,levels=2", 0)
	old := compute(t, whole, "ftree", engines.Options{})
	in = Input{Old: old, New: old.Clone()}
	if s, err := Plan(t.Context(), in); err != nil || len(s.Rounds) != 0 {
		t.Errorf("no change: %+v, %v", s, err)
	}
	host := whole.LIDs(graph.ClassCN)[0]
	for s := range whole.Switches() {
		in.New.Row(s)[host] = mad.NoPort
	}
	if _, err := Plan(t.Context(), in); err == nil || !strings.Contains(err.Error(), "none in the new tables") {
		t.Errorf("a host is cut off: %v", err)
	}
	in.AcceptLost = true
	if s, err := Plan(t.Context(), in); err != nil || s.Figures.Lost == 0 {
		t.Errorf("a host is cut off, and that is accepted: %v", err)
	}
}

// TestLast: blocks of the LIDs that are cut last are last in each round.
func TestLast(t *testing.T) {
	whole, _ := graphs(t, "fattree:k=8,levels=3", 0)
	in := Input{Old: compute(t, whole, "minhop", engines.Options{Policy: engines.LeastLoaded}), New: compute(t, whole, "ftree", engines.Options{})}
	in.Last = []mad.LID{70}
	s, err := Plan(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for r, round := range BlocksOf(in, s) {
		if i := slices.IndexFunc(round.Blocks, func(b Block) bool { return b.Number == 1 }); i >= 0 {
			for _, b := range round.Blocks[i:] {
				if b.Number != 1 {
					t.Fatalf("round %d: block %d after one that is last", r, b.Number)
				}
			}
		}
	}
}

// TestWorkers: schedule, or refusal, do not depend on the number of workers.
func TestWorkers(t *testing.T) {
	plan := func(workers, root int) string {
		g, err := graph.New(topology(t, "mesh:dims=4/4,hosts=5"), graph.BuildOptions{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		in := Input{Old: compute(t, g, "updn", engines.Options{Roots: []int{0}}), New: compute(t, g, "updn", engines.Options{Roots: []int{root}})}
		in.Drain = slices.Repeat([]time.Duration{time.Second}, len(g.Switches()))
		s, err := Plan(t.Context(), in)
		return fmt.Sprintf("%v %v", s, err)
	}
	for root := 1; root < 16; root += 3 {
		one := plan(1, root)
		if four := plan(4, root); one != four {
			t.Errorf("root %d: %.200s with one worker, %.200s with four", root, one, four)
		}
	}
}
