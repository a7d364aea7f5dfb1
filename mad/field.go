package mad

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Field returns the field with a script name; nil if it is unknown. In a record it
// also finds the fields of the embedded attribute.
func (a *Attribute) Field(script string) *Field {
	if !a.lazy.filled.Load() { // packages find their fields at start-up, one or two of an attribute
		for i := range a.Fields {
			if a.Fields[i].Script == script {
				return &a.Fields[i]
			}
		}
	}
	return a.derived().script[script]
}

// WithoutActions returns a copy of an attribute, as it was read, for a Set that requests no
// action: fields by which a Set requests one are 0. The caller changes it.
func (a *Attribute) WithoutActions(read []byte) []byte {
	data := slices.Clone(read[:a.Size])
	for i := range a.Fields {
		if f := &a.Fields[i]; f.NoChange || f.W1C {
			f.SetUint(data, 0)
		}
	}
	return data
}

// Flat lists the fields with each embedded attribute replaced by its fields,
// whose offsets and component bits are counted from the beginning of a. The
// caller must not change the list.
func (a *Attribute) Flat() []Field { return a.derived().flat }

// Uint reads the field, or the first element of an array, from data, the whole
// attribute. Bits beyond the end of data read as 0. It is for fields of up to 64
// bits; of longer ones it reads the last 64.
func (f *Field) Uint(data []byte) uint64 { return f.UintAt(data, 0) }

// UintAt reads element i; 0 if the array is shorter.
func (f *Field) UintAt(data []byte, i int) uint64 {
	if i < 0 || i >= f.Count {
		return 0
	}
	return getBits(data, f.Offset+i*f.Stride, f.Bits)
}

// Number returns element i as a number: of a signed field, or one with a scale.
func (f *Field) Number(data []byte, i int) float64 {
	v := f.UintAt(data, i)
	n := float64(v)
	if f.Signed && v>>(f.Bits-1) != 0 {
		n -= 2 * float64(uint64(1)<<(f.Bits-1))
	}
	return n / float64(max(f.Scale, 1))
}

// Code returns the nearest value on the wire for a number; false if the number is
// out of range.
func (f *Field) Code(number float64) (code uint64, ok bool) {
	n := math.Round(number * float64(max(f.Scale, 1)))
	low, high := f.Range()
	if !(low <= number && number <= high) {
		return 0, false
	}
	if n < 0 {
		return uint64(int64(n)) & f.Max(), true
	}
	return uint64(n), true
}

// Range returns the lowest and the highest number of a signed field, or one with a
// scale.
func (f *Field) Range() (low, high float64) {
	scale := float64(max(f.Scale, 1))
	if f.Signed {
		half := float64(uint64(1) << (f.Bits - 1))
		return -half / scale, (half - 1) / scale
	}
	return 0, float64(f.Max()) / scale
}

// SetUint writes the field, or the first element of an array, to data. Bits of v
// that do not fit in the field are dropped, and so are bits beyond the end of
// data.
func (f *Field) SetUint(data []byte, v uint64) { f.SetUintAt(data, 0, v) }

// SetUintAt writes element i.
func (f *Field) SetUintAt(data []byte, i int, v uint64) {
	if i >= 0 && i < f.Count {
		setBits(data, f.Offset+i*f.Stride, f.Bits, v)
	}
}

// Bytes returns the field's bytes in data, including all elements of an array and
// the bits between them; nil if data is too short. It is for fields that begin and
// end at a byte boundary: texts, GIDs, raw bytes, embedded attributes.
func (f *Field) Bytes(data []byte) []byte {
	first, end := f.Offset/8, (f.Offset+(f.Count-1)*f.Stride+f.Bits+7)/8
	if end > len(data) {
		return nil
	}
	return data[first:end:end]
}

// SetBytes copies v to the field; a shorter v is padded with NUL.
func (f *Field) SetBytes(data []byte, v []byte) {
	if b := f.Bytes(data); b != nil {
		clear(b[copy(b, v):])
	}
}

// At returns element i of an array as a separate field.
func (f *Field) At(i int) *Field {
	e := *f
	e.Offset, e.Count, e.Stride = f.Offset+i*f.Stride, 1, f.Bits
	return &e
}

// Text reads a text field, up to the first NUL.
func (f *Field) Text(data []byte) string { return untilNUL(f.Bytes(data)) }

// GID reads a GID; the zero GID if data is too short.
func (f *Field) GID(data []byte) (g GID) {
	copy(g[:], f.Bytes(data))
	return g
}

// SetGID writes a GID.
func (f *Field) SetGID(data []byte, g GID) { f.SetBytes(data, g[:]) }

// Max returns the largest number that fits.
func (f *Field) Max() uint64 { return 1<<min(f.Bits, 63)<<max(0, f.Bits-63) - 1 }

// Mask returns the field's bits in a ComponentMask; 0 without any.
func (f *Field) Mask() uint64 {
	if f.Component < 0 {
		return 0
	}
	return (1<<f.Components - 1) << f.Component
}

