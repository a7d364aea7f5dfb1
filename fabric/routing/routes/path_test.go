package routes_test

import (
	"strings"
	"testing"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

func TestTrace(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=4", graph.BuildOptions{})
	r := compute(t, g, "ftree", engines.Options{})
	leaf, spine := routingtest.SwitchNamed(t, g, "leaf-1"), routingtest.SwitchNamed(t, g, "spine-1")
	from, to := routingtest.LID(t, g, "node-0001 HCA-1"), routingtest.LID(t, g, "node-0007 HCA-1")
	path := func(src, dst mad.LID) string {
		t.Helper()
		p, err := r.Trace(src, dst)
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(p.String())
	}
	lines := func(s ...string) string { return strings.Join(s, "\n") }
	expect := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	whole := lines("node-0001 HCA-1/1", "leaf-1/1", "leaf-1/3", "spine-1/1", "spine-1/4", "leaf-4/3", "leaf-4/1", "node-0007 HCA-1/1")
	expect(path(from, to), whole)
	expect(path(from, from), "node-0001 HCA-1/1")
	expect(path(from, g.Terminals()[spine].LID), lines("node-0001 HCA-1/1", "leaf-1/1", "leaf-1/3", "spine-1/1"))
	expect(path(g.Terminals()[leaf].LID, to), lines("leaf-1/0", "leaf-1/3", "spine-1/1", "spine-1/4", "leaf-4/3", "leaf-4/1", "node-0007 HCA-1/1"))
	expect(path(from, 999), "trace: no port has LID 999; the highest is 14")
	expect(path(0, to), "trace: no port has LID 0; the highest is 14")
	for port, want := range map[uint8]string{
		routes.NoPort: `"spine-1" (0x0002c90300100040) drops LID 13`,
		9:             `"spine-1" (0x0002c90300100040) sends LID 13 to port 9, which does not exist`,
		0:             `"spine-1" (0x0002c90300100040) sends LID 13 to port 0 of "spine-1" (0x0002c90300100040), which has another LID`,
	} {
		r.Row(spine)[to] = port
		p, err := r.Trace(from, to)
		if err != nil || p.Broken != want {
			t.Errorf("port %d: %v %q", port, err, p.Broken)
		}
	}
	r.Row(spine)[to] = 1
	expect(path(from, to)[len(path(from, to))-len("loops"):], "loops")
	r.Row(leaf)[to] = 1
	if p, _ := r.Trace(from, to); p.Broken != `"leaf-1" (0x0002c90300100000) sends LID 13 to port 1 of "node-0001 HCA-1" (0x0002c90310000000), which has another LID` {
		t.Error(p.Broken)
	}
}
