package engines

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

var update = flag.Bool("update", false, "write what was got to testdata/figures.csv")

// figure is what tables of a net are like.
type figure struct {
	Net, Engine string // the engine as OpenSM spells it
	Result      string // "ok", or why there is nothing else
	Largest     int64  // routes on the busiest channel
	Shift       float64
	Bisection   float64 // effective bandwidths
	Order       string  // of the hosts that these are measured in: orderOfGUIDs, or of OpenSM's LIDs; "": none
	Lanes       int     // 0: unknown
	CPU         int     // time of the routing, in ms
}

// orderOfGUIDs is the order in which bandwidths are compared, for LIDs differ under OpenSM.
const orderOfGUIDs = "guid"

// opensmFigures has the figures of OpenSM of that version, which makes equal tables each time:
// they are measured once, by TestOpenSMFigures.
const opensmFigures = "testdata/opensm-3.3.23.csv"

// ourFigures has ours, of smaller nets.
const ourFigures = "testdata/figures.csv"

var figureColumns = []string{"net", "engine", "result", "largest", "shift", "bisection", "lanes", "cpu_ms", "order"}

func readFigures(t testing.TB, file string) (list []figure) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 || !slices.Equal(rows[0], figureColumns) {
		t.Fatal(file, err)
	}
	for _, x := range rows[1:] {
		f := figure{Net: x[0], Engine: x[1], Result: x[2], Order: x[8]}
		if _, err := fmt.Sscan(strings.Join(x[3:8], " "), &f.Largest, &f.Shift, &f.Bisection, &f.Lanes, &f.CPU); err != nil {
			t.Fatal(x, err)
		}
		list = append(list, f)
	}
	return list
}

