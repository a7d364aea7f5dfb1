package sim

import (
	"fmt"
	"strings"
	"testing"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestNoticeGet: an agent keeps its latest notice until a Set with its toggle clears it.
func TestNoticeGet(t *testing.T) {
	r := newRig(t, small)
	get := func(m mad.Method, toggle bool) string {
		t.Helper()
		ask := mad.Notice{NoticeToggle: toggle}
		status, data := r.smp(smp(m, mad.AttrSubnNotice, 0, r.lid("leaf-2"), append(encode(&ask), make([]byte, 80)...)[:64]))
		var n mad.Notice
		n.Decode(append(data[:64:64], make([]byte, 16)...))
		return fmt.Sprintf("%v %v %d %s toggle %v count %d; ", status, n.Type, n.IssuerLID, n.Event(mad.ClassSubn), n.NoticeToggle, n.NoticeCount)
	}
	var b strings.Builder
	b.WriteString(get(mad.MethodGet, false))
	r.Notices.SendTrap(130, r.named("leaf-2").GUID(), 2, nil)
	b.WriteString(get(mad.MethodGet, false))
	r.Notices.SendTrap(129, r.named("leaf-2").GUID(), 2, nil)
	b.WriteString(get(mad.MethodGet, false))
	b.WriteString(get(mad.MethodSet, true))
	b.WriteString(get(mad.MethodSet, false))
	r.Notices.SendTrap(128, r.named("leaf-2").GUID(), 2, nil)
	b.WriteString(get(mad.MethodGet, false))
	lid := r.lid("leaf-2")
	want := strings.ReplaceAll("ok empty LID  toggle false count 0; ok urgent LID trap 130 (excessive buffer overrun threshold reached) toggle false count 1; "+
		"ok urgent LID trap 129 (local link integrity threshold reached) toggle false count 2; ok urgent LID trap 129 (local link integrity threshold reached) toggle false count 2; "+
		"ok empty LID  toggle true count 0; ok urgent LID trap 128 (link state changed) toggle true count 1; ", "LID", fmt.Sprint(lid))
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	for _, name := range []string{"leaf-2", "node-0001 HCA-1"} {
		if c := r.portInfo(0, r.lid(name)).CapabilityMask; c&mad.CapabilityMaskIsNoticeSupported == 0 || c&mad.CapabilityMaskIsDRNoticeSupported == 0 {
			t.Errorf("%s announces %v", name, c)
		}
	}
}

// TestNoTraps: an agent without IsTrapSupported sends none, and keeps the notice.
func TestNoTraps(t *testing.T) {
	r := newRig(t, small)
	r.accept(r.conn, mad.ClassSubnAdm, mad.MethodReport)
	r.inform(r.conn, everything(), 1)
	if err := r.Edit.Port(r.named("leaf-2").GUID(), 0, func(i *mad.PortInfo) { i.CapabilityMask &^= mad.CapabilityMaskIsTrapSupported }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"leaf-1", "leaf-2"} {
		if err := r.Notices.SendTrap(130, r.named(name).GUID(), 2, nil); err != nil {
			t.Fatal(err)
		}
		if n := r.Notices.Kept(r.at(name, 0)); n.TrapNumber != 130 {
			t.Errorf("%s keeps %+v", name, n)
		}
	}
	if got := r.events(r.conn); len(got) != 1 {
		t.Errorf("events: %q", got)
	}
}

// TestBadKeys: a packet with a P_Key or a Q_Key that its destination does not have is
// dropped, counted, and reported by trap 257 or 258; two limited members do not hear each
// other.
func TestBadKeys(t *testing.T) {
	for _, tt := range []struct {
		name             string
		sender, at       uint16 // P_Keys
		qkey             uint32
		answered         bool
		trap             uint16
		key              uint32
		badPKey, badQKey uint16
	}{
		{"right keys", 0xffff, 0xffff, 0, true, 0, 0, 0, 0},
		{"a limited sender", 0x7fff, 0xffff, mad.GeneralQKey, true, 0, 0, 0, 0},
		{"two limited members", 0x7fff, 0x7fff, 0, false, 257, 0x7fff, 1, 0},
		{"another partition", 0x8001, 0xffff, 0, false, 257, 0x8001, 1, 0},
		{"another Q_Key", 0xffff, 0xffff, 7, false, 258, 7, 0, 1},
		{"no P_Key", 0, 0xffff, 0, false, 0, 0, 0, 0},
	} {
		r := newRig(t, small)
		r.accept(r.conn, mad.ClassSubnAdm, mad.MethodReport)
		r.inform(r.conn, everything(), 1)
		const from, at = "node-0002 HCA-1", "node-0003 HCA-1"
		for name, key := range map[string]uint16{from: tt.sender, at: tt.at} {
			block := make([]byte, 64)
			block[0], block[1] = byte(key>>8), byte(key)
			if status, _ := r.set(mad.AttrPKeyTable, 0, r.lid(name), block); status != 0 {
				t.Fatal(status)
			}
		}
		c := &engine.Call{}
		c.PutPerf(mad.MethodGet, mad.AttrPerfClassPortInfo.ID, 0, nil)
		c.SetLID(r.lid(at))
		c.To.QKey = tt.qkey
		answered := r.attach(from).ask(t, c)
		if n := len(r.events(r.conn)); (n == 1) != (tt.trap != 0) {
			t.Errorf("%s: %d reports", tt.name, n)
		}
		info := r.portInfo(1, r.lid(at))
		got := fmt.Sprint(answered, info.PKeyViolations, info.QKeyViolations)
		if want := fmt.Sprint(tt.answered, tt.badPKey, tt.badQKey); got != want {
			t.Errorf("%s: answered, violations %s, want %s", tt.name, got, want)
		}
		kept := r.Notices.Kept(r.at(at, 1))
		var bad mad.NoticeBadKey
		bad.Decode(kept.DataDetails[:])
		if kept.TrapNumber != tt.trap || bad.Key != tt.key || tt.trap != 0 && (bad.LIDAddr1 != r.lid(from) || bad.LIDAddr2 != r.lid(at) || bad.QP1 != 1 || bad.QP2 != 1) {
			t.Errorf("%s: trap %d %+v", tt.name, kept.TrapNumber, bad)
		}
	}
}

// TestManagers: agents of communication, baseboard and device management have what the port
// announces.
func TestManagers(t *testing.T) {
	r := newRig(t, small)
	const unit, other = "node-0002 HCA-1", "node-0003 HCA-1"
	if err := r.Edit.Port(r.named(unit).GUID(), 1, func(i *mad.PortInfo) {
		i.CapabilityMask |= mad.CapabilityMaskIsDeviceManagementSupported
	}); err != nil {
		t.Fatal(err)
	}
	ask := func(m mad.Method, a *mad.Attribute, modifier uint32, name string, key uint64, data []byte) (mad.Status, []byte) {
		t.Helper()
		c := &engine.Call{}
		c.PutMAD(mad.Header{Class: a.Class, ClassVersion: a.Version, Method: m, Attribute: a.ID, Modifier: modifier}, data)
		if a.Class == mad.ClassBM {
			for i := range 8 {
				c.MAD[mad.SMPKeyOffset+i] = byte(key >> (56 - 8*i))
			}
		}
		c.SetLID(r.lid(name))
		c.To.QP = 1
		if !r.conn.ask(t, c) {
			t.Fatalf("%s: no answer", a.Name)
		}
		return c.Header().Status, c.MAD[a.Offset():]
	}
	node := r.named(unit)
	guid := fmt.Sprintf("%016x", uint64(node.GUID()))
	for _, tt := range []struct {
		attr     *mad.Attribute
		modifier uint32
		name     string
		want     string // of a field
		status   mad.Status
	}{
		{mad.AttrComMgtClassPortInfo, 0, unit, "class_version 2", 0},
		{mad.AttrComMgtClassPortInfo, 0, "leaf-1", "", mad.StatusBadMethodAttribute},
		{mad.AttrBMClassPortInfo, 0, "leaf-1", "class_version 1", 0},
		{mad.AttrDevMgtClassPortInfo, 0, other, "class_version 1", 0},
		{mad.AttrIOUnitInfo, 0, unit, "max_controllers 1", 0},
		{mad.AttrIOUnitInfo, 0, other, "", mad.StatusBadMethodAttribute},
		{mad.AttrIOUnitInfo, 0, "leaf-1", "", mad.StatusBadMethodAttribute},
		{mad.AttrIOControllerProfile, 1, unit, "service_entries 1", 0},
		{mad.AttrIOControllerProfile, 1, unit, "protocol 264", 0},
		{mad.AttrIOControllerProfile, 2, unit, "", mad.StatusBadValue},
		{mad.AttrServiceEntries, 1 << 16, unit, "service_name SRP.T10:" + guid, 0},
		{mad.AttrServiceEntries, 1<<16 | 3<<8, unit, "service_name SRP.T10:" + guid, 0},
		{mad.AttrServiceEntries, 2 << 16, unit, "", mad.StatusBadValue},
		{mad.AttrServiceEntries, 1<<16 | 1, unit, "", mad.StatusBadValue},
	} {
		status, data := ask(mad.MethodGet, tt.attr, tt.modifier, tt.name, 0, nil)
		name, want, _ := strings.Cut(tt.want, " ")
		got := ""
		if f := tt.attr.Field(name); f != nil {
			got = fmt.Sprint(f.Uint(data))
			if f.Type == mad.FieldTypeText {
				got = f.Text(data)
			}
		}
		if status != tt.status || got != want {
			t.Errorf("%s %#x of %s: %v, %s %q; want %v, %q", tt.attr.Name, tt.modifier, tt.name, status, name, got, tt.status, want)
		}
	}
	key := make([]byte, 192)
	key[7], key[8] = 0x42, 9
	var lines []string
	bkey := func(m mad.Method, with uint64, data []byte) {
		status, data := ask(m, mad.AttrBKeyInfo, 0, unit, with, data)
		lines = append(lines, fmt.Sprintf("%v %d %d", status, data[7], data[8]))
	}
	bkey(mad.MethodGet, 0, nil)
	bkey(mad.MethodSet, 0, key)
	bkey(mad.MethodGet, 0, nil)
	bkey(mad.MethodGet, 0x42, nil)
	bkey(mad.MethodSet, 0, make([]byte, 192))
	bkey(mad.MethodSet, 0x42, make([]byte, 192))
	bkey(mad.MethodGet, 0, nil)
	if got, want := strings.Join(lines, "; "), "ok 0 0; ok 66 9; ok 0 9; ok 66 9; invalid attribute value 0 9; ok 0 0; ok 0 0"; got != want {
		t.Errorf("BKeyInfo: %s, want %s", got, want)
	}
}
