package capture

import (
	"bytes"
	"encoding/binary"
	"testing"
	"testing/synctest"

	"fabsh/mad"
	"fabsh/mad/engine"
)

const secret = 0x1122334455667788

var secretBytes = binary.BigEndian.AppendUint64(nil, secret)

// subnAdm1 is subnet administration of class version 1.
const subnAdm1 mad.Class = 0xff

// TestKeys: no key is left wherever one can be, and nothing else is touched.
func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		name   string
		class  mad.Class
		method mad.Method
		attr   mad.AttributeID
		keys   []int // where keys stand
	}{
		{"SMP by LID", mad.ClassSubn, mad.MethodGet, mad.AttrNodeInfo.ID, []int{24}},
		{"SMP by route", mad.ClassSubnDirected, mad.MethodGetResp, mad.AttrNodeInfo.ID, []int{24}},
		{"PortInfo", mad.ClassSubnDirected, mad.MethodSet, mad.AttrPortInfo.ID, []int{24, 64}},
		{"SMInfo", mad.ClassSubn, mad.MethodGetResp, mad.AttrSMInfo.ID, []int{24, 64 + 8}},
		{"Perf", mad.ClassPerf, mad.MethodGet, mad.AttrPortCounters.ID, nil},
		{"SA", mad.ClassSubnAdm, mad.MethodGet, mad.AttrNodeRecord.ID, []int{36}},
		{"SA of version 1", subnAdm1, mad.MethodGet, mad.AttrNodeRecord.ID, []int{32}},
		{"SA PortInfoRecord of version 1", subnAdm1, mad.MethodGetResp, mad.AttrPortInfoRecord.ID, []int{32, 64 + 4}},
		{"SA PortInfoRecord", mad.ClassSubnAdm, mad.MethodGetResp, mad.AttrPortInfoRecord.ID, []int{36, 56 + 4}},
		{"SA SMInfoRecord", mad.ClassSubnAdm, mad.MethodGet, mad.AttrSMInfoRecord.ID, []int{36, 56 + 4 + 8}},
		{"baseboard", mad.ClassBM, mad.MethodGet, 1, []int{24}},
		{"congestion control", mad.ClassCongestion, mad.MethodGet, 0x11, []int{24}},
		{"vendor", mad.ClassVendor0A, mad.MethodGet, 0x51, []int{24}},
		{"vendor's ClassPortInfo", mad.ClassVendor0A, mad.MethodGet, 1, nil},
		{"SA ServiceRecord", mad.ClassSubnAdm, mad.MethodSet, mad.AttrServiceRecord.ID, []int{36, 56 + 32, 56 + 40}},
		{"CC_Key", mad.ClassCongestion, mad.MethodSet, mad.AttrCongestionKeyInfo.ID, []int{24, 64}},
		{"B_Key", mad.ClassBM, mad.MethodGetResp, mad.AttrBKeyInfo.ID, []int{24, 64}},
		{"Mellanox", mad.ClassVendor0A, mad.MethodGet, mad.AttrGeneralInfo.ID, []int{24}},
		{"Mellanox, unknown", mad.ClassVendor0A, mad.MethodGet, 0x77, []int{24}},
		{"old Mellanox, unknown", mad.ClassVendor09, mad.MethodSet, 0x77, []int{24}},
		{"SMP of Mellanox", mad.ClassSubn, mad.MethodSet, mad.AttrMlnxConfigSpace.ID, []int{24, 64}},
		{"other vendor", mad.Class(0x0f), mad.MethodGet, 1, nil},
		{"vendor with OUI", mad.ClassPing, mad.MethodGet, 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := make([]byte, mad.Size)
			for i := range m {
				m[i] = 0xee
			}
			version := tt.class.Version()
			if tt.class == subnAdm1 {
				tt.class, version = mad.ClassSubnAdm, 1
			}
			(&mad.Header{Class: tt.class, ClassVersion: version, Method: tt.method, Attribute: tt.attr}).Put(m)
			want := bytes.Clone(m)
			for _, at := range tt.keys {
				copy(m[at:], secretBytes)
				clear(want[at:][:8])
			}
			mad.MaskKeys(m)
			if !bytes.Equal(m, want) {
				t.Errorf("got\n%x\nwant\n%x", m, want)
			}
		})
	}
}

// TestTableKeys: in the segments of a table a key may begin in one and end in
// the next.
func TestTableKeys(t *testing.T) {
	for _, step := range []int{72, 80, 104, 200} {
		data := bytes.Repeat([]byte{0xee}, 50*step)
		want := bytes.Clone(data)
		for at := 4; at < len(data); at += step {
			copy(data[at:], secretBytes)
			clear(want[at:][:8])
		}
		m := make([]byte, mad.SADataOffset)
		(&mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodGetTableResp, Attribute: mad.AttrPortInfoRecord.ID}).Put(m)
		binary.BigEndian.PutUint16(m[mad.SAAttrOffsetOffset:], uint16(step/8))
		var got []byte
		split(append(m, data...), func(m []byte) {
			mad.MaskKeys(m)
			got = append(got, m[mad.SADataOffset:]...)
		})
		if !bytes.Equal(got[:len(want)], want) {
			t.Errorf("records %d bytes apart: keys are left, or more than keys is gone", step)
		}
	}
}

