package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"fabsh/mad"
)

// identityKind is a kind of value that identifies a device, a person or a site.
type identityKind uint8

const (
	kindNone   identityKind = iota
	kindGUID                // 8 bytes
	kindGID                 // 16 bytes: a subnet prefix and a GUID
	kindPrefix              // 8 bytes
	kindNode                // NodeDescription
	kindDevice              // a device of the host
	kindText                // another name, or a serial number
	kindWipe                // raw data that may have serial numbers
)

// public are the texts that identify models, not devices. All other texts are replaced.
var public = []string{
	"psid", "vendor_name", "vendor_pn", "vendor_rev", "date_code", "sensor_name", "part_number", "revision", "product_name", "status_message",
}

// wiped are the fields of raw data that may have names or serial numbers, with their
// attributes where other attributes have fields of this name. The other fields of raw data are masks of ports, tables, counters, and layouts
// that are not public: in these only known GUIDs are replaced.
var wiped = []string{
	"eeprom", "memory", "psu0", "psu1", "bm_parameters", "vpd_data", "CableInfo.data", "CableInfoRecord.data", "I2CAccess.content",
	"VNodeDescription.data", "VPortGUIDInfo.data", "FabricManagerInfo.data", "HostPing.data", "CommunityInfo.data", "PDUInfo.data", "PDUInfo.more",
	"BKeyInfo.more", "MlnxConfigSpace.records", "ConfigSpace.records", "ConfigSpaceMode.content", "FlashReadSector.content",
	"MCGroupRecord.data", "NoticeRecord.data", "SAResponse.data", "RangeRecord.data", "HierarchyInfoRecord.data",
}

// kindOf returns the kind of the values of field f of attribute a.
func kindOf(a *mad.Attribute, f *mad.Field) identityKind {
	switch f.Type {
	case mad.FieldTypeGUID:
		return kindGUID
	case mad.FieldTypeGID:
		return kindGID
	case mad.FieldTypeText:
		switch {
		case slices.Contains(public, f.Script):
			return kindNone
		case f.Script == "node_string":
			return kindNode
		}
		return kindText
	case mad.FieldTypeBytes:
		if slices.Contains(wiped, f.Script) || slices.Contains(wiped, a.Name+"."+f.Script) {
			return kindWipe
		}
		return kindNone
	}
	switch f.Script {
	case "gid_prefix", "subnet_prefix":
		return kindPrefix
	case "node_id", "chassis_id", "entry_port_id", "exit_port_id": // of TraceRecord
		if f.Bits == 64 {
			return kindGUID
		}
	case "service_data8", "service_data16", "service_data32", "service_data64":
		return kindWipe
	}
	return kindNone
}

// identities are the identities of a recording, and their replacements.
type identities struct {
	guids    map[uint64]uint64
	prefixes map[uint64]uint64
	groups   map[uint64]uint64 // the lower halves of multicast GIDs
	nodes    map[string]string // the first words of node names
	texts    map[string]string
}

func newIdentities() *identities {
	return &identities{guids: map[uint64]uint64{}, prefixes: map[uint64]uint64{}, groups: map[uint64]uint64{}, nodes: map[string]string{}, texts: map[string]string{}}
}

// multicast reports whether a GID is one of a group (IBA 4.1.1).
func multicast(gid []byte) bool { return gid[0] == 0xff }

// collect notes an identity.
func (x *identities) collect(kind identityKind, b []byte) {
	switch kind {
	case kindGUID:
		x.guids[binary.BigEndian.Uint64(b)] = 0
	case kindPrefix:
		x.prefixes[binary.BigEndian.Uint64(b)] = 0
	case kindGID:
		if low := binary.BigEndian.Uint64(b[8:]); multicast(b) {
			x.groups[low] = 0
		} else {
			x.prefixes[binary.BigEndian.Uint64(b)] = 0
			x.guids[low] = 0
		}
	case kindNode, kindDevice:
		if name, _ := splitName(kind, untilNUL(b)); name != "" {
			x.nodes[name] = ""
		}
	case kindText:
		if s := untilNUL(b); s != "" {
			x.texts[s] = ""
		}
	}
}

// defaultPrefix is the subnet prefix of a subnet without its own (IBA 4.1.1).
const defaultPrefix = 0xfe80_0000_0000_0000

// assign assigns the replacements, in the order of the identities.
func (x *identities) assign() {
	x.assignGUIDs()
	n := uint64(0)
	for _, p := range slices.Sorted(maps.Keys(x.prefixes)) {
		if x.prefixes[p] = p; p != 0 && p != defaultPrefix {
			for n++; known(x.prefixes, 0xfec0<<48|n); n++ {
			}
			x.prefixes[p] = 0xfec0<<48 | n
		}
	}
	n = 0
	for _, g := range slices.Sorted(maps.Keys(x.groups)) {
		// Groups of IPv4 and of applications have small numbers. Those of IPv6 have bits of
		// GUIDs (RFC 4391, 4; RFC 4291, 2.7.1).
		if x.groups[g] = g; g > 1<<32 {
			n++
			x.groups[g] = g&^0xff_ffff | n&0xff_ffff
		}
	}
	assignTexts(x.nodes, "node")
	assignTexts(x.texts, "text")
}

