package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"fabsh/mad"
	"fabsh/mad/internal/erf"
)

// Anonymous is a recording without identities.
type Anonymous struct {
	Recording []byte

	ids   *identities
	leaks *leaks
}

// Node returns what replaces the description and the GUID of a node.
func (a *Anonymous) Node(description string, guid mad.GUID) (string, mad.GUID) {
	b := make([]byte, mad.AttrNodeDescription.Size)
	copy(b, description)
	a.ids.replace(kindNode, b)
	return untilNUL(b), mad.GUID(a.ids.guids[uint64(guid)])
}

// Check returns an error if a text has an identity of the recording.
func (a *Anonymous) Check(what, text string) error { return a.leaks.check(what, []byte(text)) }

// Anonymize returns a recording with its names, GUIDs, GIDs and serial numbers replaced, each
// by the same in all datagrams, so that requests still find their answers. The upper 24 bits
// of a GUID, which are the manufacturer's, and the order of GUIDs and names are kept: what
// fabsh decides by them stays the same. The memory of modules, other raw data that may have serial
// numbers, what is not decoded, such as a record of which only the beginning was received, and
// identities in unexpected places are zero. LIDs, P_Keys, models, part numbers and firmware are
// kept. The result is searched for each identity, and refused if it has one.
func Anonymize(recording []byte) (*Anonymous, error) {
	packets, err := readPackets(bytes.NewReader(recording))
	if err != nil {
		return nil, err
	}
	ids := newIdentities()
	units := unitsOf(packets)
	each := func(f func(kind identityKind, b []byte)) {
		for i := range packets {
			if g := packets[i].GRH; g != nil {
				f(kindGID, g.SGID[:])
				f(kindGID, g.DGID[:])
			}
		}
		for _, u := range units {
			u.identities(f)
		}
	}
	each(ids.collect)
	ids.assign()
	each(ids.replace)
	a := &Anonymous{ids: ids, leaks: newLeaks(ids)}
	for _, u := range units {
		data := u.data[min(len(u.data), mad.HeaderSize):]
		ids.scrub(data)
		a.leaks.blank(data)
		u.store()
	}
	var out bytes.Buffer
	w, err := erf.NewWriter(&out)
	if err != nil {
		return nil, err
	}
	for i := range packets {
		if err := w.Write(&packets[i]); err != nil {
			return nil, err
		}
	}
	a.Recording = out.Bytes()
	return a, a.leaks.checkRecording(a.Recording)
}

// readPackets reads all packets of a recording.
func readPackets(r io.Reader) (list []erf.Packet, err error) {
	file, err := erf.NewReader(r, erf.LinkNone)
	if err != nil {
		return nil, err
	}
	for {
		var p erf.Packet
		switch err := file.Read(&p); {
		case err == io.EOF:
			return list, nil
		case err != nil:
			return nil, err
		case len(p.Payload) != mad.Size:
			return nil, fmt.Errorf("packet %d: %d bytes are not a MAD", file.Number(), len(p.Payload))
		}
		p.Payload = bytes.Clone(p.Payload)
		list = append(list, p)
	}
}

// unit is a datagram, or successive segments of a transfer, whose records begin in one segment
// and end in the next.
type unit struct {
	header []byte // the MAD, or the first segment
	data   []byte // the MAD, or the header and then the data of all segments
	local  bool   // the facts of the local port
	before int    // bytes of the transfer before the first segment
	parts  []part // of a transfer
}

// part is a segment of a unit.
type part struct {
	payload []byte
	at      int // in unit.data
}

// transfer is the segments of a transfer, by number.
type transfer map[uint32][][]byte

// unitsOf returns the units of packets.
func unitsOf(packets []erf.Packet) (list []*unit) {
	type key struct {
		iface uint8
		tid   uint64
	}
	open := map[key]transfer{}
	var order []transfer
	for i := range packets {
		p := &packets[i]
		s := segmentOf(p.Payload)
		if s == nil || s.RMPPType != mad.RMPPTypeData || s.SegmentNumber == 0 {
			list = append(list, &unit{header: p.Payload, data: p.Payload, local: (p.Interface == ifaceLocal || p.Interface == ifaceSimulated) && !p.Error})
			continue
		}
		k := key{p.Interface, tidOf(p.Payload)}
		if open[k] == nil {
			open[k] = transfer{}
			order = append(order, open[k])
		}
		open[k][s.SegmentNumber] = append(open[k][s.SegmentNumber], p.Payload)
	}
	for _, t := range order {
		list = append(list, t.units()...)
	}
	return list
}

