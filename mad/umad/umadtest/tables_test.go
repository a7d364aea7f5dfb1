//go:build kernelibtest

package umadtest

import (
	"regexp"
	"strings"
	"testing"
)

// Tables are what the tools of infiniband-diags read after they were set.
func testWholeTables(t *testing.T, s *subnet) {
	got := fabsh(t.Context(), `
sw = discover().switches[0]
set_mft(sw, {0xc005: [2, 17]})
print(sw.lid, get_mft(sw)[0xc005], hex(set_pkeys(sw.ports[2], {1: 0x8123})[1]), set_sl2vl(sw.ports[2], {3: 1})[1, 2][3], set_vlarb(sw.ports[2], {"high": [(1, 77)]}).high[0])
`, "--write", "--override-sm")
	lid, rest, _ := strings.Cut(got, " ")
	is(t, "fabsh", rest, "(2, 17) 0x8123 1 (1, 77)\n")
	for _, c := range []struct {
		tool []string
		want string
	}{
		{[]string{"ibroute", "-M", "-n", lid}, `(?m)^0xc005\s+00040002`},
		{[]string{"smpquery", "-L", "PKeys", lid, "2"}, `0x8123`},
		{[]string{"smpquery", "-L", "SL2VL", lid, "2"}, `in  1, out  2: \| 0\| 1\| 2\| 1\|`},
		{[]string{"smpquery", "-L", "VLArb", lid, "2"}, `WEIGHT: \|0x4D`},
	} {
		if out := diag(t, c.tool[0], c.tool[1:]...); !regexp.MustCompile(c.want).MatchString(out) {
			t.Errorf("%v knows nothing of it:\n%s", c.tool, out)
		}
	}
}

// A host's link goes down, which smpquery sees; ours stays up.
func testLinks(t *testing.T, s *subnet) {
	got := fabsh(t.Context(), `
f = discover()
i = smp_get("PortInfo", dr("0"), 1)
leaf = [c for c in f.cas if c.lid == i.lid][0].ports[1].peer
own = catch(port_disable, leaf)
p = [c for c in f.cas if c.lid != i.master_sm_lid and c.ports[1].peer.node != leaf.node][0].ports[1].peer
print(p.node.route, p.num, port_set(p, width=["1x"]).link_width_enabled, port_disable(p).port_physical_state)
print(own.message if not own else own)
`, "--write", "--override-sm")
	at, own, _ := strings.Cut(got, "\n")
	words := strings.Fields(at)
	if len(words) != 4 || words[3] != "disabled" || !strings.Contains(own, "not taken down: this session reaches the node through it") {
		t.Fatalf("fabsh says %q", got)
	}
	out := diag(t, "smpquery", "-D", "PortInfo", words[0], words[1])
	is(t, "PhysLinkState", field(t, out, "PhysLinkState"), "Disabled")
	is(t, "LinkWidthEnabled", field(t, out, "LinkWidthEnabled"), "1X")
}
