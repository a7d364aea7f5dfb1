package suspect

import (
	"fmt"
	"strings"
	"testing"

	"fabsh/fabric/routing/routingtest"
)

// TestFlows: the ports that a measurement is between, of hosts with two adapters.
func TestFlows(t *testing.T) {
	r := computed(t, routingtest.Topology(t, "fattree:k=4,levels=2,rails=2"))
	g := r.Graph()
	e := newEnds(g)
	second := fmt.Sprint(routingtest.LID(t, g, "node-0001 HCA-2"))
	for _, test := range []struct {
		m    Measurement
		want string
	}{
		{Measurement{From: "node-0001", To: "node-0002"}, "1/1 2/1, 1/2 2/2"},
		{Measurement{From: "node-0001", To: "node-0002", Both: true}, "1/1 2/1, 1/2 2/2, 2/1 1/1, 2/2 1/2"},
		{Measurement{From: "node-0001", To: "node-0002", Rail: 2}, "1/2 2/2"},
		{Measurement{From: "node-0001", To: "node-0002", Rail: 3}, "node-0001 has no adapter port 3"},
		{Measurement{From: second, To: "node-0002"}, "1/2 2/2"},
		{Measurement{From: "node-0002", To: "node-0001 HCA-2"}, "2/2 1/2"},
		{Measurement{From: second, To: "node-0002 HCA-1"}, "1/2 2/1"},
		{Measurement{From: "node-0001", To: "node-0001 HCA-1"}, "both ends are the same port"},
		{Measurement{Group: []string{"node-0001", "node-0002", "node-0003"}, Rail: 1}, "1/1 2/1, 2/1 3/1, 3/1 1/1"},
		{Measurement{Group: []string{"node-0001", "node-0002", "node-0003"}, AllToAll: true, Rail: 1}, "1/1 2/1, 1/1 3/1, 2/1 1/1, 2/1 3/1, 3/1 1/1, 3/1 2/1"},
		{Measurement{Group: []string{"node-0001", "node-0009", "x"}}, "unknown node-0009 x"},
	} {
		flows, unknown, reason := e.flows(&test.m)
		var texts []string
		short := func(x end) string {
			name := g.Terminals()[x.terminal].Port.Node().Name()
			return strings.NewReplacer("node-000", "", " HCA-", "/").Replace(name)
		}
		for _, f := range flows {
			texts = append(texts, short(f.from)+" "+short(f.to))
		}
		got := reason + strings.Join(texts, ", ")
		if unknown != nil {
			got = "unknown " + strings.Join(unknown, " ")
		}
		if got != test.want {
			t.Errorf("%+v: %s, want %s", test.m, got, test.want)
		}
	}
	for _, term := range g.Terminals() {
		if !term.IsEndpoint(0) {
			continue
		}
		if list := e.find(Name(g, term.Port)); len(list) != 1 || g.Terminals()[list[0].terminal].Port != term.Port {
			t.Errorf("%s is not found by its name", term.Port.Name())
		}
	}
}
