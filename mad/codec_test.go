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
	rounds := 50
	if testing.Short() {
		rounds = 5
	}
	eachLayout(t, func(t *testing.T, a *Attribute, c codec, r *rand.Rand) {
		mask := defined(a)
		for range rounds {
			data := randomBytes(r, a.Size)
			want := make([]byte, a.Size)
			for i := range want {
				want[i] = data[i] & mask[i]
			}
			c.Decode(data)
			size := layoutSize(a)
			got := randomBytes(r, size+3)
			tail := bytes.Clone(got[size:])
			c.Encode(got)
			if d := cmp.Diff(want, got[:a.Size]); d != "" {
				t.Fatalf("encoded what was decoded from %x (-want +got):\n%s", data, d)
			}
			if !bytes.Equal(got[size:], tail) {
				t.Fatal("Encode wrote beyond the attribute")
			}
			// The tables agree with the code.
			table := make([]byte, a.Size)
			copyFields(a, data, table)
			if d := cmp.Diff(want, table); d != "" {
				t.Fatalf("written field by field (-want +got):\n%s", d)
			}
			compareFields(t, a, data, reflect.ValueOf(c).Elem())
		}
	})
}

// layoutSize is the size of the struct of an attribute: larger than the
// attribute where another one has more of it.
func layoutSize(a *Attribute) int {
	size := a.Size
	for b, c := range codecs {
		if reflect.TypeOf(c) == reflect.TypeOf(codecs[a]) {
			size = max(size, b.Size)
		}
	}
	return size
}

// copyFields reads all fields from one buffer and writes them to another.
func copyFields(a *Attribute, from, to []byte) {
	for i := range a.Flat() {
		f := &a.Flat()[i]
		for i := range f.Count {
			if f.Type == FieldTypeText || f.Type == FieldTypeGID || f.Type == FieldTypeBytes {
				f.At(i).SetBytes(to, f.At(i).Bytes(from))
			} else {
				f.SetUintAt(to, i, f.UintAt(from, i))
			}
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
		if next == len(a.Fields) && layoutSize(a) > a.Size {
			return // the rest is another attribute's
		}
		f := &a.Fields[next]
		next++
		if f.Count == 1 {
			compareElement(t, f, data, v.Field(i))
			continue
		}
		for j := range f.Count {
			compareElement(t, f.At(j), data, v.Field(i).Index(j))
		}
	}
	if next != len(a.Fields) {
		t.Fatalf("%s: the struct has %d fields, the table %d", a.Name, next, len(a.Fields))
	}
}

func compareElement(t *testing.T, f *Field, data []byte, v reflect.Value) {
	got, want := any(nil), v.Interface()
	switch {
	case f.Type == FieldTypeStruct:
		compareFields(t, f.Struct, f.Bytes(data), v)
		return
	case f.Type == FieldTypeGID:
		got = f.GID(data)
	case f.Type == FieldTypeText:
		got, want = f.Text(data), untilNUL(v.Slice(0, v.Len()).Bytes())
	case f.Type == FieldTypeBytes:
		got, want = f.Bytes(data), v.Slice(0, v.Len()).Bytes()
	case v.Kind() == reflect.Bool:
		got = f.Uint(data) != 0
	default:
		number := reflect.New(v.Type()).Elem()
		number.SetUint(f.Uint(data))
		got = number.Interface()
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s: the struct has this, the table reads that (-struct +table):\n%s", f.Name, d)
	}
}

func TestFlat(t *testing.T) {
	eachLayout(t, func(t *testing.T, a *Attribute, c codec, r *rand.Rand) {
		data := randomBytes(r, a.Size)
		for _, f := range a.Fields {
			if a.Field(f.Script).Name != f.Name {
				t.Errorf("Field(%q) is another", f.Script)
			}
			if f.Type != FieldTypeStruct {
				continue
			}
			for j := range f.Count {
				inner := f.At(j).Bytes(data)
				for i := range f.Struct.Flat() {
					in := &f.Struct.Flat()[i]
					out := a.Field(in.Script)
					if out == nil || out.Name != in.Name {
						t.Fatalf("Field(%q) is not %s.%s", in.Script, f.Name, in.Name)
					}
					if f.Count > 1 {
						out = out.At(j)
					}
					if !cmp.Equal(in.Bytes(inner), out.Bytes(data)) || in.Uint(inner) != out.Uint(data) {
						t.Errorf("%s.%s: at offset %d inside, %d from outside, which reads differently", f.Name, in.Name, in.Offset, out.Offset)
					}
				}
			}
		}
		if a.Field("no_such_field") != nil {
			t.Error("Field finds what is not there")
		}
	})
}

// TestShort: bytes beyond the end of data read as 0, and are not written.
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
			whole, short := make([]byte, layoutSize(a)), make([]byte, n)
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
		scratch := bytes.Clone(data)
		for a, c := range codecs {
			c = reflect.New(reflect.TypeOf(c).Elem()).Interface().(codec)
			c.Decode(data)
			first := make([]byte, a.Size)
			c.Encode(first)
			c.Encode(scratch)
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
					f.SetUintAt(scratch, i, ^uint64(0))
				}
				f.SetBytes(scratch, data)
				if f.Words != nil {
					f.Words.Text(f.Uint(data))
					f.Words.Join(f.Uint(data))
				}
			}
		}
	})
}

// BenchmarkDecode is about every attribute of subnet management: 40 ns at
// most, no allocation.
func BenchmarkDecode(b *testing.B) {
	data := randomBytes(rand.New(rand.NewPCG(1, 2)), 64)
	for _, a := range Attributes() {
		if a.Class != ClassSubn {
			continue
		}
		b.Run(a.Name, func(b *testing.B) {
			c := codecs[a]
			b.ReportAllocs()
			for b.Loop() {
				c.Decode(data)
			}
		})
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
