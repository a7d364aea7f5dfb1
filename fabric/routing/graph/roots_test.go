package graph_test

import (
	"errors"
	"fmt"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

func TestRoots(t *testing.T) {
	for _, x := range []struct{ spec, method, want string }{
		{"fattree:k=4", "color", "spine-1 spine-2 "},
		{"fattree:k=4", "farthest", "spine-1 spine-2 "},
		{"fattree:k=4", "histogram", "spine-1 spine-2 "},
		{"fattree:k=4", "center", "spine-1 "},
		{"fattree:k=4,levels=3", "histogram", "core-1 core-2 core-3 core-4 "},
		{"mesh:dims=5,hosts=1", "center", "switch-3 "},
		{"mesh:dims=5,hosts=1", "histogram", `roots by histogram: no switch has more than 90% of the 5 CA ports at one distance and no other 5%`},
		{"ring:n=3,hosts=0", "color", "roots by color: not a fat tree: no switch has a compute node"},
		{"ring:n=3", "magic", `unknown method "magic" to find roots; supported: color, farthest, histogram, center`},
	} {
		g := routingtest.Graph(t, x.spec, graph.BuildOptions{})
		roots, err := graph.FindRoots(t.Context(), g, x.method)
		got := ""
		for _, s := range roots {
			got += g.Switches()[s].Name() + " "
		}
		if err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%s, %s:\n got %s\nwant %s", x.spec, x.method, got, x.want)
		}
	}
}

// TestHistogramRoots: 94 of 100 hosts at one distance and the others at another
// are no root's view; 96 are.
func TestHistogramRoots(t *testing.T) {
	for near, want := range map[int]string{6: "[]", 4: "[0 1]"} {
		b := fabric.NewBuilder()
		add := func(kind mad.NodeType, ports, i int) int {
			return b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: kind, NumPorts: uint8(ports), NodeGUID: mad.GUID(i + 1), PortGUID: mad.GUID(i + 1)}})
		}
		hub, leaf := add(mad.NodeTypeSwitch, 120, 0), add(mad.NodeTypeSwitch, 120, 1)
		err := b.Link(hub, 120, leaf, 120)
		for i := range 100 {
			on := leaf
			if i < near {
				on = hub
			}
			err = errors.Join(err, b.Link(add(mad.NodeTypeCA, 1, 2+i), 1, on, 1+i))
		}
		g, bad := graph.New(b.Build(), graph.BuildOptions{})
		if err != nil || bad != nil {
			t.Fatal(err, bad)
		}
		if roots, _ := graph.FindRoots(t.Context(), g, "histogram"); fmt.Sprint(roots) != want {
			t.Errorf("%d hosts on the hub: %v, want %s", near, roots, want)
		}
	}
}
