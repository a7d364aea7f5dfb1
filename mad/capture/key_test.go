package capture

import (
	"bytes"
	"encoding/binary"
	"testing"
	"testing/synctest"

	"fabsh/mad"
)

const secret = 0x1122334455667788

var secretBytes = binary.BigEndian.AppendUint64(nil, secret)

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
		{"SA PortInfoRecord", mad.ClassSubnAdm, mad.MethodGetResp, mad.AttrPortInfoRecord.ID, []int{36, 56 + 4}},
		{"SA SMInfoRecord", mad.ClassSubnAdm, mad.MethodGet, mad.AttrSMInfoRecord.ID, []int{36, 56 + 4 + 8}},
		{"baseboard", mad.ClassBM, mad.MethodGet, 1, []int{24}},
		{"congestion control", mad.ClassCongestion, mad.MethodGet, 0x11, []int{24}},
		{"vendor", mad.ClassVendor0A, mad.MethodGet, 0x51, []int{24}},
		{"vendor's ClassPortInfo", mad.ClassVendor0A, mad.MethodGet, 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := make([]byte, mad.Size)
			for i := range m {
				m[i] = 0xee
			}
			(&mad.Header{Class: tt.class, ClassVersion: tt.class.Version(), Method: tt.method, Attribute: tt.attr}).Put(m)
			want := bytes.Clone(m)
			for _, at := range tt.keys {
				copy(m[at:], secretBytes)
				clear(want[at:][:8])
			}
			maskKeys(m)
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
			maskKeys(m)
			got = append(got, m[mad.SADataOffset:]...)
		})
		if !bytes.Equal(got[:len(want)], want) {
			t.Errorf("records %d bytes apart: keys are left, or more than keys is gone", step)
		}
	}
}

// TestTrapKey: trap 256 tells a key, others have other things there.
func TestTrapKey(t *testing.T) {
	for number, masked := range map[uint16]bool{256: true, 257: false, 128: false} {
		for _, class := range []mad.Class{mad.ClassSubn, mad.ClassSubnAdm} {
			m := make([]byte, mad.Size)
			(&mad.Header{Class: class, ClassVersion: class.Version(), Method: mad.MethodTrap, Attribute: attrNotice}).Put(m)
			data := m[class.DataOffset():]
			data[0] = 0x81
			binary.BigEndian.PutUint16(data[4:], number)
			copy(data[24:], secretBytes)
			maskKeys(m)
			if bytes.Contains(m, secretBytes) == masked {
				t.Errorf("trap %d, %v: masked %v", number, class, !masked)
			}
		}
	}
}

// TestNoKeys: in a whole recording there are none, and requests with keys are
// answered from it.
func TestNoKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := func() []*mad.Call {
			set := new(mad.Call)
			set.PutSMP(mad.MethodSet, mad.AttrPortInfo.ID, 1, secretBytes)
			set.SetLID(9)
			get := smp(mad.AttrNodeInfo, 0, 1)
			query := table(mad.AttrPortInfoRecord)
			silent := smp(mad.AttrNodeInfo, 0, 2)
			for _, c := range []*mad.Call{set, get, silent} {
				copy(c.MAD[mad.SMPKeyOffset:], secretBytes)
			}
			copy(query.MAD[mad.SAKeyOffset:], secretBytes)
			return []*mad.Call{set, get, query, silent}
		}
		p := newPeer(mad.Traits{}, func(p *peer, d mad.Datagram, nth int) {
			switch {
			case mad.Class(d.MAD[offClass]) == mad.ClassSubnAdm:
				record := make([]byte, 72)
				copy(record[4:], secretBytes)
				p.after(ms, segments(d, record)[0])
			case d.MAD[mad.SMPInitialPathOffset+1] != 2:
				p.after(ms, respond(d, 1))
			}
		})
		var want []result
		recording := record(t, p, mad.Options{Write: true}, func(e *mad.Engine) { want = do(t, e, calls()...) })
		if bytes.Contains(recording, secretBytes[:4]) {
			t.Error("there is a key in the recording")
		}
		play(t, recording, mad.Options{Write: true}, func(e *mad.Engine) {
			for i, got := range do(t, e, calls()...) {
				if got.Err != want[i].Err {
					t.Errorf("call %d: got %s, want %s", i, got.Err, want[i].Err)
				}
			}
		})
	})
}
