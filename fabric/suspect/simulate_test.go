package suspect

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
)

// trial is a simulated set of benchmarks of pairs. The rates are made here from single packets,
// by the choices of each switch, and share nothing with the inference.
type trial struct {
	r      *routes.Routes
	active []*adaptive.Switch // nil: static
	random *rand.Rand
	noise  float64
	slow   map[*fabric.Port]float64 // rate of a link out of a port
	lossy  bool                     // packets are sent again; otherwise the link is slow
	bad    []*fabric.Port           // an end of each bad link
	paths  [][]*fabric.Port         // by measurement: ports that packets leave by
	values []float64
	list   []Measurement
}

// walk follows a packet.
func (x *trial) walk(from, to int) (ports []*fabric.Port) {
	g := x.r.Graph()
	t, lid := &g.Terminals()[from], g.Terminals()[to].LID
	ports = append(ports, t.Port)
	at, in := int32(t.Switch), t.Out
	for {
		out := x.r.Entry(at, lid)
		if a := x.active[at]; a != nil {
			list := a.Choose(adaptive.Packet{In: in, LID: lid, Transport: adaptive.RC}, nil).Ports
			k := x.random.IntN(list.Len())
			for p := range list.All() {
				if out = p; k == 0 {
					break
				}
				k--
			}
		}
		ports = append(ports, g.Switches()[at].Port(int(out)))
		target := g.Target(at, out)
		if target.IsTerminal() {
			return ports
		}
		c := &g.Channels()[target.Channel()]
		at, in = c.To, c.PeerPort
	}
}

// packets is how many packets of a measurement are followed where switches choose.
const packets = 64

// measure measures a pair of terminals.
func (x *trial) measure(from, to int) {
	n := 1
	if slices.ContainsFunc(x.active, func(a *adaptive.Switch) bool { return a != nil }) {
		n = packets
	}
	time := 0.0
	use := map[*fabric.Port]int{}
	seen := []*fabric.Port{}
	for range n {
		packet := 1.0
		for _, p := range x.walk(from, to) {
			if use[p] == 0 {
				seen = append(seen, p)
			}
			use[p]++
			if f := x.slow[p]; f > 0 && x.lossy {
				packet += 1/f - 1
			}
		}
		time += packet
	}
	rate := float64(n) / time
	if !x.lossy {
		for _, p := range seen {
			if f := x.slow[p]; f > 0 {
				rate = min(rate, f*float64(n)/float64(use[p]))
			}
		}
	}
	rate *= math.Exp(x.noise * x.random.NormFloat64())
	if x.random.IntN(100) < 1 { // something else ran
		rate *= 0.5 + x.random.Float64()/2
	}
	x.paths, x.values = append(x.paths, seen), append(x.values, rate)
	g := x.r.Graph()
	x.list = append(x.list, Measurement{From: g.Terminals()[from].Port.Node().Name(), To: g.Terminals()[to].Port.Node().Name(), Value: 380 * rate})
}

// newTrial makes a trial of some rounds in each of which each host sends to another one.
func newTrial(r *routes.Routes, faults int, noise float64, lossy bool, rounds int, seed uint64) *trial {
	x := &trial{r: r, active: routes.ActiveSwitches(r), random: rand.New(rand.NewPCG(seed, 7)), noise: noise, slow: map[*fabric.Port]float64{}, lossy: lossy}
	g := r.Graph()
	var links []*fabric.Port
	for i := range g.Fabric().Ports() {
		if p := &g.Fabric().Ports()[i]; p.Peer() != nil && p.Node().IsSwitch() && (!p.Peer().Node().IsSwitch() || p.ID() < p.Peer().ID()) {
			links = append(links, p)
		}
	}
	for range faults {
		p := links[x.random.IntN(len(links))]
		factor := 0.5
		if lossy {
			factor = 0.3 + 0.4*x.random.Float64()
		}
		x.bad = append(x.bad, p)
		switch x.random.IntN(3) {
		case 0:
			x.slow[p] = factor
		case 1:
			x.slow[p.Peer()] = factor
		default:
			x.slow[p], x.slow[p.Peer()] = factor, factor
		}
	}
	var hosts []int
	for i := range g.Terminals() {
		if g.Terminals()[i].IsEndpoint(0) {
			hosts = append(hosts, i)
		}
	}
	for range rounds {
		x.random.Shuffle(len(hosts), func(a, b int) { hosts[a], hosts[b] = hosts[b], hosts[a] })
		for i := range hosts {
			x.measure(hosts[i], hosts[(i+1)%len(hosts)])
		}
	}
	return x
}

