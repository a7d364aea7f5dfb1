package jobs

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

// onAnyNet are the patterns that need no nodes of other kinds.
func onAnyNet() []string {
	return slices.DeleteFunc(Patterns(), func(name string) bool { return name == "sharp" || name == "storage" })
}

// port is a port of a host of a job: the host's place, then its rail.
type port struct{ host, rail int }

// portMatrix is the traffic between the ports of a job; phase < 0: the mean of all phases.
func portMatrix(t *testing.T, x *placement, pattern string, phase int) map[[2]port]float64 {
	t.Helper()
	p, err := patternNamed(pattern)
	if err != nil {
		t.Fatal(err)
	}
	phases, err := p.phasesOf(x, maxFlows)
	if err != nil {
		t.Fatal(err)
	}
	of := map[mad.LID]port{}
	for host, lids := range x.lids {
		for rail, lid := range lids {
			of[lid] = port{host, rail}
		}
	}
	sum, m := 0.0, map[[2]port]float64{}
	for k, p := range phases {
		sum += p.Part
		for _, f := range p.Flows {
			switch pair := [2]port{of[f.From], of[f.To]}; {
			case pair[0] == pair[1]:
				t.Fatalf("%s: a flow from a port to itself", pattern)
			case phase < 0:
				m[pair] += f.Traffic * p.Part
			case phase == k:
				m[pair] += f.Traffic
			}
		}
	}
	if math.Abs(sum-1) > 1e-9 && len(x.lids) > 1 {
		t.Errorf("%s of %d hosts: phases take %v in total", pattern, len(x.lids), sum)
	}
	return m
}

// compareMatrix compares a matrix with the traffic between each two ports of so many hosts.
func compareMatrix(t *testing.T, what string, got map[[2]port]float64, hosts, rails int, want func(a, b port) float64) {
	t.Helper()
	for i := range hosts {
		for k := range hosts {
			for a := range rails {
				for b := range rails {
					from, to := port{i, a}, port{k, b}
					x := 0.0
					if from != to {
						x = want(from, to)
					}
					if math.Abs(got[[2]port{from, to}]-x) > 1e-9 {
						t.Errorf("%s: %v to %v: %v, want %v", what, from, to, got[[2]port{from, to}], x)
						return
					}
				}
			}
		}
	}
}

// places are the placements of jobs of n hosts with so many rails.
func places(n, rails, group int) *placement {
	x := newPlacement(nil, group)
	for host := range n {
		var lids []mad.LID
		for rail := range rails {
			lids = append(lids, mad.LID(1+host*rails+rail))
		}
		x.lids = append(x.lids, lids)
	}
	return x
}

