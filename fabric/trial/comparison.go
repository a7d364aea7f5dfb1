package trial

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fabsh/mad"
)

// Comparison is the comparison of an answer with what another source reports.
type Comparison struct {
	Device, Source, Attribute, Place string

	Agreed      []string // names of fields
	Differed    []Difference
	NotCompared []string // fields that one of both does not have, or words that fabsh does not know
}

// Difference is a field with different values. Of names, GUIDs and serial numbers it does not
// have the values.
type Difference struct{ Field, Here, There string }

// Foreign is what another source reports of an attribute of a device, field by field.
type Foreign struct {
	Source   string // "smpquery"
	Attr     *mad.Attribute
	Modifier uint32
	Place    string
	Fields   map[string]string // by the field's name in scripts
	Data     []byte            // the whole attribute; nil: Fields
}

// compare compares x with the answer of d.
func (x *Foreign) compare(d *Device) *Comparison {
	c := &Comparison{Device: d.Name, Source: x.Source, Attribute: x.Attr.Name, Place: x.Place}
	data := d.Answer(x.Attr, x.Modifier)
	if x.Data != nil && data != nil {
		c.whole(x.Attr, data, x.Data)
		return c
	}
	var names []string
	for name := range x.Fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f := x.Attr.Field(name)
		if f == nil || data == nil || f.Count != 1 || f.Key {
			c.NotCompared = append(c.NotCompared, name)
			continue
		}
		c.text(f, data, x.Fields[name])
	}
	return c
}

// text compares field f of data with a value in the spelling of another program.
func (c *Comparison) text(f *mad.Field, data []byte, there string) {
	here := show(f, data)
	number, err := strconv.ParseUint(there, 0, 64)
	switch {
	case f.Type == mad.FieldTypeText:
		c.add(f, here, there, here == there)
	case plain(here) == plain(there):
		c.add(f, here, there, true)
	case f.Words != nil && areWords(f.Words, there):
		c.add(f, here, plain(there), false)
	case err == nil && f.Bits <= 64:
		c.add(f, fmt.Sprint(f.Uint(data)), fmt.Sprint(number), f.Uint(data) == number)
	default:
		c.NotCompared = append(c.NotCompared, f.Script)
	}
}

// plain is a word without the differences between spellings.
func plain(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", " ", "", "-", "").Replace(s))
}

// areWords reports whether s is one of the words of an enumeration, or several of a mask.
func areWords(w *mad.Words, s string) bool {
	for part := range strings.SplitSeq(s, "+") {
		if !slices.ContainsFunc(wordsOf(w), func(word string) bool { return plain(word) == plain(part) }) {
			return false
		}
	}
	return true
}

func wordsOf(w *mad.Words) (list []string) {
	for _, word := range w.Word() {
		list = append(list, word)
	}
	return list
}

// add adds a compared field.
func (c *Comparison) add(f *mad.Field, here, there string, same bool) {
	switch {
	case same:
		c.Agreed = append(c.Agreed, f.Script)
	case isIdentity(f):
		c.Differed = append(c.Differed, Difference{Field: f.Script})
	default:
		c.Differed = append(c.Differed, Difference{f.Script, here, there})
	}
}

// isIdentity reports whether the values of a field identify a device or a site.
func isIdentity(f *mad.Field) bool {
	switch f.Type {
	case mad.FieldTypeGUID, mad.FieldTypeGID, mad.FieldTypeText, mad.FieldTypeBytes:
		return true
	}
	return strings.Contains(f.Script, "prefix")
}

// show returns the value of a field as text.
func show(f *mad.Field, data []byte) string {
	switch {
	case f.Type == mad.FieldTypeText:
		return f.Text(data)
	case f.Bits > 64 || f.Count > 1:
		return fmt.Sprintf("%x", f.Bytes(data))
	case f.Type == mad.FieldTypeEnum && f.Words.Word()[f.Uint(data)] != "":
		return f.Words.Word()[f.Uint(data)]
	case f.Type == mad.FieldTypeMask && f.Uint(data) != 0:
		var words []string
		for bit := range f.Bits {
			if v := uint64(1) << bit; f.Uint(data)&v != 0 {
				words = append(words, cmp.Or(f.Words.Word()[v], fmt.Sprintf("%#x", v)))
			}
		}
		return strings.Join(words, "+")
	}
	return fmt.Sprint(f.Uint(data))
}

// volatile are fields that differ between two reads of a device that works, or by the port
// that the request came in through.
var volatile = []string{"local_port_num", "m_key_violations", "p_key_violations", "q_key_violations", "mkey_violations", "pkey_violations", "qkey_violations", "port_state_change", "m_key_lease_period"}

