package adaptive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"fabsh/mad"
)

// The encoding of a Switch: a byte with the version, one with flags, SLs and HBFSLs of two
// bytes, a byte with the transports, and Unknown. Then the rows of Private, 16 bytes each;
// the lists of groups; and the tables. Counts are unsigned varints (LEB128), texts and lists
// follow their length.
//
// Groups are the sub-groups of each, the different sets but the empty one as masks of 32
// bytes, and the place of the set of each sub-group. A table is 0 if it is missing; else one
// more than the number of its groups, its LIDs, their static ports, and runs of equal state
// and group: the length, and the group times four plus the state.
//
// The encoding of a Switch is unique.
const encodingVersion = 1

const (
	encodedEnabled = 1 << iota
	encodedHBF
	encodedWeighted
	encodedRecovery
	encodedAssumed
	encodedFlags
)

// maxUnknown limits the text of Switch.Unknown.
const maxUnknown = 1 << 10

// maxTables is the most private LFTs: NumPLFTs has a byte.
const maxTables = 256

// maxLIDs is the number of unicast LIDs, with 0.
const maxLIDs = 0xC000

// Append appends the encoding of s to b.
func (s *Switch) Append(b []byte) []byte {
	flags := byte(0)
	for i, set := range []bool{s.Enabled, s.HBF, s.Weighted, s.FastRecovery, s.Assumed} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, encodingVersion, flags)
	b = binary.BigEndian.AppendUint16(b, uint16(s.SLs))
	b = binary.BigEndian.AppendUint16(b, uint16(s.HBFSLs))
	b = append(b, byte(s.Static))
	unknown := s.Unknown[:min(len(s.Unknown), maxUnknown)]
	b = append(appendCount(b, len(unknown)), unknown...)
	b = appendCount(b, len(s.Private))
	for _, row := range s.Private {
		b = append(b, row[:]...)
	}
	var lists []*Groups
	for _, t := range s.Tables {
		if t != nil && t.Groups != nil && !slices.Contains(lists, t.Groups) {
			lists = append(lists, t.Groups)
		}
	}
	b = appendCount(b, len(lists))
	for _, g := range lists {
		b = g.append(b)
	}
	b = appendCount(b, len(s.Tables))
	for _, t := range s.Tables {
		if t == nil {
			b = append(b, 0)
			continue
		}
		// Without groups: one more than the last list.
		at := slices.Index(lists, t.Groups)
		if at < 0 {
			at = len(lists)
		}
		b = t.append(appendCount(b, at+1))
	}
	return b
}