// TestPatterns compares each pattern with the traffic between each two ports by its definition.
func TestPatterns(t *testing.T) {
	const rails, group = 2, 3
	one := func(is bool) float64 { return float64(routingtest.Count(is)) }
	vectors := ncclVectors(t)
	for n := 1; n <= 16; n++ {
		x := places(n, rails, group)
		others := float64(max(n-1, 1))
		for pattern, want := range map[string]func(a, b port) float64{
			AllToAll: func(a, b port) float64 { return 1 / float64(n*rails-1) },
			Ring:     func(a, b port) float64 { return one(a.rail == b.rail && (a.host+1)%n == b.host) },
			"bidirectional-ring": func(a, b port) float64 {
				return one(a.rail == b.rail)*one((a.host+1)%n == b.host)/2 + one(a.rail == b.rail)*one((b.host+1)%n == a.host)/2
			},
			Rails: func(a, b port) float64 { return one(a.rail == b.rail) / others },
			"pxn": func(a, b port) float64 { return one(a.rail == b.rail) / others },
			"experts": func(a, b port) float64 {
				first := a.host / group * group
				return one(a.rail == b.rail && first <= b.host && b.host < first+group) / float64(max(1, min(group, n-first)-1))
			},
			"experts-across": func(a, b port) float64 {
				groups, size := int(math.Ceil(float64(n)/group)), 0
				for k := range n {
					size += routingtest.Count((k-a.host)%groups == 0)
				}
				return one(a.rail == b.rail && (a.host-b.host)%groups == 0) / float64(max(1, size-1))
			},
			"experts-direct": func(a, b port) float64 {
				first := a.host / group * group
				return one(a.host != b.host && first <= b.host && b.host < first+group) / float64(max(1, rails*(min(group, n-first)-1)))
			},
			"incast": func(a, b port) float64 { return one(a.rail == b.rail && b.host == 0) },
			"tree": func(a, b port) float64 {
				if n == 1 || a.rail != b.rail {
					return 0
				}
				degree, most, edges := map[int]float64{}, 0.0, 0.0
				for _, parents := range vectors[fmt.Sprint("dtree n=", n)] {
					for r, p := range parents {
						if p < 0 {
							continue
						}
						degree[r]++
						degree[p]++
						edges += one(r == a.host && p == b.host || p == a.host && r == b.host)
					}
				}
				for _, d := range degree {
					most = max(most, d)
				}
				return edges / most
			},
		} {
			compareMatrix(t, fmt.Sprintf("%s of %d hosts", pattern, n), portMatrix(t, x, pattern, -1), n, rails, want)
		}
		for k, distance := range vectors[fmt.Sprint("p2p group deltas nGroups=", n)][0][1:] {
			compareMatrix(t, fmt.Sprintf("round %d of pxn of %d hosts", k, n), portMatrix(t, x, "pxn", k), n, rails, func(a, b port) float64 {
				return one(a.rail == b.rail && (a.host+distance)%n == b.host)
			})
		}
	}
}

