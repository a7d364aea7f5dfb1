package gen

import (
	"fmt"
	"slices"
	"strings"
)

// bytes returns the first and the last byte of f, or of its first element.
func (f *field) bytes() (first, last int) { return f.offset / 8, (f.offset + f.bits - 1) / 8 }

// decode writes the Decode method, which reads each field separately.
func (w *writer) decode(l *layout) {
	if !slices.ContainsFunc(l.fields, func(f *field) bool { return !f.reserved() }) {
		w.p("// Decode does nothing: t has no content.\nfunc (t *%s) Decode([]byte) {}\n\n", l.goName)
		return
	}
	w.p("// Decode reads t from data; bytes beyond the end of data read as 0.\n")
	w.p("func (t *%s) Decode(data []byte) {\nb := data\nif len(b) < %d {\nvar pad [%d]byte\ncopy(pad[:], b)\nb = pad[:]\n}\nb = b[:%d]\n", l.goName, l.size, l.size, l.size)
	w.decodeFields(l, "t")
	w.p("}\n\n")
}

// decodeFields reads the fields of the struct called t from the bytes b.
func (w *writer) decodeFields(l *layout, t string) {
	for _, f := range l.fields {
		if f.reserved() {
			continue
		}
		first, last := f.bytes()
		name := t + "." + f.goName
		each := func(value string, args ...any) {
			w.p("for i := range %s {\n%s[i] = %s\n}\n", name, name, fmt.Sprintf(value, args...))
		}
		raw := f.fieldType == "GID" || f.fieldType == "Text" || f.fieldType == "Bytes"
		switch {
		case f.structure != nil && f.array:
			// Inlined: a call for each element takes longer.
			w.p("for i := range %s {\nb := b[%d+i*%d:][:%d]\nt := &%s[i]\n", name, first, f.stride/8, f.structure.size, name)
			w.decodeFields(f.structure, "t")
			w.p("}\n")
		case f.structure != nil:
			w.p("%s.Decode(b[%d:%d])\n", name, first, last+1)
		case raw && f.array:
			w.p("for i := range %s {\ncopy(%s[i][:], b[%d+i*%d:][:%d])\n}\n", name, name, first, f.stride/8, f.bits/8)
		case raw:
			w.p("copy(%s[:], b[%d:%d])\n", name, first, last+1)
		case f.packed() && f.stride == 4 && f.offset%8 == 0:
			w.p("for i := 0; i < %d; i += 2 {\nv := b[%d+i/2]\n%s[i], %s[i+1] = %s(v>>4), %s(v&0xf)\n}\n", f.count, first, name, name, f.goType, f.goType)
		case f.packed() && f.stride < 8:
			each("%s(b[%d+i*%d/8] >> (%d - i*%d%%8) & %#x)", f.goType, first, f.stride, 8-f.offset%8-f.bits, f.stride, mask(f.bits))
		case f.packed():
			each("%s(b[%d+i*%d] >> %d & %#x)", f.goType, first, f.stride/8, 8-f.offset%8-f.bits, mask(f.bits))
		case f.array && f.bits == 8 && f.stride == 8 && (f.goType == "uint8" || f.goType == "byte"):
			w.p("copy(%s[:], b[%d:%d])\n", name, first, first+f.count)
		case f.array && f.bits == 8:
			each("%s(b[%d+i*%d])", f.goType, first, f.stride/8)
		case f.array:
			each("%s(binary.BigEndian.Uint%d(b[%d+i*%d:]))", f.goType, f.bits, first, f.stride/8)
		case f.goType == "bool":
			w.p("%s = %s != 0\n", name, f.read())
		default:
			w.p("%s = %s\n", name, convert(f.goType, f.loadType(), f.read()))
		}
	}
}

// read returns an expression for the value of a field other than an array.
func (f *field) read() string {
	first, last := f.bytes()
	e := load(first, last, f.loadType())
	if s := 8*(last+1) - f.offset - f.bits; s > 0 {
		e = fmt.Sprintf("%s >> %d", e, s)
	}
	if f.offset%8 != 0 {
		e = fmt.Sprintf("%s & %#x", e, mask(f.bits))
	}
	return e
}

// loadType returns the type of the expression of read.
func (f *field) loadType() string {
	first, last := f.bytes()
	bits := 8
	for bits < 8*(last-first+1) {
		bits *= 2
	}
	return fmt.Sprintf("uint%d", bits)
}

// convert returns expression e, of type from, converted to type to.
func convert(to, from, e string) string {
	if to == from {
		return e
	}
	return fmt.Sprintf("%s(%s)", to, e)
}

// load returns an expression for bytes first to last as one number of the given type.
func load(first, last int, typ string) string {
	switch n := last - first + 1; n {
	case 1:
		return fmt.Sprintf("b[%d]", first)
	case 2, 4, 8:
		return fmt.Sprintf("binary.BigEndian.Uint%d(b[%d:])", 8*n, first)
	default:
		parts := make([]string, n)
		for i := range n - 1 {
			parts[i] = fmt.Sprintf("%s(b[%d])<<%d", typ, first+i, 8*(n-1-i))
		}
		parts[n-1] = fmt.Sprintf("%s(b[%d])", typ, last)
		return "(" + strings.Join(parts, " | ") + ")"
	}
}

func mask(bits int) uint64 { return 1<<bits - 1 }

