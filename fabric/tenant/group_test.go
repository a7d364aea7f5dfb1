package tenant_test

import (
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/tenant"
	"fabsh/mad"
)

// TestGroupPaths: without a unicast path, tenants that share a partition reach each other only by a
// multicast group of that partition which the receiver has joined; if groups are unknown, so is
// the verdict.
func TestGroupPaths(t *testing.T) {
	f := swept(t, "fattree:k=4,levels=2")
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := routingtest.Computing(engines.Compute)(t, g, "minhop", engines.Options{})
	port := func(name string) *fabric.Port {
		n, err := f.FindNode(name)
		if err != nil {
			t.Fatal(err)
		}
		return n.Port(1)
	}
	red, blue := port("node-0001"), port("node-0003")
	for s := range g.Switches() {
		r.EditRow(s)[red.LID()], r.EditRow(s)[blue.LID()] = mad.NoPort, mad.NoPort
	}
	file := &tenant.File{Tenants: []tenant.Tenant{{Name: "red", GUIDs: []mad.GUID{red.GUID()}}, {Name: "blue", GUIDs: []mad.GUID{blue.GUID()}}}}
	m, err := file.On(f)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		groups []tenant.Group
		want   tenant.Verdict
	}{
		"unknown":           {nil, tenant.Unknown},
		"no group":          {[]tenant.Group{}, tenant.Isolated},
		"receiver":          {[]tenant.Group{{MGID: "ff12::1", Key: 0x8012, Members: []*fabric.Port{blue}}}, tenant.Reaches},
		"limited":           {[]tenant.Group{{MGID: "ff12::1", Key: 0x12, Members: []*fabric.Port{blue}}}, tenant.Reaches},
		"sender":            {[]tenant.Group{{MGID: "ff12::1", Key: 0x8012, Members: []*fabric.Port{red}}}, tenant.Isolated},
		"another partition": {[]tenant.Group{{MGID: "ff12::1", Key: 0x8013, Members: []*fabric.Port{red, blue}}}, tenant.Isolated},
		"second group":      {[]tenant.Group{{MGID: "ff12::1", Key: 0x8012}, {MGID: "ff12::2", Key: 0x8012, Members: []*fabric.Port{blue}}}, tenant.Reaches},
	} {
		facts := &tenant.Facts{Tables: map[*fabric.Port][]uint16{red: {0x8012}, blue: {0x8012}}, Routes: r, Groups: test.groups}
		report, err := tenant.Judge(t.Context(), m, facts)
		if err != nil {
			t.Fatal(err)
		}
		p := report.Pairs[0]
		if p.From != 0 || p.To != 1 || p.Verdict != test.want {
			t.Errorf("%s: %s, want %s: %s", name, p.Verdict, test.want, p.Reason)
		}
		if name == "second group" && (p.Example == nil || p.Example.Group != "ff12::2" || !strings.Contains(p.Reason, "ff12::2")) {
			t.Errorf("%s: %s", name, p.Reason)
		}
	}
}