// ncclVectors are the vectors of NCCL by their names: lists of numbers.
func ncclVectors(t *testing.T) map[string][][]int {
	t.Helper()
	text, err := os.ReadFile("testdata/nccl.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][][]int{}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(strings.Replace(line, " T0", " [", 1), " [")
		for part := range strings.SplitSeq(line, "[") {
			part, _, found := strings.Cut(part, "]")
			if !found {
				continue
			}
			var list []int
			for word := range strings.SplitSeq(part, ",") {
				var n int
				if _, err := fmt.Sscan(word, &n); err != nil {
					t.Fatal(line, err)
				}
				list = append(list, n)
			}
			all[name] = append(all[name], list)
		}
	}
	return all
}

// TestHalvingDoubling runs the phases on data: block i of host h is the set of hosts that it has added up. In
// the first half a host gives the other half of the blocks it still cares for, then gets all back; at the
// end all hosts have added up all blocks of all hosts.
func TestHalvingDoubling(t *testing.T) {
	for n := 2; n <= 17; n++ {
		x := places(n, 1, 0)
		phases := x.onRails(func(n int) []exchange { return inSteps(n, halvingDoubling) })
		power := 1
		for 2*power <= n {
			power *= 2
		}
		rest := n - power
		sums := make([][]uint32, n) // by host and block
		owned := make([][]int, n)   // blocks that the host cares for
		for h := range sums {
			sums[h] = slices.Repeat([]uint32{1 << h}, power)
			for b := range power {
				owned[h] = append(owned[h], b)
			}
		}
		steps := len(phases)
		if want := 2*bitsOf(power) + 2*min(rest, 1); steps != want {
			t.Fatalf("%d hosts: %d phases, want %d", n, steps, want)
		}
		first := min(rest, 1)
		for k, phase := range phases {
			partner := map[int]int{}
			for _, f := range phase.Flows {
				if f.Traffic != 1 {
					t.Fatalf("%d hosts, phase %d: %v", n, k, f)
				}
				partner[int(f.From)-1] = int(f.To) - 1
			}
			switch {
			case rest > 0 && k == 0:
				for from, to := range partner {
					for b := range power {
						sums[to][b] |= sums[from][b]
					}
				}
				if len(partner) != rest {
					t.Errorf("%d hosts: %d give all first", n, len(partner))
				}
			case rest > 0 && k == steps-1:
				for from, to := range partner {
					copy(sums[to], sums[from])
				}
			case k < first+bitsOf(power):
				before := make([][]uint32, n)
				for h := range sums {
					before[h] = slices.Clone(sums[h])
				}
				for from, to := range partner {
					if partner[to] != from {
						t.Fatalf("%d hosts, phase %d: %d sends to %d", n, k, from, to)
					}
					// The one with the lower number keeps the blocks whose bit is 0.
					var keep []int
					for _, b := range owned[from] {
						if (b>>(k-first)&1 == 1) == (from > to) {
							keep = append(keep, b)
							sums[from][b] |= before[to][b]
						}
					}
					owned[from] = keep
				}
				if want := math.Ldexp(1, -(k - first + 1)); math.Abs(phase.Part/phases[first].Part-2*want) > 1e-9 {
					t.Errorf("%d hosts, phase %d takes %v", n, k, phase.Part)
				}
			default:
				before := make([][]int, n)
				copy(before, owned)
				for from, to := range partner {
					if want := float64(len(before[from])) / float64(power/2); math.Abs(phase.Part/phases[first].Part-want) > 1e-9 {
						t.Fatalf("%d hosts, phase %d: host %d sends %d blocks in %v", n, k, from, len(before[from]), phase.Part)
					}
					for _, b := range before[from] {
						sums[to][b] = sums[from][b]
					}
				}
				for from, to := range partner {
					owned[to] = append(slices.Clone(before[to]), before[from]...)
				}
			}
		}
		for h := range sums {
			for b, set := range sums[h] {
				if set != 1<<n-1 {
					t.Fatalf("%d hosts: block %d of host %d has %b", n, b, h, set)
				}
			}
		}
	}
}

// TestRecursiveDoubling runs its phases: each host has added up the data of all.
func TestRecursiveDoubling(t *testing.T) {
	for n := 2; n <= 17; n++ {
		phases := places(n, 1, 0).onRails(func(n int) []exchange { return inSteps(n, recursiveDoubling) })
		sums := make([]uint32, n)
		for h := range sums {
			sums[h] = 1 << h
		}
		for k, phase := range phases {
			if math.Abs(phase.Part*float64(len(phases))-1) > 1e-9 {
				t.Errorf("%d hosts, phase %d takes %v", n, k, phase.Part)
			}
			before, sends := slices.Clone(sums), map[mad.LID]bool{}
			for _, f := range phase.Flows {
				if sends[f.From] || f.Traffic != 1 {
					t.Errorf("%d hosts, phase %d: %v", n, k, f)
				}
				sends[f.From] = true
				sums[f.To-1] |= before[f.From-1]
			}
		}
		for h, sum := range sums {
			if sum != 1<<n-1 {
				t.Errorf("%d hosts: host %d has %b", n, h, sum)
			}
		}
	}
}

// TestRailsOf: where a port of a host is down, the others stay on their rails.
func TestRailsOf(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=4,rails=2,levels=2", graph.BuildOptions{})
	ports := portsOf(g)
	names := hostsOf(g)
	ports.of[names[1]] = ports.of[names[1]][1:]
	ports.of[names[2]] = ports.of[names[2]][:1]
	rail := map[mad.LID]int{}
	for _, of := range ports.of {
		for _, p := range of {
			rail[p.lid] = int(p.name[len("HCA-")] - '1')
		}
	}
	x := newPlacement(g, 0)
	for _, hosts := range [][]string{names, names[1:3]} { // of two hosts neither has all rails
		var j JobTraffic
		x.lids = j.findHosts(ports, hosts)
		for _, pattern := range slices.DeleteFunc(onAnyNet(), func(name string) bool { return name == AllToAll || name == "experts-direct" }) {
			p, err := patternNamed(pattern)
			if err != nil {
				t.Fatal(err)
			}
			flows, err := p.flows(x, maxFlows)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range flows {
				if f.From == 0 || f.To == 0 || rail[f.From] != rail[f.To] {
					t.Errorf("%s of %v: %v", pattern, hosts, f)
				}
			}
			if len(hosts) > 2 && len(flows) == 0 {
				t.Errorf("%s: no flows", pattern)
			}
		}
	}
	for _, hosts := range [][][]hostPort{
		{{{"mlx5_0/1", 1}}, {{"mlx5_1/1", 2}}},               // names differ
		{{{"HCA-1/1", 1}, {"HCA-1/1", 2}}, {{"HCA-2/1", 3}}}, // one rail would lose a port
	} {
		if got := railsOf(hosts); got != nil {
			t.Errorf("%v: %v, but places count", hosts, got)
		}
	}
}

// TestPortDown: a collective on a rail is that of the hosts with a port there: none gets less traffic because the
// others of its rail are fewer.
func TestPortDown(t *testing.T) {
	for n := 2; n <= 9; n++ {
		for gone := range n {
			x := places(n, 2, 0)
			x.lids[gone][0] = 0
			for _, pattern := range []string{Ring, "bidirectional-ring", Doubling, "halving-doubling", "tree", "pxn", Rails, "incast"} {
				p, err := patternNamed(pattern)
				if err != nil {
					t.Fatal(err)
				}
				got := [2][]traffic.Flow{}
				phases, err := p.phasesOf(x, maxFlows)
				if err != nil {
					t.Fatal(err)
				}
				sum := 0.0
				for _, phase := range phases {
					sum += phase.Part
					for _, f := range phase.Flows {
						rail := 1 - int(f.From)%2
						got[rail] = append(got[rail], f)
					}
				}
				if math.Abs(sum-1) > tolerance {
					t.Errorf("%s of %d hosts: parts add up to %v", pattern, n, sum)
				}
				for rail := range 2 {
					y := newPlacement(nil, 0)
					for _, lids := range x.lids {
						if lid := lids[rail]; lid != 0 {
							y.lids = append(y.lids, []mad.LID{lid})
						}
					}
					var want []traffic.Flow
					alone, err := p.phasesOf(y, maxFlows)
					if err != nil {
						t.Fatal(err)
					}
					for _, phase := range alone {
						want = append(want, phase.Flows...)
					}
					if !slices.Equal(got[rail], want) {
						t.Errorf("%s of %d hosts, %d without the first rail: on rail %d %v, want %v", pattern, n, gone, rail, got[rail], want)
					}
				}
			}
		}
	}
}

func bitsOf(power int) (n int) {
	for ; power > 1; power /= 2 {
		n++
	}
	return n
}

// TestSHARP: trees of two jobs on two leaves each. Each link of a tree has 1 up and 1 down, whatever the
// number of hosts; trees have other roots as long as there are any.
func TestSHARP(t *testing.T) {
	f := routingtest.WithAggregation(t, routingtest.Topology(t, "fattree:k=8,levels=2")) // four hosts at each of eight leaves
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := tablesOf(t, g, "ftree")
	list := []Job{{ID: "a", Hosts: []string{"node-0001", "node-0002", "node-0003", "node-0005"}}, {ID: "b", Hosts: []string{"node-0004", "node-0006"}}, {ID: "c", Hosts: []string{"node-0009", "node-0010"}}}
	m, err := Measure(t.Context(), r, list, "sharp", 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, j := range m.Jobs {
		for _, l := range j.Loads {
			c := g.Channels()[l.Channel]
			got = append(got, fmt.Sprintf("%s %s>%s %g", list[i].ID, g.Switches()[c.From].Name(), g.Switches()[c.To].Name(), l.Traffic))
		}
	}
	slices.Sort(got)
	want := "[a leaf-1>spine-1 1 a leaf-2>spine-1 1 a spine-1>leaf-1 1 a spine-1>leaf-2 1 b leaf-1>spine-2 1 b leaf-2>spine-2 1 b spine-2>leaf-1 1 b spine-2>leaf-2 1]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := Measure(t.Context(), tablesOf(t, routingtest.Graph(t, "fattree:k=4,levels=2", graph.BuildOptions{}), "ftree"), list, "sharp", 0); err == nil || !strings.Contains(err.Error(), "no aggregation nodes") {
		t.Error(err)
	}
}

// TestSHARPAlone: a tree that has its links to itself slows nothing down, however many hosts a leaf has.
func TestSHARPAlone(t *testing.T) {
	g, err := graph.New(routingtest.WithAggregation(t, routingtest.Topology(t, "fattree:k=8,levels=2")), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := MeasurePhases(t.Context(), tablesOf(t, g, "ftree"), []Job{{ID: "a", Hosts: hostsOf(g)}}, "sharp", 0)
	if err != nil || m.Slowdown != 1 || m.Phases[0].Hosts != 1 || m.Phases[0].Bandwidth != 1 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestPhasesOfTwoJobs: a job that shares no link takes as long as alone, whatever the phases of another.
func TestPhasesOfTwoJobs(t *testing.T) {
	r := tables(t, "fattree:k=8,levels=2", "minhop")
	names := hostsOf(r.Graph())
	a, b := Job{ID: "a", Hosts: append(slices.Clone(names[:6]), names[24:]...)}, Job{ID: "b", Hosts: names[8:10]}
	slowdown := func(list ...Job) float64 {
		m, err := MeasurePhases(t.Context(), r, list, "halving-doubling", 0)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, p := range m.Phases {
			sum += p.Part
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("phases take %v in total", sum)
		}
		return m.Slowdown
	}
	if alone, both := slowdown(a), slowdown(a, b); alone <= 1 || both != alone || slowdown(b) != 1 {
		t.Errorf("%v alone, %v with b", alone, both)
	}
}

// TestSlowPorts: a host whose own port is slow does not count as slowed down, but an uplink that is slower than
// its hosts' ports does, also with one flow.
func TestSlowPorts(t *testing.T) {
	rates := routingtest.Rates()
	for where, want := range map[string]float64{"ports of hosts": 1, "uplinks": 2} {
		f := routingtest.WithRates(t, routingtest.Topology(t, "fattree:k=8,levels=2"), func(p *fabric.Port) routingtest.Rate {
			q := p.Peer()
			isOfLeaf := p.Node().Name() == "leaf-1" || q.Node().Name() == "leaf-1"
			isUplink := p.Node().IsSwitch() && q.Node().IsSwitch()
			return rates[routingtest.Count(isOfLeaf && isUplink == (where == "uplinks"))]
		})
		g, err := graph.New(f, graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := tablesOf(t, g, "ftree")
		m, err := MeasurePhases(t.Context(), r, []Job{{ID: "a", Hosts: []string{"node-0001", "node-0005"}}}, Ring, 0)
		if err != nil || m.Slowdown != want || len(m.Collisions) != 2*int(want-1) { // both directions
			t.Errorf("%s: %+v, %v", where, m, err)
		}
	}
}

// TestStorage: each port sends the same to each port of I/O nodes, and not to itself.
func TestStorage(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=4,levels=2", graph.BuildOptions{})
	if _, err := MeasurePhases(t.Context(), tablesOf(t, g, "ftree"), []Job{{ID: "a", Hosts: []string{"node-0001"}}}, "storage", 0); err == nil || !strings.Contains(err.Error(), "no I/O nodes") {
		t.Error(err)
	}
	g = routingtest.Graph(t, "fattree:k=4,levels=2", graph.BuildOptions{Rules: []graph.Rule{{Name: "node-0007*", Class: graph.ClassIO}, {Name: "node-0008*", Class: graph.ClassIO}, {Class: graph.ClassCN}}})
	r := tablesOf(t, g, "ftree")
	m, err := MeasurePhases(t.Context(), r, []Job{{ID: "a", Hosts: []string{"node-0001", "node-0002", "node-0007"}}}, "storage", 0)
	if err != nil || len(m.Flows) != 5 || m.Phases[0].Hosts != 1.5 {
		t.Errorf("%v, %v", m, err)
	}
}

// TestMeasurePhases: phases of two jobs in step, and what meets on a link; each load is counted by the paths of
// all flows.
func TestMeasurePhases(t *testing.T) {
	for _, net := range []string{"ring:n=4,hosts=2", "torus:dims=3/3,hosts=2", "fattree:k=4,levels=2,rails=2"} {
		r := tables(t, net, "minhop")
		g := r.Graph()
		names := hostsOf(g)
		list := []Job{{ID: "a", Hosts: names[:len(names)/2]}, {ID: "b", Hosts: names[len(names)/2:]}, {ID: "c"}}
		for _, pattern := range onAnyNet() {
			m, err := MeasurePhases(t.Context(), r, list, pattern, 2)
			if err != nil {
				t.Fatal(err)
			}
			worst := 0.0
			for _, p := range m.Phases {
				worst = max(worst, p.Load)
			}
			time := slowdownOf(t, r, list, pattern)
			loads := make([]float64, len(g.Channels()))
			for _, f := range m.Flows {
				follow(r, g.Terminals()[g.TerminalByLID(f.From)].Switch, 0, f.To, f.Traffic, 12, loads)
			}
			if most := slices.Max(loads); math.Abs(m.Phases[m.Worst].Load-most) > 1e-9 || worst != m.Phases[m.Worst].Load {
				t.Errorf("%s, %s: the worst phase has %v, want %v, the largest is %v", net, pattern, m.Phases[m.Worst].Load, most, worst)
			}
			over := 0
			for c, load := range loads {
				over += routingtest.Count(load > 1+1e-9)
				for _, x := range m.Collisions {
					sum := 0.0
					for _, f := range x.Flows {
						sum += f.Traffic
						if path, ok := traffic.Channels(r, f.Flow, nil); !ok || !slices.Contains(path, x.Channel) {
							t.Errorf("%s, %s: %v does not take channel %d", net, pattern, f, x.Channel)
						}
					}
					if int(x.Channel) == c && (math.Abs(x.Load-load) > 1e-9 || math.Abs(sum-load) > 1e-9) {
						t.Errorf("%s, %s: channel %d has %v, want %v", net, pattern, c, x.Load, load)
					}
				}
			}
			if over != len(m.Collisions) || math.Abs(m.Slowdown-time) > 1e-9 && len(m.Phases) > 0 {
				t.Errorf("%s, %s: %d collisions, want %d; slowdown %v, want %v", net, pattern, len(m.Collisions), over, m.Slowdown, time)
			}
		}
	}
}

// slowdownOf is the largest slowdown of jobs in step, by all flows of each phase; rates are equal.
func slowdownOf(t *testing.T, r *routes.Routes, list []Job, pattern string) float64 {
	t.Helper()
	g := r.Graph()
	p, err := patternNamed(pattern)
	if err != nil {
		t.Fatal(err)
	}
	all, most := make([][]Phase, len(list)), 0
	for i := range list {
		var j JobTraffic
		x := newPlacement(g, 2)
		x.lids = j.findHosts(portsOf(g), list[i].Hosts)
		if all[i], err = p.phasesOf(x, maxFlows); err != nil {
			t.Fatal(err)
		}
		most = max(most, len(all[i]))
	}
	time, alone := make([]float64, len(list)), make([]float64, len(list))
	for k := range most {
		loads, out, in := make([]float64, len(g.Channels())), map[mad.LID]float64{}, map[mad.LID]float64{}
		phase := func(i int) Phase {
			if len(all[i]) == 0 {
				return Phase{}
			}
			return all[i][k%len(all[i])]
		}
		for i := range all {
			for _, f := range phase(i).Flows {
				follow(r, g.Terminals()[g.TerminalByLID(f.From)].Switch, 0, f.To, f.Traffic, 12, loads)
				out[f.From] += f.Traffic
				in[f.To] += f.Traffic
			}
		}
		for i := range all {
			slowest := 1.0
			for _, f := range phase(i).Flows {
				path := make([]float64, len(loads))
				follow(r, g.Terminals()[g.TerminalByLID(f.From)].Switch, 0, f.To, 1, 12, path)
				slowest = max(slowest, out[f.From], in[f.To])
				for c := range path {
					if path[c] > 0 {
						slowest = max(slowest, loads[c])
					}
				}
			}
			time[i], alone[i] = time[i]+phase(i).Part*slowest, alone[i]+phase(i).Part
		}
	}
	worst := 1.0
	for i := range time {
		if alone[i] > 0 {
			worst = max(worst, time[i]/alone[i])
		}
	}
	return worst
}
