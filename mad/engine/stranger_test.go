package engine

import (
	"encoding/binary"
	"errors"
	"maps"
	"testing"
	"testing/synctest"

	"fabsh/mad"
)

// TestStrangers: what does not come from whom was asked, or is of another part of
// a table, is counted and answers nothing; the call takes what comes later.
func TestStrangers(t *testing.T) {
	smp := func(attr *mad.Attribute, modifier uint32) func(c *Call) {
		return func(c *Call) {
			c.PutSMP(mad.MethodGet, attr.ID, modifier, nil)
			c.SetLID(0x180)
		}
	}
	route := func(c *Call) {
		c.PutSMP(mad.MethodGet, mad.AttrPortInfo.ID, 3, nil)
		c.SetRoute(mad.DirectedRoute{0, 1})
	}
	sa := func(c *Call) {
		c.PutSA(mad.MethodGet, mad.AttrNodeRecord.ID, 0, 0, nil)
		c.SetLID(0x180)
	}
	global := func(c *Call) {
		perf := perfCall(0x180)
		c.MAD, c.To = perf.MAD, perf.To
		c.To.HasGRH, c.To.GID = true, gid77
	}
	redirected := func(c *Call) { sa(c); c.To.QP = 0x1234 }
	permissive := func(c *Call) {
		c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
		c.SetLID(mad.PermissiveLID)
	}
	at := func(offset int, v byte) func(d *Datagram) { return func(d *Datagram) { d.MAD[offset] = v } }
	lid := func(lid mad.LID) func(d *Datagram) { return func(d *Datagram) { d.LID = lid } }
	modifier := func(m uint32) func(d *Datagram) {
		return func(d *Datagram) { binary.BigEndian.PutUint32(d.MAD[mad.ModifierOffset:], m) }
	}
	for _, test := range []struct {
		name    string
		request func(c *Call)
		change  func(d *Datagram)
		counts  bool // it is the answer
	}{
		{"the LID asked", sa, lid(0x180), true},
		{"another LID of the port, perhaps", sa, lid(0x1ff), true},
		{"a stranger", sa, lid(0x17f), false},
		{"a stranger, further on", sa, lid(0x200), false},
		{"no LID", sa, lid(0), false},
		{"another queue pair", sa, func(d *Datagram) { d.QP = 0x1234 }, false},
		{"an SMP from queue pair 1", smp(mad.AttrNodeInfo, 0), func(d *Datagram) { d.QP = 1 }, false},
		{"the queue pair of a redirection", redirected, nil, true},
		{"queue pair 1 instead of that of a redirection", redirected, func(d *Datagram) { d.QP = 1 }, true},
		{"another queue pair than that of a redirection", redirected, func(d *Datagram) { d.QP = 0x1235 }, false},
		{"another base version", sa, at(mad.BaseVersionOffset, 2), false},
		{"another class version", sa, at(mad.ClassVersionOffset, 1), false},
		{"the class version that the agent supports", sa, func(d *Datagram) { withStatus(*d, mad.StatusBadVersion); at(mad.ClassVersionOffset, 1)(d) }, true},
		{"the permissive LID", sa, lid(mad.PermissiveLID), false},
		{"an SMP from a stranger", smp(mad.AttrNodeInfo, 0), lid(42), false},
		{"whoever is at the permissive LID", permissive, lid(42), true},
		{"along a directed route", route, lid(42), true},
		{"along a directed route, another port", route, modifier(4), false},
		{"a global address", global, func(d *Datagram) { d.LID = 42 }, true},
		{"another global address", global, func(d *Datagram) { d.GID[15]++ }, false},
		{"without a global route header", global, func(d *Datagram) { d.HasGRH = false }, true},
		{"a stranger without a global route header", global, func(d *Datagram) { d.HasGRH, d.LID = false, 42 }, false},
		{"the block asked", smp(mad.AttrLinearForwardingTable, 3), modifier(3), true},
		{"another block", smp(mad.AttrLinearForwardingTable, 3), modifier(77), false},
		{"another block of the same position", smp(mad.AttrMulticastForwardingTable, 1<<28|3), modifier(1<<28 | 4), false},
		{"another position", smp(mad.AttrMulticastForwardingTable, 1<<28|3), modifier(3), false},
		{"another port's P_Keys", smp(mad.AttrPKeyTable, 5<<16|1), modifier(6<<16 | 1), false},
		{"another port's block", smp(mad.AttrVLArbitrationTable, 2<<16|5), modifier(2<<16 | 6), false},
		{"another way through the switch", smp(mad.AttrSLtoVLMappingTable, 1<<8|2), modifier(2<<8 | 2), false},
		{"a flag that the agent does not know", smp(mad.AttrPortInfo, 1<<31|7), modifier(7), true},
		{"the port, with flags of its own", smp(mad.AttrPortInfo, 7), modifier(1<<31 | 7), true},
		{"an order that the agent clears", smp(mad.AttrSMInfo, 1), modifier(0), true},
		{"an attribute unknown", func(c *Call) { c.PutSMP(mad.MethodGet, 0x77, 1, nil); c.SetLID(0x180) }, modifier(2), true},
		{"a redirection", global, func(d *Datagram) {
			withStatus(*d, mad.StatusRedirect)
			binary.BigEndian.PutUint16(d.MAD[mad.AttributeOffset:], 1)
		}, true},
		{"a stranger's redirection", sa, func(d *Datagram) { withStatus(*d, mad.StatusRedirect); d.LID = 42 }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const marked = mad.Size - 1
				e := New(newFake(func(f *fakeTransport, d Datagram) {
					first := respond(d)
					first.MAD[marked] = 1
					if test.change != nil {
						test.change(&first)
					}
					f.deliver(first)
					f.deliver(respond(d))
				}), Options{Write: true})
				defer mustClose(t, e)
				c := new(Call)
				test.request(c)
				if err := e.do(t.Context(), []*Call{c}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				redirected := c.Err != nil
				if first := c.MAD[marked] == 1 || redirected; first != test.counts || !redirected && c.Attempts != 1 {
					t.Errorf("the first counts: %v, want %v (%v)", first, test.counts, c.Err)
				}
				foreign := uint64(1)
				if test.counts {
					foreign = 0
				}
				if s := e.Stats().Counts; s.Foreign != foreign || s.Duplicate+s.Late != 1-foreign {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestKnownLMC: where it is known which LIDs a port has, only those are its own.
func TestKnownLMC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(newFake(nil), Options{})
		defer mustClose(t, e)
		counts := func(lid, from mad.LID) bool {
			a := Address{LID: lid}
			return a.SamePort(&Address{LID: from}, e.LMC(lid))
		}
		if !counts(8, 9) || !counts(8, 127) || counts(8, 128) {
			t.Error("nothing is known, and LIDs may differ in 7 bits")
		}
		for range 2 { // what was known before does not count
			e.KnowLMCs(maps.All(map[mad.LID]uint8{8: 0, 17: 2, 300: 9, 301: 0, 0xbfff: 7}))
			for _, test := range []struct {
				lid, from mad.LID
				want      bool
			}{{8, 8, true}, {8, 9, false}, {17, 16, true}, {19, 17, true}, {17, 20, false}, {20, 21, true}, {300, 383, true}, {301, 383, true}, {301, 384, false}, {0xbfff, 0xbf80, true}} {
				if got := counts(test.lid, test.from); got != test.want {
					t.Errorf("LID %d, from %d: %v", test.lid, test.from, got)
				}
			}
		}
	})
}

// TestIDs: two engines do not begin with the same transaction IDs, and what never
// was one's own is not late, but foreign.
func TestIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := map[uint64]bool{}
		for range 8 {
			e := New(newFake(func(f *fakeTransport, d Datagram) {
				tid := binary.BigEndian.Uint64(d.MAD[mad.TIDOffset:])
				began[tid] = true
				for _, other := range []uint64{1 << 16, 1 << 31, 1} {
					stray := respond(d)
					binary.BigEndian.PutUint64(stray.MAD[mad.TIDOffset:], tid+other)
					f.deliver(stray)
				}
				f.deliver(respond(d))
			}), Options{})
			c := getNodeInfo(7)
			e.Do(t.Context(), c)
			synctest.Wait()
			if s := e.Stats().Counts; c.Err != nil || s.Foreign != 3 || s.Late != 0 {
				t.Errorf("%v, %+v", c.Err, s)
			}
			mustClose(t, e)
		}
		if len(began) < 7 {
			t.Errorf("8 engines begin with %d IDs", len(began))
		}
	})
}

