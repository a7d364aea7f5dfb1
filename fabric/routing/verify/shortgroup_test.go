package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// shortGroups are the switches with short groups, and how many they have.
func shortGroups(t *testing.T, r *routes.Routes) string {
	t.Helper()
	counts, err := verify.ShortGroups(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for s, n := range counts {
		if n != 0 {
			list = append(list, fmt.Sprintf("%s %d", r.Graph().Switches()[s].Name(), n))
		}
	}
	return strings.Join(list, ", ")
}

// TestShortGroups: whole fat trees have no short groups; where a link is missing,
// they are those of its leaf to all others, and those of all others to it.
func TestShortGroups(t *testing.T) {
	for _, x := range [][2]string{{"fattree:k=8", "updn"}, {"fattree:k=4,levels=3", "ftree"}, {"pgft:m=3/4/2,w=1/2/3,p=1/1/2", "updn"}} {
		g := routingtest.Graph(t, x[0], graph.BuildOptions{})
		if got := shortGroups(t, compute(t, g, x[1], engines.Options{Adaptive: true})); got != "" {
			t.Errorf("%s, %s: %s", x[0], x[1], got)
		}
	}
	g := routingtest.Graph(t, "fattree:k=8,levels=2,remove_links=1,seed=1", graph.BuildOptions{})
	r := compute(t, g, "updn", engines.Options{Adaptive: true})
	var leaf string // with three links up
	var others []string
	for s, n := range g.Switches() {
		if strings.HasPrefix(n.Name(), "leaf-") {
			others = append(others, n.Name()+" 1")
			if g.FirstChannel(s+1)-g.FirstChannel(s) == 3 {
				leaf = n.Name()
			}
		}
	}
	if got, want := shortGroups(t, r), strings.Join(others, ", "); got != want || leaf == "" {
		t.Errorf("got %s, want %s", got, want)
	}
	// A group is short also where a port of it has no link; and where switches are static or
	// unknown, the number is unknown.
	g = routingtest.Graph(t, "fattree:k=8", graph.BuildOptions{})
	r = compute(t, g, "updn", engines.Options{Adaptive: true})
	for i, change := range []func(a *adaptive.Switch, group int){
		func(a *adaptive.Switch, group int) { a.Tables[0].Groups.Set(group, 0, adaptive.PortSet(5, 6, 7, 40)) },
		func(a *adaptive.Switch, _ int) { a.Unknown = "no answer" },
		func(a *adaptive.Switch, _ int) { a.Enabled = false },
	} {
		s := routingtest.SwitchNamed(t, g, fmt.Sprintf("leaf-%d", i+1))
		a := r.Adaptive(s).Clone()
		a.Tables[0] = a.Tables[0].WithPorts(slices.Clone(r.Row(s)))
		change(a, int(a.Tables[0].Entry(routingtest.LID(t, g, "node-0032 HCA-1")).Group))
		r.SetAdaptive(s, a)
	}
	if got, want := shortGroups(t, r), "leaf-1 1, leaf-2 -1, leaf-3 -1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