// units returns a unit for each run of successive segments. They are no longer than what was
// received, whatever the numbers of the segments are.
func (t transfer) units() (list []*unit) {
	var u *unit
	last := uint32(0)
	for _, n := range slices.Sorted(maps.Keys(t)) {
		payload := t[n][0]
		if u == nil || n != last+1 {
			u = &unit{header: payload, data: bytes.Clone(payload[:mad.SADataOffset]), before: int(n-1) * mad.SegmentData}
			list = append(list, u)
		}
		last = n
		for _, p := range t[n] { // repeated ones, too
			u.parts = append(u.parts, part{p, len(u.data)})
		}
		u.data = append(u.data, payload[mad.SADataOffset:]...)
	}
	return list
}

// store copies the data of a transfer to its segments.
func (u *unit) store() {
	for _, p := range u.parts {
		copy(p.payload[mad.SADataOffset:], u.data[p.at:])
	}
}

// identities calls f with each value of u that is an identity, a part of u.
func (u *unit) identities(f func(kind identityKind, b []byte)) {
	h := mad.ParseHeader(u.header)
	a := mad.LookupVersion(h.Class, h.ClassVersion, h.Attribute)
	if a == nil {
		a = mad.Lookup(h.Class, h.Attribute)
	}
	at := h.DataOffset()
	if a != nil {
		at = a.OffsetIn(h.ClassVersion)
	}
	data := u.data[at:]
	if h.Class.Family() == mad.ClassSubn {
		data = data[:h.Class.DataSize()]
	}
	if a == nil {
		f(kindWipe, data)
		return
	}
	switch {
	case !h.Method.IsResponse() && h.Method == mad.MethodGetTraceTable:
		a = mad.AttrPathRecord // as engines request it
	case h.Method.IsResponse() && a.Answer != nil:
		a = a.Answer
	}
	if !isTable(h) {
		u.record(a.Resolve(data, h.Modifier), data, -u.before, len(data), f)
		return
	}
	step := 8 * int(binary.BigEndian.Uint16(u.header[mad.SAPlacesIn(h.ClassVersion).AttrOffset:]))
	if step < a.Size {
		step = (a.Size + 7) / 8 * 8
	}
	for at := -(u.before % step); at < len(data); at += step {
		u.record(a.Resolve(data[max(0, at):], h.Modifier), data, at, at+step, f)
	}
}

// record calls f with the identities of the record at position start of data, and with the rest
// up to end, which is not decoded; of an incomplete record that is all.
func (u *unit) record(a *mad.Attribute, data []byte, start, end int, f func(kind identityKind, b []byte)) {
	if start < 0 || start+a.Size > len(data) {
		f(kindWipe, data[max(0, start):max(0, min(end, len(data)))])
		return
	}
	f(kindWipe, data[start+a.Size:max(start+a.Size, min(end, len(data)))])
	flat := a.Flat()
	for i := range flat {
		field := &flat[i]
		kind := kindOf(a, field)
		if u.local && kind == kindNode {
			kind = kindDevice
		}
		if kind == kindNone {
			continue
		}
		for e := range field.Count {
			at := start + (field.Offset+e*field.Stride)/8
			if end := at + field.Bits/8; end <= start+a.Size {
				f(kind, data[at:end])
			}
		}
	}
}

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

// publicTexts are the texts that identify models, not devices. All other texts are replaced.
var publicTexts = []string{
	"psid", "vendor_name", "vendor_pn", "vendor_rev", "date_code", "sensor_name", "part_number", "revision", "product_name", "status_message",
}

