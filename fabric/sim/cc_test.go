package sim

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// cc asks for congestion control with a key; ok is false without an answer.
func (r *rig) cc(m mad.Method, a *mad.Attribute, modifier uint32, name string, key uint64, e state.Encoder) (status mad.Status, data []byte, ok bool) {
	r.t.Helper()
	c := &engine.Call{}
	c.PutMAD(mad.Header{Class: a.Class, ClassVersion: a.Version, Method: m, Attribute: a.ID, Modifier: modifier}, encode(e)[:192])
	binary.BigEndian.PutUint64(c.MAD[mad.SMPKeyOffset:], key)
	c.SetLID(r.lid(name))
	ok = r.conn.ask(r.t, c)
	return c.Header().Status, c.MAD[a.Offset():], ok
}

func TestCongestionStatuses(t *testing.T) {
	r := newRig(t, small)
	for name, test := range map[string]struct {
		method   mad.Method
		attr     *mad.Attribute
		modifier uint32
		node     string
		want     mad.Status
	}{
		"ClassPortInfo":              {mad.MethodGet, mad.AttrCCClassPortInfo, 0, "leaf-1", 0},
		"of a switch":                {mad.MethodGet, mad.AttrSwitchCongestionSetting, 0, "leaf-1", 0},
		"of a switch, asked of a CA": {mad.MethodGet, mad.AttrSwitchCongestionSetting, 0, "node-0001 HCA-1", mad.StatusBadMethodAttribute},
		"ports, asked of a CA":       {mad.MethodGet, mad.AttrSwitchPortCongestionSetting, 0, "node-0001 HCA-1", mad.StatusBadMethodAttribute},
		"of a CA":                    {mad.MethodGet, mad.AttrCACongestionSetting, 0, "node-0001 HCA-1", 0},
		"of a CA, asked of a switch": {mad.MethodSet, mad.AttrCACongestionSetting, 0, "leaf-1", mad.StatusBadMethodAttribute},
		"the last block":             {mad.MethodGet, mad.AttrCongestionControlTable, 1, "node-0001 HCA-1", 0},
		"one block too many":         {mad.MethodGet, mad.AttrCongestionControlTable, 2, "node-0001 HCA-1", mad.StatusBadValue},
		"a modifier":                 {mad.MethodGet, mad.AttrCongestionInfo, 1, "leaf-1", mad.StatusBadValue},
		"Set of what is read-only":   {mad.MethodSet, mad.AttrCongestionInfo, 0, "leaf-1", mad.StatusBadMethodAttribute},
		"notices":                    {mad.MethodGet, mad.AttrCCNotice, 0, "leaf-1", mad.StatusBadMethodAttribute},
		"an unknown attribute":       {mad.MethodGet, &mad.Attribute{Class: mad.ClassCongestion, Version: 2, ID: 0x99}, 0, "leaf-1", mad.StatusBadMethodAttribute},
		"another version":            {mad.MethodGet, &mad.Attribute{Class: mad.ClassCongestion, Version: 1, ID: 1}, 0, "leaf-1", mad.StatusBadVersion},
		"baseboard":                  {mad.MethodGet, mad.AttrBMClassPortInfo, 0, "leaf-1", 0},
		"more of the baseboard":      {mad.MethodGet, mad.AttrBMNotice, 0, "leaf-1", mad.StatusBadMethodAttribute},
		"device":                     {mad.MethodGet, mad.AttrDevMgtClassPortInfo, 0, "node-0001 HCA-1", 0},
		"a vendor":                   {mad.MethodGet, mad.AttrVendor0AClassPortInfo, 0, "leaf-1", mad.StatusBadMethodAttribute},
		"communication":              {mad.MethodGet, mad.AttrComMgtClassPortInfo, 0, "leaf-1", mad.StatusBadMethodAttribute},
	} {
		if status, _, ok := r.cc(test.method, test.attr, test.modifier, test.node, 0, raw{}); status != test.want || !ok {
			t.Errorf("%s: %v, want %v", name, status, test.want)
		}
	}
}