func appendCount(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

// append writes the sets in the order of their first use, whatever was set before.
func (g *Groups) append(b []byte) []byte {
	place := make([]int, len(g.sets))
	var used []Ports
	for _, i := range g.index {
		if i > 0 && place[i] == 0 {
			used = append(used, g.sets[i])
			place[i] = len(used)
		}
	}
	b = append(b, byte(g.subGroups))
	b = appendCount(b, len(used))
	for _, set := range used {
		mask := set.Mask()
		b = append(b, mask[:]...)
	}
	b = appendCount(b, g.Len())
	for _, i := range g.index {
		b = appendCount(b, place[i])
	}
	return b
}

func (t *Table) append(b []byte) []byte {
	b = appendCount(b, len(t.groups))
	b = append(b, t.ports...)
	for from := 0; from < len(t.groups); {
		state := t.Entry(mad.LID(from)).State
		end := from + 1
		for end < len(t.groups) && t.groups[end] == t.groups[from] && t.Entry(mad.LID(end)).State == state {
			end++
		}
		b = appendCount(appendCount(b, end-from), int(t.groups[from])<<2|int(state))
		from = end
	}
	return b
}

// Decode reads a Switch that Append has written, and returns what follows it. It accepts any
// bytes, and takes memory of no more than a few times their number.
func Decode(b []byte) (*Switch, []byte, error) {
	d := decoder{rest: b}
	s := d.readSwitch()
	if d.err != nil {
		return nil, nil, fmt.Errorf("adaptive routing of a switch, byte %d: %w", len(b)-len(d.rest), d.err)
	}
	return s, d.rest, nil
}

// decoder reads from rest. After an error its methods return 0.
type decoder struct {
	rest []byte
	err  error
}

var errTruncated = errors.New("truncated")

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// bytes are the next n bytes, memory of d.
func (d *decoder) bytes(n int) []byte {
	if d.err == nil && n > len(d.rest) {
		d.fail(errTruncated)
	}
	if d.err != nil {
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uint16() uint16 {
	if b := d.bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// count is a number up to limit.
func (d *decoder) count(what string, limit int) int {
	if d.err != nil {
		return 0
	}
	n, size := binary.Uvarint(d.rest)
	switch {
	case size == 0:
		d.fail(errTruncated)
	case size < 0 || n > uint64(limit):
		d.fail(fmt.Errorf("%s: more than %d", what, limit))
	default:
		d.rest = d.rest[size:]
		return int(n)
	}
	return 0
}

func (d *decoder) readSwitch() *Switch {
	if version := d.byte(); d.err == nil && version != encodingVersion {
		d.fail(fmt.Errorf("encoding version %d is unsupported; supported: %d", version, encodingVersion))
	}
	flags := d.byte()
	if flags >= encodedFlags {
		d.fail(fmt.Errorf("unknown flags %#x", flags))
	}
	s := &Switch{
		Enabled:      flags&encodedEnabled != 0,
		HBF:          flags&encodedHBF != 0,
		Weighted:     flags&encodedWeighted != 0,
		FastRecovery: flags&encodedRecovery != 0,
		Assumed:      flags&encodedAssumed != 0,
	}
	s.SLs, s.HBFSLs = SLs(d.uint16()), SLs(d.uint16())
	s.Static = Transports(d.byte())
	s.Unknown = string(d.bytes(d.count("text", maxUnknown)))
	for range d.count("input ports", 256) {
		row := d.bytes(16)
		if row == nil {
			return nil
		}
		s.Private = append(s.Private, [16]uint8(row))
	}
	lists := make([]*Groups, 0, 1)
	for range d.count("lists of groups", maxTables) {
		lists = append(lists, d.readGroups())
		if d.err != nil {
			return nil
		}
	}
	for range d.count("private LFTs", maxTables) {
		at := d.count("list of groups", len(lists)+1)
		if d.err != nil {
			return nil
		}
		if at == 0 {
			s.Tables = append(s.Tables, nil)
			continue
		}
		var g *Groups
		if at <= len(lists) {
			g = lists[at-1]
		}
		s.Tables = append(s.Tables, d.readTable(g))
	}
	return s
}

func (d *decoder) readGroups() *Groups {
	sub := int(d.byte())
	if d.err == nil && (sub == 0 || sub > MaxSubGroups) {
		d.fail(fmt.Errorf("%d sub-groups: must be from 1 to %d", sub, MaxSubGroups))
	}
	masks := d.bytes(d.count("port sets", MaxGroups*MaxSubGroups) * 32)
	n := d.count("groups", MaxGroups) * sub
	if d.err == nil && n > len(d.rest) { // each takes a byte
		d.fail(errTruncated)
	}
	if d.err != nil {
		return nil
	}
	g := NewGroups(sub)
	for mask := range slices.Chunk(masks, 32) {
		set := PortsOfMask([32]byte(mask))
		if at := len(g.sets); int(g.place(set)) != at {
			d.fail(errors.New("a port set occurs twice, or is empty"))
			return nil
		}
	}
	g.at = nil // of use for changes alone
	g.index = make([]uint16, n)
	for i := range g.index {
		g.index[i] = uint16(d.count("port set", len(g.sets)-1))
	}
	return g
}

func (d *decoder) readTable(g *Groups) *Table {
	n := d.count("LIDs", maxLIDs)
	if d.err == nil && n == 0 {
		d.fail(errors.New("a table without LIDs"))
	}
	ports := d.bytes(n)
	if d.err != nil {
		return nil
	}
	t := NewTable(mad.LID(n-1), g)
	for lid := 0; lid < n; {
		run := d.count("run of LIDs", n-lid)
		what := d.count("group", 1<<18-1)
		if d.err == nil && run == 0 {
			d.fail(errors.New("an empty run of LIDs"))
		}
		if d.err != nil {
			return nil
		}
		for ; run > 0; run-- {
			t.Set(mad.LID(lid), Entry{State: State(what & 3), Group: uint16(what >> 2), Port: ports[lid]})
			lid++
		}
	}
	return t
}