// linkOf is the same for both ends of a link.
func linkOf(p *fabric.Port) *fabric.Port {
	if q := p.Peer(); q.ID() < p.ID() {
		return q
	}
	return p
}

// counting ranks links by the number of slow measurements that cross them, the most first.
func (x *trial) counting() (list []*fabric.Port) {
	sorted := slices.Sorted(slices.Values(x.values))
	limit := 0.8 * sorted[len(sorted)/2]
	votes := map[*fabric.Port]int{}
	for i, v := range x.values {
		if v >= limit {
			continue
		}
		for _, p := range x.paths[i] {
			l := linkOf(p)
			if votes[l] == 0 {
				list = append(list, l)
			}
			votes[l]++
		}
	}
	x.random.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
	slices.SortStableFunc(list, func(a, b *fabric.Port) int { return votes[b] - votes[a] })
	return list
}

// ranked are the links of the candidates of a result, those of one place together.
func ranked(list []Candidate) (links [][]*fabric.Port) {
	for _, c := range list {
		var at []*fabric.Port
		for _, p := range append([]Part{c.Part}, c.Same...) {
			if p.Kind == Link {
				at = append(at, linkOf(p.Port))
			}
		}
		links = append(links, at)
	}
	return links
}

// score counts what was found.
type score struct {
	cases, links                                       int
	first, three, counted, counted3, random3, ok, many float64
	took                                               time.Duration
}

// judge adds a trial to a score.
func (s *score) judge(t *testing.T, x *trial) {
	t.Helper()
	begin := time.Now()
	res, err := Find(t.Context(), x.r, x.list)
	if err != nil {
		t.Fatal(err)
	}
	s.took = max(s.took, time.Since(begin))
	s.cases++
	if len(res.Faults) == len(x.bad) {
		s.ok++
	}
	if len(res.Faults) > len(x.bad) {
		s.many++
	}
	if len(x.bad) == 0 {
		return
	}
	counted := x.counting()
	n := 0
	for i := range x.r.Graph().Fabric().Ports() {
		if p := &x.r.Graph().Fabric().Ports()[i]; p.Peer() != nil && linkOf(p) == p {
			n++
		}
	}
	lists := [][][]*fabric.Port{}
	for _, f := range res.Faults {
		lists = append(lists, ranked(f.Candidates))
	}
	if len(res.Faults) < len(x.bad) {
		lists = append(lists, ranked(res.Best))
	}
	for _, bad := range x.bad {
		s.links++
		within := func(n int) float64 {
			for _, l := range lists[:min(len(lists), len(x.bad))] {
				for _, at := range l[:min(n, len(l))] {
					if slices.Contains(at, linkOf(bad)) {
						return 1
					}
				}
			}
			return 0
		}
		s.first += within(1)
		s.three += within(3)
		place := slices.Index(counted, linkOf(bad))
		s.counted += float64(routingtest.Count(place >= 0 && place < len(x.bad)))
		s.counted3 += float64(routingtest.Count(place >= 0 && place < 3*len(x.bad)))
		s.random3 += 3 * float64(len(x.bad)) / float64(n)
	}
}