// untilNUL returns the text of b up to the first NUL.
func untilNUL(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// Text returns the word of v, or unknown(9).
func (w *Words) Text(v uint64) string {
	if s, ok := w.Word()[v]; ok {
		return s
	}
	return fmt.Sprintf("unknown(%d)", v)
}

// Split returns the words of the bits set in v, the lowest bit first. A word for
// several bits is returned only if v is exactly these bits.
func (w *Words) Split(v uint64) []string {
	if s, ok := w.Word()[v]; ok && v != 0 {
		return []string{s}
	}
	list := make([]string, 0, bits.OnesCount64(v))
	for ; v != 0; v &= v - 1 {
		list = append(list, w.Text(v&-v))
	}
	return list
}

// single returns w without the words for several bits. These mean all that a port
// supports, or none, and are useful only in fields that can be set.
func (w *Words) single() *Words {
	s := &Words{Name: w.Name}
	for _, c := range w.list {
		if bits.OnesCount64(c.code) <= 1 {
			s.list = append(s.list, c)
		}
	}
	return s
}

// Join returns the words of Split, separated by commas.
func (w *Words) Join(v uint64) string { return strings.Join(w.Split(v), ",") }

// bit returns 1 for true.
func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// getBits reads n bits at bit offset; bits beyond data are 0.
func getBits(data []byte, offset, n int) uint64 {
	if n > 64 {
		offset, n = offset+n-64, 64
	}
	first, end := offset/8, (offset+n+7)/8
	if end-first <= 8 && first+8 <= len(data) {
		return binary.BigEndian.Uint64(data[first:]) << (offset % 8) >> (64 - n)
	}
	var v uint64
	for i := first; i < end; i++ {
		b := uint64(0)
		if i < len(data) {
			b = uint64(data[i])
		}
		if s := 8*(end-1-i) - (8*end - offset - n); s >= 0 {
			v |= b << s
		} else {
			v |= b >> -s
		}
	}
	return v << (64 - n) >> (64 - n)
}

// setBits writes the n lowest bits of v at bit offset.
func setBits(data []byte, offset, n int, v uint64) {
	if n > 64 {
		offset, n = offset+n-64, 64
	}
	if first, end := offset/8, (offset+n)/8; (offset|n)%8 == 0 && end <= len(data) { // as most fields
		for i := end - 1; i >= first; i-- {
			data[i] = byte(v)
			v >>= 8
		}
		return
	}
	for n > 0 {
		i, inByte := offset/8, offset%8
		k := min(8-inByte, n) // bits to write in this byte
		if i < len(data) {
			shift := 8 - inByte - k
			m := byte(1<<k-1) << shift
			data[i] = data[i]&^m | byte(v>>(n-k))<<shift&m
		}
		offset, n = offset+k, n-k
	}
}

// Counter is a counter that a Set selects (IBA 16.1.3.5, 16.1.4).
type Counter struct {
	*Field
	Select *Field // the field that selects it: CounterSelect or CounterSelect2
	Bit    int    // the bit there; of an array, the first element's bit
}

// Mask returns the counter's bits in Select, for an array the bits of all elements.
func (c Counter) Mask() uint64 { return (1<<c.Count - 1) << c.Bit }

// Counters lists the counters of an attribute of performance management, in
// wire order; none if a Set writes the whole attribute. The bits of CounterSelect
// follow this order, with a bit for each element of an array (libibmad mad.h
// GS_PERF_*_MASK); counters with Select2 have their bit in CounterSelect2.
func (a *Attribute) Counters() []Counter {
	first := a.Field("counter_select")
	if a.Class != ClassPerf || first == nil || first.Count > 1 {
		return nil
	}
	var list []Counter
	bit := 0
	for i := range a.Flat() {
		switch f := &a.Flat()[i]; {
		case f.Offset <= first.Offset, f.Script == "counter_select2":
		case f.Type != FieldTypeUint: // raw bytes: their counters depend on the variant
		case f.Select2 > 0:
			list = append(list, Counter{f, a.Field("counter_select2"), f.Select2 - 1})
		default:
			list = append(list, Counter{f, first, bit})
			bit += f.Count
		}
	}
	return list
}

// CounterFile is a file in which Linux shows a counter of a port of the host, in the
// directory counters of the port, and the field from which the kernel reads it.
type CounterFile struct {
	Name  string // "symbol_error"
	Attr  *Attribute
	Field string
}

// CounterFiles are all of them (linux drivers/infiniband/core/sysfs.c, pma_attrs_ext).
var CounterFiles = []CounterFile{
	{"symbol_error", AttrPortCounters, "symbol_error_counter"},
	{"link_error_recovery", AttrPortCounters, "link_error_recovery_counter"},
	{"link_downed", AttrPortCounters, "link_downed_counter"},
	{"port_rcv_errors", AttrPortCounters, "port_rcv_errors"},
	{"port_rcv_remote_physical_errors", AttrPortCounters, "port_rcv_remote_physical_errors"},
	{"port_rcv_switch_relay_errors", AttrPortCounters, "port_rcv_switch_relay_errors"},
	{"port_xmit_discards", AttrPortCounters, "port_xmit_discards"},
	{"port_xmit_constraint_errors", AttrPortCounters, "port_xmit_constraint_errors"},
	{"port_rcv_constraint_errors", AttrPortCounters, "port_rcv_constraint_errors"},
	{"local_link_integrity_errors", AttrPortCounters, "local_link_integrity_errors"},
	{"excessive_buffer_overrun_errors", AttrPortCounters, "excessive_buffer_overrun_errors"},
	{"VL15_dropped", AttrPortCounters, "vl15_dropped"},
	{"port_xmit_wait", AttrPortCounters, "port_xmit_wait"},
	{"port_xmit_data", AttrPortCountersExtended, "port_xmit_data"},
	{"port_rcv_data", AttrPortCountersExtended, "port_rcv_data"},
	{"port_xmit_packets", AttrPortCountersExtended, "port_xmit_pkts"},
	{"port_rcv_packets", AttrPortCountersExtended, "port_rcv_pkts"},
	{"unicast_xmit_packets", AttrPortCountersExtended, "port_unicast_xmit_pkts"},
	{"unicast_rcv_packets", AttrPortCountersExtended, "port_unicast_rcv_pkts"},
	{"multicast_xmit_packets", AttrPortCountersExtended, "port_multicast_xmit_pkts"},
	{"multicast_rcv_packets", AttrPortCountersExtended, "port_multicast_rcv_pkts"},
}
