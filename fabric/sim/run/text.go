//go:build linux

package run

import (
	"fmt"

	"fabsh/fabric/sim"
	"fabsh/mad"
)

// addAdapter adds /sys/class/infiniband/NAME.
func (t *fileTree) addAdapter(a treeAdapter) {
	if len(a.Ports) == 0 {
		return
	}
	c := a.Ports[0].Client
	folder := "/sys/class/infiniband/" + a.Name + "/"
	node := func(name string, text func(i mad.NodeInfo) string) {
		t.file(folder+name, func() string { return text(c.NodeInfo()) })
	}
	node("node_type", func(i mad.NodeInfo) string { return fmt.Sprintf("%d: %s", i.NodeType, nodeTypes[i.NodeType&3]) })
	node("node_guid", func(i mad.NodeInfo) string { return groups(uint64(i.NodeGUID)) })
	node("sys_image_guid", func(i mad.NodeInfo) string { return groups(uint64(i.SystemImageGUID)) })
	node("hw_rev", func(i mad.NodeInfo) string { return fmt.Sprintf("%x", i.Revision) })
	t.file(folder+"node_desc", c.Name)
	t.text(folder+"fw_ver", "1")
	t.text(folder+"board_id", "simulator")
	t.text(folder+"hca_type", "simulator")
	// libibverbs lists devices that one of its libraries knows: of a ConnectX-6.
	t.text(folder+"device/modalias", "pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00")
	t.folder(folder + "ports")
	for _, p := range a.Ports {
		t.addPort(fmt.Sprintf("%sports/%d/", folder, p.Num), p.Client)
	}
}

var nodeTypes = [4]string{"<unknown>", "CA", "switch", "router"}

// groups writes a GUID as sysfs does.
func groups(v uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", v>>48, v>>32&0xffff, v>>16&0xffff, v&0xffff)
}

func (t *fileTree) addPort(folder string, c *sim.Client) {
	port := func(name string, text func(i mad.PortInfo) string) {
		t.file(folder+name, func() string { return text(c.PortInfo(0)) })
	}
	port("state", func(i mad.PortInfo) string { return fmt.Sprintf("%d: %s", i.PortState, word(states, int(i.PortState))) })
	port("phys_state", func(i mad.PortInfo) string {
		return fmt.Sprintf("%d: %s", i.PortPhysicalState, word(physicalStates, int(i.PortPhysicalState)))
	})
	port("lid", func(i mad.PortInfo) string { return fmt.Sprintf("%#x", uint16(i.LID)) })
	port("lid_mask_count", func(i mad.PortInfo) string { return fmt.Sprint(i.LMC) })
	port("sm_lid", func(i mad.PortInfo) string { return fmt.Sprintf("%#x", uint16(i.MasterSMLID)) })
	port("sm_sl", func(i mad.PortInfo) string { return fmt.Sprint(i.MasterSMSL) })
	port("cap_mask", func(i mad.PortInfo) string { return fmt.Sprintf("0x%08x", uint32(i.CapabilityMask)) })
	port("rate", rate)
	t.text(folder+"link_layer", "InfiniBand")
	for i := range c.GIDs() {
		t.file(fmt.Sprintf("%sgids/%d", folder, i), func() string {
			gid := c.GIDs()[i]
			if gid.GUID() == 0 {
				gid = mad.GID{}
			}
			return groups(gid.Prefix()) + ":" + groups(uint64(gid.GUID()))
		})
		t.add(fmt.Sprintf("%sgid_attrs/types/%d", folder, i), &treeEntry{Kind: entryText, read: func() (string, bool) {
			return "IB/RoCE v1\n", c.GIDs()[i].GUID() != 0
		}})
	}
	for i := range c.PKeys() {
		t.file(fmt.Sprintf("%spkeys/%d", folder, i), func() string { return fmt.Sprintf("0x%04x", c.PKeys()[i]) })
	}
	for _, n := range mad.CounterFiles {
		t.file(folder+"counters/"+n.Name, func() string {
			data := c.Counters(n.Attr)
			if data == nil {
				return "N/A (no PMA)"
			}
			return fmt.Sprint(n.Attr.Field(n.Field).Uint(data))
		})
	}
}

var (
	states         = []string{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}
	physicalStates = []string{"<unknown>", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "Phy Test"}
)

func word(words []string, n int) string {
	if n < len(words) {
		return words[n]
	}
	return "<unknown>"
}

// rates are those of a lane by the speed's name, in units of 100 Mb/s, as the kernel
// has them.
var rates = map[string]struct {
	tenths int
	word   string
}{
	"ddr": {50, " DDR"}, "qdr": {100, " QDR"}, "fdr10": {100, " FDR10"}, "fdr": {140, " FDR"}, "edr": {250, " EDR"},
	"hdr": {500, " HDR"}, "ndr": {1000, " NDR"}, "xdr": {2000, " XDR"},
}

func rate(i mad.PortInfo) string {
	r := rates[mad.ActiveSpeed(&i)]
	if r.tenths == 0 {
		r.tenths = 25
	}
	lanes := max(1, mad.WidthLanes(mad.ActiveWidth(&i)))
	total, half := r.tenths*lanes, ""
	if total%10 != 0 {
		half = ".5"
	}
	return fmt.Sprintf("%d%s Gb/sec (%dX%s)", total/10, half, lanes, r.word)
}