func writeFigures(t testing.TB, file string, list []figure) {
	t.Helper()
	rows := [][]string{figureColumns}
	for _, f := range list {
		rows = append(rows, []string{f.Net, f.Engine, f.Result, fmt.Sprint(f.Largest), fmt.Sprintf("%.5f", f.Shift), fmt.Sprintf("%.5f", f.Bisection), fmt.Sprint(f.Lanes), fmt.Sprint(f.CPU), f.Order})
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// measure sets load and bandwidths to the figures of tables.
func (f *figure) measure(t testing.TB, tables *routes.Routes) {
	t.Helper()
	b, err := traffic.MeasureBalance(t.Context(), tables, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Result, f.Largest, f.Order = "ok", b.Routes.Max, orderOfGUIDs
	for _, pattern := range []string{traffic.Shift, traffic.Bisection} {
		c, err := traffic.MeasureCongestion(t.Context(), tables, traffic.CongestionOptions{Pattern: pattern, Seed: 1, Samples: 200, Order: hostsByGUID(tables.Graph())})
		if err != nil {
			t.Fatal(err)
		}
		if c.Lost > 0 {
			f.Result = "pairs without a path"
		}
		if pattern == traffic.Shift {
			f.Shift = c.Bandwidth
		} else {
			f.Bisection = c.Bandwidth
		}
	}
}

// hostsByGUID are the LIDs of compute nodes in the order of the GUIDs of their ports.
func hostsByGUID(g *graph.Graph) (lids []mad.LID) {
	lids = graph.Order(g)
	guid := func(lid mad.LID) mad.GUID { return g.Terminals()[g.TerminalByLID(lid)].Port.GUID() }
	slices.SortFunc(lids, func(a, b mad.LID) int { return cmp.Compare(guid(a), guid(b)) })
	return lids
}

// ours computes our tables for a figure of OpenSM's: with all lanes that there are, where lanes
// are compared.
func (f *figure) ours(t testing.TB, g *graph.Graph) *routes.Routes {
	t.Helper()
	o := Options{}
	if f.Engine == "dfsssp" || f.Engine == "lash" {
		o.MaxVLs = 15
	}
	return compute(t, g, strings.ToLower(f.Engine), o)
}

// smallerNets are the networks of benchNets whose figures tests check.
func smallerNets() []string {
	return []string{
		"fattree:k=4,levels=3", "fattree:k=8,levels=3", "pgft:m=4/4,w=1/2,p=1/3", "pgft:m=3/4/2,w=1/2/3,p=1/1/2", "pgft:m=11/10,w=1/10,p=1/1", "pgft:m=20/12,w=1/9,p=1/2", "fattree:k=8,levels=3,remove_links=4%,seed=1", "fattree:k=8,levels=3,remove_links=8%,seed=2",
		"fattree:k=4,levels=4,remove_switches=3,remove_links=6%,seed=1", "pgft:m=4/4/4,w=1/2/2,p=1/2/3,remove_links=10%,seed=1",
		"random:n=24,degree=4,hosts=3", "random:n=50,degree=5,hosts=4", "torus:dims=4/4,hosts=2", "torus:dims=5/5,hosts=2", "torus:dims=8/8,hosts=2", "torus:dims=4/4/4,hosts=4", "torus:dims=4/4/4,hosts=2,remove_links=4,seed=1",
		"mesh:dims=4/4/4,hosts=2", "mesh:dims=2/2/2/2/2,hosts=4", "hyperx:dims=4/4,hosts=2", "hyperx:dims=6/6,hosts=4", "hyperx:dims=6/6,hosts=4,remove_links=10%,seed=1", "hyperx:dims=4/4,hosts=1,remove_links=15%,seed=2", "dragonfly:a=4,p=2,h=2", "dragonfly:a=6,p=3,h=2", "dragonfly:a=4,p=2,h=2,remove_links=10%,remove_switches=1,seed=1", "dragonfly:a=6,p=3,h=2,remove_links=5%,seed=2",
	}
}

// TestFigures: on 27 nets, the busiest channel has the number of routes, paths the number of lanes, and
// traffic the bandwidths, that testdata/figures.csv has. There are at most 1.1 times the routes of
// OpenSM, and no more lanes, and bandwidths are at least 0.97 times its own. In the geometric mean
// loads are as far below OpenSM's as an engine promises, and bandwidths are at least its own.
func TestFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	var got []figure
	loads, shifts, halves := map[string]*means{}, map[string]*means{}, map[string]*means{}
	graphs := map[string]*graph.Graph{}
	for _, theirs := range readFigures(t, opensmFigures) {
		if theirs.Result != "ok" || !slices.Contains(smallerNets(), theirs.Net) {
			continue
		}
		g := graphs[theirs.Net]
		if g == nil {
			g = routingtest.Graph(t, theirs.Net, graph.BuildOptions{})
			graphs[theirs.Net] = g
		}
		f := figure{Net: theirs.Net, Engine: theirs.Engine}
		r := theirs.ours(t, g)
		f.measure(t, r)
		f.Lanes = r.Lanes()
		got = append(got, f)
		if v := routingtest.Verified(t, r, verify.Options{}); v.Unreachable > 0 || !v.Acyclic && theirs.Lanes > 0 {
			t.Errorf("%s, %s: acyclic %v, unreachable %d", f.Net, f.Engine, v.Acyclic, v.Unreachable)
		}
		if loads[f.Engine] == nil {
			loads[f.Engine], shifts[f.Engine], halves[f.Engine] = &means{}, &means{}, &means{}
		}
		if theirs.Order == orderOfGUIDs {
			shift, half := shifts[f.Engine].add(f.Shift/theirs.Shift), halves[f.Engine].add(f.Bisection/theirs.Bisection)
			if min(shift, half) < 0.97 {
				t.Errorf("%s, %s: bandwidth of shifts %.3f, of halves %.3f; OpenSM: %.3f, %.3f", f.Net, f.Engine, f.Shift, f.Bisection, theirs.Shift, theirs.Bisection)
			}
		}
		ratio := loads[f.Engine].add(float64(f.Largest) / float64(theirs.Largest))
		if ratio > 1.1 || theirs.Lanes > 0 && f.Lanes > theirs.Lanes {
			t.Errorf("%s, %s: %d routes on a channel, %d lanes; OpenSM: %d, %d", f.Net, f.Engine, f.Largest, f.Lanes, theirs.Largest, theirs.Lanes)
		}
	}
	for engine, most := range map[string]float64{"ftree": 1, "dor": 1, "sssp": 0.94, "dfsssp": 0.94, "minhop": 0.85, "updn": 0.85, "lash": 0.85, "nue": 0.85, "torus-2QoS": 1} {
		n := loads[engine]
		if n == nil || shifts[engine].n == 0 {
			t.Errorf("%s: nothing was compared", engine)
			continue
		}
		if n.mean() > most+1e-9 {
			t.Errorf("%s, on %d nets: %.3f times the largest load of OpenSM, more than %.2f", engine, n.n, n.mean(), most)
		}
		if shift, half := shifts[engine].mean(), halves[engine].mean(); min(shift, half) < 1-1e-5 { // files have 5 places
			t.Errorf("%s, on %d nets: %.5f times the bandwidth of shifts of OpenSM, %.5f times that of halves", engine, shifts[engine].n, shift, half)
		}
	}
	if *update {
		writeFigures(t, ourFigures, got)
	}
	want := readFigures(t, ourFigures)
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || !got[i].equals(&want[i]) {
			t.Errorf("figure %d is not that of %s; -update writes it", i+1, ourFigures)
			break
		}
	}
}

// equals reports whether all but times are equal.
func (f *figure) equals(g *figure) bool {
	return f.Net == g.Net && f.Engine == g.Engine && f.Largest == g.Largest && f.Lanes == g.Lanes &&
		math.Abs(f.Shift-g.Shift) < 1e-4 && math.Abs(f.Bisection-g.Bisection) < 1e-4
}

// benchNets are the networks on which tables are compared with OpenSM's tables: trees,
// whole and with parts missing, random ones, tori, meshes and hypercubes, HyperX, dragonflies, and
// Jellyfish (random ones of high degree), slim flies, trees of hosts with several adapters, and
// real ones. "drawn:" is one of drawnNet, "ibutils:" a topology of ibutils, "real:" a dump that the project does not
// ship.
func benchNets() []string {
	return []string{
		"fattree:k=4,levels=3", "fattree:k=8,levels=2", "fattree:k=8,levels=3", "fattree:k=12,levels=3", "fattree:k=4,levels=4",
		"pgft:m=18/36,w=1/18,p=1/1", "pgft:m=12/12/12,w=1/12/12,p=1/1/1", "pgft:m=4/4,w=1/2,p=1/3", "pgft:m=3/4/2,w=1/2/3,p=1/1/2", "pgft:m=20/20/4,w=1/10/2,p=1/1/5", "pgft:m=11/10,w=1/10,p=1/1", "pgft:m=20/12,w=1/9,p=1/2", "pgft:m=9/8/8,w=1/8/8,p=1/1/1", "pgft:m=11/10/10,w=1/10/10,p=1/1/1", "pgft:m=5/5/5,w=1/3/5,p=1/1/1",
		"fattree:k=8,levels=3,remove_links=4%,seed=1", "fattree:k=8,levels=3,remove_links=8%,seed=2", "fattree:k=12,levels=3,remove_links=3%,remove_switches=2,seed=3",
		"fattree:k=4,levels=4,remove_switches=3,remove_links=6%,seed=1", "pgft:m=18/36,w=1/18,p=1/1,remove_links=3%", "pgft:m=18/36,w=1/18,p=1/1,remove_switches=2,seed=2",
		"pgft:m=12/12/12,w=1/12/12,p=1/1/1,remove_links=1%", "pgft:m=12/12/12,w=1/12/12,p=1/1/1,remove_links=5%", "pgft:m=12/12/12,w=1/12/12,p=1/1/1,remove_switches=8",
		"pgft:m=20/20/4,w=1/10/2,p=1/1/5,remove_links=2%", "pgft:m=4/4/4,w=1/2/2,p=1/2/3,remove_links=10%,seed=1", "pgft:m=6/5/4,w=1/3/2,p=1/2/2,remove_links=5%,seed=4", "fattree:k=8,levels=3,remove_links=15%,seed=5", "fattree:k=6,levels=3,remove_switches=4,seed=2",
		"random:n=24,degree=4,hosts=3", "random:n=50,degree=5,hosts=4", "random:n=100,degree=6,hosts=4", "random:n=125,degree=10,hosts=8", "random:n=200,degree=8,hosts=4", "random:n=300,degree=10,hosts=2",
		"random:n=100,degree=6,hosts=4,remove_links=10%,seed=1", "random:n=125,degree=10,hosts=8,remove_links=5%,seed=2", "random:n=40,degree=3,hosts=2,seed=4", "random:n=64,degree=7,hosts=3,seed=9", "random:n=125,degree=16,hosts=8",
		"ring:n=9,hosts=2", "torus:dims=4/4,hosts=2", "torus:dims=5/5,hosts=2", "torus:dims=8/8,hosts=2", "torus:dims=4/4/4,hosts=4", "torus:dims=5/5/5,hosts=2", "torus:dims=6/6/6,hosts=1", "torus:dims=8/8/8,hosts=1", "torus:dims=12/12/8,hosts=1",
		"torus:dims=4/4/4/4,hosts=1", "torus:dims=4/4/4,hosts=2,remove_links=4,seed=1", "torus:dims=6/6/6,hosts=1,remove_switches=2,seed=1", "torus:dims=8/8,hosts=2,remove_links=5%,seed=3", "torus:dims=7/4,hosts=3", "torus:dims=3/3/5,hosts=2,links=2", "torus:dims=6/5/5,hosts=7,links=4", "torus:dims=6/6,hosts=3,remove_links=3,seed=7",
		"mesh:dims=8/8,hosts=2", "mesh:dims=4/4/4,hosts=2", "mesh:dims=2/2/2/2/2,hosts=4", "mesh:dims=2/2/2/2/2/2,hosts=2", "mesh:dims=2/2/2/2/2/2/2/2,hosts=1", "mesh:dims=6/6,hosts=3", "mesh:dims=5/4/3,hosts=2,remove_links=4%,seed=2",
		"hyperx:dims=4/4,hosts=2", "hyperx:dims=6/6,hosts=4", "hyperx:dims=12/8,hosts=7", "hyperx:dims=4/4/4,hosts=4", "hyperx:dims=6/6,hosts=4,remove_links=10%,seed=1", "hyperx:dims=4/4,hosts=1,remove_links=15%,seed=2", "hyperx:dims=5/3/4,hosts=3", "hyperx:dims=7/5,hosts=3,remove_switches=1,seed=1",
		"dragonfly:a=4,p=2,h=1", "dragonfly:a=4,p=2,h=2", "dragonfly:a=6,p=3,h=2", "dragonfly:a=8,p=4,h=4", "dragonfly:a=4,p=2,h=2,remove_links=10%,remove_switches=1,seed=1", "dragonfly:a=6,p=3,h=2,remove_links=5%,seed=2", "dragonfly:a=5,p=2,h=3", "dragonfly:a=6,p=3,h=3,groups=7", "dragonfly:a=12,p=6,h=6,groups=15",
		"dragonfly:a=6,p=3,h=3", "dragonfly:a=6,p=3,h=3,arrangement=relative", "dragonfly:a=6,p=3,h=3,arrangement=circulant", "dragonfly:a=6,p=3,h=3,arrangement=random",
		"dragonfly+:leaves=4,spines=4,p=4", "dragonfly+:leaves=3,spines=3,p=3,h=2", "slimfly:q=5", "slimfly:q=7,hosts=3", "random:n=64,degree=11,hosts=4,seed=5", "random:n=98,degree=8,hosts=5,seed=3",
		"fattree:k=8,levels=2,rails=4", "fattree:k=8,levels=3,rails=4", "fattree:k=8,levels=3,rails=4,remove_links=5%,seed=2", "drawn:two-trees", "drawn:one-uplink",
		"fattree:k=8,levels=3,aggregation=yes", "pgft:m=6/6/6,w=1/6/6,p=1/1/1,aggregation=yes,remove_links=3%",
		"ibutils:RhinoBased512.topo",
		"real:lyon-x5", "real:rack-lab", "real:vendor-lab.1", "real:vendor-lab.3", "real:vendor-lab.6-CS8500", "real:ufm-director",
	}
}

// benchNet is one of benchNets. Those that are not here skip the test.
func benchNet(t testing.TB, name string) *fabric.Fabric {
	t.Helper()
	if file, ok := strings.CutPrefix(name, "ibutils:"); ok {
		return loadNet(t, filepath.Join(filepath.Dir(filepath.Dir(ibsimtest.Path(t, "ibdmchk"))), "lib/x86_64-linux-gnu/ibdm1.5.7/ibnl", file))
	}
	if file, ok := strings.CutPrefix(name, "real:"); ok {
		dir := os.Getenv("FABSH_FABRICS")
		if dir == "" {
			dir = filepath.Join("..", "..", "..", "..", "shared", "fabrics")
		}
		f := loadNet(t, filepath.Join(dir, file+".topo.gz"))
		for i := range f.Ports() {
			if p := &f.Ports()[i]; p.Peer() != nil && !p.Node().IsSwitch() && p.LID() == 0 { // OpenSM gives it one
				return routingtest.WithLMC(t, f, 0)
			}
		}
		return f
	}
	if name, ok := strings.CutPrefix(name, "drawn:"); ok {
		return drawnNet(t, name)
	}
	return routingtest.Topology(t, name)
}

// drawnNet is a network of 8 leaves, each with 4 hosts and a link to each of 4 spines: as two-trees, there
// are two of these, and one link between a spine of each; as one-uplink, the first leaf has lost its other
// uplinks.
func drawnNet(t testing.TB, name string) *fabric.Fabric {
	t.Helper()
	b := fabric.NewBuilder()
	n := 0
	node := func(kind mad.NodeType, name string, ports int) int {
		n++
		return b.AddNode(fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: kind, NumPorts: uint8(ports), NodeGUID: mad.GUID(n << 8), PortGUID: mad.GUID(n << 8), SystemImageGUID: mad.GUID(n << 8), LocalPortNum: 1}})
	}
	link := func(a, p, c, q int) {
		if err := b.Link(a, p, c, q); err != nil {
			t.Fatal(err)
		}
	}
	tree := func(tree string) (spine int) {
		var spines []int
		for s := range 4 {
			spines = append(spines, node(mad.NodeTypeSwitch, fmt.Sprintf("%s spine-%d", tree, s+1), 9))
		}
		for l := range 8 {
			leaf := node(mad.NodeTypeSwitch, fmt.Sprintf("%s leaf-%d", tree, l+1), 8)
			for h := range 4 {
				link(node(mad.NodeTypeCA, fmt.Sprintf("%s-node-%d HCA-1", tree, 4*l+h+1), 1), 1, leaf, h+1)
			}
			for s := range spines {
				if l > 0 || s == 0 || name != "one-uplink" {
					link(leaf, 5+s, spines[s], l+1)
				}
			}
		}
		return spines[0]
	}
	first := tree("a")
	if name == "two-trees" {
		link(first, 9, tree("b"), 9)
	}
	return routingtest.WithLMC(t, b.Build(), 0)
}

