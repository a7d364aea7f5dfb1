package engine

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"

	"fabsh/mad"
)

// TestTruncated: what ends before the attribute does is an error, and is not completed
// with zeros. A record whose AttributeOffset is its length may be shorter.
func TestTruncated(t *testing.T) {
	smp := func(c *Call) { c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil) }
	unknown := func(c *Call) { c.PutSMP(mad.MethodGet, 0x77, 0, nil) }
	record := func(c *Call) { c.PutSA(mad.MethodGet, mad.AttrNodeRecord.ID, 0, 0, nil) }
	table := func(c *Call) { c.PutSA(mad.MethodGetTable, mad.AttrNodeRecord.ID, 0, 0, nil) }
	offset := func(units uint16) func(m []byte) {
		return func(m []byte) { binary.BigEndian.PutUint16(m[mad.SAAttrOffsetOffset:], units) }
	}
	status := func(s mad.Status) func(m []byte) {
		return func(m []byte) { binary.BigEndian.PutUint16(m[mad.StatusOffset:], uint16(s)) }
	}
	segment := func(flags mad.RMPPFlags, length uint32) func(m []byte) {
		return func(m []byte) {
			h := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: mad.RMPPFlagsActive | mad.RMPPFlagsFirst | flags, SegmentNumber: 1, PayloadLength: length}
			h.Encode(m[mad.RMPPOffset:])
			offset(14)(m)
		}
	}
	for _, x := range []struct {
		name    string
		request func(*Call)
		change  func(m []byte)
		length  int
		want    string // the cause; "": it is the answer
	}{
		{"whole", smp, nil, mad.Size, ""},
		{"all of NodeInfo", smp, nil, 104, ""},
		{"a part of NodeInfo", smp, nil, 103, "truncated answer: 103 bytes; NodeInfo needs 104"},
		{"no data", smp, nil, 30, "truncated answer: 30 bytes; NodeInfo needs 104"},
		{"a refusal", smp, status(mad.StatusBadMethod), 30, "method not supported"},
		{"an unknown attribute", unknown, nil, 64, ""},
		{"an unknown attribute without data", unknown, nil, 63, "truncated answer: 63 bytes; its header needs 64"},
		{"a record", record, offset(14), 56 + 108, ""},
		{"a part of a record", record, offset(14), 56 + 107, "truncated answer: 163 bytes; NodeRecord needs 164"},
		{"a record without AttributeOffset", record, nil, 56 + 107, "truncated answer: 163 bytes; NodeRecord needs 164"},
		{"a shorter record", record, offset(6), 56 + 48, ""},
		{"a part of a shorter record", record, offset(6), 56 + 47, "truncated answer: 103 bytes; NodeRecord needs 104"},
		{"a record without a header", record, offset(6), 50, "truncated answer: 50 bytes; NodeRecord needs 164"},
		{"an empty table", table, nil, 56, ""},
		{"a table without a header", table, nil, 30, "truncated answer: 30 bytes; its header needs 56"},
		{"a segment", table, segment(mad.RMPPFlagsLast, 20+112), 56 + 112, ""},
		{"a part of a segment", table, segment(mad.RMPPFlagsLast, 20+112), 56 + 111, "truncated answer: 167 bytes; its segment needs 168"},
		{"a part of the first segment of many", table, segment(0, 20+300), 200, "truncated answer: 200 bytes; its segment needs 256"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := New(newFake(func(f *fakeTransport, d Datagram) {
					d = respond(d)
					if x.change != nil {
						x.change(d.MAD)
					}
					d.MAD = d.MAD[:x.length]
					f.deliver(d)
				}), Options{Retries: -1, Write: true})
				defer mustClose(t, e)
				c := new(Call)
				x.request(c)
				c.SetLID(7)
				e.Do(t.Context(), c)
				got := ""
				if err, _ := c.Err.(*Error); err != nil {
					got = err.Status.String()
					if err.Err != nil {
						got = fmt.Sprint(err.Err)
					}
				}
				if got != x.want {
					t.Errorf("got %q, want %q", got, x.want)
				}
			})
		})
	}
}

// TestTruncatedTrap: a notice that is not whole is not delivered.
func TestTruncatedTrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(nil)
		e := New(f, Options{Write: true})
		defer mustClose(t, e)
		l, err := e.Listen(mad.ClassSubn, mad.MethodTrap, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		m := make([]byte, mad.Size)
		(&mad.Header{Class: mad.ClassSubn, ClassVersion: 1, Method: mad.MethodTrap, Attribute: mad.AttrSubnNotice.ID}).Put(m)
		for _, n := range []int{30, mad.SMPDataOffset + mad.AttrSubnNotice.Size - 1, mad.SMPDataOffset + mad.AttrSubnNotice.Size} {
			f.deliver(Datagram{MAD: m[:n]})
		}
		synctest.Wait()
		var d Datagram
		if _, err := l.Next(t.Context(), &d); err != nil {
			t.Fatal(err)
		}
		if s := e.Stats().Counts; s.Unsolicited != 3 || s.Foreign != 2 {
			t.Errorf("%+v", s)
		}
	})
}
