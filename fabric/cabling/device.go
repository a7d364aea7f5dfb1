package cabling

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// Difference is what a plan states of a device, besides its cables, that the fabric has otherwise.
type Difference struct {
	Device string   // as the plan names it
	Node   string   // as the fabric names it; "": it was not found
	GUID   mad.GUID // of the node; 0: it was not found
	// Field is "model", "firmware", "role", "rail", "serial" or "manager".
	Field          string
	Planned, Found string
}

// hardware is what registers of a device state, "" where they were not read.
type hardware struct {
	part, product, serial string // MSGI, of switches
	firmware              string // MGIR
}

// hardwareOf reads the answers that n has: those of a file, or of ReadLabels of package device.
func hardwareOf(n *fabric.Node) (h hardware) {
	mgir, msgi := mad.RegisterNamed("MGIR"), mad.RegisterNamed("MSGI")
	for _, a := range n.Fabric().AnswersOf(n.ID()) {
		switch {
		case a.Class != mad.ClassVendor0A || a.ID != mad.AttrAccessRegister.ID || len(a.Data) == 0:
		case a.Modifier == uint32(mgir.Register) && len(a.Data) >= mgir.Size:
			var g mad.MGIR
			g.Decode(a.Data)
			h.firmware = fmt.Sprintf("%d.%d.%d", g.FWMajor, g.FWMinor, g.FWSubMinor)
			if g.ExtFWMajor != 0 {
				h.firmware = fmt.Sprintf("%d.%d.%d", g.ExtFWMajor, g.ExtFWMinor, g.ExtFWSubMinor)
			}
		case a.Modifier == uint32(msgi.Register) && len(a.Data) >= msgi.Size:
			text := func(field string) string { return strings.TrimSpace(msgi.Field(field).Text(a.Data)) }
			h.part, h.product, h.serial = text("part_number"), text("product_name"), text("serial_number")
		}
	}
	return h
}

// chips are the device IDs of models whose names begin with these words, without dashes (PCI ids of
// hwdata; data sheets). NodeInfo has the ID of the chip, which several models share.
var chips = []struct {
	prefixes []string
	ids      []uint16
}{
	{[]string{"MSB77", "SB77"}, []uint16{0xcb20}},                       // Switch-IB
	{[]string{"MSB78", "SB78"}, []uint16{0xcf08}},                       // Switch-IB 2
	{[]string{"MQM87", "QM87"}, []uint16{0xd2f0}},                       // Quantum
	{[]string{"MQM97", "QM97"}, []uint16{0xd2f2}},                       // Quantum-2
	{[]string{"Q34", "Q3200", "Q33"}, []uint16{0xd2f4}},                 // Quantum-3
	{[]string{"CONNECTX4", "CX4", "MCX4"}, []uint16{0x1013, 0x1015}},    // also Lx
	{[]string{"CONNECTX5", "CX5", "MCX5"}, []uint16{0x1017, 0x1019}},    // also Ex
	{[]string{"CONNECTX6", "CX6", "MCX65", "MCX66"}, []uint16{0x101b}},  //
	{[]string{"CONNECTX7", "CX7", "MCX75", "MCX71"}, []uint16{0x1021}},  //
	{[]string{"CONNECTX8", "CX8"}, []uint16{0x1023}},                    //
	{[]string{"BLUEFIELD2", "BF2", "MBF2"}, []uint16{0xa2d6}},           //
	{[]string{"BLUEFIELD3", "BF3", "B3140", "B3220"}, []uint16{0xa2dc}}, //
}

// modelInName finds the model in the name of a managed switch: MF0;leaf01:MQM9700/U1.
var modelInName = regexp.MustCompile(`^MF0;[^:]*:([\w-]+)/`)

// FactsOf returns what a fabric has of a node besides its name: model, firmware and serial number, as
// registers, its name or its device ID have them, and whether it runs a subnet manager.
func FactsOf(n *fabric.Node) format.PlanFacts {
	h := hardwareOf(n)
	runs, _ := runsManager(n)
	return format.PlanFacts{Model: cmp.Or(h.part, h.product, deviceModel(n)), Firmware: h.firmware, Serial: h.serial, Manager: runs}
}