// loadNet loads a topology file.
func loadNet(t testing.TB, path string) *fabric.Fabric {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Skip(err)
	}
	defer in.Close()
	f, err := format.Load(in, path, func(name string) (io.ReadCloser, error) { return os.Open(name) })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// BenchmarkFigures prints, for each net and engine that OpenSM has tables for, ratios of ours to
// its own: of the largest load, and of bandwidths; the lanes of both, and the CPU times of
// the routing. The last of an engine has the geometric means and the worst of its loads and
// bandwidths. Bandwidths of OpenSM in another order of hosts are not compared.
func BenchmarkFigures(b *testing.B) {
	byEngine := map[string][]figure{}
	var engines []string
	for _, f := range readFigures(b, opensmFigures) {
		if byEngine[f.Engine] == nil {
			engines = append(engines, f.Engine)
		}
		byEngine[f.Engine] = append(byEngine[f.Engine], f)
	}
	graphs := map[string]*graph.Graph{}
	for _, engine := range engines {
		logs, worst, n := 0.0, 0.0, 0
		var shifts, halves means
		for _, theirs := range byEngine[engine] {
			if theirs.Result != "ok" {
				continue
			}
			b.Run(engine+"/"+strings.ReplaceAll(theirs.Net, "/", "x"), func(b *testing.B) {
				g := graphs[theirs.Net]
				if g == nil {
					var err error
					if g, err = graph.New(benchNet(b, theirs.Net), graph.BuildOptions{}); err != nil {
						b.Fatal(err)
					}
					graphs[theirs.Net] = g
				}
				before := routingtest.UsedTime(b)
				r := theirs.ours(b, g)
				for range b.N - 1 {
					r = theirs.ours(b, g)
				}
				used := (routingtest.UsedTime(b) - before) / time.Duration(b.N)
				var ours figure
				ours.measure(b, r)
				ratio := float64(ours.Largest) / float64(theirs.Largest)
				b.ReportMetric(ratio, "load/OpenSM")
				if theirs.Order == orderOfGUIDs {
					b.ReportMetric(shifts.add(ours.Shift/theirs.Shift), "shift/OpenSM")
					b.ReportMetric(halves.add(ours.Bisection/theirs.Bisection), "bisection/OpenSM")
				}
				b.ReportMetric(float64(r.Lanes()), "lanes")
				b.ReportMetric(float64(theirs.Lanes), "OpenSM-lanes")
				b.ReportMetric(used.Seconds()*1e3, "cpu-ms")
				b.ReportMetric(float64(theirs.CPU), "OpenSM-cpu-ms")
				logs, worst, n = logs+math.Log(ratio), max(worst, ratio), n+1
			})
		}
		b.Run(engine+"/all", func(b *testing.B) {
			for b.Loop() {
			}
			b.ReportMetric(math.Exp(logs/float64(max(n, 1))), "load-mean/OpenSM")
			b.ReportMetric(worst, "load-worst/OpenSM")
			shifts.report(b, "shift")
			halves.report(b, "bisection")
		})
	}
}

// means are means of ratios.
type means struct {
	logs, least float64
	n           int
}

// add adds a ratio, and returns it.
func (m *means) add(x float64) float64 {
	if m.n == 0 || x < m.least {
		m.least = x
	}
	m.logs, m.n = m.logs+math.Log(x), m.n+1
	return x
}

// mean is the geometric mean; 1: of none.
func (m *means) mean() float64 { return math.Exp(m.logs / float64(max(m.n, 1))) }

// report reports the geometric mean and the least of ratios to OpenSM, if there are any.
func (m *means) report(b *testing.B, what string) {
	if m.n > 0 {
		b.ReportMetric(m.mean(), what+"-mean/OpenSM")
		b.ReportMetric(m.least, what+"-worst/OpenSM")
	}
}
