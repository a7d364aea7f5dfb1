package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
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

// unit is a datagram, or all segments of a transfer, whose records begin in one segment and
// end in the next.
type unit struct {
	header []byte // the MAD, or its first segment
	data   []byte // the MAD, or the header and then the data of all segments
	local  bool   // the facts of the local port
	parts  []part // of a transfer
}

// part is a segment of a unit.
type part struct {
	payload []byte
	at      int // in unit.data
}

// unitsOf returns the units of packets.
func unitsOf(packets []erf.Packet) (list []*unit) {
	type transfer struct {
		iface uint8
		tid   uint64
	}
	open := map[transfer]*unit{}
	for i := range packets {
		p := &packets[i]
		s := segmentOf(p.Payload)
		if s == nil || s.RMPPType != mad.RMPPTypeData || s.SegmentNumber == 0 || s.SegmentNumber > maxSegments {
			list = append(list, &unit{header: p.Payload, data: p.Payload, local: (p.Interface == local || p.Interface == simulated) && !p.Error})
			continue
		}
		key := transfer{p.Interface, tidOf(p.Payload)}
		u := open[key]
		if u == nil {
			u = &unit{header: p.Payload, data: bytes.Clone(p.Payload[:mad.SADataOffset])}
			open[key] = u
			list = append(list, u)
		}
		u.add(p.Payload, int(s.SegmentNumber))
	}
	return list
}

// maxSegments is the length of the longest transfer that the engine accepts, in segments.
const maxSegments = 64 << 20 / mad.SegmentData

// add adds segment n of a transfer.
func (u *unit) add(payload []byte, n int) {
	at := mad.SADataOffset + (n-1)*mad.SegmentData
	if missing := at + mad.SegmentData - len(u.data); missing > 0 {
		u.data = append(u.data, make([]byte, missing)...)
	}
	copy(u.data[at:], payload[mad.SADataOffset:])
	u.parts = append(u.parts, part{payload, at})
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
		a = a.Resolve(data, h.Modifier)
		u.fields(a, data, f)
		return
	}
	step := 8 * int(binary.BigEndian.Uint16(u.header[mad.SAPlacesIn(h.ClassVersion).AttrOffset:]))
	if step < a.Size {
		step = (a.Size + 7) / 8 * 8
	}
	for record := range slices.Chunk(data, max(step, 1)) {
		u.fields(a.Resolve(record, h.Modifier), record, f)
	}
}

// fields calls f with the identities in data, except incomplete ones.
func (u *unit) fields(a *mad.Attribute, data []byte, f func(kind identityKind, b []byte)) {
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
			at := (field.Offset + e*field.Stride) / 8
			if end := at + field.Bits/8; end <= len(data) {
				f(kind, data[at:end])
			}
		}
	}
}
