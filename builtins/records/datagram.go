package records

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/mad"
)

// Datagram returns MAD m as a value that can be shown: the request or answer, the
// fields of its header, its other parts, its errors, and the bytes without a layout. Its
// text explains it. notes are errors of the headers before it.
func Datagram(m []byte, notes ...string) starlark.Value { return &datagramValue{m: m, notes: notes} }

// Packet is what a capture states about a datagram.
type Packet struct {
	Number     int       // from 1
	Time       time.Time // zero: unknown
	SLID, DLID uint16
	Direction  string // sent, received; "": unknown
}

// CapturedDatagram is Datagram for a MAD of a capture.
func CapturedDatagram(p Packet, m []byte, notes ...string) starlark.Value {
	return &datagramValue{m: m, notes: notes, packet: &p}
}

type datagramValue struct {
	m      []byte
	notes  []string
	packet *Packet // nil: not of a capture
}

var _ lang.Factual = (*datagramValue)(nil)

func (v *datagramValue) Type() string          { return "datagram" }
func (v *datagramValue) Freeze()               {}
func (v *datagramValue) Truth() starlark.Bool  { return true }
func (v *datagramValue) Hash() (uint32, error) { return lang.HashBytes(v.m), nil }
func (v *datagramValue) Schema() string        { return "datagram/1" }
func (v *datagramValue) Display() string       { return v.packet.line() + datagramText(v.m, v.notes) }

// String returns "" if the header is incomplete.
func (v *datagramValue) String() string {
	if len(v.m) < mad.HeaderSize {
		return ""
	}
	return headline(v.m)
}

func (v *datagramValue) Facts() []lang.Fact {
	layouts := mad.Dissect(v.m)
	var out []lang.Fact
	if v.packet != nil {
		out = v.packet.facts()
	}
	out = append(out, lang.Fact{Name: "summary", Value: starlark.String(v.String())})
	if len(v.m) >= mad.HeaderSize {
		h := mad.ParseHeader(v.m)
		out = append(out, lang.Fact{Name: "attribute", Value: starlark.String(attributeName(&h))})
	}
	var parts []starlark.Value
	for i, p := range layouts {
		if isUndefined(v.m, p) {
			continue
		}
		x := &partValue{New(p.Layout, p.Data), p, queryMask(v.m, p)}
		if i == 0 { // the header
			out = append(out, x.Facts()...)
			continue
		}
		parts = append(parts, x)
	}
	return append(out,
		lang.Fact{Name: "parts", Value: starlark.NewList(parts)},
		lang.Fact{Name: "problems", Value: lang.Texts(append(slices.Clone(v.notes), mad.Validate(v.m)...))},
		lang.Fact{Name: "without_layout", Value: uncoveredRanges(v.m, coveredBytes(v.m, layouts))})
}

// line returns the line above the text of a datagram; "" without a packet.
func (p *Packet) line() string {
	if p == nil {
		return ""
	}
	line := fmt.Sprintf("packet %d", p.Number)
	if !p.Time.IsZero() {
		line += p.Time.UTC().Format(", 2006-01-02 15:04:05.000000 UTC")
	}
	line += fmt.Sprintf(", LID %d to LID %d", p.SLID, p.DLID)
	if p.Direction != "" {
		line += ", " + p.Direction
	}
	return line + "\n"
}

func (p *Packet) facts() []lang.Fact {
	at, direction := starlark.Value(starlark.None), starlark.Value(starlark.None)
	if !p.Time.IsZero() {
		at = starlark.String(p.Time.UTC().Format(time.RFC3339Nano))
	}
	if p.Direction != "" {
		direction = starlark.String(p.Direction)
	}
	return []lang.Fact{{Name: "packet", Value: starlark.MakeInt(p.Number)}, {Name: "time", Value: at},
		{Name: "slid", Value: starlark.MakeInt(int(p.SLID))}, {Name: "dlid", Value: starlark.MakeInt(int(p.DLID))}, {Name: "direction", Value: direction}}
}

// partValue is a part of a datagram: a record without the fields beyond the end of the
// datagram, and without components that do not count.
type partValue struct {
	*Record
	part mad.Part
	mask uint64
}

