//go:build linux

package run

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"fabsh/fabric/sim"
	"fabsh/mad"
)

// The file tree is what programs see of a host's InfiniBand devices below /sys and /dev: the
// files, and their text, which is read from the subnet whenever one is opened.
//
// Sources: Linux 6.1: drivers/infiniband/core sysfs.c, user_mad.c, uverbs_main.c.

// treeAdapter is a device: a channel adapter, or a switch.
type treeAdapter struct {
	Name  string // "ibsim0"
	Ports []treePort
}

// treePort is a port of an adapter.
type treePort struct {
	Num    int
	Client *sim.Client
}

// entryKind is what a path stands for.
type entryKind uint8

// The kinds of entries.
const (
	entryFolder entryKind = iota
	entryText
	entryUMAD // /dev/infiniband/umadN
	entryISSM // /dev/infiniband/issmN
	entryVerb // /dev/infiniband/uverbsN
)

// Numbers of the devices (IB_UMAD_MAJOR, IB_ISSM_MINOR_BASE).
const (
	umadMajor = 231
	issmMinor = 64
	verbMinor = 192
)

// treeEntry is a file or a folder.
type treeEntry struct {
	Kind  entryKind
	Minor uint32 // of a device
	Port  int    // of a device: the port's index in fileTree.Ports
	read  func() (text string, ok bool)
}

// Read returns the text of a file; false: the kernel fails to read it, with EINVAL.
func (e *treeEntry) Read() (string, bool) { return e.read() }

// fileTree has the files of a host. It is immutable, and safe for concurrent use.
type fileTree struct {
	Ports   []treePort // of all adapters, in the order of their umad files
	entries map[string]*treeEntry
}

// The folders that belong to the tree, with all below them.
var treeRoots = []string{"/sys/class/infiniband", "/sys/class/infiniband_mad", "/sys/class/infiniband_verbs", "/dev/infiniband"}

// inFileTree reports whether a clean absolute path belongs to the tree, whether or not there is
// a file of that name.
func inFileTree(p string) bool {
	return slices.ContainsFunc(treeRoots, func(root string) bool {
		return strings.HasPrefix(p, root) && (len(p) == len(root) || p[len(root)] == '/')
	})
}

// newFileTree returns the tree of a host with these adapters.
func newFileTree(adapters []treeAdapter) *fileTree {
	t := &fileTree{entries: map[string]*treeEntry{}}
	for _, root := range treeRoots {
		t.folder(root)
	}
	t.text("/sys/class/infiniband_mad/abi_version", "5")
	t.text("/sys/class/infiniband_verbs/abi_version", "6")
	for i, a := range adapters {
		t.addAdapter(a)
		uverbs := fmt.Sprintf("uverbs%d", i)
		t.add("/dev/infiniband/"+uverbs, &treeEntry{Kind: entryVerb, Minor: uint32(verbMinor + i)})
		verbs := "/sys/class/infiniband_verbs/" + uverbs + "/"
		t.text(verbs+"ibdev", a.Name)
		t.text(verbs+"abi_version", "1")
		t.text(verbs+"dev", fmt.Sprintf("%d:%d", umadMajor, verbMinor+i))
		for _, p := range a.Ports {
			n := len(t.Ports)
			t.Ports = append(t.Ports, p)
			t.addDevice(a, p, treeEntry{Kind: entryUMAD, Minor: uint32(n), Port: n}, fmt.Sprintf("umad%d", n))
			t.addDevice(a, p, treeEntry{Kind: entryISSM, Minor: uint32(issmMinor + n), Port: n}, fmt.Sprintf("issm%d", n))
		}
	}
	return t
}

func (t *fileTree) addDevice(a treeAdapter, p treePort, e treeEntry, name string) {
	t.add("/dev/infiniband/"+name, &e)
	class := "/sys/class/infiniband_mad/" + name
	t.text(class+"/ibdev", a.Name)
	t.text(class+"/port", fmt.Sprint(p.Num))
	t.text(class+"/dev", fmt.Sprintf("%d:%d", umadMajor, e.Minor))
}

// add adds an entry, and the folders above it.
func (t *fileTree) add(p string, e *treeEntry) {
	t.entries[p] = e
	for p = path.Dir(p); p != "/"; p = path.Dir(p) {
		if t.entries[p] != nil {
			return
		}
		t.entries[p] = &treeEntry{Kind: entryFolder}
	}
}

func (t *fileTree) folder(p string) { t.add(p, &treeEntry{Kind: entryFolder}) }

