// Package routingtest has what tests of routing share: networks by name and by drawing,
// changes to them, tables that fail the test if they cannot be made, and benchmarks.
//
// It imports no routing engine, so that their tests can use it: see Computing.
package routingtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// Nets are the networks for which figures are given, by name. There are 1,620 switches and
// 11,664 hosts in ft11664, the full tree of three levels of 36-port switches.
// wide is as big as a subnet can be.
var Nets = map[string]string{
	"ft648":   "pgft:m=18/36,w=1/18,p=1/1",
	"ft1728":  "pgft:m=12/12/12,w=1/12/12,p=1/1/1",
	"ft5832":  "pgft:m=18/18/18,w=1/18/18,p=1/1/1",
	"ft11664": "pgft:m=18/18/36,w=1/18/18,p=1/1/1",
	// with 400 of its 23,328 links between switches missing
	"ft11664-400": "pgft:m=18/18/36,w=1/18/18,p=1/1/1,remove_links=400,seed=5",
	"wide":        "pgft:m=32/32/42,w=1/32/32,p=1/1/1",
}

// SmallNets are small networks on which everything is tested: whole ones, and ones with
// parts missing.
func SmallNets() []string {
	list := []string{
		"fattree:k=4,levels=3", "fattree:k=4,levels=4", "pgft:m=4/4,w=1/2,p=1/3", "pgft:m=3/4/2,w=1/2/3,p=1/1/2",
		"ring:n=1,hosts=3", "ring:n=2", "ring:n=7,hosts=2", "mesh:dims=3/4,hosts=2", "mesh:dims=2/2/2/2,hosts=1", "torus:dims=4/4,hosts=2",
		"torus:dims=5,hosts=1,links=2", "hyperx:dims=3/4,hosts=2", "dragonfly:a=4,p=2,h=1", "random:n=20,degree=4,hosts=2",
	}
	for seed := 1; seed <= 4; seed++ {
		for _, kind := range []string{
			"fattree:k=8,levels=2,remove_links=10%", "fattree:k=8,levels=3,remove_links=4%", "fattree:k=4,levels=4,remove_switches=3,remove_links=6%",
			"pgft:m=4/4/4,w=1/2/2,p=1/2/3,remove_links=10%", "torus:dims=4/4,hosts=2,remove_links=4,remove_switches=1",
			"hyperx:dims=4/4,hosts=1,remove_links=15%", "dragonfly:a=4,p=2,h=2,remove_links=10%,remove_switches=1",
			"random:n=24,degree=3,hosts=2,remove_links=20%",
		} {
			list = append(list, fmt.Sprintf("%s,seed=%d", kind, seed))
		}
	}
	return list
}

// FewNets are SmallNets, with -short only the whole ones.
func FewNets() []string {
	nets := SmallNets()
	if testing.Short() {
		return nets[:slices.IndexFunc(nets, func(net string) bool { return strings.Contains(net, "remove_") })]
	}
	return nets
}

// ResultsOnly skips a test with -short, as the race detector runs. The test checks the results of many
// or large computations, whose accesses to memory smaller tests have too.
func ResultsOnly(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("checks results only")
	}
}