func deviceModel(n *fabric.Node) string {
	if m := modelInName.FindStringSubmatch(n.Name()); m != nil {
		return m[1]
	}
	if id := n.Info().DeviceID; id != 0 {
		return fmt.Sprintf("%#x", id)
	}
	return ""
}

// foldModel keeps letters and digits: "Q3400_RA" is Q3400RA.
func foldModel(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToUpper(text))
}

// sameModel reports whether n is of a model as a plan writes it, and whether that is known.
func sameModel(planned string, n *fabric.Node) (same, known bool) {
	h := hardwareOf(n)
	want := foldModel(planned)
	if want == "" {
		return false, false
	}
	for _, text := range []string{h.part, h.product, deviceModel(n)} {
		if got := foldModel(text); got != "" && (strings.HasPrefix(got, want) || strings.HasPrefix(want, got)) {
			return true, true
		}
	}
	if id, err := strconv.ParseUint(planned, 0, 16); err == nil && strings.HasPrefix(planned, "0x") {
		return uint16(id) == n.Info().DeviceID, n.Info().DeviceID != 0
	}
	vendor := n.Info().VendorID
	for _, c := range chips {
		if slices.ContainsFunc(c.prefixes, func(p string) bool { return strings.HasPrefix(want, p) }) {
			return slices.Contains(c.ids, n.Info().DeviceID), n.Info().DeviceID != 0 && (vendor == 0 || mad.IsNVIDIA(vendor, 0))
		}
	}
	return false, h.part != "" && strings.ContainsAny(want, "0123456789")
}

// Words of roles that only switches have, and that only hosts have.
var (
	switchRoles = []string{"switch", "sw", "leaf", "spine", "core", "cl", "cs", "compute leaf", "compute spine", "compute core", "storage leaf", "storage spine"}
	hostRoles   = []string{"host", "server", "compute", "storage", "management", "node", "fi", "ca", "hca", "login", "gpu", "cpu", "io"}
)

// devices compares what the plan states of devices that were found.
func (c *comparison) devices() {
	p := c.plan.Plan()
	unknown := map[string]int{} // devices by field
	for i := range c.plan.Nodes() {
		planned := &c.plan.Nodes()[i]
		n := c.node(planned)
		if n == nil {
			continue
		}
		differs := func(field, want, found string) {
			c.Devices = append(c.Devices, Difference{Device: nodeName(planned), Node: nodeName(n), GUID: n.GUID(), Field: field, Planned: want, Found: found})
		}
		if p == nil {
			if a, b := planned.Info(), n.Info(); !c.assigned && a.DeviceID != 0 && b.DeviceID != 0 && (a.DeviceID != b.DeviceID || a.VendorID != b.VendorID || a.NumPorts != b.NumPorts) {
				differs("model", chipText(planned), chipText(n))
			}
			continue
		}
		if want := at(p.Models, i); want != "" {
			switch same, known := sameModel(want, n); {
			case !known:
				unknown["model"]++
			case !same:
				differs("model", want, FactsOf(n).Model)
			}
		}
		h := hardwareOf(n)
		for _, x := range [][3]string{{"firmware", at(p.Firmware, i), h.firmware}, {"serial", at(p.Serials, i), h.serial}} {
			switch {
			case x[1] == "":
			case x[2] == "":
				unknown[x[0]]++
			case !strings.EqualFold(x[1], x[2]):
				differs(x[0], x[1], x[2])
			}
		}
		switch role := strings.ToLower(at(p.Roles, i)); {
		case slices.Contains(switchRoles, role) && !n.IsSwitch(), slices.Contains(hostRoles, role) && n.IsSwitch():
			differs("role", role, n.Kind().String())
		}
		c.rail(planned, n, at(p.Rails, i), differs)
	}
	if p == nil {
		return
	}
	c.managers(p)
	for _, field := range []string{"model", "firmware", "serial"} {
		if num := unknown[field]; num > 0 {
			why := "registers of the devices were not read"
			if field == "model" {
				why = "neither their names nor registers have it"
			}
			c.NotCompared = append(c.NotCompared, fmt.Sprintf("%s of %s: %s", field, count(num, "device"), why))
		}
	}
	if len(p.Partitions) > 0 {
		c.NotCompared = append(c.NotCompared, count(len(p.Partitions), "partition")+": use audit partitions --partitions FILE")
	}
}

