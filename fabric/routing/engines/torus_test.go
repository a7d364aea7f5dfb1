package engines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
)

// TestTorus: whole tori and meshes are found, whatever the numbers of switches and ports,
// and paths are shortest ones on two lanes at most.
func TestTorus(t *testing.T) {
	for _, x := range []struct {
		spec  string
		lanes int
	}{
		{"ring:n=2", 1}, {"ring:n=3", 1}, {"ring:n=4,hosts=2", 2}, {"ring:n=9", 2}, {"mesh:dims=7,hosts=1", 1}, {"mesh:dims=3/4,hosts=2", 1},
		{"mesh:dims=2/2/2,hosts=1", 2}, {"mesh:dims=2/5/2,hosts=1", 2}, {"torus:dims=4/4,hosts=2", 2}, {"torus:dims=3/3,hosts=1", 1}, {"torus:dims=3/4/5,hosts=1", 2},
		{"torus:dims=4/4/4,hosts=1", 2}, {"torus:dims=6/5,hosts=1,links=3", 2}, {"torus:dims=2/6/4,hosts=1,links=2", 2}, {"torus:dims=2/2/3,hosts=1", 2},
	} {
		for seed := range uint64(3) {
			f := routingtest.Topology(t, x.spec)
			if seed > 0 {
				f = routingtest.Shuffled(t, f, seed)
			}
			g, err := graph.New(f, graph.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Compute(t.Context(), g, "torus-2qos", Options{})
			if err != nil {
				t.Errorf("%s, seed %d: %v", x.spec, seed, err)
				continue
			}
			v := routingtest.Verified(t, r, verify.Options{})
			if unreachable, acyclic := oracle(r); !v.OK() || !acyclic || unreachable > 0 || len(v.Detours) > 1 || r.Lanes() != x.lanes || r.Notes != nil {
				t.Errorf("%s, seed %d: %+v; the oracle: %d, %v; %d lanes, notes %q", x.spec, seed, v, unreachable, acyclic, r.Lanes(), r.Notes)
			}
		}
	}
}

// TestByDatelines: in a whole torus lash has a lane for each set of datelines, and the path
// back has the lane of the path there. Where Layer finds no lanes, lash uses these.
func TestByDatelines(t *testing.T) {
	for _, x := range []struct {
		spec  string
		lanes int
	}{
		{"ring:n=4,hosts=2", 2}, {"ring:n=9", 2}, {"mesh:dims=3/4,hosts=2", 1}, {"torus:dims=4/4,hosts=2", 4}, {"torus:dims=6/5,hosts=1,links=3", 4},
		{"torus:dims=3/4/5,hosts=1", 4}, {"torus:dims=4/6/4,hosts=1", 8}, {"torus:dims=2/6/4,hosts=1,links=2", 4},
	} {
		for seed := range uint64(3) {
			f := routingtest.Topology(t, x.spec)
			if seed > 0 {
				f = routingtest.Shuffled(t, f, seed)
			}
			g, err := graph.New(f, graph.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if x.lanes > 1 && byDatelines(t.Context(), g, x.lanes-1) != nil {
				t.Errorf("%s: it does with fewer than %d lanes", x.spec, x.lanes)
			}
			r := byDatelines(t.Context(), g, x.lanes)
			if r == nil {
				t.Errorf("%s, seed %d: no whole torus", x.spec, seed)
				continue
			}
			v := routingtest.Verified(t, r, verify.Options{})
			if unreachable, acyclic := oracle(r); v.Unreachable > 0 || !v.Acyclic || !acyclic || unreachable > 0 || len(v.Detours) > 1 || r.Lanes() != x.lanes {
				t.Errorf("%s, seed %d: %+v; the oracle: %d, %v; %d lanes", x.spec, seed, v, unreachable, acyclic, r.Lanes())
			}
			for i, from := range g.Terminals() {
				for j, to := range g.Terminals() {
					if from.Out > 0 && to.Out > 0 && r.SL.Of(i, to.LID) != r.SL.Of(j, from.LID) {
						t.Fatalf("%s, seed %d: from %d to %d SL %d, and back %d", x.spec, seed, from.LID, to.LID, r.SL.Of(i, to.LID), r.SL.Of(j, from.LID))
					}
				}
			}
		}
	}
	r := compute(t, routingtest.Graph(t, "torus:dims=10/10/2,hosts=1,links=1", graph.BuildOptions{}), "lash", Options{MaxVLs: 4})
	if v := routingtest.Verified(t, r, verify.Options{}); v.Unreachable > 0 || !v.Acyclic || len(v.Detours) > 1 || r.Lanes() != 4 {
		t.Errorf("%+v on %d lanes", v, r.Lanes())
	}
	for _, spec := range []string{"torus:dims=10/10,hosts=1,remove_links=1", "fattree:k=4,levels=3"} {
		if g := routingtest.Graph(t, spec, graph.BuildOptions{}); byDatelines(t.Context(), g, 0) != nil {
			t.Errorf("%s is taken for a whole torus", spec)
		}
	}
}

// TestTorusDamaged: parts are missing. What it does not refuse is whole and without
// credit loops, by the oracle.
func TestTorusDamaged(t *testing.T) {
	routingtest.ResultsOnly(t)
	for _, damage := range []struct {
		spec  string
		least int // of 8
	}{
		{"torus:dims=5/5,hosts=1,remove_links=1", 8}, {"torus:dims=5/5,hosts=1,remove_switches=1", 8}, {"torus:dims=4/4,hosts=1,remove_switches=1", 8},
		{"torus:dims=4/4/4,hosts=1,remove_links=3", 6}, {"torus:dims=4/3/5,hosts=1,remove_switches=1,remove_links=1", 6}, {"torus:dims=6/6,hosts=1,remove_links=5", 2},
		{"torus:dims=3/3,hosts=1,remove_switches=1", 8}, {"torus:dims=5/5,hosts=1,remove_switches=2", 3}, {"torus:dims=5/5/5,hosts=1,remove_links=2%", 3}, {"mesh:dims=4/4,hosts=1,remove_links=1", 0},
	} {
		applied := 0
		for seed := range 8 {
			spec := fmt.Sprintf("%s,seed=%d", damage.spec, seed)
			r, err := Compute(t.Context(), routingtest.Graph(t, spec, graph.BuildOptions{}), "torus-2qos", Options{})
			if p := new(Precondition); errors.As(err, &p) {
				t.Logf("%s: %v", spec, err)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			applied++
			v := routingtest.Verified(t, r, verify.Options{})
			rings, turns := strings.ContainsAny(spec[:len("torus:dims=5/5")], "456"), strings.Contains(spec, "switches")
			if unreachable, acyclic := oracle(r); !acyclic || !v.Acyclic || v.Unreachable != int64(unreachable) || unreachable > 0 || r.Lanes() > 1<<btou(rings)<<btou(turns) {
				t.Errorf("%s: %+v on %d lanes; the oracle: %d, %v", spec, v, r.Lanes(), unreachable, acyclic)
			}
		}
		t.Logf("%s: applied to %d", damage.spec, applied)
		if applied < damage.least {
			t.Errorf("%s: it applied to %d of 8", damage.spec, applied)
		}
	}
}

// TestTorusRefuses: what is no torus, and why.
func TestTorusRefuses(t *testing.T) {
	for _, x := range []struct{ spec, want string }{
		{"ring:n=1", "no torus: no links between switches"},
		{"fattree:k=8,levels=2", "no torus: \"spine-1\" (0x0002c90300100080) has links to 8 switches; a torus of 3 dimensions allows 6"},
		{"hyperx:dims=4/4,hosts=1", "no torus: opposite links can be identified at no switch, not even at \"switch-1-1\" (0x0002c90300100000)"},
	} {
		_, err := Compute(t.Context(), routingtest.Graph(t, x.spec, graph.BuildOptions{}), "torus-2qos", Options{})
		if p := new(Precondition); !errors.As(err, &p) || p.Reason.Error() != x.want {
			t.Errorf("%s: %v\nwant %s", x.spec, err, x.want)
		}
	}
	// A ring of rings, each shifted by one against that before where the last meets the first.
	var cables [][4]any
	const n = 5
	for x := range n {
		for y := range n {
			up := (y + x/(n-1)) % n
			cables = append(cables, [4]any{fmt.Sprint("S", x, y), 1, fmt.Sprint("S", (x+1)%n, up), 2}, [4]any{fmt.Sprint("S", x, y), 3, fmt.Sprint("S", x, (y+1)%n), 4})
		}
	}
	g, err := graph.New(routingtest.Draw(t, 0, cables...), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compute(t.Context(), g, "torus-2qos", Options{}); err == nil || err.Error() != "torus-2qos does not apply: no torus: its rings do not close at their start: it is twisted" {
		t.Error(err)
	}
	for vls, spec := range map[int]string{1: "torus:dims=4/4,hosts=1", 3: "torus:dims=4/4,hosts=1,remove_switches=1"} {
		_, err := Compute(t.Context(), routingtest.Graph(t, spec, graph.BuildOptions{}), "torus-2qos", Options{MaxVLs: vls})
		if want := fmt.Sprintf("torus-2qos does not apply: torus 4x4 needs %d virtual lanes; allowed: %d (max_vls)", vls+1, vls); err == nil || err.Error() != want {
			t.Error(err)
		}
	}
}

// TestOpenSMTorus: OpenSM's torus-2QoS, which gets the places of switches, has as long paths
// as ours, on as many lanes; by the service levels that its manual defines, ours judges its
// tables as well as its own.
func TestOpenSMTorus(t *testing.T) {
	for _, x := range []struct {
		spec string
		dims []int
	}{
		{"torus:dims=5/5,hosts=1", []int{5, 5}}, {"torus:dims=4/3/3,hosts=1", []int{4, 3, 3}}, {"torus:dims=6/5,hosts=2,links=2", []int{6, 5}},
		{"torus:dims=5/5,hosts=1,remove_switches=1,seed=2", []int{5, 5}}, {"torus:dims=6/5,hosts=1,remove_links=2,seed=3", []int{6, 5}},
	} {
		t.Run(x.spec, func(t *testing.T) {
			t.Parallel()
			f := routingtest.Topology(t, x.spec)
			config, origin := torusConfig(t, f, x.dims)
			theirs, dir := opensmIn(t, f, "-Q", "-R", "torus-2QoS,no_fallback", "--torus_config", config)
			dump, err := os.Open(filepath.Join(dir, "opensm-sl2vl.dump"))
			if err != nil {
				t.Fatal(err)
			}
			defer dump.Close()
			g := theirs.Graph()
			theirs.SL2VL = routes.NewSL2VL(g)
			for x, err := range format.SL2VLs(dump, "opensm-sl2vl.dump") {
				if err != nil {
					t.Fatal(err)
				}
				n, err := x.Find(g.Fabric())
				if err != nil {
					t.Fatal(err)
				}
				if n.IsSwitch() && max(x.In, x.Out) <= n.NumPorts() {
					if err := theirs.SL2VL.Set(g.SwitchOf(n), uint8(x.In), uint8(x.Out), x.VLs); err != nil {
						t.Fatal(err)
					}
				}
			}
			theirs.SL = &routes.SL{Pair: make([][]uint8, len(g.Terminals()))}
			for i, from := range g.Terminals() {
				theirs.SL.Pair[i] = make([]uint8, int(g.Top())+1)
				for _, to := range g.Terminals() {
					for d, n := range x.dims {
						a := (coordinate(t, g.Switches()[from.Switch], d) - origin[d] + n) % n
						b := (coordinate(t, g.Switches()[to.Switch], d) - origin[d] + n) % n
						if direct := max(a-b, b-a); direct > n-direct {
							theirs.SL.Pair[i][to.LID] |= 1 << d
						}
					}
				}
			}
			ours := compute(t, g, "torus-2qos", Options{TorusConfig: readTorusConfig(t, config)})
			for i := range g.Terminals() { // rings of even size have two shortest ways, rings of 3 need no dateline
				for _, to := range g.Terminals() {
					if want := theirs.SL.Pair[i][to.LID]; x.dims[0] == 5 && ours.SL.Of(i, to.LID) != want && to.Out > 0 && g.Terminals()[i].Out > 0 {
						t.Fatalf("SL %d, OpenSM: %d", ours.SL.Of(i, to.LID), want)
					}
				}
			}
			a, b := routingtest.Verified(t, ours, verify.Options{}), routingtest.Verified(t, theirs, verify.Options{})
			if !a.OK() || !b.OK() || links(a) > links(b) || ours.Lanes() > theirs.Lanes() {
				t.Errorf("%+v on %d lanes; OpenSM's: %+v on %d", a, ours.Lanes(), b, theirs.Lanes())
			}
			p, err := traffic.MeasureBalance(t.Context(), ours, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			q, err := traffic.MeasureBalance(t.Context(), theirs, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if p.Routes.Max > q.Routes.Max {
				t.Errorf("the busiest link has %d routes, OpenSM: %d", p.Routes.Max, q.Routes.Max)
			}
			t.Logf("hops %v, busiest link %d routes, %d lanes; OpenSM: %v, %d, %d", a.Hops, p.Routes.Max, ours.Lanes(), b.Hops, q.Routes.Max, theirs.Lanes())
		})
	}
}

// torusConfig writes a torus-2QoS.conf for a torus whose switches have their coordinates
// in their names, and returns where its origin is.
func torusConfig(t testing.TB, f *fabric.Fabric, dims []int) (path string, origin []int) {
	t.Helper()
	text := "torus"
	for d := range 3 {
		n := 1
		if d < len(dims) {
			n = dims[d]
		}
		text += fmt.Sprint(" ", n)
	}
	for _, n := range f.Nodes() {
		if !n.IsSwitch() {
			continue
		}
		origin = nil
		seed := ""
		for d, size := range dims {
			origin = append(origin, coordinate(t, &n, d))
			for i := 1; i <= n.NumPorts(); i++ {
				p := n.Port(i).Peer()
				if p == nil || !p.Node().IsSwitch() {
					continue
				}
				for _, way := range []int{1, -1} {
					line := fmt.Sprintf("\n%c%c_link %v %v", 'x'+d, "mp"[(way+1)/2], n.GUID(), p.Node().GUID())
					if coordinate(t, p.Node(), d) == (origin[d]+way+size)%size && !strings.Contains(seed, line) && (way > 0 || size == 4) {
						seed += line
					}
				}
			}
			if want := 1; size == 4 {
				want = 2
			} else if strings.Count(seed, fmt.Sprintf("\n%c", 'x'+d)) < want {
				seed = ""
				break
			}
		}
		if seed != "" {
			path = filepath.Join(t.TempDir(), "torus.conf")
			if err := os.WriteFile(path, []byte(text+seed+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			return path, origin
		}
	}
	t.Fatal("no switch has all its neighbours")
	return "", nil
}

func readTorusConfig(t testing.TB, path string) *format.TorusConfig {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	config, err := format.ReadTorusConfig(file, path)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// TestTorusConfig: from a seed, the coordinates agree with the names, counted from the
// dateline, also where parts are missing. A file that is not of this torus is refused, with
// the reason.
func TestTorusConfig(t *testing.T) {
	for _, x := range []struct {
		spec string
		dims []int
		mesh bool
	}{
		{"torus:dims=5/5,hosts=1", []int{5, 5}, false}, {"torus:dims=4/3/6,hosts=1", []int{4, 3, 6}, false}, {"mesh:dims=3/4,hosts=1", []int{3, 4}, true},
		{"torus:dims=6/5,hosts=1,links=2,remove_switches=1,seed=2", []int{6, 5}, false}, {"torus:dims=5/5/5,hosts=1,remove_links=3,seed=1", []int{5, 5, 5}, false},
	} {
		for shuffle := range uint64(2) {
			f := routingtest.Topology(t, x.spec)
			if shuffle > 0 {
				f = routingtest.Shuffled(t, f, shuffle)
			}
			path, origin := torusConfig(t, f, x.dims)
			config := readTorusConfig(t, path)
			if x.mesh {
				config.Mesh = [3]bool{true, true, true}
				origin = make([]int, len(x.dims))
			} else {
				config.Seeds[0].Dateline[0] = 2
				origin[0] += 2
			}
			g, err := graph.New(f, graph.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			torus, err := findTorus(t.Context(), g, config)
			if err != nil {
				t.Errorf("%s: %v", x.spec, err)
				continue
			}
			for s, n := range g.Switches() {
				for d, size := range x.dims {
					if got, want := int(torus.Points[s][d]), (coordinate(t, n, d)-origin[d]+size)%size; got != want {
						t.Fatalf("%s: %s is at %d of dimension %d, want %d", x.spec, n.Name(), got, d, want)
					}
				}
			}
			if v := routingtest.Verified(t, compute(t, g, "torus-2qos", Options{TorusConfig: config}), verify.Options{}); !v.OK() {
				t.Errorf("%s: %+v", x.spec, v)
			}
		}
	}
	f := routingtest.Topology(t, "torus:dims=5/5,hosts=1")
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	guid := func(name string) string { return f.NodeByName(name)[0].GUID().String() }
	const seed = "\nxp_link A B\nyp_link A C\n"
	for _, x := range []struct{ text, want string }{
		{"torus 5 5 1" + seed, ""},
		{"torus 1 5 5\nyp_link A B\nzp_link A C\n", ""},
		{"torus 5 5 1\nxp_link A D\nyp_link A C\nnext_seed" + seed, ""},
		{"torus 5 6 1" + seed, "the seed in line 2 of the torus_config: paths lead back to their start after 5 switches along y, which is impossible in a torus 5x6"},
		{"torus 5 5M 1" + seed, "the seed in line 2 of the torus_config: paths lead back to their start after 5 switches along y, which is impossible in a torus 5x5, open along the 5"},
		{"torus 5 1 1" + seed, "the seed in line 2 of the torus_config: \"switch-1-1\" (A) has links to 4 switches; a torus of 1 dimensions allows 2"},
		{"torus 5 5 1\nxp_link A D\nyp_link A C\n", "the seed in line 2 of the torus_config: no link from \"switch-1-1\" (A) to \"switch-3-1\" (D)"},
		{"torus 5 5 1\nxp_link A 0x77\nyp_link A C\n", "the seed in line 2 of the torus_config: unknown switch 0x0000000000000077"},
		{"torus 5 5 5" + seed, "the seed in line 2 of the torus_config: no link along z, such as zp_link"},
		{"torus 5 4 1" + seed, "the seed in line 2 of the torus_config: along y is a ring of 4, whose direction needs both yp_link and ym_link"},
		{"torus 5 5 1\nxp_link A B\nyp_link A B\n", "the seed in line 2 of the torus_config: the link from \"switch-1-1\" (A) to \"switch-2-1\" (B) would have two directions, or two links one"},
	} {
		names := strings.NewReplacer("A", guid("switch-1-1"), "B", guid("switch-2-1"), "C", guid("switch-1-2"), "D", guid("switch-3-1"))
		config, err := format.ReadTorusConfig(strings.NewReader(names.Replace(x.text)), "conf")
		if err != nil {
			t.Fatal(err)
		}
		_, err = Compute(t.Context(), g, "torus-2qos", Options{TorusConfig: config})
		if want := "torus-2qos does not apply: " + names.Replace(x.want); x.want == "" && err != nil || x.want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%q: %v", x.text, err)
		}
	}
}

// coordinate is the coordinate of a switch, from its name: switch-3-1.
func coordinate(t testing.TB, n *fabric.Node, d int) int {
	t.Helper()
	var x int
	if _, err := fmt.Sscan(strings.Split(n.Name(), "-")[1+d], &x); err != nil {
		t.Fatal(err)
	}
	return x - 1
}
