package serve

import (
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/routingtest"
)

// TestMapOrders: the map has tiles of groups, tiers, rails and racks; what is not known says how to give it.
func TestMapOrders(t *testing.T) {
	one := siteOf(t, reportOf(routingtest.Topology(t, "fattree:k=4,levels=2")), "")
	two := siteOf(t, reportOf(routingtest.Topology(t, "fattree:k=4,levels=2,rails=2")), "")
	planned := siteOf(t, reportOf(routingtest.Topology(t, "fattree:k=4,levels=2")), "")
	b := fabric.NewBuilder()
	places := []fabric.Place{}
	for _, x := range [][2]string{{"leaf-1", "A1"}, {"leaf-2", "A1"}, {"leaf-3", "A2"}, {"node-0001 HCA-1", "A1"}, {"other", "B1"}} {
		b.AddNode(fabric.NodeSpec{Name: x[0]})
		places = append(places, fabric.Place{Rack: x[1]})
	}
	b.SetPlan(&fabric.Plan{Places: places, Rails: []string{"east", "", "", "", ""}})
	planned.Plan = b.Build()
	for _, test := range []struct {
		site    *Site
		address string
		want    []string
	}{
		{one, "/map", []string{"Group"}},
		{one, "/map?order=tiers", []string{"tier 1 (leaves)", "tier 2"}},
		{one, "/map?order=rails", []string{"Rails are not known", "fabsh serve --cabling FILE"}},
		{one, "/map?order=racks", []string{"Racks are not known", "fabsh serve --cabling FILE"}},
		{one, "/map?order=x", []string{"want one of groups, tiers, rails, racks"}},
		{two, "/map?order=rails", []string{"Rail 1", "Rail 2"}},
		{two, "/map?order=rails&by=load&open=rail-1", []string{"Rail 1", "leaf-1"}},
		{planned, "/map?order=racks&open=rack-1", []string{"Rack A1", "Rack A2", "In no rack of the plan", "leaf-2", "node-0001 HCA-1"}},
		{planned, "/map?order=rails", []string{"Rail east", "Several rails"}},
		{planned, "/link/leaf-1/1", []string{"rack A1, rail east"}},
	} {
		w := ask(t, test.site, "GET", test.address, "")
		for _, want := range test.want {
			if got := text(w.Body.String()); !strings.Contains(got, want) {
				t.Errorf("%s: %d, without %q: %s", test.address, w.Code, want, got)
			}
		}
	}
}

// TestRails: rails are the adapters of hosts, and switches above are of the rail of those below.
func TestRails(t *testing.T) {
	of, most := rails(routingtest.Topology(t, "fattree:k=4,levels=2,rails=2"))
	if most != 2 {
		t.Errorf("%d rails", most)
	}
	for n, rail := range of {
		if name := n.Name(); strings.HasPrefix(name, "leaf") && rail != 2-int(name[len(name)-1]-'0')%2 {
			t.Errorf("%s: rail %d", name, rail)
		}
		if strings.HasPrefix(n.Name(), "spine") && rail != 0 {
			t.Errorf("%s: rail %d; it serves both", n.Name(), rail)
		}
	}
}