// at returns an element of a list that may be nil.
func at(list []string, i int) string {
	if list == nil {
		return ""
	}
	return list[i]
}

// chipText is a model as NodeInfo has it: "0x02c9 0xd2f0 with 40 ports".
func chipText(n *fabric.Node) string {
	return fmt.Sprintf("%#04x %#04x with %s", n.Info().VendorID, n.Info().DeviceID, count(n.NumPorts(), "port"))
}

// rail compares the rail of an adapter with those of the switches that it is linked to, as far as the plan
// states both.
func (c *comparison) rail(planned, n *fabric.Node, rail string, differs func(field, want, found string)) {
	if rail == "" || n.IsSwitch() {
		return
	}
	for p := range n.Ports() {
		q := p.Peer()
		if q == nil || c.toPlan[q.Node().ID()] == none {
			continue
		}
		if other := at(c.plan.Plan().Rails, int(c.toPlan[q.Node().ID()])); other != "" && !strings.EqualFold(other, rail) {
			differs("rail", rail, "linked to "+nodeName(q.Node())+" of rail "+other)
			return
		}
	}
}

// managers compares the nodes that should run a subnet manager with those whose ports state that they do.
func (c *comparison) managers(p *fabric.Plan) {
	if len(p.Managers) == 0 {
		return
	}
	planned := map[*fabric.Node]bool{}
	known := false
	for _, name := range p.Managers {
		nodes := c.named(name)
		if len(nodes) == 0 {
			c.Devices = append(c.Devices, Difference{Device: name, Field: "manager", Planned: "subnet manager", Found: "the device was not found"})
			continue
		}
		runs := false
		for _, n := range nodes {
			planned[n] = true
			is, read := runsManager(n)
			runs, known = runs || is, known || read
		}
		if _, read := runsManager(nodes[0]); !runs && read {
			c.Devices = append(c.Devices, Difference{Device: name, Node: nodeName(nodes[0]), GUID: nodes[0].GUID(), Field: "manager", Planned: "subnet manager", Found: "no subnet manager"})
		}
	}
	if !known {
		c.NotCompared = append(c.NotCompared, count(len(p.Managers), "subnet manager")+": the ports of the fabric do not state whether they run one")
	}
	for i := range c.live.Nodes() {
		n := &c.live.Nodes()[i]
		if is, _ := runsManager(n); is && !planned[n] {
			c.Devices = append(c.Devices, Difference{Device: nodeName(n), Node: nodeName(n), GUID: n.GUID(), Field: "manager", Planned: "no subnet manager", Found: "subnet manager"})
		}
	}
}

// named returns the nodes of the fabric that are those of a device of the plan: a host is all its adapters.
func (c *comparison) named(name string) (list []*fabric.Node) {
	key := withoutSite(fold(name))
	for i := range c.live.Nodes() {
		n := &c.live.Nodes()[i]
		other := withoutSite(fold(n.Name()))
		if strings.EqualFold(n.GUID().String(), name) || key != "" && (key == other || !n.IsSwitch() && key == hostKey(other, false)) {
			list = append(list, n)
		} else if c.toPlan[i] != none && strings.EqualFold(c.plan.Nodes()[c.toPlan[i]].Name(), name) {
			list = append(list, n)
		}
	}
	return list
}

// runsManager reports whether a port of n states that a subnet manager runs there, and whether any was read.
func runsManager(n *fabric.Node) (runs, read bool) {
	check := func(p *fabric.Port) {
		if p != nil && p.Info() != nil {
			read = true
			runs = runs || p.Info().CapabilityMask&mad.CapabilityMaskIsSM != 0
		}
	}
	if n.IsSwitch() {
		check(n.Port(0))
		return runs, read
	}
	for p := range n.Ports() {
		check(p)
	}
	return runs, read
}
