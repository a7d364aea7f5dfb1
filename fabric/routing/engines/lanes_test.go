package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

// laneEdge is a link out of a port on a virtual lane.
type laneEdge struct {
	guid mad.GUID
	port int
	vl   uint8
}

// oracle follows each packet by itself, over the ports of the fabric: how many pairs of
// ports of CAs do not reach each other, and whether the dependencies of links and lanes
// have no cycle, by taking away what nothing waits for until nothing is left (Kahn). It
// shares no code with what it judges.
func oracle(r *routes.Routes) (unreachable int, acyclic bool) {
	waits := map[laneEdge]map[laneEdge]bool{}
	f := r.Graph().Fabric()
	for i, from := range r.Graph().Terminals() {
		for _, to := range r.Graph().Terminals() {
			if from.Port.Node().IsSwitch() || to.Port.Node().IsSwitch() || from.Port == to.Port {
				continue
			}
			at, before := from.Port.Peer(), laneEdge{}
			arrived := false
			for range len(f.Nodes()) {
				if at == nil || !at.Node().IsSwitch() {
					arrived = at == to.Port
					break
				}
				s := r.Graph().SwitchByGUID(at.Node().GUID())
				out := r.Row(s).Port(to.LID)
				if out == routes.NoPort || out == 0 {
					break
				}
				sl, vl := uint8(0), uint8(0)
				if r.SL != nil {
					sl = r.SL.Of(i, to.LID)
				}
				if r.SL2VL != nil {
					vl = r.SL2VL.VL(s, uint8(at.Num()), out, sl)
				}
				link := laneEdge{at.Node().GUID(), int(out), vl}
				if waits[link] == nil {
					waits[link] = map[laneEdge]bool{}
				}
				if before != (laneEdge{}) {
					waits[before][link] = true
				}
				before, at = link, at.Node().Port(int(out)).Peer()
			}
			if !arrived {
				unreachable++
			}
		}
	}
	awaited := map[laneEdge]int{}
	for _, next := range waits {
		for link := range next {
			awaited[link]++
		}
	}
	var free []laneEdge
	for link := range waits {
		if awaited[link] == 0 {
			free = append(free, link)
		}
	}
	taken := 0
	for ; len(free) > 0; taken++ {
		link := free[len(free)-1]
		free = free[:len(free)-1]
		for next := range waits[link] {
			if awaited[next]--; awaited[next] == 0 {
				free = append(free, next)
			}
		}
	}
	return unreachable, taken == len(waits)
}

// TestLayers: the tables of any engine get lanes without a credit loop, by the oracle,
// and stay as they are; and its verdict is Verify's.
func TestLayers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	lanes, cyclic := 0, 0
	for _, spec := range routingtest.SmallNets() {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		for _, engine := range []string{"minhop", "sssp", "dfsssp", "lash"} {
			r := compute(t, g, engine, Options{})
			if engine == "minhop" || engine == "sssp" {
				unreachable, acyclic := oracle(r)
				if v := routingtest.Verified(t, r, verify.Options{}); v.Acyclic != acyclic || v.Unreachable != int64(unreachable) {
					t.Errorf("%s, %s: acyclic %v, unreachable %d; the oracle: %v, %d", spec, engine, v.Acyclic, v.Unreachable, acyclic, unreachable)
				}
				cyclic += routingtest.Count(!acyclic)
				before := r.Clone()
				if err := Layer(t.Context(), r, 0, 1); err != nil {
					t.Errorf("%s, %s: %v", spec, engine, err)
					continue
				}
				if d := r.Diff(before); d.Entries != 0 {
					t.Errorf("%s, %s: Layer has changed %d entries", spec, engine, d.Entries)
				}
				if acyclic && r.Lanes() != 1 {
					t.Errorf("%s, %s: %d lanes, and one was enough", spec, engine, r.Lanes())
				}
			}
			unreachable, acyclic := oracle(r)
			v := routingtest.Verified(t, r, verify.Options{})
			if !acyclic || !v.Acyclic || v.Unreachable != int64(unreachable) || connected(t, g) && unreachable > 0 {
				t.Errorf("%s, %s: acyclic %v, unreachable %d; the oracle: %v, %d", spec, engine, v.Acyclic, v.Unreachable, acyclic, unreachable)
			}
			lanes = max(lanes, r.Lanes())
			if engine == "lash" && r.SL != nil {
				for i, from := range g.Terminals() {
					for j, to := range g.Terminals() {
						if from.Out > 0 && to.Out > 0 && r.SL.Of(i, to.LID) != r.SL.Of(j, from.LID) {
							t.Fatalf("%s: SL %d there, %d back", spec, r.SL.Of(i, to.LID), r.SL.Of(j, from.LID))
						}
					}
				}
			}
		}
	}
	if lanes < 3 || cyclic < 20 {
		t.Errorf("no more than %d lanes, and %d tables with credit loops: that proves little", lanes, cyclic)
	}
}

