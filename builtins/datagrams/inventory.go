package datagrams

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
)

// InventoryType is the type of a device or a module of fabric.inventory().
var InventoryType = &lang.ResultType{
	Name: "inventory_item",
	Doc:  "A device, or a module in one of its ports.",
	Members: []lang.ResultMember{
		{Name: "type", Type: "string", Doc: "kind of item", Words: []string{"device", "module"}},
		{Name: "subject", Type: "string", Doc: "name of the node, or of the port of a module"},
		{Name: "node", Type: "node", Doc: "the device, or that of the port"},
		{Name: "num", Type: "int", Doc: "port number of a module; None of a device"},
		{Name: "vendor", Type: "string", Doc: "vendor of a module; this and all below: None if unknown"},
		{Name: "part", Type: "string", Doc: "part number"},
		{Name: "serial", Type: "string", Doc: "serial number"},
		{Name: "model", Type: "string", Doc: "name of the product, else the model in the name of the node, else the device ID"},
		{Name: "psid", Type: "string", Doc: "PSID, which identifies the board"},
		{Name: "firmware", Type: "string", Doc: "version of the firmware"},
		{Name: "length_m", Type: "int", Doc: "length of the cable in m"},
		{Name: "celsius", Type: "float", Doc: "temperature in degrees Celsius"},
		{Name: "rx_dbm", Type: "float", Doc: "lowest received optical power of the lanes in dBm"},
	},
}