func (t *fileTree) text(p, text string) {
	t.file(p, func() string { return text })
}

func (t *fileTree) file(p string, read func() string) {
	t.add(p, &treeEntry{Kind: entryText, read: func() (string, bool) { return read() + "\n", true }})
}

// Lookup returns the entry of a clean absolute path, or nil.
func (t *fileTree) Lookup(p string) *treeEntry { return t.entries[p] }

// Paths returns all paths, folders before what is in them.
func (t *fileTree) Paths() []string {
	var list []string
	for p := range t.entries {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

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
	node("node_type", func(i mad.NodeInfo) string { return fmt.Sprintf("%d: %s", i.NodeType, nodeTypeWords[i.NodeType&3]) })
	node("node_guid", func(i mad.NodeInfo) string { return guidGroups(uint64(i.NodeGUID)) })
	node("sys_image_guid", func(i mad.NodeInfo) string { return guidGroups(uint64(i.SystemImageGUID)) })
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

var nodeTypeWords = [4]string{"<unknown>", "CA", "switch", "router"}

// guidGroups writes a GUID as sysfs does.
func guidGroups(v uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", v>>48, v>>32&0xffff, v>>16&0xffff, v&0xffff)
}

func (t *fileTree) addPort(folder string, c *sim.Client) {
	port := func(name string, text func(i mad.PortInfo) string) {
		t.file(folder+name, func() string {
			i := c.PortInfo(0)
			if c.Ethernet() { // as mlx5 has it (drivers/infiniband/hw/mlx5/main.c mlx5_query_port_roce)
				i.LID, i.LMC, i.MasterSMLID, i.MasterSMSL = 0, 0, 0, 0
				i.CapabilityMask = mad.CapabilityMaskIsCommunicationManagementSupported
			}
			return text(i)
		})
	}
	port("state", func(i mad.PortInfo) string {
		return fmt.Sprintf("%d: %s", i.PortState, wordOf(portStateWords, int(i.PortState)))
	})
	port("phys_state", func(i mad.PortInfo) string {
		return fmt.Sprintf("%d: %s", i.PortPhysicalState, wordOf(physicalStateWords, int(i.PortPhysicalState)))
	})
	port("lid", func(i mad.PortInfo) string { return fmt.Sprintf("%#x", uint16(i.LID)) })
	port("lid_mask_count", func(i mad.PortInfo) string { return fmt.Sprint(i.LMC) })
	port("sm_lid", func(i mad.PortInfo) string { return fmt.Sprintf("%#x", uint16(i.MasterSMLID)) })
	port("sm_sl", func(i mad.PortInfo) string { return fmt.Sprint(i.MasterSMSL) })
	port("cap_mask", func(i mad.PortInfo) string { return fmt.Sprintf("0x%08x", uint32(i.CapabilityMask)) })
	port("rate", rateText)
	byLayer := func(infiniBand, ethernet string) string {
		if c.Ethernet() {
			return ethernet
		}
		return infiniBand
	}
	t.file(folder+"link_layer", func() string { return byLayer("InfiniBand", "Ethernet") })
	for i := range c.GIDs() {
		t.file(fmt.Sprintf("%sgids/%d", folder, i), func() string {
			gid := c.GIDs()[i]
			if gid.GUID() == 0 {
				gid = mad.GID{}
			}
			return guidGroups(gid.Prefix()) + ":" + guidGroups(uint64(gid.GUID()))
		})
		t.add(fmt.Sprintf("%sgid_attrs/types/%d", folder, i), &treeEntry{Kind: entryText, read: func() (string, bool) {
			return byLayer("IB/RoCE v1", "RoCE v2") + "\n", c.GIDs()[i].GUID() != 0
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
	portStateWords     = []string{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}
	physicalStateWords = []string{"<unknown>", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "Phy Test"}
)

func wordOf(words []string, n int) string {
	if n < len(words) {
		return words[n]
	}
	return "<unknown>"
}

// laneRates are the rates of a lane by the speed's name, in units of 100 Mb/s, as the kernel
// has them.
var laneRates = map[string]struct {
	tenths int
	word   string
}{
	"ddr": {50, " DDR"}, "qdr": {100, " QDR"}, "fdr10": {100, " FDR10"}, "fdr": {140, " FDR"}, "edr": {250, " EDR"},
	"hdr": {500, " HDR"}, "ndr": {1000, " NDR"}, "xdr": {2000, " XDR"},
}

func rateText(i mad.PortInfo) string {
	r := laneRates[mad.ActiveSpeed(&i)]
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
