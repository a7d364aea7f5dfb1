package change_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fabsh/fabric/change"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// cyclicAfter reports, by the number of rounds that are done, whether the tables have a
// credit loop: it writes the rounds of a certificate, and verifies the tables after each.
func cyclicAfter(t *testing.T, old *routes.Routes, p *change.Plan) (cyclic []bool) {
	t.Helper()
	judge := func(r *routes.Routes) {
		v, err := verify.Tables(t.Context(), r, verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cyclic = append(cyclic, !v.Acyclic)
	}
	now, changes := old.UpTo(old.Top()), p.Changes()
	judge(now)
	for _, round := range p.Certificate.Rounds {
		for _, w := range round.Writes {
			c := &changes[w.Change]
			copy(now.WritableRow(now.Graph().SwitchByGUID(c.Node))[int(c.Modifier)*mad.LFTBlock:], w.Data)
		}
		judge(now)
	}
	return cyclic
}

// TestOldCreditLoop: where the tables in force have a credit loop, plan and certificate name
// the round that ends it, as verdicts on the tables after each round show it; elsewhere they
// state that no loop exists.
func TestOldCreditLoop(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	count := map[string]int{}
	for i := range 120 {
		spec := []string{"ring:n=5,hosts=1", "ring:n=7,hosts=2", "torus:dims=3/3,hosts=1", "random:n=10,degree=3,hosts=1,seed=4"}[random.IntN(4)]
		g := swept(t, spec).Graph()
		old := computed(t, g, []string{"minhop", "minhop", "updn"}[random.IntN(3)], engines.Options{}).On(g)
		goal := computed(t, g, "updn", engines.Options{Roots: []int{random.IntN(5)}})
		target := old.UpTo(old.Top())
		share := 1 + random.IntN(4)
		for s := range g.Switches() { // some of the LIDs change
			for lid := range target.Row(s) {
				if lid*7%4 < share {
					target.WritableRow(s)[lid] = goal.Row(s).Port(mad.LID(lid))
				}
			}
		}
		p := planOf(t, old, target, change.Tables{})
		if !p.Report.OK || p.Certificate == nil || len(p.Certificate.Rounds) == 0 {
			count["refused or empty"]++
			continue
		}
		cyclic := cyclicAfter(t, old, p)
		last := -1 // rounds after which there is a credit loop
		for done, is := range cyclic {
			if is {
				last = done
			}
		}
		loops, want := "no packet loops or is lost, and no credit loop arises, at every step", "loop-free and credit-loop-free at every step"
		if cyclic[0] {
			end := fmt.Sprintf("until round %d", last+1)
			if last == len(cyclic)-1 {
				end = "after the change"
			}
			loops = "no credit loop beyond that of the tables in force, which remains " + end
			want = "loop-free at every step, whatever the order within a round; " + loops
			count[end]++
		} else {
			count["none"]++
		}
		if got := p.Line(p.Report); !strings.Contains(got, want) {
			t.Errorf("change %d: %q, want %q", i, got, want)
		}
		read := reread(t, p, same)
		if read.Recorded.OldLoop != p.Report.OldLoop {
			t.Errorf("change %d: the file has %q, want %q", i, read.Recorded.OldLoop, p.Report.OldLoop)
		}
		proven, err := read.CheckCertificate(t.Context(), &change.Tables{Live: old})
		if err != nil {
			t.Fatal(err)
		}
		if got := read.Verified(proven); !strings.Contains(got, loops) {
			t.Errorf("change %d: certificate: %q, want %q", i, got, loops)
		}
	}
	t.Log(count)
	for _, kind := range []string{"none", "until round 1", "until round 2", "after the change"} {
		if count[kind] == 0 {
			t.Errorf("no case of %q", kind)
		}
	}
}
