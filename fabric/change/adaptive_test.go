package change_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// staticPlan is a plan that disables adaptive routing where its tables change, and at some
// other switches by a write that changes no entry.
func staticPlan(t testing.TB, random *rand.Rand, old, target *routes.Routes, choices []*adaptive.Switch) *change.Plan {
	t.Helper()
	g := old.Graph()
	p := planOf(t, old, target, change.Tables{Adaptive: choices})
	p.Static = true
	var on []*fabric.Node
	for s, n := range g.Switches() {
		if !choices[s].Active() {
			continue
		}
		if on = append(on, n); random.IntN(2) == 0 {
			block := make([]byte, mad.LFTBlock)
			for i := range block {
				block[i] = old.Row(s).Port(mad.LID(i))
			}
			if !slices.ContainsFunc(p.Sets, func(x certificate.Change) bool { return x.Node == n.GUID() }) {
				p.Sets = append(p.Sets, certificate.Change{Attr: mad.AttrLinearForwardingTable, Node: n.GUID(), Name: n.Name(), Old: block, New: block})
			}
		}
	}
	if err := p.Judge(on); err != nil {
		t.Fatal(err)
	}
	if err := p.Certify(t.Context(), &change.Tables{Live: old, Adaptive: choices}); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCertifyStatic: a plan that disables adaptive routing has a certificate that holds after
// it was written and read, and does not hold for other choices that it does not cover.
func TestCertifyStatic(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	count := map[string]int{}
	for i := range 60 {
		n := 4 + random.IntN(4)
		g := swept(t, fmt.Sprintf("random:n=%d,degree=%d,hosts=1,remove_links=%d,seed=%d", n, 3+n%2, random.IntN(3), random.IntN(1<<20))).Graph()
		updn := func(adaptive bool) *routes.Routes {
			return computed(t, g, "updn", engines.Options{Adaptive: adaptive, Roots: []int{random.IntN(n) / 2}})
		}
		r := updn(true)
		old := r.StaticPart()
		choices := routes.ActiveSwitches(r)
		p := staticPlan(t, random, old, updn(false), choices)
		if p.Certificate == nil {
			count["refused"]++
			continue
		}
		count["certified"]++
		read := reread(t, p, same)
		if !read.Static || !slices.Equal(read.Disables, p.Disables) || len(read.Changes()) != len(p.Changes()) {
			t.Fatalf("plan %d: read as %+v, %d changes", i, read.Disables, len(read.Changes()))
		}
		if _, err := read.CheckCertificate(t.Context(), &change.Tables{Live: old, Adaptive: choices}); err != nil {
			t.Errorf("plan %d: %v", i, err)
		}
		if len(p.Disables) == 0 {
			continue
		}
		other := updn(true)
		s := random.IntN(n)
		if err := other.SetChoices(s, []mad.LID{1 + mad.LID(random.IntN(int(old.Top())))}, adaptive.PortSet(1, uint8(g.Switches()[s].NumPorts()))); err != nil {
			t.Fatal(err)
		}
		_, err := read.CheckCertificate(t.Context(), &change.Tables{Live: old, Adaptive: routes.ActiveSwitches(other)})
		if failed := new(certificate.FailureError); errors.As(err, &failed) {
			count["other choices refused"]++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Log(count)
	if count["certified"] < 20 || count["other choices refused"] < 10 {
		t.Error("too few of a kind")
	}
}

// TestUnknownChoices: nothing is proven where the choices of a switch are unknown.
func TestUnknownChoices(t *testing.T) {
	g := swept(t, "ring:n=4").Graph()
	old := computed(t, g, "updn", engines.Options{Roots: []int{0}})
	choices := make([]*adaptive.Switch, 4)
	choices[2] = &adaptive.Switch{Enabled: true, Unknown: "no answer"}
	p := planOf(t, old, computed(t, g, "updn", engines.Options{Roots: []int{2}}), change.Tables{Adaptive: choices})
	const want = `the choices of adaptive routing at "switch-3" (0x0002c90300100020) are unknown, so nothing is proven: no answer`
	if p.Report.OK || !strings.HasPrefix(p.Report.Reason, want) || p.Certificate != nil {
		t.Errorf("%+v", p.Report)
	}
}