// TestNoticeKeys: a Notice of a wrong key tells it, others have other things
// there.
func TestNoticeKeys(t *testing.T) {
	for _, c := range []struct {
		class  mad.Class
		method mad.Method
		number uint16
		at     int // the key, in the Notice's data; 0: none
	}{
		{mad.ClassSubn, mad.MethodTrap, 256, 24},
		{mad.ClassSubn, mad.MethodGetResp, 256, 24},
		{mad.ClassSubnAdm, mad.MethodReport, 256, 24},
		{mad.ClassBM, mad.MethodTrap, 259, 24},
		{mad.ClassCongestion, mad.MethodTrap, 0, 26},
		{mad.ClassSubn, mad.MethodTrap, 257, 0},
		{mad.ClassSubnAdm, mad.MethodReport, 128, 0},
	} {
		m := make([]byte, mad.Size)
		(&mad.Header{Class: c.class, ClassVersion: c.class.Version(), Method: c.method, Attribute: mad.AttrSubnNotice.ID}).Put(m)
		data := m[c.class.DataOffset():]
		data[0] = 0x81 // generic
		binary.BigEndian.PutUint16(data[4:], c.number)
		for at := 10; at < 64; at++ {
			data[at] = 0xee
		}
		copy(data[max(24, c.at):], secretBytes)
		want := bytes.Clone(m)
		if c.at > 0 {
			clear(want[c.class.DataOffset()+c.at:][:8])
		}
		if mad.MaskKeys(m); !bytes.Equal(m, want) {
			t.Errorf("%v of trap %d, %v: got\n%x\nwant\n%x", c.method.Name(c.class, c.class.Version()), c.number, c.class, m, want)
		}
	}
}

// TestAllKeys: of every attribute there is, with each of its variants, what is
// declared a key is masked, in requests and in answers.
func TestAllKeys(t *testing.T) {
	found := 0
	for _, a := range mad.Attributes() {
		for _, method := range append(a.Methods, a.Methods1...) {
			for _, resp := range []mad.Method{0, mad.Response} {
				m := bytes.Repeat([]byte{0xee}, mad.Size)
				(&mad.Header{Class: a.Class, ClassVersion: a.Version, Method: method | resp, Attribute: a.ID}).Put(m)
				if a.Class == mad.ClassSubnAdm {
					clear(m[mad.RMPPOffset:mad.SAKeyOffset])
					binary.BigEndian.PutUint16(m[mad.SAAttrOffsetOffset:], uint16((a.Size+7)/8))
				}
				mad.MaskKeys(m)
				for _, f := range a.Flat() {
					if !f.Key {
						continue
					}
					found++
					for _, b := range f.Bytes(m[a.Offset():]) {
						if b != 0 {
							t.Errorf("%v(%s) leaves %s", method|resp, a.Name, f.Name)
							break
						}
					}
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d keys were there", found)
	}
}

// TestNoKeys: in a whole recording there are none, and requests with keys are
// answered from it.
func TestNoKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := func() []*engine.Call {
			set := new(engine.Call)
			set.PutSMP(mad.MethodSet, mad.AttrPortInfo.ID, 1, secretBytes)
			set.SetLID(9)
			get := smp(mad.AttrNodeInfo, 0, 1)
			query := table(mad.AttrPortInfoRecord)
			silent := smp(mad.AttrNodeInfo, 0, 2)
			for _, c := range []*engine.Call{set, get, silent} {
				copy(c.MAD[mad.SMPKeyOffset:], secretBytes)
			}
			copy(query.MAD[mad.SAKeyOffset:], secretBytes)
			return []*engine.Call{set, get, query, silent}
		}
		p := newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) {
			switch {
			case mad.Class(d.MAD[mad.ClassOffset]) == mad.ClassSubnAdm:
				record := make([]byte, 72)
				copy(record[4:], secretBytes)
				p.after(ms, segments(d, record)[0])
			case d.MAD[mad.SMPInitialPathOffset+1] != 2:
				p.after(ms, respond(d, 1))
			}
		})
		var want []result
		recording := record(t, p, engine.Options{Write: true}, func(e *engine.Engine) { want = do(t, e, calls()...) })
		if bytes.Contains(recording, secretBytes[:4]) {
			t.Error("there is a key in the recording")
		}
		play(t, recording, engine.Options{Write: true}, func(e *engine.Engine) {
			for i, got := range do(t, e, calls()...) {
				if got.Err != want[i].Err {
					t.Errorf("call %d: got %s, want %s", i, got.Err, want[i].Err)
				}
			}
		})
	})
}