func (p *partValue) Facts() []lang.Fact {
	var out []lang.Fact
	for _, x := range p.Record.Facts() {
		name := x.Name
		if x.Code {
			name = strings.TrimSuffix(name, "_code")
		}
		if isShown(p.part, p.part.Layout.Field(name), p.mask) {
			out = append(out, x)
		}
	}
	return out
}

// uncoveredRanges returns the ranges of m that no field covers, without zeros at their ends.
func uncoveredRanges(m []byte, covered []bool) *starlark.List {
	var list []starlark.Value
	for first, end := 0, 0; first < len(m); first = end + 1 {
		for end = first; end < len(m) && !covered[end]; {
			end++
		}
		left := bytes.TrimLeft(m[first:end], "\x00")
		if len(left) > 0 {
			list = append(list, lang.DictOf("offset", starlark.MakeInt(end-len(left)), "data", starlark.Bytes(bytes.TrimRight(left, "\x00"))))
		}
	}
	return starlark.NewList(list)
}

// datagramText explains MAD m: the request or answer, notes on the headers before it, its
// errors, and each field with its place (byte, and bit if it begins within a byte), its length
// in bits, and its value in scripts. Bytes without a layout follow unless they are 0. Keys are
// not shown.
func datagramText(m []byte, notes []string) string {
	var b strings.Builder
	if len(m) >= mad.HeaderSize {
		b.WriteString(headline(m) + "\n")
	}
	for _, wrong := range append(slices.Clone(notes), mad.Validate(m)...) {
		b.WriteString("note: " + wrong + "\n")
	}
	if len(m) >= mad.HeaderSize {
		if c := mad.ParseHeader(m).Class; c.WasReserved() {
			fmt.Fprintf(&b, "note: MgmtClass %#02x is reserved in version 1.0 of the specification, from 0x20 on\n", uint8(c))
		}
	}
	parts := mad.Dissect(m)
	var rows []annotation
	width := [3]int{}
	for _, p := range parts {
		if isUndefined(m, p) {
			rows = append(rows, annotation{title: layoutName(p.Layout) + ": the data of a Get are undefined"})
			continue
		}
		rows = append(rows, annotation{title: layoutName(p.Layout)})
		for _, r := range annotations(p, queryMask(m, p)) {
			for i, cell := range r.cells[:3] {
				width[i] = max(width[i], len(cell))
			}
			rows = append(rows, r)
		}
	}
	for _, r := range rows {
		if r.title != "" {
			b.WriteString("\n" + r.title + "\n")
			continue
		}
		c := r.cells
		line := text.AlignRight.Apply(c[0], width[0]+2) + text.AlignRight.Apply(c[1], width[1]+2) + "  " + text.Pad(c[2], width[2], ' ') + "  " + c[3]
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString(dumpUncovered(m, coveredBytes(m, parts)))
	return b.String()
}

// annotation is a line: the name of a part; or the place, length, name and value of a
// field.
type annotation struct {
	title string
	cells [4]string
}

// headline describes the request or answer.
func headline(m []byte) string {
	h := mad.ParseHeader(m)
	a := mad.LookupVersion(h.Class, h.ClassVersion, h.Attribute)
	name := attributeName(&h)
	line := fmt.Sprintf("%v%s(%s)", h.Class.Family(), h.Method.Name(h.Class, h.ClassVersion), name)
	if !h.Method.IsNamed(h.Class, h.ClassVersion) {
		line = fmt.Sprintf("%v method %#02x (%s)", h.Class.Family(), uint8(h.Method), name)
	}
	if a != nil {
		for _, p := range a.Modifier {
			line += fmt.Sprintf(", %s %d", p.Name, h.Modifier>>p.Shift&(1<<p.Bits-1))
		}
	}
	if h.Class == mad.ClassSubnDirected && len(m) >= mad.Size {
		line += ", route " + mad.RouteOf(m).String()
	}
	if h.Method.IsResponse() {
		line += ": " + h.Status.Text(h.Class)
	}
	if a != nil && len(m) >= a.OffsetIn(h.ClassVersion)+mad.AttrSubnNotice.Size && h.Status == 0 && h.Method != mad.MethodGet {
		if event := eventOf(a, m[a.OffsetIn(h.ClassVersion):]); event != "" {
			line += ", " + event
		}
	}
	return line
}

// attributeName returns the name of the attribute that h names, else its number.
func attributeName(h *mad.Header) string {
	a := mad.LookupVersion(h.Class, h.ClassVersion, h.Attribute)
	if a = cmp.Or(a, mad.Lookup(h.Class, h.Attribute)); a != nil { // versions differ in layout, not in numbers
		return a.Name
	}
	return fmt.Sprintf("%#04x", uint16(h.Attribute))
}

// layoutName returns the name of a layout, with its variant and state.
func layoutName(a *mad.Attribute) string {
	name := a.Name
	if a.Variant != "" {
		name += " (" + a.Variant + ")"
	}
	if !a.Confirmed {
		name += ", layout unconfirmed"
	}
	return name
}

// trailingZeros matches a long sequence of zeros at the end of an array.
var trailingZeros = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`( 0){8,}$`) })

