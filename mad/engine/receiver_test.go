package engine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// TestMatching: an answer counts only where transaction ID, class and
// attribute are those asked for, and only once.
func TestMatching(t *testing.T) {
	change := func(offset int, bits byte) func(d Datagram) []Datagram {
		return func(d Datagram) []Datagram {
			d = respond(d)
			d.MAD[offset] ^= bits
			return []Datagram{d}
		}
	}
	timedOut := Counts{Sent: 1, TimedOut: 1}
	for _, test := range []struct {
		name    string
		answers func(d Datagram) []Datagram
		want    func(s *Counts)
		ok      bool
	}{
		{"upper half of the transaction ID", change(mad.TIDOffset, 0xff), func(s *Counts) {}, true},
		{"other use of the slot, earlier", change(mad.TIDOffset+4, 0x00), func(s *Counts) {}, true},
		{"use to come", change(mad.TIDOffset+5, 0xff), func(s *Counts) { s.Foreign = 1 }, false},
		{"other slot", change(mad.TIDOffset+7, 0x40), func(s *Counts) { s.Foreign = 1 }, false},
		{"directed for LID-routed", change(mad.ClassOffset, 0x80), func(s *Counts) { s.Foreign = 1 }, false},
		{"attribute", change(mad.AttributeOffset+1, 0x01), func(s *Counts) { s.Foreign = 1 }, false},
		{"request", change(mad.MethodOffset, byte(mad.Response)), func(s *Counts) { s.Unsolicited = 1 }, false},
		{"short", func(d Datagram) []Datagram {
			d = respond(d)
			d.MAD = d.MAD[:mad.HeaderSize-1]
			return []Datagram{d}
		}, func(s *Counts) { s.Foreign = 1 }, false},
		{"nothing", func(d Datagram) []Datagram { return []Datagram{{}} }, func(s *Counts) { s.Foreign = 1 }, false},
		{"twice", func(d Datagram) []Datagram { return []Datagram{respond(d), respond(d)} },
			func(s *Counts) { s.Duplicate = 1 }, true},
		{"foreign, then right", func(d Datagram) []Datagram {
			f := respond(d)
			f.MAD[mad.ClassOffset] = byte(mad.ClassPerf)
			return []Datagram{f, respond(d)}
		}, func(s *Counts) { s.Foreign = 1 }, true},
		{"undelivered of nobody", func(d Datagram) []Datagram {
			u := d
			u.MAD = slices.Clone(d.MAD[:mad.HeaderSize])
			u.MAD[mad.TIDOffset+7]++
			u.Undelivered = true
			return []Datagram{u, respond(d)}
		}, func(s *Counts) { s.Undelivered = 1 }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := New(newFake(func(f *fakeTransport, d Datagram) {
					for _, a := range test.answers(d) {
						f.deliver(a)
					}
				}), Options{Retries: -1})
				defer mustClose(t, e)
				c := getNodeInfo(5)
				e.Do(t.Context(), c)
				synctest.Wait()
				want := timedOut
				if test.ok {
					want = Counts{Sent: 1, Answered: 1}
				}
				test.want(&want)
				if diff := cmp.Diff(want, e.Stats().Counts); diff != "" {
					t.Errorf("stats (-want +got):\n%s", diff)
				}
				if test.ok != (c.Err == nil) {
					t.Errorf("error %v", c.Err)
				}
			})
		})
	}
}

// TestLate: what comes after the end is counted as what it is.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			time.AfterFunc(5*time.Second, func() { f.deliver(respond(d)) })
		}), Options{})
		defer mustClose(t, e)
		e.Do(t.Context(), getNodeInfo(5))
		time.Sleep(10 * time.Second) // virtual
		want := Counts{Sent: 6, Retried: 5, TimedOut: 1, Late: 6}
		if diff := cmp.Diff(want, e.Stats().Counts); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