// Topology is a network of Nets, or one that the simulator makes of spec.
func Topology(t testing.TB, spec string) *fabric.Fabric {
	t.Helper()
	if s, ok := Nets[spec]; ok {
		spec = s
	}
	f, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Graph is the graph of Topology.
func Graph(t testing.TB, spec string, o graph.BuildOptions) *graph.Graph {
	t.Helper()
	g, err := graph.New(Topology(t, spec), o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// SwitchNamed is the number of the switch of that name.
func SwitchNamed(t testing.TB, g *graph.Graph, name string) int {
	t.Helper()
	s := slices.IndexFunc(g.Switches(), func(n *fabric.Node) bool { return n.Name() == name })
	if s < 0 {
		t.Fatalf("no switch %q", name)
	}
	return s
}

// LID is the first LID of the node of that name.
func LID(t testing.TB, g *graph.Graph, name string) mad.LID {
	t.Helper()
	for _, term := range g.Terminals() {
		if term.Port.Node().Name() == name {
			return term.LID
		}
	}
	t.Fatalf("no node %q", name)
	return 0
}

// Shuffled is f with other GUIDs, and cables in other ports of switches.
func Shuffled(t testing.TB, f *fabric.Fabric, seed uint64) *fabric.Fabric {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	b := fabric.NewBuilder()
	guids := random.Perm(len(f.Nodes()))
	var ports [][]int
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		info := *n.Info()
		info.NodeGUID = mad.GUID(guids[i]+1) << 8 // room for the GUIDs of ports
		b.AddNode(fabric.NodeSpec{Info: info, Name: n.Name()})
		order := []int{0}
		for _, p := range random.Perm(n.NumPorts()) {
			order = append(order, p+1)
		}
		if !n.IsSwitch() {
			slices.Sort(order)
		}
		ports = append(ports, order)
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if q := p.Peer(); q != nil && q.ID() > p.ID() {
			if err := b.Link(p.Node().ID(), ports[p.Node().ID()][p.Num()], q.Node().ID(), ports[q.Node().ID()][q.Num()]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

// Draw makes a fabric of lines such as "a 1 b 2": a cable. Nodes in capitals are
// switches, others CAs; both have 4 ports. LIDs are by node, lids more of a CA.
func Draw(t testing.TB, lmc int, cables ...[4]any) *fabric.Fabric {
	t.Helper()
	b := fabric.NewBuilder()
	handles := map[string]int{}
	node := func(name string) int {
		h, ok := handles[name]
		if ok {
			return h
		}
		n := len(handles) + 1
		spec := fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 4, NodeGUID: mad.GUID(n), PortGUID: mad.GUID(0x100 + n), LocalPortNum: 1}}
		info := &mad.PortInfo{LID: mad.LID(n << lmc), LMC: uint8(lmc), PortState: mad.PortStateActive}
		if name[0] < 'a' {
			spec.Info.NodeType, info.LMC = mad.NodeTypeSwitch, 0
			h = b.AddNode(spec)
			b.SetPort(h, 0, info)
		} else {
			h = b.AddNode(spec)
			b.SetPort(h, 1, info)
		}
		handles[name] = h
		return h
	}
	for _, c := range cables {
		if err := b.Link(node(c[0].(string)), c[1].(int), node(c[2].(string)), c[3].(int)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

// Tables are all entries of r.
func Tables(r *routes.Routes) (entries []uint8) {
	for s := range r.Graph().Switches() {
		entries = append(entries, r.Row(s)...)
	}
	return entries
}

// WithLMC is f with 1<<lmc LIDs for each port of a CA.
func WithLMC(t testing.TB, f *fabric.Fabric, lmc int) *fabric.Fabric {
	t.Helper()
	b := fabric.NewBuilder()
	lid := 1 << lmc
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		b.AddNode(fabric.NodeSpec{Info: *n.Info(), Name: n.Name()})
		for num := range n.NumPorts() + 1 {
			if n.IsSwitch() != (num == 0) || num > 0 && n.Port(num).Peer() == nil {
				continue
			}
			info := &mad.PortInfo{LID: mad.LID(lid), PortState: mad.PortStateActive}
			if num > 0 {
				info.LMC = uint8(lmc)
			}
			b.SetPort(i, num, info)
			lid += 1 << lmc
		}
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if q := p.Peer(); q != nil && q.ID() > p.ID() {
			if err := b.Link(p.Node().ID(), p.Num(), q.Node().ID(), q.Num()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

// WithAggregation is f with an aggregation node on each switch, and without the hosts of the
// switches named.
func WithAggregation(t testing.TB, f *fabric.Fabric, bare ...string) *fabric.Fabric {
	t.Helper()
	b := fabric.NewBuilder()
	lid := mad.LID(0)
	add := func(info mad.NodeInfo, name string, port int) int {
		lid++
		h := b.AddNode(fabric.NodeSpec{Info: info, Name: name})
		b.SetPort(h, port, &mad.PortInfo{LID: lid, PortState: mad.PortStateActive})
		return h
	}
	link := func(n, p, m, q int) {
		if err := b.Link(n, p, m, q); err != nil {
			t.Fatal(err)
		}
	}
	handles := map[*fabric.Node]int{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		info := *n.Info()
		if !n.IsSwitch() {
			if !slices.Contains(bare, n.Port(1).Peer().Node().Name()) {
				handles[n] = add(info, n.Name(), 1)
			}
			continue
		}
		info.NumPorts++
		handles[n] = add(info, n.Name(), 0)
		guid := 1<<40 + info.NodeGUID
		an := mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: guid, SystemImageGUID: guid, PortGUID: guid, LocalPortNum: 1}
		link(add(an, "Aggregation Node", 1), 1, handles[n], int(info.NumPorts))
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() {
			continue
		}
		n, ok := handles[p.Node()]
		m, also := handles[q.Node()]
		if ok && also {
			link(n, p.Num(), m, q.Num())
		}
	}
	return b.Build()
}

// Rate is the rate of a link.
type Rate struct {
	Width mad.LinkWidth
	Speed mad.LinkSpeedExt
	Gbps  float64
}

// Rates are rates of links: of four lanes, two and one, and of the generation before.
func Rates() []Rate {
	four, two, one := mad.LinkWidth(mad.WordsLinkWidth.Code()["4x"]), mad.LinkWidth(mad.WordsLinkWidth.Code()["2x"]), mad.LinkWidth(mad.WordsLinkWidth.Code()["1x"])
	hdr, edr := mad.LinkSpeedExt(mad.WordsLinkSpeedExt.Code()["hdr"]), mad.LinkSpeedExt(mad.WordsLinkSpeedExt.Code()["edr"])
	return []Rate{{four, hdr, 200}, {two, hdr, 100}, {four, edr, 100}, {one, hdr, 50}}
}

// WithRates is f with the rates of links that rate returns for one of their ends.
func WithRates(t testing.TB, f *fabric.Fabric, rate func(p *fabric.Port) Rate) *fabric.Fabric {
	t.Helper()
	b := fabric.NewBuilder()
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		b.AddNode(fabric.NodeSpec{Info: *n.Info(), Name: n.Name()})
		if n.IsSwitch() {
			b.SetPort(i, 0, infoOf(n.Port(0)))
		}
	}
	set := func(p *fabric.Port, r Rate) {
		info := infoOf(p)
		info.LinkWidthActive, info.LinkSpeedExtActive, info.LinkSpeedExtActive2 = r.Width, r.Speed, 0
		b.SetPort(p.Node().ID(), p.Num(), info)
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() {
			continue
		}
		r := rate(p)
		set(p, r)
		set(q, r)
		if err := b.Link(p.Node().ID(), p.Num(), q.Node().ID(), q.Num()); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

// infoOf is a copy of the PortInfo of p, if it has any, with the fields for extended speeds.
func infoOf(p *fabric.Port) *mad.PortInfo {
	info := mad.PortInfo{PortState: mad.PortStateActive, LID: p.LID(), LMC: uint8(p.LMC())}
	if p.Info() != nil {
		info = *p.Info()
	}
	info.CapabilityMask |= mad.CapabilityMaskIsExtendedSpeedsSupported
	return &info
}

// MixedRates is f with links between switches of random rates, most of them the fastest; links of hosts
// have that.
func MixedRates(t testing.TB, f *fabric.Fabric, seed uint64) *fabric.Fabric {
	random := rand.New(rand.NewPCG(seed, 7))
	rates := Rates()
	return WithRates(t, f, func(p *fabric.Port) Rate {
		if !p.Node().IsSwitch() || !p.Peer().Node().IsSwitch() || random.IntN(2) == 0 {
			return rates[0]
		}
		return rates[random.IntN(len(rates))]
	})
}

// UsedTime is the CPU time of this process so far, on all cores.
func UsedTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Bench measures do on a net, and prints allocations.
func Bench(b *testing.B, net string, do func(b *testing.B, g *graph.Graph) error) {
	b.Run(net, func(b *testing.B) {
		g := Graph(b, net, graph.BuildOptions{})
		b.ReportAllocs()
		for b.Loop() {
			if err := do(b, g); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Reread is r, tables of f with lanes, as read from the files that it is written to: what made it is unknown.
func Reread(t testing.TB, f *fabric.Fabric, r *routes.Routes) *routes.Routes {
	t.Helper()
	texts := map[string]string{}
	for _, kind := range []format.FormatName{format.KindLFTs, format.KindPathSL, format.KindSL2VL} {
		var b bytes.Buffer
		if err := r.Write(t.Context(), &b, kind); err != nil {
			t.Fatal(err)
		}
		texts[string(kind)] = b.String()
	}
	open := func(name string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(texts[name])), nil }
	back, err := routes.Load(f, routes.Files{LFTs: string(format.KindLFTs), SL: string(format.KindPathSL), SL2VL: string(format.KindSL2VL)}, open)
	if err != nil || len(back.ReadNotes) > 0 {
		t.Fatal(err, back.ReadNotes)
	}
	return back
}

// Computing is what computes tables by the engine of that name, and fails the test on an
// error. compute is engines.Compute: the tests of engines, and of what it imports, use this
// package, which thus cannot import it.
func Computing[O any](compute func(ctx context.Context, g *graph.Graph, engine string, o O) (*routes.Routes, error)) func(t testing.TB, g *graph.Graph, engine string, o O) *routes.Routes {
	return func(t testing.TB, g *graph.Graph, engine string, o O) *routes.Routes {
		t.Helper()
		r, err := compute(t.Context(), g, engine, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// BenchTables measures do on the tables of two fat trees. compute is as Computing returns it.
func BenchTables[O any](b *testing.B, compute func(t testing.TB, g *graph.Graph, engine string, o O) *routes.Routes, do func(b *testing.B, r *routes.Routes) error) {
	for _, net := range []string{"ft1728", "ft11664"} {
		b.Run(net, func(b *testing.B) {
			var defaults O
			r := compute(b, Graph(b, net, graph.BuildOptions{}), "ftree", defaults)
			b.ReportAllocs()
			for b.Loop() {
				if err := do(b, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Verified is the verdict on r; an error fails the test.
func Verified(t testing.TB, r *routes.Routes, o verify.Options) *verify.Verdict {
	t.Helper()
	v, err := verify.Tables(t.Context(), r, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Count is 1 for true, 0 for false: to count what holds.
func Count(is bool) int {
	if is {
		return 1
	}
	return 0
}
