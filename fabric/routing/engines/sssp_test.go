package engines

import (
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// TestSSSP: with weights that scripts give, which then count the routes.
func TestSSSP(t *testing.T) {
	g := routingtest.Graph(t, "ring:n=4", graph.BuildOptions{})
	weight := make([]int64, len(g.Channels()))
	for c := range weight {
		weight[c] = 1
	}
	heavy := g.ChannelOf(g.Switches()[0].Port(3)) // from the first switch to the second
	weight[heavy] = 100
	r := routes.New(g, 0)
	if err := SSSP(t.Context(), r, weight, nil); err != nil {
		t.Fatal(err)
	}
	if v := routingtest.Verified(t, r, verify.Options{}); v.Unreachable > 0 {
		t.Errorf("%+v", v)
	}
	if to := routingtest.LID(t, g, "node-0002 HCA-1"); r.Row(0)[to] != 2 || weight[heavy] != 100 {
		t.Errorf("port %d, weight %d", r.Row(0)[to], weight[heavy])
	}
	b, err := traffic.MeasureBalance(t.Context(), r, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for c := range weight {
		if before := int64(1 + 99*routingtest.Count(c == heavy)); weight[c] != before+b.PerChannel[c] {
			t.Errorf("channel %d: weight %d, %d routes", c, weight[c], b.PerChannel[c])
		}
	}
	for _, x := range []struct {
		weight []int64
		lids   []mad.LID
		want   string
	}{
		{weight[1:], nil, "sssp: 7 weights for 8 channels"},
		{append([]int64{-1}, weight[1:]...), nil, `sssp: weight -1 of port 2 of "switch-1" (0x0002c90300100000): it must be from 0 to 1099511627776`},
		{weight, []mad.LID{99}, "sssp: no port on a switch has LID 99"},
	} {
		if err := SSSP(t.Context(), r, x.weight, x.lids); err == nil || err.Error() != x.want {
			t.Errorf("got %v\nwant %s", err, x.want)
		}
	}
	if _, _, err := graph.Dijkstra(g, 4, weight); err == nil || err.Error() != "dijkstra: unknown switch 4 of 4" {
		t.Error(err)
	}
}
