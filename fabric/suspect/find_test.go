package suspect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// computed are the tables of a network by updn.
func computed(t testing.TB, f *fabric.Fabric) *routes.Routes {
	t.Helper()
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := engines.Compute(t.Context(), g, "updn", engines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shifts are measurements of each host to those some places after it, at a rate by the ports on the
// path.
func shifts(t testing.TB, r *routes.Routes, distances []int, rate func(path []*fabric.Port) float64) (list []Measurement) {
	t.Helper()
	var ends []graph.Terminal
	for _, x := range r.Graph().Terminals() {
		if x.IsEndpoint(0) {
			ends = append(ends, x)
		}
	}
	for _, d := range distances {
		for i, from := range ends {
			to := ends[(i+d)%len(ends)]
			p, err := r.Trace(from.LID, to.LID)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, Measurement{From: fmt.Sprint(from.LID), To: fmt.Sprint(to.LID), Value: rate(p.Ports()), Line: len(list) + 2})
		}
	}
	return list
}

// across returns 400, or 200 for paths that leave by one of some ports; and 1 % more or less, in turn.
func across(slow ...*fabric.Port) func(path []*fabric.Port) float64 {
	n := 0
	return func(path []*fabric.Port) float64 {
		n++
		rate := 400 * (1 + 0.01*float64(n%3-1))
		for i, p := range path {
			if slices.Contains(slow, p) && i+1 < len(path) && path[i+1] == p.Peer() {
				return rate / 2
			}
		}
		return rate
	}
}

func found(t testing.TB, r *routes.Routes, list []Measurement) *Result {
	t.Helper()
	res, err := Find(t.Context(), r, list)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// names are the first candidate of each fault, and those that are the same.
func names(res *Result) (list []string) {
	for _, f := range res.Faults {
		name := f.Candidates[0].Name()
		for _, p := range f.Candidates[0].Same {
			name += " = " + p.Name()
		}
		list = append(list, name)
	}
	return list
}

// TestFind: a slow direction, cable, switch and adapter, one at a time and two at a time, and none.
func TestFind(t *testing.T) {
	f := routingtest.Topology(t, "fattree:k=4,levels=3")
	r := computed(t, f)
	port := func(name string, num int) *fabric.Port {
		n, err := f.FindNode(name)
		if err != nil {
			t.Fatal(err)
		}
		return n.Port(num)
	}
	up, host := port("leaf-2", 3), port("leaf-3", 1)
	var all []*fabric.Port // all that spine-1 has
	for p := range port("spine-1", 1).Node().Ports() {
		all = append(all, p)
	}
	distances := []int{1, 2, 3, 5, 7, 8, 9, 11, 13}
	for name, test := range map[string]struct {
		slow []*fabric.Port
		want []string
	}{
		"none":      {nil, nil},
		"direction": {[]*fabric.Port{up}, []string{up.Name() + " -> " + up.Peer().Name()}},
		// All packets to node-0003 come to its leaf by this link, and no others.
		"reverse": {[]*fabric.Port{up.Peer()}, []string{"leaf-2/1 -> node-0003 HCA-1/1 = " + up.Peer().Name() + " -> " + up.Name()}},
		"cable":   {[]*fabric.Port{up, up.Peer()}, []string{up.Name() + " - " + up.Peer().Name()}},
		"two":     {[]*fabric.Port{up, host}, []string{host.Name() + " -> " + host.Peer().Name() + " = spine-3/1 -> leaf-3/3", up.Name() + " -> " + up.Peer().Name()}},
		"adapter": {[]*fabric.Port{host, host.Peer()}, []string{host.Name() + " - " + host.Peer().Name() + " = " + host.Peer().Node().Name()}},
		"switch":  {all, []string{"spine-1"}},
	} {
		res := found(t, r, shifts(t, r, distances, across(test.slow...)))
		got := names(res)
		slices.Sort(got)
		slices.Sort(test.want)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		for _, fault := range res.Faults {
			if c := fault.Candidates[0]; math.Abs(c.Factor-0.5) > 0.03 || c.Slow == 0 || c.Slow > c.Crossed {
				t.Errorf("%s: factor %g, %d slow of %d", name, c.Factor, c.Slow, c.Crossed)
			}
		}
		if res.Unexplained != 0 || res.Slow == 0 && test.slow != nil {
			t.Errorf("%s: %d slow, %d of them unexplained", name, res.Slow, res.Unexplained)
		}
	}
}

// TestFindInputs: what a result counts.
func TestFindInputs(t *testing.T) {
	f := routingtest.Topology(t, "fattree:k=4,levels=2")
	r := computed(t, f)
	lid := func(i int) string {
		return fmt.Sprint(routingtest.LID(t, r.Graph(), fmt.Sprintf("node-%04d HCA-1", i)))
	}
	guid := f.NodeByName("node-0003 HCA-1")[0].GUID().String()
	list := []Measurement{
		{From: "node-0001", To: "NODE-0002.example.org", Value: 1}, {From: lid(1), To: guid, Value: 1}, {From: "node-0001 HCA-1/1", To: "node-0004 HCA-1", Value: 1},
		{From: "node-0001", To: "nix", Value: 1}, {From: "leaf-1", To: "nix", Value: 1}, {From: "0xffff", To: "0", Value: 1},
		{From: "node-0001", To: "node-0001", Value: 1}, {From: "node-0001", To: "node-0002", State: Empty}, {From: "node-0001", To: "node-0002", State: Failed},
		{From: "node-0001", To: "node-0002", Value: 1, Rail: 2}, {From: "node-0001", To: "node-0002", Value: 1, Class: "another"},
	}
	res := found(t, r, list)
	if res.Read != 11 || res.Alone != 1 || res.Used != 4 || res.Empty != 1 || res.Failed != 1 || len(res.Faults) != 0 {
		t.Errorf("%+v", res)
	}
	if diff := cmp.Diff([]string{"nix", "leaf-1", "0xffff", "0"}, res.Unknown); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"node-0001 to node-0001: both ends are the same port"}, res.NotRouted); diff != "" {
		t.Error(diff)
	}
	r.EditRow(r.Graph().SwitchOf(f.NodeByName("leaf-1")[0]))[routingtest.LID(t, r.Graph(), "node-0008 HCA-1")] = routes.NoPort
	res = found(t, r, []Measurement{{From: "node-0001", To: "node-0008", Value: 1}})
	if diff := cmp.Diff([]string{`node-0001 to node-0008: switch "leaf-1" has no path`}, res.NotRouted); len(res.NotRouted) != 1 || res.Used != 0 {
		t.Error(diff)
	}
	for _, m := range []Measurement{{From: "node-0001", To: "node-0002", Value: math.NaN()}, {From: "node-0001", To: "node-0002"}, {Group: []string{"node-0001"}, Value: 1}} {
		if _, err := Find(t.Context(), r, []Measurement{m}); err == nil {
			t.Errorf("%+v: no error", m)
		}
	}
}

