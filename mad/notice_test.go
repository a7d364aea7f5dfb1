package mad

import (
	"slices"
	"testing"
)

// TestTraps: the list has all traps that choose a variant of Notice.
func TestTraps(t *testing.T) {
	var listed, known []uint16
	for _, i := range Traps() {
		listed = append(listed, i.Number)
	}
	for _, a := range Attributes() {
		if a.Name != "Notice" {
			continue
		}
		for _, v := range a.Variants {
			for _, c := range v.When {
				for _, r := range c.Values {
					for n := r[0]; c.Name == "trap_number" && n <= r[1]; n++ {
						known = append(known, uint16(n))
					}
				}
			}
		}
	}
	for _, n := range known {
		if !slices.Contains(listed, n) {
			t.Errorf("trap %d is not in the list", n)
		}
	}
}

// TestEvent: what a notice reports, in words.
func TestEvent(t *testing.T) {
	for _, tt := range []struct {
		class Class
		n     Notice
		want  string
	}{
		{ClassSubn, Notice{IsGeneric: true, TrapNumber: 128}, "trap 128 (link state changed)"},
		{ClassSubnDirected, Notice{IsGeneric: true, TrapNumber: 256}, "trap 256 (bad M_Key)"},
		{ClassSubnAdm, Notice{IsGeneric: true, TrapNumber: 64}, "trap 64 (port in service)"},
		{ClassBM, Notice{IsGeneric: true, TrapNumber: 259}, "trap 259 (bad B_Key)"},
		{ClassCongestion, Notice{IsGeneric: true}, "trap 0 (bad CC_Key)"},
		{ClassSubn, Notice{IsGeneric: true, TrapNumber: 999}, "trap 999"},
		{ClassSubn, Notice{IsGeneric: true, Type: NoticeTypeEmpty}, ""},
		{ClassSubn, Notice{ProducerType: 0x2c9, TrapNumber: 66}, "trap of vendor 0x0002c9, device 0x0042"},
	} {
		if got := tt.n.Event(tt.class); got != tt.want {
			t.Errorf("%v %d: %q, want %q", tt.class, tt.n.TrapNumber, got, tt.want)
		}
	}
}
