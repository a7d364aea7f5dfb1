package jobs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

func tables(t testing.TB, net, name string) *routes.Routes {
	t.Helper()
	return tablesOf(t, routingtest.Graph(t, net, graph.BuildOptions{}), name)
}

func tablesOf(t testing.TB, g *graph.Graph, name string) *routes.Routes {
	t.Helper()
	r, err := engines.Compute(t.Context(), g, name, engines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// hostsOf are the names of hosts in the order of the scheduler.
func hostsOf(g *graph.Graph) (names []string) {
	for host := range portsOf(g).of {
		names = append(names, host)
	}
	slices.Sort(names)
	return names
}

// TestMeasureMatrix compares the traffic of random jobs with the traffic of the matrix of their
// flows, which follows each path on its own.
func TestMeasureMatrix(t *testing.T) {
	for i, net := range []string{"fattree:k=4,levels=3", "fattree:k=4,levels=2,rails=2", "torus:dims=3/3,hosts=2", "random:n=8", "dragonfly"} {
		r := tables(t, net, "updn")
		names := hostsOf(r.Graph())
		random := rand.New(rand.NewPCG(1, uint64(i)))
		for _, pattern := range onAnyNet() {
			var list []Job
			for k := range 5 {
				random.Shuffle(len(names), func(a, b int) { names[a], names[b] = names[b], names[a] })
				list = append(list, Job{ID: fmt.Sprint(k), Hosts: slices.Clone(names[:1+random.IntN(len(names))])})
			}
			m, err := Measure(t.Context(), r, list, pattern, 0)
			if err != nil {
				t.Fatal(err)
			}
			flows, err := Matrix(r.Graph(), list, pattern, 0)
			if err != nil {
				t.Fatal(err)
			}
			want, err := traffic.MeasureFlows(t.Context(), r, flows)
			if err != nil {
				t.Fatal(err)
			}
			for ch, load := range m.Loads {
				if math.Abs(load-want.Traffic[ch]) > 1e-9 {
					t.Errorf("%s, %s: channel %d has %v, want %v", net, pattern, ch, load, want.Traffic[ch])
				}
			}
			sum, lost := 0.0, int64(0)
			for _, j := range m.Jobs {
				lost += j.Lost
				if j.Ports > 1 && len(j.Missing) == 0 {
					sum += float64(j.Ports)
				}
			}
			total := 0.0
			for _, f := range flows {
				total += f.Traffic
			}
			if lost != 0 || m.At >= 0 && m.Loads[m.At] < slices.Max(m.Loads) || pattern == AllToAll && math.Abs(total-sum) > 1e-6 {
				t.Errorf("%s, %s: lost %d, most at %d, %v sent of %v", net, pattern, lost, m.At, total, sum)
			}
		}
	}
}

// TestMeasure: two jobs on both leaves of a pair share their links to the spines; a third one
// has a leaf to itself.
func TestMeasure(t *testing.T) {
	r := tables(t, "fattree:k=4,levels=2", "ftree") // two hosts at each of four leaves
	g := r.Graph()
	list := []Job{
		{ID: "a", Hosts: []string{"node-0001", "node-0003"}},
		{ID: "b", Hosts: []string{"node-0002", "NODE-0004.example.com", "gone-1"}},
		{ID: "c", Hosts: []string{"node-0005", "node-0006"}},
	}
	describe := func(pattern string) string {
		m, err := Measure(t.Context(), r, list, pattern, 0)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for i, j := range m.Jobs {
			s := FindPlaces(g.Fabric()).Spread(j.Hosts)
			fmt.Fprintf(&b, "%s: %v without %v, %d ports, alone %g, together %g, shares %d; leaves %d of %d, pods %d of %d\n", list[i].ID, j.Hosts, j.Missing, j.Ports, j.Alone, j.Together, j.Shared, s.Leaves, s.LeastLeaves, s.Pods, s.LeastPods)
		}
		for _, s := range m.Shared {
			fmt.Fprintf(&b, "%s %g %v\n", g.ChannelPort(int(s.Channel)).Name(), s.Traffic, s.Jobs)
		}
		return fmt.Sprintf("%sworst %d\n", b.String(), m.Worst)
	}
	got := describe(Ring)
	want := `a: [node-0001 node-0003] without [], 2 ports, alone 1, together 1, shares 0; leaves 2 of 1, pods 0 of 0
b: [node-0002 node-0004] without [gone-1], 2 ports, alone 1, together 1, shares 0; leaves 2 of 1, pods 0 of 0
c: [node-0005 node-0006] without [], 2 ports, alone 1, together 1, shares 0; leaves 1 of 1, pods 0 of 0
worst -1
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	r = tables(t, "ring:n=3,hosts=2", "minhop")
	g = r.Graph()
	list = []Job{
		{ID: "a", Hosts: []string{"node-0001", "node-0003", "node-0005"}}, // at each of three switches
		{ID: "b", Hosts: []string{"node-0002", "node-0004"}},
		{ID: "c", Hosts: []string{"node-0006"}},
	}
	got = describe(Ring)
	want = `a: [node-0001 node-0003 node-0005] without [], 3 ports, alone 1, together 2, shares 1; leaves 3 of 2, pods 0 of 0
b: [node-0002 node-0004] without [], 2 ports, alone 1, together 2, shares 1; leaves 2 of 1, pods 0 of 0
c: [node-0006] without [], 1 ports, alone 1, together 1, shares 0; leaves 1 of 1, pods 0 of 0
switch-1/4 2 [0 1]
worst 0
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := Measure(t.Context(), r, list, "gather", 0); fmt.Sprint(err) != `unknown pattern "gather"; supported: `+strings.Join(Patterns(), ", ") {
		t.Error(err)
	}
}

// TestMeasureWithoutLIDs: a host whose ports have no LID, or the LID of another port, is missing.
func TestMeasureWithoutLIDs(t *testing.T) {
	lids := func(p *fabric.Port) (mad.LID, int) {
		switch p.Node().Name() {
		case "node-0001 HCA-1":
			return 0, 0
		case "node-0002 HCA-1", "node-0003 HCA-1":
			return 1000, 0
		}
		return mad.LID(p.ID() + 1), 0
	}
	r, err := engines.Compute(t.Context(), routingtest.Graph(t, "fattree:k=4,levels=2", graph.BuildOptions{LIDs: lids}), "minhop", engines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := []Job{{ID: "a", Hosts: []string{"node-0001", "node-0002", "node-0003", "node-0005"}}}
	for _, pattern := range onAnyNet() {
		m, err := Measure(t.Context(), r, list, pattern, 0)
		if err != nil {
			t.Fatal(err)
		}
		if j := m.Jobs[0]; fmt.Sprint(j.Missing, j.Ports, j.Lost) != "[node-0001 node-0003] 2 0" {
			t.Errorf("%s: missing %v, %d ports, lost %d", pattern, j.Missing, j.Ports, j.Lost)
		}
		flows, err := Matrix(r.Graph(), list, pattern, 0)
		if want := 2 - routingtest.Count(pattern == "incast"); err != nil || len(flows) != want {
			t.Errorf("%s: %v, %v", pattern, flows, err)
		}
	}
}

func TestPlaces(t *testing.T) {
	f := routingtest.Topology(t, "fattree:k=4,levels=3")
	p := FindPlaces(f)
	names := hostsOf(routingtest.Graph(t, "fattree:k=4,levels=3", graph.BuildOptions{}))
	if got, want := p.Spread(names[:5]), (Spread{Leaves: 3, LeastLeaves: 3, Pods: 2, LeastPods: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := p.Spread([]string{names[0], names[2], names[4], "x"}), (Spread{Leaves: 3, LeastLeaves: 2, Pods: 2, LeastPods: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if used, least := spread(names[:3], map[string]int{names[0]: 1, names[1]: 1, names[2]: 0}, []int{4, 2}); used != 2 || least != 1 {
		t.Errorf("on %d, at least %d", used, least)
	}
	if got := FindPlaces(routingtest.Topology(t, "ring:n=1,hosts=0")).Spread(names); got != (Spread{}) {
		t.Errorf("%+v", got)
	}
}

// TestLost: a port does not send to itself, so its own leaf loses one flow less to it, with and without
// choices; a flow on one leaf that is lost has no bandwidth.
func TestLost(t *testing.T) {
	for _, adaptiveRouting := range []bool{false, true} {
		r, err := engines.Compute(t.Context(), routingtest.Graph(t, "fattree:k=4,levels=2", graph.BuildOptions{}), "updn", engines.Options{Adaptive: adaptiveRouting})
		if err != nil {
			t.Fatal(err)
		}
		g := r.Graph()
		names := hostsOf(g)
		lid := portsOf(g).of[names[0]][0].lid
		leaf := g.Terminals()[g.TerminalByLID(lid)].Switch
		r.EditRow(leaf)[lid] = mad.NoPort
		for pattern, want := range map[string]int64{AllToAll: 7, Rails: 7, "experts-direct": 7, Ring: 1} {
			m, err := Measure(t.Context(), r, []Job{{ID: "a", Hosts: names}}, pattern, 0)
			if err != nil || m.Jobs[0].Lost != want {
				t.Errorf("adaptive %v, %s: %+v, %v, want %d lost", adaptiveRouting, pattern, m, err, want)
			}
		}
		p, err := MeasurePhases(t.Context(), r, []Job{{ID: "a", Hosts: names[:2]}}, Ring, 0) // both on that leaf
		if err != nil || p.Phases[0].Lost != 1 || p.Phases[0].Bandwidth != 0.5 {
			t.Errorf("%+v, %v", p, err)
		}
		c, err := traffic.MeasureCongestion(t.Context(), r, traffic.CongestionOptions{Pattern: traffic.AllToAll})
		if err != nil || c.Lost != 7 {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

func BenchmarkMeasure11664(b *testing.B) {
	r := tables(b, "ft11664", "ftree")
	names := hostsOf(r.Graph())
	var list []Job
	for i := 0; i+16 <= len(names); i += 16 {
		list = append(list, Job{ID: fmt.Sprint(i), Hosts: names[i : i+16]})
	}
	for _, pattern := range onAnyNet() {
		b.Run(pattern, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Measure(b.Context(), r, list, pattern, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// follow adds a flow to loads, each choice of each switch on its own; it reports whether all
// of it arrives.
func follow(r *routes.Routes, s int, in uint8, to mad.LID, amount float64, hops int, loads []float64) bool {
	g := r.Graph()
	ports := slices.Collect(r.Choice(s, adaptive.Packet{In: in, LID: to, Transport: adaptive.RC}).Ports.All())
	arrives := len(ports) > 0 && hops > 0
	for _, port := range ports {
		if hops == 0 {
			break
		}
		target := g.Target(int32(s), port)
		if !target.IsChannel() {
			arrives = arrives && target == graph.ToTerminal(int32(g.TerminalByLID(to)))
			continue
		}
		c := target.Channel()
		loads[c] += amount / float64(len(ports))
		all := follow(r, int(g.ChannelTo(c)), g.Channels()[c].PeerPort, to, amount/float64(len(ports)), hops-1, loads)
		arrives = arrives && all
	}
	return arrives
}

// TestSpread compares the traffic on routes with choices with each flow on its own, on
// fabrics with and without a port that leads astray.
func TestSpread(t *testing.T) {
	for _, net := range []string{"fattree:k=4,levels=3", "fattree:k=4,levels=2,rails=2", "dragonfly:a=3,p=1,h=1"} {
		r, err := engines.Compute(t.Context(), routingtest.Graph(t, net, graph.BuildOptions{}), "updn", engines.Options{Adaptive: true})
		if err != nil {
			t.Fatal(err)
		}
		g := r.Graph()
		if !r.HasChoices() {
			t.Fatalf("%s: no choices", net)
		}
		names := hostsOf(g)
		for _, broken := range []bool{false, true} {
			if broken { // packets to a host's LID may end at its neighbour
				host := g.Terminals()[g.TerminalByLID(portsOf(g).of[names[0]][0].lid)]
				other := g.Terminals()[g.TerminalByLID(portsOf(g).of[names[len(names)-1]][0].lid)]
				if err := r.SetChoices(other.Switch, []mad.LID{host.LID}, adaptive.PortSet(other.Out)); err != nil {
					t.Fatal(err)
				}
			}
			for _, pattern := range onAnyNet() {
				job := Job{ID: "a", Hosts: names}
				m, err := Measure(t.Context(), r, []Job{job}, pattern, 0)
				if err != nil {
					t.Fatal(err)
				}
				var place JobTraffic
				want, lost := make([]float64, len(g.Channels())), int64(0)
				p, err := patternNamed(pattern)
				if err != nil {
					t.Fatal(err)
				}
				x := newPlacement(g, 0)
				x.lids = place.findHosts(portsOf(g), names)
				flows, err := p.flows(x, maxFlows)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range flows {
					if !follow(r, g.Terminals()[g.TerminalByLID(f.From)].Switch, 0, f.To, f.Traffic, 12, want) {
						lost++
					}
				}
				for ch, load := range m.Loads {
					if math.Abs(load-want[ch]) > 1e-9 {
						t.Fatalf("%s, broken %v, %s: channel %d has %v, want %v", net, broken, pattern, ch, load, want[ch])
					}
				}
				if m.Jobs[0].Lost != lost || broken && pattern == AllToAll && lost == 0 {
					t.Errorf("%s, broken %v, %s: lost %d, want %d", net, broken, pattern, m.Jobs[0].Lost, lost)
				}
			}
		}
	}
}

// TestSpreadLoop: packets in a loop are lost, and their traffic on a link is counted once.
func TestSpreadLoop(t *testing.T) {
	r, err := engines.Compute(t.Context(), routingtest.Graph(t, "fattree:k=4,levels=2", graph.BuildOptions{}), "updn", engines.Options{Adaptive: true})
	if err != nil {
		t.Fatal(err)
	}
	g := r.Graph()
	names := hostsOf(g)
	lid := portsOf(g).of[names[0]][0].lid
	from := g.Terminals()[g.TerminalByLID(portsOf(g).of[names[7]][0].lid)].Switch
	c := g.Channels()[g.FirstChannel(from)]
	for s, port := range map[int32]uint8{c.From: c.Port, c.To: c.PeerPort} {
		if err := r.SetChoices(int(s), []mad.LID{lid}, adaptive.PortSet(port)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Measure(t.Context(), r, []Job{{ID: "a", Hosts: []string{names[7], names[0]}}}, Ring, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The other flow adds half of its traffic to the way back.
	if back := m.Loads[c.Reverse]; m.Jobs[0].Lost != 1 || m.Loads[g.FirstChannel(from)] != 1 || back != 1.5 {
		t.Errorf("lost %d; %v there, %v back", m.Jobs[0].Lost, m.Loads[g.FirstChannel(from)], back)
	}
}