// TestMostSlow: the normal rate is found if most measurements are slow.
func TestMostSlow(t *testing.T) {
	r := computed(t, routingtest.Topology(t, "fattree:k=4,levels=2"))
	g := r.Graph()
	slow := g.Fabric().NodeByName("node-0001 HCA-1")[0].Port(1)
	var list []Measurement
	for i := 2; i <= 8; i++ {
		name := fmt.Sprintf("node-%04d", i)
		for range 2 {
			list = append(list, Measurement{From: "node-0001", To: name, Value: 100 + float64(i)/10})
		}
		list = append(list, Measurement{From: name, To: fmt.Sprintf("node-%04d", i%7+2), Value: 400 + float64(i)/10})
	}
	res := found(t, r, list)
	if want := slow.Name() + " -> " + slow.Peer().Name() + " = node-0001 HCA-1"; strings.Join(names(res), ", ") != want {
		t.Errorf("%v, want %s", names(res), want)
	}
}

// TestRound: what pairs of a round take from each other is not a fault.
func TestRound(t *testing.T) {
	r := computed(t, routingtest.Topology(t, "torus:dims=4/4,hosts=2"))
	list := shifts(t, r, []int{1, 5, 9, 13}, across())
	// All of a round at once: links between switches are shared evenly.
	load := map[*fabric.Port]int{}
	n := len(list) / 4
	for round := range 4 {
		clear(load)
		var paths [][]*fabric.Port
		for i := range n {
			m := &list[round*n+i]
			var from, to int
			fmt.Sscan(m.From, &from)
			fmt.Sscan(m.To, &to)
			e := newEnds(r.Graph())
			p, err := r.Trace(r.Graph().Terminals()[e.find(m.From)[0].terminal].LID, r.Graph().Terminals()[e.find(m.To)[0].terminal].LID)
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, p.Ports())
			for k, port := range p.Ports() {
				if k%2 == 0 {
					load[port]++
				}
			}
		}
		for i, path := range paths {
			most := 1
			for k, port := range path {
				if k%2 == 0 {
					most = max(most, load[port])
				}
			}
			m := &list[round*n+i]
			m.Value, m.Round = m.Value/float64(most), fmt.Sprint(round)
		}
	}
	slow := 0
	for _, m := range list {
		slow += routingtest.Count(m.Value < 300)
	}
	if slow == 0 {
		t.Fatal("no measurement shares a link")
	}
	if res := found(t, r, list); len(res.Faults) != 0 || res.Slow != 0 || res.Noise > 0.05 {
		t.Errorf("%v, %d slow, deviation %g", names(res), res.Slow, res.Noise)
	}
	for i := range list {
		list[i].Round = ""
	}
	if res := found(t, r, list); res.Noise < 0.1 {
		t.Error("the rounds make no difference")
	}
}

