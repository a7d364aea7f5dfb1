package mad

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

//go:embed testdata/registers.txt
var registerFacts string

// TestRegisterFields: a field of a register is where mstflint has it, on both sides of
// its range: all its bits and no other are set where it is, and the other way round.
func TestRegisterFields(t *testing.T) {
	layouts := map[string]*Attribute{}
	for a := range codecs {
		layouts[a.Name] = a
	}
	tested := map[string]int{}
	for line := range strings.Lines(registerFacts) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var at, low, bits int
		where, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := fmt.Sscanf(number, "0x%x.%d %d", &at, &low, &bits); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		register, name, _ := strings.Cut(where, ".")
		a := layouts[register]
		if a == nil {
			t.Errorf("there is no %s", register)
			continue
		}
		f := fieldNamed(a, name)
		if f == nil {
			t.Errorf("%s has no %s", register, name)
			continue
		}
		tested[register]++
		want := make([]byte, a.Size)
		if bits == 64 {
			binary.BigEndian.PutUint64(want[at:], 1<<64-1)
		} else {
			binary.BigEndian.PutUint32(want[at:], uint32((1<<bits-1)<<low))
		}
		for _, fill := range []byte{0, 0xff} {
			data := make([]byte, a.Size)
			for i := range data {
				data[i] = fill
				want[i] ^= fill
			}
			f.SetUint(data, map[byte]uint64{0: 1<<f.Bits - 1, 0xff: 0}[fill])
			if string(data) != string(want) {
				t.Errorf("%s in %#x: %x, want %x", where, fill, data, want)
			}
			for i := range want {
				want[i] ^= fill
			}
		}
	}
	for _, a := range Registers() {
		if a.Field("local_port") == nil && tested[a.Name] == 0 && a.Name != "MSPS" && a.Name != "MSGI" { // these hold texts and bytes alone
			t.Errorf("%s: no field is compared", a.Name)
		}
	}
}

// fieldNamed is a field by its name in the Go structure.
func fieldNamed(a *Attribute, name string) *Field {
	for i := range a.Fields {
		if a.Fields[i].Name == name || strings.EqualFold(strings.ReplaceAll(a.Fields[i].Script, "_", ""), name) {
			return &a.Fields[i]
		}
	}
	return nil
}