// compareRecord compares the attributes in a record of the subnet administrator with the
// answers of device d.
func (t *trial) compareRecord(d *Device, record *mad.Attribute, data []byte) (list []*Comparison) {
	for i := range record.Fields {
		f := &record.Fields[i]
		if f.Type != mad.FieldTypeStruct || f.Count != 1 || f.Struct.Class != mad.ClassSubn {
			continue
		}
		modifier, place := modifierOf(d, record, f.Struct, data)
		own := d.Answer(f.Struct, modifier)
		if own == nil {
			continue
		}
		c := &Comparison{Device: d.Name, Source: record.Name, Attribute: f.Struct.Name, Place: place}
		c.whole(f.Struct, own, data[f.Offset/8:][:f.Struct.Size])
		list = append(list, c)
	}
	return list
}

// whole compares all fields of an attribute.
func (c *Comparison) whole(a *mad.Attribute, here, there []byte) {
	flat := a.Flat()
	for i := range flat {
		f := &flat[i]
		if f.Key || slices.Contains(volatile, f.Script) {
			c.NotCompared = append(c.NotCompared, f.Script)
			continue
		}
		if e := firstDifferent(f, here, there); e >= 0 && f.Count > 1 && !isIdentity(f) {
			c.Differed = append(c.Differed, Difference{fmt.Sprintf("%s[%d]", f.Script, e), fmt.Sprint(f.UintAt(here, e)), fmt.Sprint(f.UintAt(there, e))})
		} else {
			c.add(f, show(f, here), show(f, there), e < 0)
		}
	}
}

// firstDifferent returns the first element of a field whose values in a and b differ, or -1.
func firstDifferent(f *mad.Field, a, b []byte) int {
	for e := range f.Count {
		g := f.At(e)
		if f.Bits > 64 && !bytes.Equal(g.Bytes(a), g.Bytes(b)) || f.Bits <= 64 && g.Uint(a) != g.Uint(b) {
			return e
		}
	}
	return -1
}

// modifierOf returns the modifier of the attribute in a record, by the components that
// identify the record.
func modifierOf(d *Device, record, a *mad.Attribute, data []byte) (modifier uint32, place string) {
	names := map[string][]string{
		"port": {"port_num", "output_port_num"}, "out_port": {"output_port_num"}, "in_port": {"input_port_num"},
		"block": {"block_num"}, "position": {"position"},
	}
	for _, part := range a.Modifier {
		for _, name := range names[part.Name] {
			f := record.Field(name)
			if f == nil {
				continue
			}
			v := f.Uint(data)
			if !d.Node.IsSwitch() && slices.Equal(d.values(a, part.Name), []int{0}) {
				v = 0 // the device ignores it
			}
			modifier |= uint32(v) << part.Shift
			place = strings.TrimPrefix(fmt.Sprintf("%s, %s %d", place, strings.ReplaceAll(part.Name, "_", " "), v), ", ")
			break
		}
	}
	return modifier, place
}

