package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"fabsh/mad"
	"fabsh/mad/internal/erf"
)

// Anonymize returns a recording with its names, GUIDs, GIDs and serial numbers replaced, each
// by the same in all datagrams, so that requests still find their answers. The upper 24 bits
// of a GUID, which are the manufacturer's, and the order of GUIDs and names are kept: what
// fabsh decides by them stays the same. The memory of modules and other raw data that may
// have serial numbers is zero. LIDs, P_Keys, models, part numbers and firmware are kept.
func Anonymize(recording []byte) ([]byte, error) {
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
	for _, u := range units {
		ids.scrub(u.data[min(len(u.data), mad.HeaderSize):])
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
	return out.Bytes(), nil
}

// readPackets reads all packets of a recording.
func readPackets(r io.Reader) (list []erf.Packet, err error) {
	file, err := erf.NewReader(r)
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
			list = append(list, &unit{header: p.Payload, data: p.Payload, local: (p.Interface == local || p.Interface == simulated) && !p.Error})
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
		if a = mad.Lookup(h.Class, h.Attribute); a == nil {
			return
		}
	}
	data := u.data[a.OffsetIn(h.ClassVersion):]
	if h.Class.Family() == mad.ClassSubn {
		data = data[:h.Class.DataSize()]
	}
	switch {
	case !h.Method.IsResponse() && h.Method == mad.MethodGetTraceTable:
		a = mad.AttrPathRecord // as engines request it
	case h.Method.IsResponse() && a.Answer != nil:
		a = a.Answer
	}
	if !isTable(h) {
		u.fields(a.Resolve(data, h.Modifier), data, 0, f)
		return
	}
	step := 8 * int(binary.BigEndian.Uint16(u.header[mad.SAPlacesIn(h.ClassVersion).AttrOffset:]))
	if step < a.Size {
		step = (a.Size + 7) / 8 * 8
	}
	for at := -(u.before % step); at < len(data); at += step {
		u.fields(a.Resolve(data[max(0, at):], h.Modifier), data, at, f)
	}
}

// fields calls f with the identities of the record at position start of data, except
// incomplete ones.
func (u *unit) fields(a *mad.Attribute, data []byte, start int, f func(kind identityKind, b []byte)) {
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
			if end := at + field.Bits/8; at >= 0 && end <= min(len(data), start+a.Size) {
				f(kind, data[at:end])
			}
		}
	}
}