// TestTrace compares the crossings of static paths with the paths that Routes.Trace follows to
// each LID of the receiver.
func TestTrace(t *testing.T) {
	r := computed(t, routingtest.WithLMC(t, routingtest.Topology(t, "fattree:k=4,levels=3"), 2))
	x := newTracer(r)
	for i, a := range r.Graph().Terminals() {
		for j, b := range r.Graph().Terminals() {
			if i == j || !a.IsEndpoint(0) || !b.IsEndpoint(0) {
				continue
			}
			want := map[int32]float32{}
			for k := range b.Count {
				p, err := r.Trace(a.LID, b.LID+mad.LID(k))
				if err != nil || p.Broken != "" {
					t.Fatal(err, p.Broken)
				}
				ports := p.Ports()
				for n := 0; n < len(ports); n += 2 {
					want[int32(ports[n].ID())] += 1 / float32(b.Count)
				}
			}
			for _, lid := range []mad.LID{0, b.LID + 3} {
				list, broken := x.trace(flow{end{terminal: i}, end{terminal: j, lid: lid}}, nil)
				if broken != "" {
					t.Fatal(broken)
				}
				for _, c := range list {
					if int(c.id) < x.ports && (lid == 0 && c.weight != want[c.id] || lid != 0 && c.weight != 1) {
						t.Fatalf("%d to %d: %g by port %d, want %g", i, j, c.weight, c.id, want[c.id])
					}
				}
			}
		}
	}
}

