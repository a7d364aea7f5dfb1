package routing

import (
	"fmt"
	"testing"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// TestTerminalsOf: rules are for ports that have LIDs.
func TestTerminalsOf(t *testing.T) {
	g := routingtest.Graph(t, "ring:n=3,hosts=1", graph.BuildOptions{LIDs: func(p *fabric.Port) (mad.LID, int) {
		if p.Node().Name() == "node-0002 HCA-1" {
			return 0, 0
		}
		return mad.LID(p.ID() + 1), 0
	}})
	for _, x := range []struct {
		v    starlark.Value
		want string
	}{
		{starlark.None, "[node-0001 HCA-1 node-0003 HCA-1] <nil>"},
		{starlark.String("node-0003 HCA-1"), "[node-0003 HCA-1] <nil>"},
		{starlark.String("switch-1"), "[switch-1] <nil>"},
		{starlark.String("node-0002 HCA-1"), `[] "node-0002 HCA-1" (0x0002c90310000010) has no LID in use`},
	} {
		list, err := terminalsOf(g, x.v)
		names := []string{}
		for _, i := range list {
			names = append(names, g.Terminals()[i].Port.Node().Name())
		}
		if got := fmt.Sprint(names, " ", err); got != x.want {
			t.Errorf("%v: got %s, want %s", x.v, got, x.want)
		}
	}
}
