package trial

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

const portInfo = `# Port info: DR path slid 65535; dlid 65535; 0,1 port 1
Mkey:............................<not displayed>
GidPrefix:.......................0xfe80000000000000
Lid:.............................7
CapMask:.........................0xc848
				IsTrapSupported
LinkWidthSupported:..............1X or 4X
LinkWidthActive:.................4X
LinkState:.......................Active
PhysLinkState:...................Polling
NeighborMTU:.....................2048
VLCap:...........................VL0-7
LinkSpeedExtActive:..............53.125 Gbps
MtuCap:..........................a riddle
`

// TestForeign: numbers, words and masks of other tools are compared in their spelling, what
// both do not have is not, and keys, names and GUIDs are not shown.
func TestForeign(t *testing.T) {
	own := mad.PortInfo{
		GIDPrefix: 0xfe80 << 48, LID: 8, CapabilityMask: 0xc848, LinkWidthSupported: 3, LinkWidthActive: 2, PortState: mad.PortStateActive,
		PortPhysicalState: mad.PortPhysicalStateLinkUp, NeighborMTU: mad.MTU4096, VLCap: 4, LinkSpeedExtActive: 4, MTUCap: mad.MTU4096,
	}
	data := make([]byte, mad.AttrPortInfo.Size)
	own.Encode(data)
	d := &Device{Name: "switch 1", Results: []*Result{{Outcome: Answered, attr: mad.AttrPortInfo, modifier: 1, data: data}}}
	x := Foreign{Source: "smpquery", Attr: mad.AttrPortInfo, Modifier: 1, Place: "port 1", Fields: Fields(mad.AttrPortInfo, portInfo)}
	x.Fields["node_guid"], x.Fields["m_key"] = "1", "2"
	want := &Comparison{
		Device: "switch 1", Source: "smpquery", Attribute: "PortInfo", Place: "port 1",
		Agreed: []string{"capability_mask", "gid_prefix", "link_speed_ext_active", "link_width_active", "link_width_supported", "port_state", "vl_cap"},
		Differed: []Difference{
			{"lid", "8", "7"}, {"neighbor_mtu", "4096", "2048"}, {"port_physical_state", "link_up", "polling"},
		},
		NotCompared: []string{"m_key", "mtu_cap", "node_guid"},
	}
	if d := cmp.Diff(want, x.compare(d)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	node := mad.NodeInfo{NodeGUID: 1, PartitionCap: 8}
	data = make([]byte, mad.AttrNodeInfo.Size)
	node.Encode(data)
	d.Results = []*Result{{Outcome: Answered, attr: mad.AttrNodeInfo, data: data}}
	other := append([]byte(nil), data...)
	binary.BigEndian.PutUint64(other[mad.AttrNodeInfo.Field("node_guid").Offset/8:], 0x1122334455667788)
	c := (&Foreign{Source: "ibdiagnet2.db_csv", Attr: mad.AttrNodeInfo, Data: other}).compare(d)
	if got := fmt.Sprint(c.Differed); got != "[{node_guid  }]" {
		t.Errorf("a GUID that differs is shown as %s", got)
	}
}

// TestMstflint: the firmware in the output of mstflint.
func TestMstflint(t *testing.T) {
	got := Fields(mad.LayoutMGIR, "Image type:            FS4\nFW Version:            20.43.02566\nPSID:                  MT_0000000223\n")
	want := map[string]string{"ext_fw_major": "20", "ext_fw_minor": "43", "ext_fw_sub_minor": "2566", "psid": "MT_0000000223"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// FuzzFields: the output of a tool makes no panic, and every field has a name.
func FuzzFields(f *testing.F) {
	f.Add(portInfo)
	f.Add("FW Version: 1.2\n")
	f.Add("Node Description:....x:y\n")
	f.Fuzz(func(t *testing.T, text string) {
		for a := range labels {
			for name := range Fields(a, text) {
				if a.Field(name) == nil || strings.Contains(name, " ") {
					t.Errorf("%s has no field %q", a.Name, name)
				}
			}
		}
	})
}