// InventoryMethod is fabric.inventory().
var InventoryMethod = lang.Builtin{
	Name:    "inventory",
	Returns: "list of inventory_item",
	Doc: `Returns the devices and their modules, with model, firmware and serial numbers: a list of inventory_item.
It reads registers of devices of Mellanox and NVIDIA with a LID, live or of a file: MGIR and MTMP of all, MSGI of switches, and PDDR of ports with a link. Of other devices only the model is known.`,
	Example: `
> [i.model for i in discover().inventory()[:2]]
["0xd2f0", "0xd2f0"]
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		f := c.Recv.(*topology.Fabric).Fabric
		x := inventory{c: c}
		var nodes []*fabric.Node
		var targets []starlark.Value
		for i := range f.Nodes() {
			if n := &f.Nodes()[i]; mad.IsNVIDIA(n.Info().VendorID, 0) && n.LID() != 0 {
				nodes, targets = append(nodes, n), append(targets, topology.NodeOf(n))
			}
		}
		general, err := x.read("MGIR", targets)
		if err != nil {
			return nil, err
		}
		byNode := func(name string, only func(i int, n *fabric.Node) bool) (map[*fabric.Node][]byte, error) {
			var chosen []*fabric.Node
			var targets []starlark.Value
			for i, n := range nodes {
				if only(i, n) {
					chosen, targets = append(chosen, n), append(targets, topology.NodeOf(n))
				}
			}
			read, err := x.read(name, targets)
			found := map[*fabric.Node][]byte{}
			for i, data := range read {
				found[chosen[i]] = data
			}
			return found, err
		}
		labels, err := byNode("MSGI", func(i int, n *fabric.Node) bool { return n.IsSwitch() && general[i] != nil })
		if err != nil {
			return nil, err
		}
		heat, err := byNode("MTMP", func(int, *fabric.Node) bool { return true })
		if err != nil {
			return nil, err
		}
		firmware := map[*fabric.Node][]byte{}
		var ports []*fabric.Port
		targets = nil
		for i, n := range nodes {
			firmware[n] = general[i]
			for p := range n.Ports() {
				if p.Peer() != nil {
					ports, targets = append(ports, p), append(targets, topology.PortOf(p))
				}
			}
		}
		page := starlark.Tuple{starlark.String("page_select"), starlark.String("module")}
		modules, err := x.read("PDDR", targets, page)
		if err != nil {
			return nil, err
		}
		var items []starlark.Value
		for i := range f.Nodes() {
			n := &f.Nodes()[i]
			items = append(items, deviceItem(n, firmware[n], labels[n], heat[n]))
		}
		for i, data := range modules {
			if item := moduleItem(ports[i], data); item != nil {
				items = append(items, item)
			}
		}
		return starlark.NewList(items), nil
	}),
}

// inventory reads registers.
type inventory struct{ c *lang.Call }

// read returns a register of targets; nil where a target does not have it.
func (x *inventory) read(name string, targets []starlark.Value, fields ...starlark.Tuple) ([][]byte, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	if e := topology.EnvOf(x.c.Runtime()); e.Loaded != nil && e.Stored == nil { // the file is a topology alone
		return make([][]byte, len(targets)), nil
	}
	r, err := newRegisterRequest(x.c, &regGetArgs{Name: name, Target: starlark.NewList(targets), Fields: fields})
	if err != nil {
		return nil, err
	}
	if err := r.read(r.fields); err != nil {
		return nil, err
	}
	list := make([][]byte, len(targets))
	for i, v := range r.values {
		if rec, ok := v.(*records.Record); ok {
			list[i] = rec.Data
		}
	}
	return list, nil
}

// modelInName finds the model in the name of a managed switch: MF0;leaf01:MQM9700/U1.
var modelInName = regexp.MustCompile(`^MF0;[^:]*:([\w-]+)/`)

func deviceItem(n *fabric.Node, general, label, heat []byte) starlark.Value {
	text := func(register, field string, data []byte) string {
		if data == nil {
			return ""
		}
		return strings.TrimSpace(mad.RegisterNamed(register).Field(field).Text(data))
	}
	model := text("MSGI", "product_name", label)
	if m := modelInName.FindStringSubmatch(n.Name()); model == "" && m != nil {
		model = m[1]
	} else if id := n.Info().DeviceID; model == "" && id != 0 {
		model = fmt.Sprintf("%#x", id)
	}
	version := ""
	if general != nil {
		var g mad.MGIR
		g.Decode(general)
		version = fmt.Sprintf("%d.%d.%d", g.FWMajor, g.FWMinor, g.FWSubMinor)
		if g.ExtFWMajor != 0 {
			version = fmt.Sprintf("%d.%d.%d", g.ExtFWMajor, g.ExtFWMinor, g.ExtFWSubMinor)
		}
	}
	celsius := starlark.Value(starlark.None)
	if heat != nil {
		celsius = starlark.Float(mad.RegisterNamed("MTMP").Field("temperature").Number(heat, 0))
	}
	return newItem("device", n.Name(), n, starlark.None, "", text("MSGI", "part_number", label), text("MSGI", "serial_number", label), model, text("MGIR", "psid", general), version, starlark.None, celsius, starlark.None)
}

// moduleItem returns the module in a port; nil: the port has no module, or it is unknown.
func moduleItem(p *fabric.Port, data []byte) starlark.Value {
	if data == nil {
		return nil
	}
	page := mad.RegisterNamed("PDDR").Resolve(data, 0)
	if page.Field("vendor_sn") == nil || page.Field("cable_type").Uint(data) == uint64(mad.CableTypeUnplugged) {
		return nil
	}
	text := func(field string) string { return strings.TrimSpace(page.Field(field).Text(data)) }
	monitors := mad.ModuleMonitors(page.Field("monitor_cap_mask").Uint(data))
	celsius, power := starlark.Value(starlark.None), starlark.Value(starlark.None)
	if monitors&mad.ModuleMonitorsTemperature != 0 {
		celsius = starlark.Float(page.Field("temperature").Number(data, 0))
	}
	if f := page.Field("rx_power_lane"); monitors&mad.ModuleMonitorsRxPower != 0 {
		lowest := math.Inf(1)
		for lane := range f.Count {
			lowest = min(lowest, f.Number(data, lane))
		}
		power = starlark.Float(lowest)
	}
	length := int(page.Field("cable_length").Uint(data))
	return newItem("module", topology.PortOf(p).Name(), p.Node(), starlark.MakeInt(p.Num()), text("vendor_name"), text("vendor_pn"), text("vendor_sn"), "", "", "", lang.OrNone(length > 0, starlark.MakeInt(length)), celsius, power)
}

func newItem(kind, subject string, n *fabric.Node, num starlark.Value, vendor, part, serial, model, psid, firmware string, length, celsius, power starlark.Value) starlark.Value {
	return lang.NewResult(InventoryType, starlark.String(kind), starlark.String(subject), topology.NodeOf(n), num,
		lang.TextOrNone(vendor), lang.TextOrNone(part), lang.TextOrNone(serial), lang.TextOrNone(model), lang.TextOrNone(psid), lang.TextOrNone(firmware), length, celsius, power)
}