// encode writes the Encode method. It writes fields that share bytes together,
// and reserved bits as 0.
func (w *writer) encode(l *layout) {
	size := l.size
	w.p("// Encode writes t to data, reserved bits as 0; what does not fit is left out.\n")
	w.p("func (t *%s) Encode(data []byte) {\n", l.goName)
	w.p("b := data\nif len(b) < %d {\nvar pad [%d]byte\nt.Encode(pad[:])\ncopy(data, pad[:])\nreturn\n}\nb = b[:%d]\n", size, size, size)
	for i := 0; i < len(l.fields); {
		if l.fields[i].array && l.fields[i].bits < l.fields[i].stride || l.fields[i].packed() {
			i = w.encodeInterleaved(l, i)
			continue
		}
		if l.fields[i].whole() {
			w.encodeWhole(l.fields[i])
			i++
			continue
		}
		// A run of fields up to the next byte boundary.
		j := i
		for (l.fields[j].offset+l.fields[j].bits)%8 != 0 {
			j++
		}
		w.encodeRun(l.fields[i : j+1])
		i = j + 1
	}
	w.p("}\n\n")
}

// packed reports whether several elements share a byte.
func (f *field) packed() bool { return f.array && f.bits < 8 }

// whole reports whether f shares no byte with another field, and is written by one statement.
func (f *field) whole() bool {
	return f.structure != nil || f.array || f.fieldType == "GID" || f.fieldType == "Text" || f.fieldType == "Bytes" || f.reserved() && f.offset%8 == 0 && f.bits%8 == 0
}

func (w *writer) encodeWhole(f *field) {
	first, last := f.bytes()
	switch {
	case f.reserved():
		w.p("clear(b[%d:%d])\n", first, first+f.span()/8)
	case f.structure != nil && f.array:
		w.p("for i := range t.%s {\nt.%s[i].Encode(b[%d+i*%d:][:%d])\n}\n", f.goName, f.goName, first, f.stride/8, f.bits/8)
	case f.array && f.fieldType == "GID":
		w.p("for i := range t.%s {\ncopy(b[%d+i*16:], t.%s[i][:])\n}\n", f.goName, first, f.goName)
	case f.structure != nil:
		w.p("t.%s.Encode(b[%d:%d])\n", f.goName, first, last+1)
	case f.array && f.bits == 8 && (f.goType == "uint8" || f.goType == "byte"):
		w.p("copy(b[%d:%d], t.%s[:])\n", first, first+f.count, f.goName)
	case f.array && f.bits == 8:
		w.p("for i, v := range t.%s {\nb[%d+i] = uint8(v)\n}\n", f.goName, first)
	case f.array:
		w.p("for i, v := range t.%s {\n", f.goName)
		w.p("binary.BigEndian.PutUint%d(b[%d+i*%d:], uint%d(v))\n}\n", f.bits, first, f.bits/8, f.bits)
	default:
		w.p("copy(b[%d:%d], t.%s[:])\n", first, last+1, f.goName)
	}
}

// encodeInterleaved writes the arrays from field i on whose elements lie between
// each other's, or share bytes: it clears the bytes, then adds each element. It
// returns the index of the field after them.
func (w *writer) encodeInterleaved(l *layout, i int) int {
	first, end := l.fields[i].offset/8, 0
	j := i
	for ; j < len(l.fields) && l.fields[j].array && (j == i || l.fields[j].offset < 8*end); j++ {
		end = max(end, (l.fields[j].offset+l.fields[j].span()+7)/8)
	}
	w.p("clear(b[%d:%d])\n", first, end)
	for _, f := range l.fields[i:j] {
		if f.reserved() {
			continue
		}
		at := f.offset / 8
		w.p("for i, v := range t.%s {\n", f.goName)
		switch {
		case f.bits > 8:
			w.p("binary.BigEndian.PutUint%d(b[%d+i*%d:], uint%d(v))\n", f.bits, at, f.stride/8, f.bits)
		case f.stride < 8:
			w.p("b[%d+i*%d/8] |= uint8(v) & %#x << (%d - i*%d%%8)\n", at, f.stride, mask(f.bits), 8-f.offset%8-f.bits, f.stride)
		default:
			w.p("b[%d+i*%d] |= uint8(v) & %#x << %d\n", at, f.stride/8, mask(f.bits), 8-f.offset%8-f.bits)
		}
		w.p("}\n")
	}
	return j
}

// encodeRun writes fields that together fill whole bytes, as one number.
func (w *writer) encodeRun(run []*field) {
	first := run[0].offset / 8
	last := (run[len(run)-1].offset + run[len(run)-1].bits - 1) / 8
	n := last - first + 1
	typ := 8
	for typ < 8*n {
		typ *= 2
	}
	var parts []string
	for _, f := range run {
		if f.reserved() {
			continue
		}
		to := fmt.Sprintf("uint%d", typ)
		e := convert(to, f.goType, "t."+f.goName)
		if f.goType == "bool" {
			e = convert(to, "uint8", "bit(t."+f.goName+")")
		} else if f.bits < f.typeBits {
			e = fmt.Sprintf("%s & %#x", e, mask(f.bits))
		}
		if s := 8*(last+1) - f.offset - f.bits; s > 0 {
			e = fmt.Sprintf("%s << %d", e, s)
		}
		parts = append(parts, e)
	}
	value := strings.Join(parts, " | ")
	if value == "" {
		w.p("clear(b[%d:%d])\n", first, last+1)
		return
	}
	switch n {
	case 1:
		w.p("b[%d] = %s\n", first, value)
	case 2, 4, 8:
		w.p("binary.BigEndian.PutUint%d(b[%d:], %s)\n", typ, first, value)
	default:
		w.p("{\nv := %s\n", value)
		for i := range n - 1 {
			w.p("b[%d] = uint8(v >> %d)\n", first+i, 8*(n-1-i))
		}
		w.p("b[%d] = uint8(v)\n", last)
		w.p("}\n")
	}
}
