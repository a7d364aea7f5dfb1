package repair

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// recorded are tables that OpenSM 3.3.23 computed, with the service levels of its path records and the
// SL2VL of its dump.
func recorded(t *testing.T, f *fabric.Fabric, name string) *routes.Routes {
	t.Helper()
	path := "testdata/opensm-" + name
	r, err := routes.Load(f, routes.Files{LFTs: path + ".fdbs", SL: path + ".sl", SL2VL: path + ".sl2vl"}, func(name string) (io.ReadCloser, error) { return os.Open(name) })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRepairOpenSM: tables of OpenSM are repaired without a credit loop on the lanes that they have:
// tables of dfsssp, which puts paths from ports of one switch to a LID on different lanes, and tables of
// torus-2QoS, whose lanes depend on the ports of switches. Paths that used nothing that was lost keep
// entries and service levels.
func TestRepairOpenSM(t *testing.T) {
	for _, x := range []struct {
		engine, spec string
		lanes        int
	}{{"dfsssp", "mesh:dims=3/3,hosts=2", 8}, {"torus-2qos", "torus:dims=5/3,hosts=1", 4}} {
		whole := damaged(t, x.spec)
		old := recorded(t, whole.f, x.engine)
		isWhole(t, x.engine, old)
		if old.Lanes() != x.lanes || engines.BasisOf(old) != nil {
			t.Fatalf("%s: %d lanes, basis %v", x.engine, old.Lanes(), engines.BasisOf(old))
		}
		for i, p := range whole.switchLinks() {
			d := &damage{whole.f, map[*fabric.Port]bool{p: true}, map[*fabric.Node]bool{}}
			r, err := Tables(t.Context(), old, d.graph(t))
			if err != nil {
				t.Fatal(err)
			}
			v := verified(t, r, verify.Options{})
			if v.Unreachable > 0 || !v.Acyclic || r.Lanes() > x.lanes || slices.ContainsFunc(r.Notes, func(n string) bool { return !strings.Contains(n, "another service level") }) {
				t.Errorf("%s without link %d: unreachable %d, acyclic %v, %d lanes, %q", x.engine, i, v.Unreachable, v.Acyclic, r.Lanes(), r.Notes)
			}
			keepsPaths(t, fmt.Sprintf("%s without link %d", x.engine, i), old, r, p)
		}
	}
}

// keepsPaths reports paths of CAs that do not take the lost links, and have other entries or another
// service level than before.
func keepsPaths(t *testing.T, what string, old, r *routes.Routes, lost ...*fabric.Port) {
	t.Helper()
	for _, a := range r.Graph().Terminals() {
		for _, b := range r.Graph().Terminals() {
			if a.Out == 0 || b.Out == 0 || a.LID == b.LID {
				continue
			}
			before, err := old.Trace(a.LID, b.LID)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(before.Hops, func(h routes.Hop) bool {
				out := old.Graph().Switches()[h.Switch].Port(int(h.Out))
				return slices.Contains(lost, out) || slices.Contains(lost, out.Peer())
			}) {
				continue
			}
			after, err := r.Trace(a.LID, b.LID)
			if err != nil || after.SL != before.SL || !slices.Equal(after.Hops, before.Hops) {
				t.Fatalf("%s: LID %d to %d: SL %d, %v; before SL %d, %v", what, a.LID, b.LID, after.SL, after.Hops, before.SL, before.Hops)
			}
		}
	}
}

// TestRepairLevelsByPort: where the shortest paths close a credit loop on the lanes of torus-2QoS, which
// depend on ports of switches, some that change get another service level. Others keep theirs.
func TestRepairLevelsByPort(t *testing.T) {
	whole := damaged(t, "torus:dims=5/3,hosts=1")
	old := recorded(t, whole.f, "torus-2qos")
	for _, lost := range [][2]int{{1, 4}, {5, 7}, {5, 9}} {
		a, b := whole.switchLinks()[lost[0]], whole.switchLinks()[lost[1]]
		d := &damage{whole.f, map[*fabric.Port]bool{a: true, b: true}, map[*fabric.Node]bool{}}
		r, err := Tables(t.Context(), old, d.graph(t))
		if err != nil {
			t.Fatal(err)
		}
		v := verified(t, r, verify.Options{})
		if v.Unreachable > 0 || !v.Acyclic || r.Lanes() > old.Lanes() || len(r.Notes) != 1 || !regexp.MustCompile(`^repair: \d+ paths? ha(s|ve) another service level; hosts read path records again$`).MatchString(r.Notes[0]) {
			t.Errorf("without links %d: unreachable %d, acyclic %v, %d lanes, %q", lost, v.Unreachable, v.Acyclic, r.Lanes(), r.Notes)
		}
		keepsPaths(t, fmt.Sprintf("without links %d", lost), old, r, a, b)
	}
}