// queryMask returns the mask of the components of p that a query m selects by; the others
// are 0 and have no meaning. ^0: all components count.
func queryMask(m []byte, p mad.Part) uint64 {
	h := mad.ParseHeader(m)
	if h.Class != mad.ClassSubnAdm || h.Method.IsResponse() || h.Method == mad.MethodReport || p.Layout.Class != h.Class || len(m) < h.DataOffset() {
		return ^uint64(0)
	}
	return binary.BigEndian.Uint64(m[mad.SAPlacesIn(h.ClassVersion).Mask:])
}

// isUndefined reports whether p is an attribute of m whose values have no meaning.
func isUndefined(m []byte, p mad.Part) bool { return p.Layout.Class != 0 && mad.HasUndefinedData(m) }

// annotations returns a line for each field of p that is shown.
func annotations(p mad.Part, mask uint64) []annotation {
	var rows []annotation
	for _, x := range New(p.Layout, p.Data).Facts() {
		if x.Code {
			continue
		}
		f := p.Layout.Field(x.Name)
		if !isShown(p, f, mask) {
			continue
		}
		at := strconv.Itoa(p.Offset + f.Offset/8)
		if bit := f.Offset % 8; bit > 0 {
			at += "." + strconv.Itoa(bit)
		}
		bits := strconv.Itoa(f.Bits)
		if f.Count > 1 {
			bits = fmt.Sprintf("%dx%d", f.Count, f.Bits)
		}
		rows = append(rows, annotation{cells: [4]string{at, bits, x.Name, trailingZeros().ReplaceAllString(x.Cell(), " 0 ...")}})
	}
	return rows
}

// isShown reports whether p contains the whole field, and its component counts or it is
// not 0.
func isShown(p mad.Part, f *mad.Field, mask uint64) bool {
	return fieldEnd(f) <= len(p.Data) && (mask == ^uint64(0) || f.Mask()&mask != 0 || f.Uint(p.Data) != 0)
}

// fieldEnd returns the first byte after a field and all its elements.
func fieldEnd(f *mad.Field) int { return (f.Offset + (f.Count-1)*f.Stride + f.Bits + 7) / 8 }

// coveredBytes returns which bytes of m are covered by fields; a key also counts if m ends
// within it.
func coveredBytes(m []byte, parts []mad.Part) []bool {
	covered := make([]bool, len(m))
	mark := func(first, end int) {
		for i := first; i < min(end, len(m)); i++ {
			covered[i] = true
		}
	}
	if len(m) >= mad.HeaderSize {
		if at := mad.KeyOffset(mad.ParseHeader(m)); at > 0 {
			mark(at, at+8)
		}
	}
	for _, p := range parts {
		for i := range p.Layout.Flat() {
			f := &p.Layout.Flat()[i]
			if end := fieldEnd(f); f.Key || end <= len(p.Data) {
				mark(p.Offset+f.Offset/8, p.Offset+end)
			}
		}
	}
	return covered
}

// dumpUncovered dumps the bytes without a layout, except zeros, 16 bytes in each line.
func dumpUncovered(m []byte, covered []bool) string {
	var b strings.Builder
	for at := 0; at < len(m); at += 16 {
		line := m[at:min(at+16, len(m))]
		seen := false
		var cells []string
		for i, c := range line {
			if covered[at+i] {
				cells = append(cells, "..")
				continue
			}
			seen = seen || c != 0
			cells = append(cells, hex.EncodeToString([]byte{c}))
		}
		if !seen {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\nbytes without a layout\n")
		}
		fmt.Fprintf(&b, "%5d  %s\n", at, strings.Join(cells, " "))
	}
	return b.String()
}
