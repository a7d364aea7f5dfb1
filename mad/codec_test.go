package mad

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// codec is what the generator gives each tagged struct.
type codec interface {
	Decode([]byte)
	Encode([]byte)
}

// codecs pairs the tables with the structs they were made from.
var codecs = map[*Attribute]codec{
	LayoutRMPPHeader:                &RMPPHeader{},
	LayoutSAHeader:                  &SAHeader{},
	AttrNodeDescription:             &NodeDescription{},
	AttrNodeInfo:                    &NodeInfo{},
	AttrSwitchInfo:                  &SwitchInfo{},
	AttrGUIDInfo:                    &GUIDInfo{},
	AttrPortInfo:                    &PortInfo{},
	AttrPKeyTable:                   &PKeyTable{},
	AttrSLtoVLMappingTable:          &SLtoVLMappingTable{},
	AttrVLArbitrationTable:          &VLArbitrationTable{},
	AttrLinearForwardingTable:       &LinearForwardingTable{},
	AttrMulticastForwardingTable:    &MulticastForwardingTable{},
	AttrSMInfo:                      &SMInfo{},
	AttrMlnxExtPortInfo:             &MlnxExtPortInfo{},
	AttrSubnAdmClassPortInfo:        &ClassPortInfo{},
	AttrNodeRecord:                  &NodeRecord{},
	AttrPortInfoRecord:              &PortInfoRecord{},
	AttrSwitchInfoRecord:            &SwitchInfoRecord{},
	AttrLinearForwardingTableRecord: &LinearForwardingTableRecord{},
	AttrSMInfoRecord:                &SMInfoRecord{},
	AttrLinkRecord:                  &LinkRecord{},
	AttrPathRecord:                  &PathRecord{},
	AttrPerfClassPortInfo:           &ClassPortInfo{},
	AttrPortCounters:                &PortCounters{},
	AttrPortCountersExtended:        &PortCountersExtended{},
}

