package engines

import (
	"slices"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
)

// TestLowerPeak: the largest load does not grow, the loads agree with the tables, all pairs keep a
// shortest path, and flows of shifts meet hardly more. Where leaves have more hosts than links up, and
// not a multiple of them, the largest load is much less, also where flows are too many to count.
func TestLowerPeak(t *testing.T) {
	routingtest.ResultsOnly(t)
	lowered := 0
	for _, x := range []struct {
		net  string
		most int64 // 0: whatever it is
	}{
		{"pgft:m=11/10,w=1/10,p=1/1", 154}, {"pgft:m=20/12,w=1/9,p=1/2", 340}, {"pgft:m=9/8/8,w=1/8/8,p=1/1/1", 981}, {"pgft:m=11/10/10,w=1/10/10,p=1/1/1", 1256},
	} {
		lowered += checkLowerPeak(t, x.net, x.most)
	}
	for _, net := range routingtest.SmallNets() {
		lowered += checkLowerPeak(t, net, 0)
	}
	if lowered < 15 {
		t.Errorf("lowered on %d networks", lowered)
	}
}

// checkLowerPeak returns 1 if the peak was lowered.
func checkLowerPeak(t *testing.T, net string, most int64) int {
	t.Helper()
	g := routingtest.Graph(t, net, graph.BuildOptions{})
	h, err := graph.AllHops(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	b := newBalancer(routes.New(g, 0), h)
	if err := b.pass(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	was := routingtest.Verified(t, b.r, verify.Options{})
	peak := slices.Max(append(b.load, 0))
	squares, err := shiftSquares(t.Context(), b.r, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.lowerPeak(t.Context()); err != nil {
		t.Fatal(err)
	}
	load, err := verify.CountAllRoutes(t.Context(), b.r)
	if err != nil || !slices.Equal(load, b.load) {
		t.Errorf("%s: load %v, counted again %v, %v", net, b.load, load, err)
	}
	now := slices.Max(append(load, 0))
	if now > peak || most > 0 && now > most {
		t.Errorf("%s: largest load %d, before %d, want at most %d", net, now, peak, most)
	}
	if is := routingtest.Verified(t, b.r, verify.Options{}); is.Unreachable != was.Unreachable || !slices.Equal(is.Hops, was.Hops) || is.Loops > 0 {
		t.Errorf("%s: %+v, before %+v", net, is, was)
	}
	if after, err := shiftSquares(t.Context(), b.r, h); err != nil || after > squares*peakCost {
		t.Errorf("%s: sum of squares %v, before %v, %v", net, after, squares, err)
	}
	return routingtest.Count(now < peak)
}

// TestShiftBandwidth: it is the bandwidth of shifts that package traffic measures, without the flows
// within a switch, which meet no others.
func TestShiftBandwidth(t *testing.T) {
	for _, net := range []string{"pgft:m=11/10,w=1/10,p=1/1", "fattree:k=4,levels=3,remove_links=6%,seed=1", "torus:dims=4/4,hosts=2", "fattree:k=8,levels=3"} {
		g := routingtest.Graph(t, net, graph.BuildOptions{})
		r := compute(t, g, "minhop", Options{})
		got, err := shiftBandwidth(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		hosts, within := float64(len(shiftHosts(g, 0))), 0.0
		for _, n := range g.Endpoints() {
			within += float64(n * (n - 1))
		}
		c, err := traffic.MeasureCongestion(t.Context(), r, traffic.CongestionOptions{Pattern: traffic.Shift, Samples: int(hosts), Order: hostsByGUID(g)})
		if err != nil {
			t.Fatal(err)
		}
		all := hosts * (hosts - 1)
		if want := (c.Bandwidth*all - within) / (all - within); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s: %v, want %v", net, got, want)
		}
	}
}

// TestAligned: in trees whose leaves have more hosts than links up, shifts meet only where they must,
// also where there are more hosts than flows are counted for.
func TestAligned(t *testing.T) {
	routingtest.ResultsOnly(t)
	for _, x := range []struct {
		net  string
		want float64 // of 10 links for 11 hosts: nine flows alone, two that share a link
	}{{"pgft:m=11/10,w=1/10,p=1/1", 0.91}, {"pgft:m=11/10/10,w=1/10/10,p=1/1/1", 0.909}} {
		for _, engine := range []string{"ftree", "minhop", "updn"} {
			if got, err := shiftBandwidth(t.Context(), compute(t, routingtest.Graph(t, x.net, graph.BuildOptions{}), engine, Options{})); err != nil || got < x.want {
				t.Errorf("%s, %s: %v, want %v, %v", x.net, engine, got, x.want, err)
			}
		}
	}
}