// wipedFields are the fields of raw data that may have names or serial numbers, with their
// attributes where other attributes have fields of this name. The other fields of raw data
// are masks of ports, tables, counters, and layouts that are not public: in these only known
// GUIDs are replaced.
var wipedFields = []string{
	"private_data", "ari", "additional_information", // of applications: addresses of IP, names
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
		case slices.Contains(publicTexts, f.Script):
			return kindNone
		case f.Script == "node_string":
			return kindNode
		}
		return kindText
	case mad.FieldTypeBytes:
		if slices.Contains(wipedFields, f.Script) || slices.Contains(wipedFields, a.Name+"."+f.Script) {
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

// isMulticast reports whether a GID is one of a group (IBA 4.1.1).
func isMulticast(gid []byte) bool { return gid[0] == 0xff }

// collect notes an identity.
func (x *identities) collect(kind identityKind, b []byte) {
	switch kind {
	case kindGUID:
		x.guids[binary.BigEndian.Uint64(b)] = 0
	case kindPrefix:
		x.prefixes[binary.BigEndian.Uint64(b)] = 0
	case kindGID:
		if low := binary.BigEndian.Uint64(b[8:]); isMulticast(b) {
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
		// Groups of IPv4 and of applications have small numbers. Groups of IPv6 have bits of
		// GUIDs (RFC 4391, 4; RFC 4291, 2.7.1).
		if x.groups[g] = g; g > 1<<32 {
			to := g
			for known(x.groups, to) {
				n++
				to = g&^0xff_ffff | n&0xff_ffff
			}
			x.groups[g] = to
		}
	}
	taken := map[string]bool{} // in lower case
	for _, m := range []map[string]string{x.nodes, x.texts} {
		for s := range m {
			taken[string(lowerASCII([]byte(s)))] = true
		}
	}
	assignTexts(x.nodes, nodeWord, taken)
	assignTexts(x.texts, textWord, taken)
}

// The words of replacements.
const (
	nodeWord = "node"
	textWord = "text"
)

func known(m map[uint64]uint64, v uint64) bool {
	_, ok := m[v]
	return ok
}

// maxGap is the largest distance between two GUIDs that is kept: the GUIDs of an adapter's ports
// follow its own.
const maxGap = 0x100

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
				last += min(g-before, maxGap)
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

// assignTexts assigns names with a number, except those that are taken: "node-0001".
func assignTexts(m map[string]string, prefix string, taken map[string]bool) {
	n := 0
	for _, s := range slices.Sorted(maps.Keys(m)) {
		for {
			n++
			name := fmt.Sprintf("%s-%04d", prefix, n)
			if !taken[name] {
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
		if isMulticast(b) {
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

// genericName are the words of descriptions that identify only a model.
var genericName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i:mellanox|nvidia|technologies|infiniband|quantum(-\d)?|connectx\S*|mt\d+|switchx(-\d)?|switch-?ib(-\d)?|infiniscale\S*|infiniscale-iv|aggregation|node|hca|switch|router|sharp|-|\s)+$`)
})

// managedSwitch is the description of a switch with a management processor: the name, then the
// model and the place in a chassis.
var managedSwitch = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^MF0;(.+?)(:(?:MQM|MSB|MSX|MTX|MCS|CS|SX|IS|QM|Q)[A-Z0-9]{1,9}(?:/[A-Z]\d+)*)$`)
})

// adapterName is what follows the name of a host.
var adapterName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(HCA-\d+|mlx[45]_\d+|ibp\w+|qib\d+|hfi1_\d+)$`)
})

// deviceName is the name of a device of a host, without the host's own.
var deviceName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(mlx[45]_\d+|ibp\w+|rocep\w+|smi\d+|vib\d+|ibsim\d*|sim|file)$`)
})

// splitName returns the part of a description that identifies a node, and the form of the
// rest; name is "" if the description identifies only a model.
func splitName(kind identityKind, s string) (name, form string) {
	escape := func(s string) string { return strings.ReplaceAll(s, "%", "%%") }
	switch {
	case s == "", genericName().MatchString(s), kind == kindDevice && deviceName().MatchString(s):
		return "", ""
	}
	if m := managedSwitch().FindStringSubmatch(s); m != nil {
		return m[1], "MF0;%s" + escape(m[2])
	}
	first, rest, _ := strings.Cut(s, " ")
	if adapterName().MatchString(rest) {
		return first, "%s " + escape(rest)
	}
	return s, "%s"
}

// untilNUL returns the text before the first NUL.
func untilNUL(b []byte) string {
	before, _, _ := bytes.Cut(b, []byte{0})
	return string(before)
}