// TestSubscribesReadOnly: a read-only engine subscribes only for who ends it with
// the session, and lets nothing else through on that account.
func TestSubscribesReadOnly(t *testing.T) {
	for _, test := range []struct {
		name       string
		attr       mad.AttributeID
		method     mad.Method
		version    uint8
		subscribes bool
		sent       bool
	}{
		{"raw", mad.AttrInformInfo.ID, mad.MethodSet, 2, false, false},
		{"a subscriber's", mad.AttrInformInfo.ID, mad.MethodSet, 2, true, true},
		{"raw, of version 1", mad.AttrInformInfo.ID, mad.MethodInform, 1, false, false},
		{"a subscriber's, of version 1", mad.AttrInformInfo.ID, mad.MethodInform, 1, true, false},
		{"another attribute", mad.AttrServiceRecord.ID, mad.MethodSet, 2, true, false},
		{"another method", mad.AttrInformInfo.ID, mad.MethodDelete, 2, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			sent := false
			e := New(newFake(func(f *fakeTransport, d Datagram) { sent = true; f.deliver(respond(d)) }), Options{})
			defer mustClose(t, e)
			c := &Call{Subscribes: test.subscribes}
			c.PutSA(test.method, test.attr, 0, 0, nil)
			c.MAD[mad.ClassVersionOffset] = test.version
			c.SetLID(7)
			e.Do(t.Context(), c)
			if refused := errors.Is(c.Err, ErrReadOnly); sent != test.sent || refused == test.sent {
				t.Errorf("%s: sent %v, %v", test.name, sent, c.Err)
			}
		})
	}
}