// simulated are tables by an engine, with choices.
func simulated(t testing.TB, net string, adaptive bool) *routes.Routes {
	t.Helper()
	r, err := engines.Compute(t.Context(), routingtest.Graph(t, net, graph.BuildOptions{}), "ftree", engines.Options{Adaptive: adaptive})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// simulatedNet is a network of TestSimulated.
type simulatedNet struct {
	spec  string
	hosts int
}

// TestSimulated finds bad links in simulated benchmarks; with FABSH_SOAK, more than 500 times in networks of up
// to 3,456 hosts, and prints how often. Each host sends to four others.
func TestSimulated(t *testing.T) {
	routingtest.ResultsOnly(t)
	nets := []simulatedNet{{"fattree:k=8,levels=3", 128}, {"fattree:k=12,levels=3", 432}}
	each := func(hosts, faults, routing int) int { return 2 + faults%2 } // trials of each kind
	noises := []float64{0.05, 0.1}
	soak := os.Getenv("FABSH_SOAK") != ""
	if soak {
		nets = append(nets, simulatedNet{"fattree:k=16,levels=3", 1024}, simulatedNet{"fattree:k=24,levels=3", 3456})
		each = func(hosts, _, routing int) int { return [2]int{6, max(1, 5-hosts/500)}[routing] }
		noises = []float64{0.05, 0.1, 0.15, 0.2, 0.3}
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "hosts\trouting\tfaults\tnoise\tcases\tright number\ttoo many\tfirst\tfirst three\tcounting: first\tfirst three\trandom: first three\tlongest")
	total := map[string]*score{}
	cases := 0
	for k, net := range nets {
		for i, routing := range []string{"static", "adaptive"} {
			if !soak && k > 0 && i > 0 {
				continue
			}
			r := simulated(t, net.spec, i > 0)
			for faults := range 3 {
				for j, noise := range noises {
					s := &score{}
					for n := range each(net.hosts, faults, i) {
						s.judge(t, newTrial(r, faults, noise, n%2 == 0, 4, uint64(10000*k+1000*i+100*faults+10*j+n)))
						cases++
					}
					line(w, fmt.Sprint(net.hosts), routing, faults, fmt.Sprintf("%.0f %%", 100*noise), s)
					group := fmt.Sprintf("%s\t%d\t%s", routing, faults, map[bool]string{true: "to 10 %", false: "above 10 %"}[noise <= 0.1])
					if total[group] == nil {
						total[group] = &score{}
					}
					total[group].add(s)
				}
			}
		}
	}
	for _, group := range slices.Sorted(maps.Keys(total)) {
		words, s := strings.Split(group, "\t"), total[group]
		line(w, "all", words[0], int(words[1][0]-'0'), words[2], s)
		if words[1] == "0" && s.ok < 0.95*float64(s.cases) {
			t.Errorf("%s, without a fault: %v of %d cases say so", words[0], s.ok, s.cases)
		}
		if strings.HasPrefix(group, "static\t1\tto") && s.three < 0.95*float64(s.links) {
			t.Errorf("one fault, static: %v of %d links are among the first three", s.three, s.links)
		}
		if missed, byCounting := float64(s.links)-s.three, float64(s.links)-s.counted3; s.three < 2*s.counted3 && 2*missed > byCounting || s.first < s.counted {
			t.Errorf("%s: %v first and %v among the first three of %d links, by counting %v and %v", group, s.first, s.three, s.links, s.counted, s.counted3)
		}
		if s.many > 0.1*float64(s.cases) {
			t.Errorf("%s: too many faults in %v of %d cases", group, s.many, s.cases)
		}
	}
	w.Flush()
	t.Logf("%d cases; each bad link loses packets or has half its rate\n%s", cases, text.String())
}

func (s *score) add(o *score) {
	s.cases += o.cases
	s.links += o.links
	s.first += o.first
	s.three += o.three
	s.counted += o.counted
	s.counted3 += o.counted3
	s.random3 += o.random3
	s.ok += o.ok
	s.many += o.many
	s.took = max(s.took, o.took)
}

func line(w *tabwriter.Writer, hosts, routing string, faults int, noise string, s *score) {
	part := func(x float64) string {
		if s.links == 0 {
			return "-"
		}
		return fmt.Sprintf("%.0f %%", 100*x/float64(s.links))
	}
	fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%.0f %%\t%.0f %%\t%s\t%s\t%s\t%s\t%s\t%v\n", hosts, routing, faults, noise, s.cases, 100*s.ok/float64(s.cases), 100*s.many/float64(s.cases), part(s.first), part(s.three), part(s.counted), part(s.counted3), part(s.random3), s.took.Round(time.Millisecond))
}
