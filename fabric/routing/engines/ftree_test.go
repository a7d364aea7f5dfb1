package engines

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

func TestTree(t *testing.T) {
	for spec, want := range map[string]string{
		"fattree:k=4,levels=3":          "3 [2 2 4] [1 2 2] [1 1 1] true ",
		"pgft:m=3/4/2,w=1/2/3,p=1/1/2":  "3 [3 4 2] [1 2 3] [1 1 2] true ",
		"fattree:k=6,levels=1":          "1 [6] [1] [1] true ",
		"pgft:m=4/4,w=1/2,p=1/3":        "2 [4 4] [1 2] [1 3] true ",
		"fattree:k=4,remove_links=1":    `2 [2 4] [1 2] [1 1] false "leaf-3" (0x0002c90300100020) has 1 of 2 parents`,
		"fattree:k=4,remove_switches=1": `2 [2 3] [1 2] [1 1] true `,
	} {
		tree, err := graph.FindTree(routingtest.Graph(t, spec, graph.BuildOptions{}))
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if got := fmt.Sprint(tree.Height, tree.M, tree.W, tree.P, tree.Regular, " ", tree.Missing); got != want {
			t.Errorf("%s:\n got %s\nwant %s", spec, got, want)
		}
	}
	g := routingtest.Graph(t, "fattree:k=4,levels=3", graph.BuildOptions{})
	tree, err := graph.FindTree(g)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for s, n := range g.Switches() {
		got = append(got, fmt.Sprint(n.Name(), " ", tree.Level[s], " ", tree.Digits[s]))
	}
	want := []string{
		"leaf-1 0 [0 0]", "leaf-2 0 [0 1]", "leaf-3 0 [1 0]", "leaf-4 0 [1 1]", "leaf-5 0 [2 0]", "leaf-6 0 [2 1]", "leaf-7 0 [3 0]", "leaf-8 0 [3 1]",
		"spine-1 1 [0 0]", "spine-2 1 [0 1]", "spine-3 1 [1 0]", "spine-4 1 [1 1]", "spine-5 1 [2 0]", "spine-6 1 [2 1]", "spine-7 1 [3 0]", "spine-8 1 [3 1]",
		"core-1 2 [0 0]", "core-2 2 [1 0]", "core-3 2 [0 1]", "core-4 2 [1 1]",
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for spec, want := range map[string]string{
		"ring:n=3,hosts=0": "not a fat tree: no switch has a compute node",
		"ring:n=3":         `not a fat tree: port 3 of "switch-1" (0x0002c90300100000) and port 2 of "switch-2" (0x0002c90300100010) are linked, but both on switches with compute nodes; give hosts that should not count, such as those for I/O, another class than cn (fabsh route ftree --io FILE)`,
	} {
		if _, err := graph.FindTree(routingtest.Graph(t, spec, graph.BuildOptions{})); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", spec, err, want)
		}
	}
}

