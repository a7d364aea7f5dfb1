package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"fabsh/fabric"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/sa"
	"fabsh/mad"
)

// TestCounters: a rise of VL15Dropped is found on each port of each switch that a change
// writes, and at the other end of its link. A counter at its maximum cannot rise: the cost,
// which is stated first, names its port.
func TestCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=8,levels=2")
		e := r.engine(-1, nil)
		defer e.Close()
		client := &sa.Client{Engine: e}
		manager, err := client.FindSM(t.Context(), r.f)
		if err != nil {
			t.Fatal(err)
		}
		add := func(p *fabric.Port, n uint64) {
			if err := r.subnet.Counters.Add(p.Node().GUID(), p.Num(), "VL15Dropped", n); err != nil {
				t.Fatal(err)
			}
		}
		watched := map[*fabric.Port]bool{}
		var last *fabric.Port
		for _, c := range r.cells {
			for p := range r.f.NodeByGUID(c.Node)[0].Ports() {
				if p.Peer() != nil {
					watched[p], watched[p.Peer()], last = true, true, p
				}
			}
		}
		checks, err := apply.NewChecks(t.Context(), client, r.f, manager, r.cells)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := checks.Cost(), fmt.Sprintf("after each round the counters of %d ports are read, by %d datagrams", len(watched), 2*len(watched)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		ports := r.f.Ports()
		for i := range ports {
			p := &ports[i]
			if !watched[p] {
				continue
			}
			if checks, err = apply.NewChecks(t.Context(), client, r.f, manager, r.cells); err != nil {
				t.Fatal(err)
			}
			add(p, 1)
			var failed *apply.CheckError
			if err := checks.Between(t.Context(), []mad.GUID{r.cells[0].Node}); !errors.As(err, &failed) || failed.Reason != "VL15Dropped of "+p.Name()+" has risen by 1" {
				t.Errorf("VL15Dropped of %s has risen: %v", p.Name(), err)
			}
		}
		add(last, 1<<20)
		if checks, err = apply.NewChecks(t.Context(), client, r.f, manager, r.cells); err != nil {
			t.Fatal(err)
		}
		if want := "; VL15Dropped of 1 port cannot be read or is at its maximum, so it is not watched: " + last.Name(); !strings.HasSuffix(checks.Cost(), want) {
			t.Errorf("%q, want %q at the end", checks.Cost(), want)
		}
	})
}
