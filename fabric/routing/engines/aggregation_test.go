package engines

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// leafSpine is a fabric like a real one of 40 switches: 31 leaves and 9 spines
// with two cables between each pair, 542 hosts, an aggregation node on every
// switch, and missing cables.
func leafSpine(t testing.TB, seed uint64, missing int) *fabric.Fabric {
	t.Helper()
	const leaves, spines, hosts, ports = 31, 9, 542, 64
	b := fabric.NewBuilder()
	guid := mad.GUID(0x1000)
	lid := mad.LID(0)
	add := func(kind mad.NodeType, name string, ports int) int {
		guid += 0x10
		lid++
		h := b.AddNode(fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: kind, NumPorts: uint8(ports), NodeGUID: guid, SystemImageGUID: guid, PortGUID: guid, LocalPortNum: 1}})
		num := 1
		if kind == mad.NodeTypeSwitch {
			num = 0
		}
		b.SetPort(h, num, &mad.PortInfo{LID: lid})
		return h
	}
	link := func(n, p, m, q int) {
		if err := b.Link(n, p, m, q); err != nil {
			t.Fatal(err)
		}
	}
	var switches []int
	for i := range leaves {
		switches = append(switches, add(mad.NodeTypeSwitch, fmt.Sprintf("leaf-%d", i+1), ports))
	}
	for i := range spines {
		switches = append(switches, add(mad.NodeTypeSwitch, fmt.Sprintf("spine-%d", i+1), ports))
	}
	for i := range hosts {
		link(add(mad.NodeTypeCA, fmt.Sprintf("node-%04d HCA-1", i+1), 1), 1, switches[i%leaves], 1+i/leaves)
	}
	for _, s := range switches {
		link(add(mad.NodeTypeCA, "Mellanox Technologies Aggregation Node", 1), 1, s, ports)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	gone := map[[3]int]bool{}
	for len(gone) < missing {
		l, s := random.IntN(leaves), random.IntN(spines)
		gone[[3]int{l, s, 0}] = true
		if random.IntN(2) == 0 {
			gone[[3]int{l, s, 1}] = true
		}
	}
	for l := range leaves {
		for s := range spines {
			for c := range 2 {
				if !gone[[3]int{l, s, c}] {
					link(switches[l], 20+2*s+c, switches[leaves+s], 1+2*l+c)
				}
			}
		}
	}
	return b.Build()
}

// TestAggregationNodes: on such fabrics OpenSM's minhop makes credit loops, its
// updn leaves pairs out, and its ftree wants two files of hints. Here each of
// these engines reaches all pairs without credit loops or hints, and hosts by
// shortest paths.
func TestAggregationNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	loops := 0
	for seed := range uint64(20) {
		g, err := graph.New(leafSpine(t, seed, int(seed)*2), graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, engine := range []string{"updn", "dnup", "ftree", "nue"} {
			r := compute(t, g, engine, Options{})
			all, hosts := routingtest.Verified(t, r, verify.Options{}), routingtest.Verified(t, r, verify.Options{Endpoints: graph.ClassCN})
			if !all.OK() || all.Terminals != 582 || all.Endpoints != "all 582 ports of CAs and routers (542 cn, 40 an)" {
				t.Errorf("seed %d, %s: %+v\n%s", seed, engine, all, verify.FormatCycle(all.Cycle))
			}
			if !hosts.OK() || len(hosts.Detours) > 1 || hosts.Terminals != 542 {
				t.Errorf("seed %d, %s, hosts only: %+v", seed, engine, hosts)
			}
		}
		if v := routingtest.Verified(t, compute(t, g, "minhop", Options{}), verify.Options{}); !v.Acyclic {
			loops++
		}
		// As OpenSM does it: only legal paths, under the right roots.
		ranks := graph.FindLevels(g).Ranks()
		h, err := graph.UpDown(t.Context(), g, ranks)
		if err != nil {
			t.Fatal(err)
		}
		r := routes.New(g, 0)
		if err := Assign(t.Context(), r, h, AssignOptions{}); err != nil {
			t.Fatal(err)
		}
		v := routingtest.Verified(t, r, verify.Options{Require: func(src, dst *graph.Terminal) bool {
			return src.Class&graph.ClassAN == 0 && dst.Class&graph.ClassAN == 0
		}})
		if v.Unreachable > 0 || !v.Acyclic || seed > 0 && v.Excused == 0 {
			t.Errorf("seed %d, legal paths alone: %+v", seed, v)
		}
	}
	if loops == 0 {
		t.Error("minhop makes no credit loop: that proves little")
	}
}

// TestAggregationOnThreeLevels: where each switch of three levels has an aggregation node, and some
// leaves have no hosts, as in director switches, up*/down* from the tops joins half of the pairs only.
// Still all pairs are reached, by tables as good as tables without aggregation nodes: the largest load
// is up to 60% more than with minhop, and the bandwidth of shifts is equal.
func TestAggregationOnThreeLevels(t *testing.T) {
	for _, x := range []struct{ spec, bare, want string }{
		{"pgft:m=4/4/4,w=1/4/4,p=1/1/1", "", "minhop 255 1.000, updn 382 1.000, dnup 382 1.000, ftree 382 1.000"},
		{"pgft:m=4/4/4,w=1/4/2,p=1/1/1", "leaf-1 leaf-6", "minhop 299 0.704, updn 326 0.704, dnup 326 0.704, ftree 326 0.704"},
		{"pgft:m=6/6/4,w=1/6/6,p=1/1/1,remove_links=5,seed=1", "leaf-1 leaf-2 leaf-8 leaf-9", "minhop 438 0.902, updn 695 0.902, dnup 695 0.902, ftree 695 0.902"},
	} {
		g, err := graph.New(routingtest.WithAggregation(t, routingtest.Topology(t, x.spec), strings.Fields(x.bare)...), graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, engine := range []string{"minhop", "updn", "dnup", "ftree"} {
			r := compute(t, g, engine, Options{})
			if v := routingtest.Verified(t, r, verify.Options{}); v.Unreachable > 0 || !v.Acyclic && engine != "minhop" {
				t.Errorf("%s, %s: %+v", x.spec, engine, v)
			}
			var f figure
			f.measure(t, r)
			got = append(got, fmt.Sprintf("%s %d %.3f", engine, f.Largest, f.Shift))
		}
		if got := strings.Join(got, ", "); got != x.want {
			t.Errorf("%s, no hosts on %s:\n got %s\nwant %s", x.spec, x.bare, got, x.want)
		}
	}
}