// TestWorkers: a result does not depend on the number of workers.
func TestWorkers(t *testing.T) {
	f := routingtest.Topology(t, "fattree:k=4,levels=3")
	var first *Result
	for _, workers := range []int{1, 3} {
		g, err := graph.New(f, graph.BuildOptions{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		r, err := engines.Compute(t.Context(), g, "updn", engines.Options{})
		if err != nil {
			t.Fatal(err)
		}
		x := newTrial(r, 1, 0.1, true, 4, 3)
		res := found(t, r, x.list)
		if first != nil && fmt.Sprint(res) != fmt.Sprint(first) {
			t.Errorf("%d workers: %v\nwant %v", workers, res, first)
		}
		first = res
	}
}

// TestNext: pairs that are planned decide with far fewer measurements than random ones.
func TestNext(t *testing.T) {
	routingtest.ResultsOnly(t)
	r := simulated(t, "fattree:k=8,levels=3", false)
	g := r.Graph()
	planned, random, right := 0, 0, 0
	const trials, most = 4, 200
	for k := range trials {
		for _, plan := range []bool{true, false} {
			x := newTrial(r, 1, 0.05, false, 0, uint64(k))
			choose := rand.New(rand.NewPCG(uint64(k), 2))
			var hosts []int
			for i := range g.Terminals() {
				if g.Terminals()[i].IsEndpoint(0) {
					hosts = append(hosts, i)
				}
			}
			other := func() int { return hosts[choose.IntN(len(hosts))] }
			// The pair that was noticed, and some others.
			e := x.bad[0]
			if x.slow[e] == 0 {
				e = e.Peer()
			}
			for found := false; !found; {
				a, b := other(), other()
				if a != b && slices.Contains(x.walk(a, b), e) {
					x.measure(a, b)
					found = true
				}
			}
			for len(x.list) < 20 {
				if a, b := other(), other(); a != b {
					x.measure(a, b)
				}
			}
			for len(x.list) < most {
				res := found(t, r, x.list)
				if len(res.Faults) > 0 && res.Faults[0].Candidates[0].Probability > 0.95 {
					right += routingtest.Count(plan && slices.Contains(ranked(res.Faults[0].Candidates)[0], linkOf(e)))
					break
				}
				pairs, _, err := Next(t.Context(), r, x.list, 6, PlanOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range pairs {
					if plan {
						x.measure(g.TerminalOf(p.From), g.TerminalOf(p.To))
					}
				}
				for range 6 {
					if a, b := other(), other(); a != b && (!plan || len(pairs) == 0) {
						x.measure(a, b)
					}
				}
			}
			if plan {
				planned += len(x.list) - 20
			} else {
				random += len(x.list) - 20
			}
		}
	}
	t.Logf("%d cases: %d planned measurements, %d random ones; %d right", trials, planned, random, right)
	if 3*planned > random || right < trials {
		t.Errorf("%d planned measurements, %d random ones; %d right", planned, random, right)
	}
}

// TestCover: without measurements, the pairs cross all ports that packets of hosts leave by.
func TestCover(t *testing.T) {
	r := computed(t, routingtest.Topology(t, "fattree:k=4,levels=3"))
	pairs, _, err := Next(t.Context(), r, nil, 1000, PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e, x := newEnds(r.Graph()), newTracer(r)
	left := map[int32]bool{}
	trace := func(from, to end) (list []crossing) {
		list, broken := x.trace(flow{from, to}, nil)
		if broken != "" {
			t.Fatal(broken)
		}
		return list
	}
	for i, a := range r.Graph().Terminals() {
		for j, b := range r.Graph().Terminals() {
			if a.IsEndpoint(0) && b.IsEndpoint(0) && i != j {
				for _, c := range trace(end{terminal: i}, end{terminal: j}) {
					left[c.id] = true
				}
			}
		}
	}
	all := len(left)
	for _, p := range pairs {
		for _, c := range trace(e.of(p.From)[0], e.of(p.To)[0]) {
			delete(left, c.id)
		}
	}
	if len(left) > 0 || len(pairs) > all/3 {
		t.Errorf("%d pairs leave %d of %d", len(pairs), len(left), all)
	}
}

// TestNextLimits: hosts that are busy are left out; pairs that no name finds are not planned.
func TestNextLimits(t *testing.T) {
	r := computed(t, routingtest.Topology(t, "fattree:k=4,levels=2"))
	pairs, _, err := Next(t.Context(), r, nil, 100, PlanOptions{Busy: []string{"node-0001", "nix"}})
	if err != nil || len(pairs) == 0 {
		t.Fatalf("%d pairs, %v", len(pairs), err)
	}
	e := newEnds(r.Graph())
	for _, p := range pairs {
		for _, end := range []*fabric.Port{p.From, p.To} {
			if name := Name(r.Graph(), end); end.Node().Name() == "node-0001 HCA-1" || len(e.find(name)) != 1 {
				t.Errorf("%s is planned", name)
			}
		}
	}
	if pairs, _, err := Next(t.Context(), r, nil, 3, PlanOptions{Busy: []string{"node-0001", "node-0002", "node-0003", "node-0004", "node-0005", "node-0006", "node-0007"}}); err != nil || len(pairs) != 0 {
		t.Errorf("%d pairs of one host, %v", len(pairs), err)
	}
}