func known(m map[uint64]uint64, v uint64) bool {
	_, ok := m[v]
	return ok
}

// gap is the largest distance between two GUIDs that is kept: those of the ports of an adapter
// follow its own.
const gap = 0x100

// assignGUIDs assigns GUIDs of the same manufacturers, in the same order, none of which is in
// the recording.
func (x *identities) assignGUIDs() {
	const low = 1<<40 - 1
	list := slices.Sorted(maps.Keys(x.guids))
	for base := uint64(0xa0_0000_0000); ; base = (base + 0x01_0000_1000) & low {
		var before, last uint64
		free := true
		for _, g := range list {
			if g == 0 || g == 1<<64-1 {
				x.guids[g] = g
				continue
			}
			if last == 0 || g>>40 != before>>40 {
				last = g&^low | base
			} else {
				last += min(g-before, gap)
			}
			before = g
			x.guids[g] = last
			free = free && !known(x.guids, last)
		}
		if free {
			return
		}
	}
}

// assignTexts assigns names with a number: "node-0001".
func assignTexts(m map[string]string, prefix string) {
	n := 0
	for _, s := range slices.Sorted(maps.Keys(m)) {
		for {
			n++
			name := fmt.Sprintf("%s-%04d", prefix, n)
			if _, taken := m[name]; !taken {
				m[s] = name
				break
			}
		}
	}
}

// replace replaces an identity.
func (x *identities) replace(kind identityKind, b []byte) {
	put := func(b []byte, m map[uint64]uint64) { binary.BigEndian.PutUint64(b, m[binary.BigEndian.Uint64(b)]) }
	text := func(s string) {
		clear(b)
		copy(b, s)
	}
	switch kind {
	case kindGUID:
		put(b, x.guids)
	case kindPrefix:
		put(b, x.prefixes)
	case kindGID:
		if multicast(b) {
			put(b[8:], x.groups)
			return
		}
		put(b, x.prefixes)
		put(b[8:], x.guids)
	case kindNode, kindDevice:
		if name, form := splitName(kind, untilNUL(b)); name != "" {
			text(fmt.Sprintf(form, x.nodes[name]))
		}
	case kindText:
		if s := untilNUL(b); s != "" {
			text(x.texts[s])
		}
	case kindWipe:
		clear(b)
	}
}

// scrub replaces the GUIDs in raw data, in both orders of bytes. Small numbers, without a
// manufacturer, are not recognized.
func (x *identities) scrub(b []byte) {
	for i := 0; i+8 <= len(b); i++ {
		for _, order := range []binary.ByteOrder{binary.BigEndian, binary.LittleEndian} {
			g := order.Uint64(b[i:])
			if g>>40 == 0 || g == 1<<64-1 {
				continue
			}
			if to, ok := x.guids[g]; ok { // never a replacement: these are not in the recording
				order.PutUint64(b[i:], to)
			}
		}
	}
}

// generic are the words of descriptions that identify only a model.
var generic = regexp.MustCompile(`^(?i:mellanox|nvidia|technologies|infiniband|quantum(-\d)?|connectx\S*|mt\d+|switchx(-\d)?|switch-?ib(-\d)?|infiniscale\S*|infiniscale-iv|aggregation|node|hca|switch|router|sharp|-|\s)+$`)

// managed is the description of a switch with a management processor: the name, then the
// model and the place in a chassis.
var managed = regexp.MustCompile(`^MF0;(.+?)(:(?:MQM|MSB|MSX|MTX|MCS|CS|SX|IS|QM|Q)[A-Z0-9]{1,9}(?:/[A-Z]\d+)*)$`)

// adapter is what follows the name of a host.
var adapter = regexp.MustCompile(`^(HCA-\d+|mlx[45]_\d+|ibp\w+|qib\d+|hfi1_\d+)$`)

// device is the name of a device of a host, without the host's own.
var device = regexp.MustCompile(`^(mlx[45]_\d+|ibp\w+|rocep\w+|smi\d+|vib\d+|ibsim\d*|sim|file)$`)

// splitName returns the part of a description that identifies a node, and the form of the
// rest; name is "" if the description identifies only a model.
func splitName(kind identityKind, s string) (name, form string) {
	escape := func(s string) string { return strings.ReplaceAll(s, "%", "%%") }
	switch {
	case s == "", generic.MatchString(s), kind == kindDevice && device.MatchString(s):
		return "", ""
	}
	if m := managed.FindStringSubmatch(s); m != nil {
		return m[1], "MF0;%s" + escape(m[2])
	}
	first, rest, _ := strings.Cut(s, " ")
	if adapter.MatchString(rest) {
		return first, "%s " + escape(rest)
	}
	return s, "%s"
}

// untilNUL returns the text before the first NUL.
func untilNUL(b []byte) string {
	before, _, _ := bytes.Cut(b, []byte{0})
	return string(before)
}
