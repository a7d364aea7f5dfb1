package builtins

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// TestPoll: source="poll" reports the notices of a device that sends no traps, and of no
// other; what came before the subscription is not reported.
func TestPoll(t *testing.T) {
	onSim(t, "ring:n=3", nil, func(t *testing.T, f *fixture) {
		const switch2 = mad.GUID(0x0002c90300100010)
		if err := f.Env.Sim.Edit.Port(switch2, 0, func(i *mad.PortInfo) { i.CapabilityMask &^= mad.CapabilityMaskIsTrapSupported }); err != nil {
			t.Fatal(err)
		}
		const code = `
sim.trap(130, "switch-2/1")
sub = sa_subscribe(trap=[130, 257], source="poll")
reports = sa_subscribe(trap=130)
print(sub.next(timeout=12))
sim.trap(130, "switch-2/2")
sim.trap(130, "switch-1/2")
n = sub.next(timeout=12)
print(n, n.port_no, n.source)
sim.trap(129, "switch-2/2")
sim.trap(257, "switch-2/2", key=0x8001, sl=3, lid_addr1=5, gid_addr2="fe80::7")
n = sub.next(timeout=12)
print(type(n), n.count)
n = sub.next(timeout=12)
print(n, hex(n.key), n.sl, n.lid_addr1, n.gid_addr2)
print(sub.next(timeout=12))
print(reports.next(timeout=1).port_no, reports.next(timeout=1))
sub.close()
`
		const want = `None
notice(trap 130 (excessive buffer overrun threshold reached), is_generic=1, type="urgent", ...) 2 2
lost 1
notice(trap 257 (bad P_Key), is_generic=1, type="security", ...) 0x8001 3 5 fe80::7
None
2 None
`
		out, explained, _ := f.run(code)
		if diff := cmp.Diff(want, out); diff != "" || explained != "" {
			t.Errorf("(-want +got):\n%s%s", diff, explained)
		}
	})
}