// labels are the names of libibmad for fields (rdma-core libibmad/fields.c).
var labels = map[*mad.Attribute]map[string]string{
	mad.AttrNodeInfo: {
		"BaseVers": "base_version", "ClassVers": "class_version", "NodeType": "node_type", "NumPorts": "num_ports", "SystemGuid": "system_image_guid",
		"Guid": "node_guid", "PartCap": "partition_cap", "DevId": "device_id", "Revision": "revision", "VendorId": "vendor_id",
	},
	mad.AttrNodeDescription: {"Node Description": "node_string"},
	mad.AttrPortInfo: {
		"GidPrefix": "gid_prefix", "Lid": "lid", "SMLid": "master_sm_lid", "CapMask": "capability_mask", "DiagCode": "diag_code",
		"LinkWidthEnabled": "link_width_enabled", "LinkWidthSupported": "link_width_supported", "LinkWidthActive": "link_width_active",
		"LinkSpeedSupported": "link_speed_supported", "LinkState": "port_state", "PhysLinkState": "port_physical_state", "LinkDownDefState": "link_down_default_state",
		"ProtectBits": "m_key_protect_bits", "LMC": "lmc", "LinkSpeedActive": "link_speed_active", "LinkSpeedEnabled": "link_speed_enabled",
		"NeighborMTU": "neighbor_mtu", "SMSL": "master_sm_sl", "VLCap": "vl_cap", "InitType": "init_type", "VLHighLimit": "vl_high_limit",
		"VLArbHighCap": "vl_arbitration_high_cap", "VLArbLowCap": "vl_arbitration_low_cap", "InitReply": "init_type_reply", "MtuCap": "mtu_cap",
		"VLStallCount": "vl_stall_count", "HoqLife": "hoq_life", "OperVLs": "operational_vls", "PartEnforceInb": "partition_enforcement_inbound",
		"PartEnforceOutb": "partition_enforcement_outbound", "FilterRawInb": "filter_raw_inbound", "FilterRawOutb": "filter_raw_outbound",
		"GuidCap": "guid_cap", "ClientReregister": "client_reregister", "McastPkeyTrapSuppressionEnabled": "multicast_p_key_trap_suppression_enabled",
		"SubnetTimeout": "subnet_time_out", "RespTimeVal": "resp_time_value", "LocalPhysErr": "local_phy_errors", "OverrunErr": "overrun_errors",
		"MaxCreditHint": "max_credit_hint", "RoundTrip": "link_round_trip_latency", "CapabilityMask2": "capability_mask2",
		"LinkSpeedExtActive": "link_speed_ext_active", "LinkSpeedExtSupported": "link_speed_ext_supported", "LinkSpeedExtEnabled": "link_speed_ext_enabled",
	},
	mad.AttrSwitchInfo: {
		"LinearFdbCap": "linear_fdb_cap", "RandomFdbCap": "random_fdb_cap", "McastFdbCap": "multicast_fdb_cap", "LinearFdbTop": "linear_fdb_top",
		"DefPort": "default_port", "DefMcastPrimPort": "default_multicast_primary_port", "DefMcastNotPrimPort": "default_multicast_not_primary_port",
		"LifeTime": "life_time_value", "OptSLtoVLMapping": "optimized_sl_to_vl_mapping_programming", "LidsPerPort": "lids_per_port",
		"PartEnforceCap": "partition_enforcement_cap", "InboundPartEnf": "inbound_enforcement_cap", "OutboundPartEnf": "outbound_enforcement_cap",
		"FilterRawInbound": "filter_raw_packet_inbound_cap", "FilterRawOutbound": "filter_raw_packet_outbound_cap", "EnhancedPort0": "enhanced_port0",
		"MulticastFDBTop": "multicast_fdb_top",
	},
	mad.LayoutMGIR: {"FW Version": "", "PSID": "psid"},
}

// maxLabels bounds the fields of an output.
const maxLabels = 1000

// Fields returns the fields of attribute a in the output of smpquery (or, of the register
// MGIR, of mstflint query) by their names in scripts. It ignores other lines.
func Fields(a *mad.Attribute, output string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(output) {
		label, value, ok := strings.Cut(strings.TrimRight(line, "\n"), ":")
		if a != mad.AttrNodeDescription && a != mad.LayoutMGIR {
			value = strings.TrimLeft(value, ".")
		} else {
			value = strings.TrimSpace(strings.TrimLeft(value, "."))
		}
		name, known := labels[a][label]
		switch {
		case !ok || !known || len(fields) > maxLabels:
		case label == "FW Version":
			for i, part := range strings.SplitN(value, ".", 3) {
				fields[[]string{"ext_fw_major", "ext_fw_minor", "ext_fw_sub_minor"}[i]] = decimal(part)
			}
		default:
			fields[name] = spelling(value)
		}
	}
	return fields
}

// decimal is a number without leading zeros, which would make it octal.
func decimal(s string) string {
	if t := strings.TrimLeft(s, "0"); t != "" {
		return t
	}
	return "0"
}

// spellings are the words of libibmad (libibmad/dump.c) that differ from fabsh's words.
var spellings = map[string]string{
	"Channel Adapter": "ca", "2.5 Gbps": "sdr", "5.0 Gbps": "ddr", "10.0 Gbps": "qdr", "14.0625 Gbps": "fdr", "25.78125 Gbps": "edr",
	"53.125 Gbps": "hdr", "106.25 Gbps": "ndr", "No Extended Speed": "none", "Extended speed": "extended", "Initialize": "initialize",
	"VL0": "vl0", "VL0-1": "vl0_1", "VL0-3": "vl0_3", "VL0-7": "vl0_7", "VL0-14": "vl0_14",
}

// spelling returns the words of a value in the spelling here, with "+" between several.
func spelling(value string) string {
	words := strings.Split(value, " or ")
	for i, w := range words {
		if s, ok := spellings[w]; ok {
			words[i] = s
		}
	}
	return strings.Join(words, "+")
}