// TestTreeShuffled: digits do not depend on the order of GUIDs or ports, so
// neither does it that shifts meet no contention.
func TestTreeShuffled(t *testing.T) {
	for seed := range uint64(3) {
		g, err := graph.New(routingtest.Shuffled(t, routingtest.Topology(t, "pgft:m=4/3/5,w=1/4/3,p=1/1/1"), seed), graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, engine := range []string{"ftree", "minhop", "updn"} {
			c, err := traffic.MeasureCongestion(t.Context(), compute(t, g, engine, Options{}), traffic.CongestionOptions{Pattern: traffic.Shift})
			if err != nil {
				t.Fatal(err)
			}
			if c.Max != 1 || c.Bandwidth != 1 || c.Samples != 59 {
				t.Errorf("seed %d, %s: %+v", seed, engine, c)
			}
		}
	}
}

// TestParallelLinks: of parallel links up, each has as many destinations as the others, though the
// destinations below the switch use none; and shifts meet no contention.
func TestParallelLinks(t *testing.T) {
	for _, spec := range []string{"pgft:m=4/4,w=1/2,p=1/3", "pgft:m=2/2/5,w=1/2/1,p=1/1/4", "pgft:m=6/5,w=1/2,p=1/4"} {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		r := compute(t, g, "ftree", Options{})
		l := graph.FindLevels(g)
		for s := range g.Switches() {
			up := map[int32][2]int{} // the fewest and the most on a channel, by parent
			for _, n := range g.Neighbours(s) {
				if l.Level[n.To] < l.Level[s] || len(n.Ports) == 1 {
					continue
				}
				for i, port := range n.Ports {
					k := 0
					for _, d := range g.Dests() {
						if d.Out > 0 && r.Row(s)[d.LID] == port {
							k++
						}
					}
					x := up[n.To]
					if x[1] = max(x[1], k); i == 0 || k < x[0] {
						x[0] = k
					}
					up[n.To] = x
				}
			}
			for to, x := range up {
				if x[1] > x[0]+1 || spec == "pgft:m=4/4,w=1/2,p=1/3" && x != [2]int{2, 2} {
					t.Errorf("%s: %s to %s: from %d to %d destinations on a link", spec, g.Switches()[s].Name(), g.Switches()[to].Name(), x[0], x[1])
				}
			}
		}
		c, err := traffic.MeasureCongestion(t.Context(), r, traffic.CongestionOptions{Pattern: traffic.Shift})
		if err != nil {
			t.Fatal(err)
		}
		if c.Max != 1 {
			t.Errorf("%s: %+v", spec, c)
		}
	}
}

// A switch without links is no part of the tree: ftree passes over it.
func TestSwitchWithoutLinks(t *testing.T) {
	g := routingtest.Graph(t, "pgft:m=4/4,w=1/4,p=1/1", graph.BuildOptions{})
	alone := -1
	for s := range g.Switches() {
		if g.Endpoints()[s] == 0 {
			alone = s
		}
	}
	g = routingtest.Graph(t, "pgft:m=4/4,w=1/4,p=1/1", graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p.Node().GUID() == g.Switches()[alone].GUID() }})
	if v := routingtest.Verified(t, compute(t, g, "ftree", Options{}), verify.Options{}); !v.OK() {
		t.Errorf("unreachable %d, %q", v.Unreachable, v.Notes)
	}
}

// TestCompletedWithoutHosts: paths that up*/down* does not have may pass through switches without
// hosts, or without any that have a LID. From there they take entries that no packet took before, so the
// dependencies of these count, too.
func TestCompletedWithoutHosts(t *testing.T) {
	for _, x := range []struct{ net, bare string }{
		{"hyperx:dims=2/4,hosts=2,remove_links=35%,seed=125", "switch-2-1 switch-2-4"},
		{"fattree:k=6,levels=3,remove_links=23%,seed=784", "leaf-2 leaf-6 leaf-8 leaf-9 leaf-17"},
	} {
		isBare := func(p *fabric.Port) bool {
			return !p.Node().IsSwitch() && slices.Contains(strings.Fields(x.bare), p.Peer().Node().Name())
		}
		lid := mad.LID(0)
		for _, o := range []graph.BuildOptions{{Exclude: isBare}, {LIDs: func(p *fabric.Port) (mad.LID, int) {
			if lid++; isBare(p) {
				return 0, 0
			}
			return lid, 0
		}}} {
			g := routingtest.Graph(t, x.net, o)
			for _, name := range []string{"updn", "dnup", "ftree"} {
				r, err := Compute(t.Context(), g, name, Options{})
				if errors.As(err, new(*Precondition)) {
					continue
				} else if err != nil {
					t.Fatal(err)
				}
				if v := routingtest.Verified(t, r, verify.Options{}); !v.Acyclic {
					t.Errorf("%s, no hosts on %s, or no LIDs: %v, %s: a credit loop:\n%s", x.net, x.bare, o.LIDs != nil, name, verify.FormatCycle(v.Cycle))
				}
			}
		}
	}
}

// TestPartedTree: trees of which so much is missing that they have several parts, and pairs within a
// part no path up and then down under the tops.
func TestPartedTree(t *testing.T) {
	for spec, parted := range map[string]int64{
		"fattree:k=4,levels=4,seed=272,remove_links=28%,remove_switches=3": 512,
		"fattree:k=4,levels=4,seed=543,remove_links=23%":                   328,
		"fattree:k=4,levels=4,seed=774,remove_links=30%":                   424,
		"fattree:k=4,levels=4,seed=546,remove_links=28%":                   224,
	} {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		for _, engine := range []string{"updn", "dnup"} {
			v, err := verify.Tables(t.Context(), compute(t, g, engine, Options{}), verify.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if v.Unreachable != parted || !v.Acyclic {
				t.Errorf("%s on %s: unreachable %d, want %d; acyclic %v", engine, spec, v.Unreachable, parted, v.Acyclic)
			}
		}
	}
}
