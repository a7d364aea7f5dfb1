package builtins

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVendorNotices: the subscriptions and notices of a vendor's events have its numbers,
// and the old names of fields and attributes are understood.
func TestVendorNotices(t *testing.T) {
	const code = `
sa_set("InformInfo", lid_range_begin=0xffff, subscribe=1, type="all", device_id=66, vendor_id=0x2c9)
r = sa_gettable("InformInfoRecord")[0]
show(r)
print(r.vendor_id, r.device_id, r.node_type, r.producer_type)
sub = sa_subscribe(trap=128)
g = sa_gettable("InformInfoRecord")[1]
print(g.trap_number, g.producer_type, g.node_type, g.vendor_id)
print([x.device_id for x in sa_gettable("InformInfoRecord", device_id=66)])
print(g.replace(node_type="ca").producer_type)
help("InformInfo.NodeType")
print(smp_get("LEDInfo", dr("0"), 1).led_mask)
`
	const want = `subscriber_gid   fe80::2:c903:1000:1
enum             0
gid              ::
lid_range_begin  65535
lid_range_end    0
is_generic       0
subscribe        1
type             all
device_id        0x0042
qpn              0x000000
resp_time_value  0
vendor_id        0x0002c9
713 66 713 713
128 all all 16777215
[66]
ca
InformInfo.producer_type (ProducerType): 24 bits at bit 264 (byte 33), section 13.4.8.3 of the specification
ProducerType is the kind of node where the event occurs; of a vendor's traps, the vendor's OUI.
Words: ca, switch, router, subnet_management, all.
A Set writes it.
Queries can select records by it: bit 12 of the component mask.
0
`
	onSim(t, "ring:n=3", nil, func(t *testing.T, f *fixture) {
		out, explained, _ := f.run(code)
		if diff := cmp.Diff(want, out); diff != "" || explained != "" {
			t.Errorf("(-want +got):\n%s%s", diff, explained)
		}
	})
}