// TestDragonfly: the paths within and between groups of a whole dragonfly, on two lanes
// and without service levels; and without a credit loop where parts are missing.
func TestDragonfly(t *testing.T) {
	routingtest.ResultsOnly(t)
	for _, x := range []struct {
		spec string
		hops int // of the longest path: host, local, global, local, host
	}{
		{"dragonfly:a=4,p=2,h=1", 5}, {"dragonfly:a=4,p=2,h=2", 5}, {"dragonfly:a=6,p=1,h=3,groups=5", 5},
	} {
		r := compute(t, routingtest.Graph(t, x.spec, graph.BuildOptions{}), "dragonfly", Options{})
		v := routingtest.Verified(t, r, verify.Options{})
		if unreachable, acyclic := oracle(r); !v.OK() || !acyclic || unreachable > 0 || v.MaxHops != x.hops || r.Lanes() != 2 || r.SL != nil {
			t.Errorf("%s: %+v; the oracle: %d, %v; %d lanes", x.spec, v, unreachable, acyclic, r.Lanes())
		}
	}
	applied := 0
	for seed := range 20 {
		spec := fmt.Sprintf("dragonfly:a=8,p=1,h=2,groups=9,remove_links=8%%,remove_switches=1,seed=%d", seed)
		r, err := Compute(t.Context(), routingtest.Graph(t, spec, graph.BuildOptions{}), "dragonfly", Options{})
		if p := new(Precondition); errors.As(err, &p) {
			t.Logf("%s: %v", spec, err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		applied++
		v := routingtest.Verified(t, r, verify.Options{})
		if unreachable, acyclic := oracle(r); !acyclic || !v.Acyclic || v.Unreachable != int64(unreachable) || unreachable > 0 {
			t.Errorf("%s: %+v; the oracle: %d, %v", spec, v, unreachable, acyclic)
		}
	}
	if applied < 15 {
		t.Errorf("it applied to %d of 20 damaged ones", applied)
	}
	for _, spec := range []string{"torus:dims=4/4", "hyperx:dims=4/4", "fattree:k=4,levels=3", "ring:n=7", "ring:n=1"} {
		_, err := Compute(t.Context(), routingtest.Graph(t, spec, graph.BuildOptions{}), "dragonfly", Options{})
		if p := new(Precondition); !errors.As(err, &p) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// TestDragonflyPlus: leaves with hosts, spines with links to other groups.
func TestDragonflyPlus(t *testing.T) {
	var cables [][4]any
	const groups = 3
	for g := range groups {
		name := func(kind string, i int) string { return fmt.Sprint(kind, g, i) }
		for leaf := range 2 {
			cables = append(cables, [4]any{name("h", leaf), 1, name("L", leaf), 1})
			for spine := range 2 {
				cables = append(cables, [4]any{name("L", leaf), 2 + spine, name("S", spine), 1 + leaf})
			}
		}
		for spine := range 2 { // to the next group, and from the one before
			cables = append(cables, [4]any{name("S", spine), 3, fmt.Sprint("S", (g+1)%groups, spine), 4})
		}
	}
	g, err := graph.New(routingtest.Draw(t, 0, cables...), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := compute(t, g, "dragonfly", Options{})
	v := routingtest.Verified(t, r, verify.Options{})
	if unreachable, acyclic := oracle(r); !v.OK() || !acyclic || unreachable > 0 || v.MaxHops != 5 || r.Lanes() != 1 {
		t.Errorf("%+v; the oracle: %d, %v; %d lanes", v, unreachable, acyclic, r.Lanes())
	}
}

// TestLayerRefuses: too few lanes are an error, and so is the end of the context.
func TestLayerRefuses(t *testing.T) {
	r := compute(t, routingtest.Graph(t, "torus:dims=4/4,hosts=2", graph.BuildOptions{}), "minhop", Options{})
	few := new(TooFewLanes)
	if err := Layer(t.Context(), r, 1, 1); !errors.As(err, &few) || r.SL != nil {
		t.Error(err)
	}
	if err := Layer(t.Context(), r, 16, 1); err == nil || err.Error() != "layer: 16 virtual lanes: a link has from 1 to 15 for data" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Layer(ctx, r, 8, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_, err := Compute(t.Context(), r.Graph(), "dfsssp", Options{MaxVLs: 1})
	if p := new(Precondition); !errors.As(err, &p) {
		t.Error(err)
	}
}

// TestLaneLimits: numbers of lanes that no link has are refused, also where one is enough.
func TestLaneLimits(t *testing.T) {
	for _, spec := range []string{"fattree:k=4,levels=2", "torus:dims=4/4,hosts=2"} {
		for _, engine := range []string{"dfsssp", "lash"} {
			for _, vls := range []int{-1, 16} {
				want := fmt.Sprintf("layer: %d virtual lanes: a link has from 1 to 15 for data", vls)
				if _, err := Compute(t.Context(), routingtest.Graph(t, spec, graph.BuildOptions{}), engine, Options{MaxVLs: vls}); err == nil || err.Error() != want {
					t.Errorf("%s, %s: %v, want %s", spec, engine, err, want)
				}
			}
		}
	}
}

// TestSetSL: levels of pairs, on tables whose rows of levels are shared.
func TestSetSL(t *testing.T) {
	g := routingtest.Graph(t, "torus:dims=4/4,hosts=2", graph.BuildOptions{})
	r := compute(t, g, "dfsssp", Options{})
	from, to := g.TerminalByLID(routingtest.LID(t, g, "node-0001 HCA-1")), routingtest.LID(t, g, "node-0030 HCA-1")
	beside := g.TerminalByLID(routingtest.LID(t, g, "node-0002 HCA-1"))
	was := r.SL.Of(beside, to)
	if err := r.SetSL([]int{from}, []mad.LID{to}, 7); err != nil || r.SL.Of(from, to) != 7 || r.SL.Of(beside, to) != was {
		t.Error(err, r.SL.Of(from, to), r.SL.Of(beside, to))
	}
	if r.Lanes() != 8 {
		t.Error(r.Lanes())
	}
	if r.SetSL([]int{from}, []mad.LID{to}, 16) == nil || r.SetSL([]int{from}, []mad.LID{0xbfff}, 1) == nil {
		t.Error("no error")
	}
}

// TestVerifyGroups: ports of one switch with service levels of their own are followed each
// by itself.
func TestVerifyGroups(t *testing.T) {
	g := routingtest.Graph(t, "ring:n=4,hosts=2", graph.BuildOptions{})
	verdicts, loops := map[bool]int{}, int64(0)
	for seed := range 60 {
		r := compute(t, g, "minhop", Options{})
		r.SL, r.SL2VL = &routes.SL{Pair: make([][]uint8, len(g.Terminals()))}, routes.NewSL2VL(g)
		for i := range r.SL.Pair {
			r.SL.Pair[i] = make([]uint8, int(g.Top())+1)
			for lid := range r.SL.Pair[i] {
				r.SL.Pair[i][lid] = uint8((i*i*7 + lid*lid*3 + (i+lid)*seed + seed*seed/3) % 11 % 4)
			}
		}
		if c := g.Channels()[seed%len(g.Channels())]; seed%6 == 0 { // two switches send packets to each other
			for lid := range r.SL.Pair[0] {
				if t := g.TerminalByLID(mad.LID(lid)); t >= 0 && g.Terminals()[t].Out > 0 && g.Terminals()[t].Switch != int(c.From) && g.Terminals()[t].Switch != int(c.To) {
					r.Row(int(c.From))[lid], r.Row(int(c.To))[lid] = c.Port, c.PeerPort
					break
				}
			}
		}
		unreachable, acyclic := oracle(r)
		v := routingtest.Verified(t, r, verify.Options{})
		if v.Acyclic != acyclic || v.Unreachable != int64(unreachable) {
			t.Errorf("%d: acyclic %v, unreachable %d; the oracle: %v, %d", seed, v.Acyclic, v.Unreachable, acyclic, unreachable)
		}
		verdicts[acyclic]++
		loops += v.Loops
	}
	if len(verdicts) < 2 || loops == 0 {
		t.Errorf("all verdicts are alike: %v, and %d packets loop", verdicts, loops)
	}
}

// TestOpenSMLanes: no more lanes than OpenSM needs, by its log.
func TestOpenSMLanes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	said := regexp.MustCompile(`Lanes needed: (\d+)`)
	for _, spec := range []string{"torus:dims=4/4,hosts=2", "hyperx:dims=4/4,hosts=2", "random:n=24,degree=4,hosts=3", "dragonfly:a=4,p=2,h=1", "fattree:k=4,levels=3"} {
		f := routingtest.Topology(t, spec)
		var net bytes.Buffer
		if err := format.Dump(&net, f, "ibnetdiscover"); err != nil {
			t.Fatal(err)
		}
		first := regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(net.String())[1]
		for _, engine := range []string{"dfsssp", "lash"} {
			t.Run(fmt.Sprint(spec, " ", engine), func(t *testing.T) {
				s := ibsimtest.Start(t, net.String(), ibsimtest.FixtureOptions{SM: first, SMArgs: []string{"-Q", "-D", "0x47", "-R", engine + ",no_fallback"}})
				log, err := os.ReadFile(filepath.Join(s.Dir, "opensm.log"))
				if err != nil {
					t.Fatal(err)
				}
				found := said.FindSubmatch(log)
				if found == nil {
					t.Fatal("OpenSM does not say how many lanes it needs")
				}
				theirs, _ := strconv.Atoi(string(found[1]))
				r := compute(t, routingtest.Graph(t, spec, graph.BuildOptions{}), engine, Options{})
				if ours := r.Lanes(); ours > theirs {
					t.Errorf("%d lanes, OpenSM: %d", ours, theirs)
				} else {
					t.Logf("%d lanes, OpenSM: %d", ours, theirs)
				}
			})
		}
	}
}

// TestNueLanes: nue has no path that is more than half as long again as the longest of
// up*/down* from the root that it takes itself, and paths close no credit loop, by the
// oracle.
func TestNueLanes(t *testing.T) {
	used := 0
	for i, spec := range routingtest.FewNets() {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		root, _, err := search.EscapeRoot(t.Context(), g, nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := graph.UpDown(t.Context(), g, graph.RanksFrom(g, []int{root}))
		if err != nil {
			t.Fatal(err)
		}
		most, on := 0, g.Endpoints()
		for s := range on {
			for d := range on {
				if on[s] > 0 && on[d] > 0 && s != d {
					most = max(most, h.Distance(s, d)+2)
				}
			}
		}
		last := routingtest.Verified(t, compute(t, g, "nue", Options{}), verify.Options{})
		limit := max(2, most+(most-2)/2)
		if last.MaxHops > limit {
			t.Errorf("%s: the longest path has %d links, by up*/down* %d", spec, last.MaxHops, most)
		}
		for _, vls := range []int{2, 5} {
			if i%2 > 0 && vls == 5 {
				continue
			}
			r := compute(t, g, "nue", Options{MaxVLs: vls})
			v := routingtest.Verified(t, r, verify.Options{})
			if unreachable, acyclic := oracle(r); !acyclic || !v.Acyclic || v.Unreachable != int64(unreachable) || unreachable > 0 && connected(t, g) || r.Lanes() > vls || v.MaxHops > limit {
				t.Errorf("%s, %d lanes: %+v; the oracle: %v, %d; %d lanes, and the longest path may have %d links", spec, vls, v, acyclic, unreachable, r.Lanes(), limit)
			}
			used = max(used, r.Lanes())
		}
	}
	if used < 4 {
		t.Errorf("%d lanes at most: that proves little", used)
	}
	if _, err := Compute(t.Context(), routingtest.Graph(t, "ring:n=5", graph.BuildOptions{}), "nue", Options{MaxVLs: 16}); err == nil {
		t.Error("16 lanes, and no error")
	}
}

// TestLayerNoLID: all LIDs of the hosts of a switch belong to others too.
func TestLayerNoLID(t *testing.T) {
	var ring [][4]any
	for i := range 9 {
		ring = append(ring, [4]any{string(rune('A' + i)), 1, string(rune('A' + (i+1)%9)), 2}, [4]any{string(rune('A' + i)), 3, string(rune('a' + i)), 1})
	}
	f := routingtest.Draw(t, 0, ring...)
	last := &f.Nodes()[len(f.Nodes())-1]
	g, err := graph.New(f, graph.BuildOptions{LIDs: func(p *fabric.Port) (mad.LID, int) {
		if p.Node() == last {
			return 0, 0
		}
		return p.LID(), p.LMC()
	}})
	if err != nil || last.IsSwitch() {
		t.Fatal(err, last.Name())
	}
	for _, engine := range []string{"lash", "dfsssp", "nue"} {
		if v := routingtest.Verified(t, compute(t, g, engine, Options{}), verify.Options{}); !v.Acyclic || v.Unreachable > 0 {
			t.Errorf("%s: %+v", engine, v)
		}
	}
}

// TestGaveUp: where searches for lanes end early, the error says so, and a note if there are lanes
// for all paths.
func TestGaveUp(t *testing.T) {
	const early = "gave up after 1 s; --effort raises it"
	none := func(engine string) string {
		return engine + " does not apply: no solution found with 8 virtual lanes; " + early + "; allow more with max_vls, up to 15, if the links have them; updn, ftree and nue find paths on one lane"
	}
	note := " [search for fewer virtual lanes: " + early + "]"
	for _, tt := range []struct {
		net, engine  string
		work, effort int
		want         string
	}{
		{"random:n=50,degree=5,hosts=2", "dfsssp", 1, 0, none("dfsssp")},
		{"random:n=50,degree=5,hosts=2", "dfsssp", 30_000, 0, "4 lanes" + note},
		{"random:n=50,degree=5,hosts=2", "dfsssp", 30_000, 100, "4 lanes []"},
		{"random:n=50,degree=5,hosts=2", "lash", 1, 1, none("lash")},
		{"torus:dims=5/5,hosts=1", "lash", 1, 1, "4 lanes" + note}, // by datelines
		{"torus:dims=5/5,hosts=1", "lash", lanes.DefaultWork, 0, "3 lanes []"},
		{"dragonfly:a=4,p=2,h=2,remove_links=10%,seed=1", "dfsssp", 30_000, 1, "2 lanes []"}, // the search ends
	} {
		r, err := Compute(t.Context(), routingtest.Graph(t, tt.net, graph.BuildOptions{}), tt.engine, Options{search: &laneSearch{work: tt.work}, Effort: tt.effort})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%d lanes %v", r.Lanes(), r.Notes)
		}
		if got != tt.want {
			t.Errorf("%s on %s, %d work: %s, want %s", tt.engine, tt.net, tt.work, got, tt.want)
		}
	}
	for _, e := range All() {
		if searches := slices.Contains([]string{"dfsssp", "lash", "dragonfly"}, e.Name); e.takes("effort") != searches {
			t.Errorf("%s: --effort, which messages name: %v", e.Name, e.takes("effort"))
		}
	}
}