// eachLayout runs test for all attributes and headers.
func eachLayout(t *testing.T, test func(t *testing.T, a *Attribute, c codec, r *rand.Rand)) {
	for _, a := range append(Attributes(), headers...) {
		name := a.Name
		if a.Class != 0 {
			name = fmt.Sprintf("%v/%s", a.Class, a.Name)
		}
		t.Run(name, func(t *testing.T) {
			c := codecs[a]
			if c == nil {
				t.Fatal("not in the table of codecs")
			}
			test(t, a, c, rand.New(rand.NewPCG(uint64(a.Class)<<16|uint64(a.ID), 1)))
		})
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// defined has all bits set that are in one of a's fields.
func defined(a *Attribute) []byte {
	b := make([]byte, a.Size)
	for _, f := range a.Flat() {
		for i := range f.Count {
			for bit := range f.Bits {
				at := f.Offset + i*f.Stride + bit
				b[at/8] |= 0x80 >> (at % 8)
			}
		}
	}
	return b
}

func TestDecodeEncode(t *testing.T) {
	eachLayout(t, func(t *testing.T, a *Attribute, c codec, r *rand.Rand) {
		mask := defined(a)
		for range 50 {
			data := randomBytes(r, a.Size)
			want := make([]byte, a.Size)
			for i := range want {
				want[i] = data[i] & mask[i]
			}
			c.Decode(data)
			got := randomBytes(r, a.Size+3)
			tail := bytes.Clone(got[a.Size:])
			c.Encode(got)
			if d := cmp.Diff(want, got[:a.Size]); d != "" {
				t.Fatalf("encoded what was decoded from %x (-want +got):\n%s", data, d)
			}
			if !bytes.Equal(got[a.Size:], tail) {
				t.Fatal("Encode wrote beyond the attribute")
			}
			// The tables say the same as the code.
			table := make([]byte, a.Size)
			copyFields(a, data, table)
			if d := cmp.Diff(want, table); d != "" {
				t.Fatalf("written field by field (-want +got):\n%s", d)
			}
			compareFields(t, a, data, reflect.ValueOf(c).Elem())
		}
	})
}

// copyFields reads all fields from one buffer and writes them to another.
func copyFields(a *Attribute, from, to []byte) {
	for i := range a.Flat() {
		f := &a.Flat()[i]
		if f.Kind == KindText || f.Kind == KindGID || f.Kind == KindBytes {
			f.SetBytes(to, f.Bytes(from))
			continue
		}
		for i := range f.Count {
			f.SetUintAt(to, i, f.UintAt(from, i))
		}
	}
}

// compareFields compares what the table reads from data with struct v, which
// was decoded from it.
func compareFields(t *testing.T, a *Attribute, data []byte, v reflect.Value) {
	next := 0
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		if sf.Name == "_" {
			continue
		}
		f := &a.Fields[next]
		next++
		got, fv := any(nil), v.Field(i)
		want := fv.Interface()
		switch {
		case f.Kind == KindStruct:
			compareFields(t, f.Struct, f.Bytes(data), fv)
			continue
		case f.Kind == KindGID:
			got = f.GID(data)
		case f.Kind == KindText:
			got, want = f.Text(data), text(fv.Slice(0, fv.Len()).Bytes())
		case f.Count > 1:
			list := reflect.New(fv.Type()).Elem()
			for i := range f.Count {
				list.Index(i).SetUint(f.UintAt(data, i))
			}
			got = list.Interface()
		case fv.Kind() == reflect.Bool:
			got = f.Uint(data) != 0
		default:
			number := reflect.New(fv.Type()).Elem()
			number.SetUint(f.Uint(data))
			got = number.Interface()
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s: the struct has this, the table reads that (-struct +table):\n%s", f.Name, d)
		}
	}
	if next != len(a.Fields) {
		t.Fatalf("%s: the struct has %d fields, the table %d", a.Name, next, len(a.Fields))
	}
}

func TestFlat(t *testing.T) {
	eachLayout(t, func(t *testing.T, a *Attribute, c codec, r *rand.Rand) {
		data := randomBytes(r, a.Size)
		for _, f := range a.Fields {
			if a.Field(f.Script).Name != f.Name {
				t.Errorf("Field(%q) is another", f.Script)
			}
			if f.Kind != KindStruct {
				continue
			}
			inner := f.Bytes(data)
			for i := range f.Struct.Flat() {
				in := &f.Struct.Flat()[i]
				out := a.Field(in.Script)
				if out == nil || out.Name != in.Name {
					t.Fatalf("Field(%q) is not %s.%s", in.Script, f.Name, in.Name)
				}
				if !cmp.Equal(in.Bytes(inner), out.Bytes(data)) || in.Uint(inner) != out.Uint(data) {
					t.Errorf("%s.%s: at offset %d inside, %d from outside, which reads differently", f.Name, in.Name, in.Offset, out.Offset)
				}
			}
		}
		if a.Field("no_such_field") != nil {
			t.Error("Field finds what is not there")
		}
	})
}

// TestShort: what data lacks reads as 0, and is not written.
func TestShort(t *testing.T) {
	eachLayout(t, func(t *testing.T, a *Attribute, c codec, r *rand.Rand) {
		full := randomBytes(r, a.Size)
		for n := range a.Size {
			padded := make([]byte, a.Size)
			copy(padded, full[:n])
			c.Decode(padded)
			want := reflect.ValueOf(c).Elem().Interface()
			c.Decode(full[:n:n])
			if got := reflect.ValueOf(c).Elem().Interface(); got != want {
				t.Fatalf("decoded from %d bytes:\n%s", n, cmp.Diff(want, got))
			}
			whole, short := make([]byte, a.Size), make([]byte, n)
			c.Encode(whole)
			c.Encode(short)
			if !bytes.Equal(short, whole[:n]) {
				t.Fatalf("encoded to %d bytes: %x, want %x", n, short, whole[:n])
			}
			for i := range a.Flat() {
				f := &a.Flat()[i]
				for i := range f.Count {
					if got, want := f.UintAt(full[:n:n], i), f.UintAt(padded, i); got != want {
						t.Fatalf("%s of %d bytes is %#x, want %#x", f.Name, n, got, want)
					}
				}
			}
		}
	})
}

// FuzzAttributes: no bytes make the codec panic, and decoding what was
// encoded gives the same again.
func FuzzAttributes(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, Size))
	f.Add(bytes.Repeat([]byte{0xa5}, 4096))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:min(len(data), 4096)]
		for a, c := range codecs {
			c = reflect.New(reflect.TypeOf(c).Elem()).Interface().(codec)
			c.Decode(data)
			first := make([]byte, a.Size)
			c.Encode(first)
			c.Encode(bytes.Clone(data))
			c.Decode(first)
			second := make([]byte, a.Size)
			c.Encode(second)
			if !bytes.Equal(first, second) {
				t.Errorf("%s: %x becomes %x", a.Name, first, second)
			}
			for i := range a.Flat() {
				f := &a.Flat()[i]
				f.Text(data)
				f.GID(data)
				for i := -1; i <= f.Count; i++ {
					f.UintAt(data, i)
					f.SetUintAt(bytes.Clone(data), i, ^uint64(0))
				}
				f.SetBytes(bytes.Clone(data), data)
				if f.Words != nil {
					f.Words.Text(f.Uint(data))
					f.Words.Join(f.Uint(data))
				}
			}
		}
	})
}

func BenchmarkDecodePortInfo(b *testing.B) {
	data := randomBytes(rand.New(rand.NewPCG(1, 2)), 64)
	var p PortInfo
	b.ReportAllocs()
	for b.Loop() {
		p.Decode(data)
	}
}

func BenchmarkEncodePortInfo(b *testing.B) {
	var p PortInfo
	data := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		p.Encode(data)
	}
}

func BenchmarkFieldUint(b *testing.B) {
	data := randomBytes(rand.New(rand.NewPCG(1, 2)), 64)
	b.ReportAllocs()
	for b.Loop() {
		AttrPortInfo.Field("link_speed_ext_active").Uint(data)
	}
}
