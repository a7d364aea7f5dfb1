package serve

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/history"
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

// TestCompareMaps: two times are on two maps, with marks at both ends of a link that only one has.
func TestCompareMaps(t *testing.T) {
	before, after := madeFabric(t, 4, 2, 2, nil), madeFabric(t, 4, 2, 2, nil, "leaf-2 - spine-1")
	s := siteOf(t, reportOf(after), recorded(t, before, after))
	w := ask(t, s, "GET", "/time?t1="+noon.Add(-time.Hour).Format(fieldTime)+"&t2=now", "")
	page := w.Body.String()
	if n := strings.Count(page, `class="c plan" x=`); n != 4 || !strings.Contains(text(page), "differs") {
		t.Errorf("%d marks, want leaf-2 and spine-1 twice: %s", n, text(page))
	}
	if n := strings.Count(page, `<h3><a href="/map?at=`); n != 2 {
		t.Errorf("%d maps", n)
	}
}

// TestBERPlot: rates that were recorded are a course on a scale of decades, with the limit; without any
// there is no plot.
func TestBERPlot(t *testing.T) {
	f := madeFabric(t, 2, 1, 1, nil)
	leaf := f.NodeByName("leaf-1")[0]
	path := filepath.Join(t.TempDir(), "history.db")
	r, err := history.NewRecorder(t.Context(), path, fabric.Subnet{Given: "lab"}, noon.Add(-2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for i, rate := range []float64{1e-12, 1e-10, 1e-8} {
		c := history.Cycle{Time: noon.Add(time.Duration(i-2) * time.Hour), Every: time.Hour, Source: "test", Fabric: f,
			Rates: []history.BER{{Node: leaf.GUID(), Port: 1, Up: time.Hour, Raw: 1e-8, Effective: rate, Symbol: 0}}}
		if _, err := r.Record(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	s := siteOf(t, reportOf(f), path)
	page := ask(t, s, "GET", "/link/leaf-1/1", "").Body.String()
	if !strings.Contains(page, `<line class="limit"`) || !regexp.MustCompile(`points="[0-9.]+,56\.9 [0-9.]+,43\.1 [0-9.]+,29\.4"`).MatchString(page) {
		t.Errorf("%s", regexp.MustCompile(`<polyline[^>]*>`).FindAllString(page, -1))
	}
	if page := ask(t, s, "GET", "/link/leaf-2/1", "").Body.String(); strings.Contains(page, "Bit error rate</h3>") || strings.Contains(page, `class="limit"`) {
		t.Error("a plot without a rate")
	}
}