// TestFreshBuffer: nothing of an earlier answer goes out with a call's next
// request, and nothing of a long answer stays behind a short one.
func TestFreshBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent [][]byte
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			sent = append(sent, slices.Clone(d.MAD))
			d = respond(d)
			for i := mad.HeaderSize; i < mad.Size; i++ {
				d.MAD[i] = 0xff
			}
			d.MAD = d.MAD[:len(d.MAD)-100*(len(sent)-1)]
			f.deliver(d)
		}), Options{})
		defer mustClose(t, e)
		var c Call
		for range 2 {
			c.PutSMP(mad.MethodGet, 0x11, 7, []byte{1, 2})
			c.SetLID(4)
			c.MAD[200] = 9
			e.Do(t.Context(), &c)
		}
		want := slices.Repeat([]byte{0}, mad.Size)
		copy(want, []byte{1, 1, 1, 1})
		want[mad.AttributeOffset+1], want[mad.ModifierOffset+3] = 0x11, 7
		want[mad.SMPDataOffset], want[mad.SMPDataOffset+1], want[200] = 1, 2, 9
		for i, got := range sent {
			clear(got[mad.TIDOffset : mad.TIDOffset+8])
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("request %d (-want +got):\n%s", i, diff)
			}
		}
		if got := fmt.Sprint(c.MAD[155], c.MAD[156], c.MAD[200]); got != "255 0 0" {
			t.Errorf("around the end of a short answer: %s", got)
		}
	})
}

// TestHopCount: an answer to a raw MAD counts whatever hop count that has.
func TestHopCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(newFake(func(f *fakeTransport, d Datagram) { f.deliver(respond(d)) }), Options{Write: true})
		defer mustClose(t, e)
		for _, hops := range []byte{0, mad.MaxHops, mad.MaxHops + 1, 255} {
			var c Call
			c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
			c.SetRoute(mad.DirectedRoute{0})
			c.MAD[mad.HopCountOffset] = hops
			if e.Do(t.Context(), &c); c.Err != nil {
				t.Errorf("%d hops: %v", hops, c.Err)
			}
		}
	})
}

// FuzzReceive: no datagram makes the engine panic, and a call ends at most once.
func FuzzReceive(f *testing.F) {
	request := getTable(1)
	for _, s := range segmentsOf(Datagram{MAD: request.MAD[:]}, make([]byte, 500), 8) {
		f.Add(s.MAD, uint8(0))
	}
	f.Add(request.MAD[:30], uint8(3))
	f.Fuzz(func(t *testing.T, stream []byte, flags uint8) {
		sent := make(chan uint32, 1000)
		fake := newFake(func(f *fakeTransport, d Datagram) {
			if !isControl(d.MAD) {
				sent <- binary.BigEndian.Uint32(d.MAD[mad.TIDOffset+4:])
			}
		})
		fake.traits.RMPP = flags&1 != 0
		e := New(fake, Options{Retries: -1})
		ends := 0
		c := getTable(1)
		c.Notify = CompleterFunc(func(*Call) { ends++ })
		e.Start(c)
		tid := <-sent
		for len(stream) > 0 {
			n := min(len(stream), mad.Size+int(flags&2)*100)
			m := slices.Clone(stream[:n])
			stream = stream[n:]
			if n >= mad.TIDOffset+8 && flags&4 == 0 {
				binary.BigEndian.PutUint32(m[mad.TIDOffset+4:], tid)
			}
			e.mu.Lock()
			e.receiver.receive(&Datagram{MAD: m, Undelivered: flags&8 != 0, Cut: flags&16 != 0}, e.calls.timers.now())
			e.unlock()
		}
		mustClose(t, e)
		if ends != 1 {
			t.Fatalf("ended %d times", ends)
		}
		checkEmpty(t, e)
	})
}

// TestAnswers: what answers, and what is answered. Of a baseboard's Sends bit 0
// of the modifier tells.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		class    mad.Class
		method   mad.Method
		modifier uint32
		want     string // is an answer, is answered
	}{
		{mad.ClassSubn, mad.MethodGet, 1, "false true"},
		{mad.ClassSubn, mad.MethodGetResp, 0, "true false"},
		{mad.ClassSubnAdm, mad.MethodReport, 0, "false true"},
		{mad.ClassSubnAdm, mad.MethodReportResp, 0, "true false"},
		{mad.ClassSubn, mad.MethodTrap, 1, "false false"},
		{mad.ClassSubn, mad.MethodTrapRepress, 1, "false false"},
		{mad.ClassComMgt, mad.MethodSend, 1, "false false"},
		{mad.ClassBM, mad.MethodSend, 0, "false true"},
		{mad.ClassBM, mad.MethodSend, 1, "true false"},
		{mad.ClassBM, mad.MethodSend, 2, "false true"},
		{mad.ClassBM, mad.MethodGet, 1, "false true"},
	} {
		h := mad.Header{Class: test.class, Method: test.method, Modifier: test.modifier}
		if got := fmt.Sprint(h.IsAnswer(), h.IsAnswered()); got != test.want {
			t.Errorf("%v %#02x, modifier %d: %s, want %s", test.class, uint8(test.method), test.modifier, got, test.want)
		}
	}
}

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
