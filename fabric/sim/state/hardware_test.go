package state

import (
	"bytes"
	"testing"

	"fabsh/mad"
)

func view(num int) RegisterView {
	return RegisterView{Uptime: 1 << 40, Port: func(n int) RegisterPort {
		return RegisterPort{Cabled: n <= num, Up: n <= num, Rate: 4e11, Lanes: 4, CMIS: n%2 == 0}
	}}
}

// TestQuery: a device answers for each register that is known, as the generated
// codec reads it.
func TestQuery(t *testing.T) {
	h := NewHardware(0x2c903001000a0, true)
	for _, a := range mad.Registers() {
		content := make([]byte, mad.GMPRegisterSize)
		for name, value := range map[string]uint64{"local_port": 3, "pnat": 1, "grp": 0x16, "page_select": 1, "i2c_device_address": 0x50, "size": 48} {
			if f := a.Field(name); f != nil {
				f.SetUint(content, value)
			}
		}
		asked := bytes.Clone(content)
		if status := h.Query(a.Register, content, view(8)); status != mad.RegisterStatusOK {
			t.Errorf("%s: %v", a.Name, status)
		}
		if bytes.Equal(content, asked) {
			t.Errorf("%s says nothing", a.Name)
		}
	}
	if status := NewHardware(1, false).Query(mad.LayoutMFCR.Register, make([]byte, 220), view(1)); !status.Unsupported() {
		t.Errorf("an adapter has fans: %v", status)
	}
}

// TestBreak: each fault is one of a port or of a node, and changes what is answered.
func TestBreak(t *testing.T) {
	for _, name := range hardwareFaultNames() {
		h, ok := NewHardware(5, true), false
		for num := range 2 {
			ok = h.Break(name, num) == nil || ok
		}
		if !ok {
			t.Errorf("%s: neither at a port nor at a node", name)
		}
	}
	if NewHardware(5, false).Break("fan", 0) == nil || NewHardware(5, true).Break("ber", 0) == nil || NewHardware(5, true).Break("rust", 1) == nil {
		t.Error("a fault is put where there is none")
	}
}

// FuzzQuery: no content makes a query panic, or write beyond it.
func FuzzQuery(f *testing.F) {
	for _, a := range mad.Registers() {
		f.Add(a.Register, make([]byte, 8), 1e-9)
	}
	f.Fuzz(func(t *testing.T, id uint16, data []byte, ber float64) {
		content := make([]byte, mad.GMPRegisterSize)
		copy(content, data)
		h := NewHardware(mad.GUID(id), id%2 == 0)
		if ber >= 0 && ber <= 0.5 {
			m := h.Module(1)
			m.BER = ber
			h.SetModule(1, m)
		}
		h.Query(id, content, view(4))
	})
}