// TestCongestionMaps: a ControlMap names what a Set changes.
func TestCongestionMaps(t *testing.T) {
	r := newRig(t, small)
	all := mad.SwitchCongestionSetting{VictimMask: [32]byte{1}, CreditMask: [32]byte{2}, Threshold: 3, PacketSize: 4, CSThreshold: 5, CSReturnDelay: 6, MarkingRate: 7}
	want := mad.SwitchCongestionSetting{}
	for bit, change := range []func(){
		func() { want.VictimMask[0] = 1 },
		func() { want.CreditMask[0] = 2 },
		func() { want.Threshold, want.PacketSize = 3, 4 },
		func() { want.CSThreshold, want.CSReturnDelay = 5, 6 },
		func() { want.MarkingRate = 7 },
	} {
		all.ControlMap = 1 << bit
		want.ControlMap = all.ControlMap
		change()
		r.cc(mad.MethodSet, mad.AttrSwitchCongestionSetting, 0, "leaf-1", 0, &all)
		_, data, _ := r.cc(mad.MethodGet, mad.AttrSwitchCongestionSetting, 0, "leaf-1", 0, raw{})
		var got mad.SwitchCongestionSetting
		got.Decode(data)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("bit %d (-want +got)\n%s", bit, diff)
		}
	}
	ca := mad.CACongestionSetting{PortControl: 1, ControlMap: 1<<2 | 1<<15}
	for sl := range ca.Entry {
		ca.Entry[sl].CCTITimer = uint16(sl + 1)
	}
	_, data, _ := r.cc(mad.MethodSet, mad.AttrCACongestionSetting, 0, "node-0001 HCA-1", 0, &ca)
	var got mad.CACongestionSetting
	got.Decode(data)
	for sl := range ca.Entry {
		if sl != 2 && sl != 15 {
			ca.Entry[sl].CCTITimer = 0
		}
	}
	if diff := cmp.Diff(ca, got); diff != "" {
		t.Errorf("CA (-want +got)\n%s", diff)
	}
}

// TestCongestionKey: without the key a Set gets no answer and is counted, and a
// protected key is not shown.
func TestCongestionKey(t *testing.T) {
	r := newRig(t, small)
	set := func(key uint64, info mad.CongestionKeyInfo) bool {
		_, _, ok := r.cc(mad.MethodSet, mad.AttrCongestionKeyInfo, 0, "leaf-1", key, &info)
		return ok
	}
	get := func(key uint64) (got mad.CongestionKeyInfo) {
		_, data, _ := r.cc(mad.MethodGet, mad.AttrCongestionKeyInfo, 0, "leaf-1", key, raw{})
		got.Decode(data)
		return got
	}
	open := mad.CongestionKeyInfo{CCKey: 5}
	if !set(0, open) || set(4, mad.CongestionKeyInfo{}) {
		t.Error("the key guards nothing, or all")
	}
	open.CCKeyViolations = 1
	if diff := cmp.Diff(open, get(0)); diff != "" {
		t.Errorf("open (-want +got)\n%s", diff)
	}
	hidden := mad.CongestionKeyInfo{CCKey: 5, CCKeyProtectBit: true, CCKeyViolations: 7}
	if !set(5, hidden) {
		t.Error("who knows the key gets no answer")
	}
	if diff := cmp.Diff(hidden, get(5)); diff != "" {
		t.Errorf("with the key (-want +got)\n%s", diff)
	}
	hidden.CCKey = 0
	if diff := cmp.Diff(hidden, get(0)); diff != "" {
		t.Errorf("without the key (-want +got)\n%s", diff)
	}
	if _, _, ok := r.cc(mad.MethodSet, mad.AttrSwitchCongestionSetting, 0, "leaf-1", 0, raw{}); ok {
		t.Error("without the key a Set of another attribute is answered")
	}
	if _, _, ok := r.cc(mad.MethodSet, mad.AttrSwitchCongestionSetting, 0, "spine-1", 0, raw{}); !ok {
		t.Error("another switch has the key too")
	}
}
