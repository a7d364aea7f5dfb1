package capture

import (
	"encoding/binary"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

const ms = time.Millisecond

// TestReplay: whatever became of a call when it was recorded becomes of it
// again, in no time: the answer or the error, after as many attempts.
func TestReplay(t *testing.T) {
	get := func() []*engine.Call { return []*engine.Call{smp(mad.AttrNodeInfo, 0, 1)} }
	big := count(10*mad.SegmentData + 77)
	getTable := func() []*engine.Call { return []*engine.Call{table(mad.AttrNodeRecord)} }
	for _, tt := range []struct {
		name   string
		traits engine.Traits
		calls  func() []*engine.Call
		answer func(p *peer, d engine.Datagram, nth int)
		want   string // of the first call's error
	}{
		{"answer", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {
			p.after(5*ms, respond(d, 1))
		}, ""},
		{"answer to the second attempt", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {
			if nth == 1 {
				p.after(5*ms, respond(d, 1))
			}
		}, ""},
		{"answer to the first attempt after the second", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {
			if nth == 0 {
				p.after(1200*ms, respond(d, 1))
			}
		}, ""},
		{"answers to both attempts", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {
			p.after(1500*ms, respond(d, byte(nth)))
		}, ""},
		{"silence", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {},
			"SubnGet(NodeInfo) to route 0,1: timed out after 6 attempts in 3s"},
		{"too late", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {
			if nth == 0 {
				p.after(3500*ms, respond(d, 1))
			}
		}, "SubnGet(NodeInfo) to route 0,1: timed out after 6 attempts in 3s"},
		{"undelivered", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {
			d.Undelivered = true
			p.after(0, d)
		}, "SubnGet(NodeInfo) to route 0,1: timed out after 6 attempts"},
		{"status", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {
			d = respond(d, 0)
			binary.BigEndian.PutUint16(d.MAD[mad.StatusOffset:], 0x8000|0x000c)
			p.after(ms, d)
		}, "SubnGet(NodeInfo) to route 0,1: method/attribute combination not supported (status 0x000c)"},
		{"busy at first", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {
			a := respond(d, 1)
			if nth < 3 {
				binary.BigEndian.PutUint16(a.MAD[mad.StatusOffset:], uint16(mad.StatusBusy))
			}
			p.after(ms, a)
		}, ""},
		{"busy for ever", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {
			d = respond(d, 1)
			binary.BigEndian.PutUint16(d.MAD[mad.StatusOffset:], uint16(mad.StatusBusy))
			p.after(ms, d)
		}, "SubnGet(NodeInfo) to route 0,1: busy (status 0x0001) after 10 attempts"},
		{"busy, then silent", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {
			if nth == 0 {
				d = respond(d, 1)
				binary.BigEndian.PutUint16(d.MAD[mad.StatusOffset:], uint16(mad.StatusBusy))
				p.after(ms, d)
			}
		}, "SubnGet(NodeInfo) to route 0,1: timed out after 7 attempts in 3s"},
		{"table", engine.Traits{}, getTable, func(p *peer, d engine.Datagram, nth int) {
			if nth == 0 {
				for i, s := range segments(d, big) {
					p.after(time.Duration(i)*ms, s)
				}
			}
		}, ""},
		{"table out of order, with repetitions", engine.Traits{}, getTable, func(p *peer, d engine.Datagram, nth int) {
			if nth == 0 {
				list := segments(d, big)
				slices.Reverse(list[1:])
				for i, s := range append(list, list...) {
					p.after(time.Duration(i)*ms, s)
				}
			}
		}, ""},
		{"table whole at the second attempt", engine.Traits{NoACK: true}, getTable, func(p *peer, d engine.Datagram, nth int) {
			for i, s := range segments(d, big) {
				if nth == 1 || i != 4 {
					p.after(time.Duration(i)*ms, s)
				}
			}
		}, ""},
		{"table never whole", engine.Traits{NoACK: true}, getTable, func(p *peer, d engine.Datagram, nth int) {
			for i, s := range segments(d, big)[:5] {
				p.after(time.Duration(i)*ms, s)
			}
		}, "SubnAdmGetTable(NodeRecord) to LID 3: table incomplete, segment 6: timed out after 3 attempts in 3s"},
		{"table too late", engine.Traits{NoACK: true}, getTable, func(p *peer, d engine.Datagram, nth int) {
			for i, s := range segments(d, big) {
				if nth == 0 {
					p.after(time.Duration(4000*i)*ms, s)
				}
			}
		}, "SubnAdmGetTable(NodeRecord) to LID 3: timed out after 3 attempts in 3s"},
		{"rest of a table too late", engine.Traits{NoACK: true}, getTable, func(p *peer, d engine.Datagram, nth int) {
			for i, s := range segments(d, big) {
				if nth == 2 {
					p.after(time.Duration(4000*i)*ms, s)
				}
			}
		}, "SubnAdmGetTable(NodeRecord) to LID 3: table incomplete, segment 2: timed out after 3 attempts in 3s"},
		{"answer that is no segment, though of RMPP's version", engine.Traits{}, func() []*engine.Call {
			c := table(mad.AttrNodeRecord)
			c.MAD[3] = byte(mad.MethodGet)
			return []*engine.Call{c}
		}, func(p *peer, d engine.Datagram, nth int) {
			d = respond(d, 1)
			d.MAD[mad.RMPPOffset] = 1
			p.after(ms, d)
		}, ""},
		{"answer to something else", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {
			other := respond(d, 2)
			other.MAD[17]++
			p.after(ms, other)
			other = respond(d, 2)
			other.MAD[mad.ClassOffset] = byte(mad.ClassSubn)
			p.after(ms, other)
			p.after(2*ms, respond(d, 1))
		}, ""},
		{"a request with the same number", engine.Traits{}, get, func(p *peer, d engine.Datagram, nth int) {
			p.after(ms, d)
			p.after(2*ms, respond(d, 1))
		}, ""},
		{"table aborted", engine.Traits{}, getTable, func(p *peer, d engine.Datagram, nth int) {
			if nth == 0 {
				list := segments(d, big)
				p.after(0, list[0])
				list[1].MAD[mad.RMPPOffset+1], list[1].MAD[mad.RMPPOffset+3] = byte(mad.RMPPTypeAbort), byte(mad.RMPPStatusResourcesExhausted)
				p.after(ms, list[1])
			}
		}, "SubnAdmGetTable(NodeRecord) to LID 3: the sender aborted the table: RMPP status 1, resources exhausted: retry later, or request less at once"},
		{"malformed table", engine.Traits{}, getTable, func(p *peer, d engine.Datagram, nth int) {
			if nth == 0 {
				s := segments(d, big)[0]
				s.MAD[mad.RMPPOffset+7] = 2
				p.after(0, s)
			}
		}, "SubnAdmGetTable(NodeRecord) to LID 3: malformed table: segment number 2 does not go with the flag of the first segment"},
		{"table from a transport that does RMPP", engine.Traits{RMPP: true}, getTable, func(p *peer, d engine.Datagram, nth int) {
			d = respond(d, 0)
			d.MAD = append(d.MAD[:mad.SADataOffset], big...)
			p.after(ms, d)
		}, ""},
		{"short table from one that does RMPP", engine.Traits{RMPP: true}, getTable, func(p *peer, d engine.Datagram, nth int) {
			d = segments(d, big[:100])[0]
			d.MAD = d.MAD[:mad.SADataOffset+100]
			p.after(ms, d)
		}, ""},
		{"no records", engine.Traits{NoACK: true}, getTable, func(p *peer, d engine.Datagram, nth int) {
			d = respond(d, 0)
			d.MAD = d.MAD[:mad.SADataOffset]
			p.after(ms, d)
		}, ""},
		{"table whose length is that of the datagram", engine.Traits{NoACK: true}, getTable, func(p *peer, d engine.Datagram, nth int) {
			d = respond(d, 0)
			d.MAD = append(d.MAD[:mad.SADataOffset], big[:100]...)
			p.after(ms, d)
		}, ""},
		{"table cut", engine.Traits{NoACK: true}, getTable, func(p *peer, d engine.Datagram, nth int) {
			d = respond(d, 0)
			d.Cut = true
			p.after(ms, d)
		}, "SubnAdmGetTable(NodeRecord) to LID 3: table cut by the transport, which cannot carry long tables; request fewer records"},
		{"refused table", engine.Traits{RMPP: true}, getTable, func(p *peer, d engine.Datagram, nth int) {
			d = respond(d, 0)
			binary.BigEndian.PutUint16(d.MAD[mad.StatusOffset:], 0x0200)
			d.MAD = d.MAD[:mad.SADataOffset]
			p.after(ms, d)
		}, "SubnAdmGetTable(NodeRecord) to LID 3: request invalid (status 0x0200)"},
		{"set that is not answered", engine.Traits{}, func() []*engine.Call {
			c := new(engine.Call)
			c.PutSMP(mad.MethodSet, mad.AttrPortInfo.ID, 1, make([]byte, 64))
			c.SetLID(9)
			return []*engine.Call{c}
		}, func(p *peer, d engine.Datagram, nth int) {
			d.Undelivered = true
			p.after(0, d)
		}, "SubnSet(PortInfo 1) to LID 9: timed out after 3 attempts in 3s"},
		{"many", engine.Traits{}, func() (calls []*engine.Call) {
			for i := range 100 {
				calls = append(calls, smp(mad.AttrPortInfo, uint32(i), 1))
			}
			return calls
		}, func(p *peer, d engine.Datagram, nth int) {
			i := d.MAD[23]
			if i%10 != 0 && int(i)%3 <= nth {
				p.after(time.Duration(100-i)*ms, respond(d, i))
			}
		}, "SubnGet(PortInfo 0) to route 0,1: timed out after 6 attempts in 3s"},
		{"the same again and again", engine.Traits{}, func() []*engine.Call {
			return []*engine.Call{smp(mad.AttrNodeInfo, 0, 1), smp(mad.AttrNodeInfo, 0, 1), smp(mad.AttrNodeInfo, 0, 1)}
		}, func(p *peer, d engine.Datagram, nth int) {
			if nth < 3 {
				p.after(ms, respond(d, byte(nth)))
			}
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := engine.Options{Write: true}
				var want []result
				recording := record(t, newPeer(tt.traits, tt.answer), o, func(e *engine.Engine) {
					want = do(t, e, tt.calls()...)
					time.Sleep(time.Minute) // late answers, too
				})
				if want[0].Err != tt.want && tt.name != "many" {
					t.Errorf("recorded: %s, want %s", want[0].Err, tt.want)
				}
				began := time.Now()
				play(t, recording, o, func(e *engine.Engine) {
					got := do(t, e, tt.calls()...)
					for i := range got {
						if d := got[i].Elapsed - want[i].Elapsed; d < -clockSlack || d > clockSlack {
							if len(got) == 1 { // several wait for each other
								t.Errorf("call %d took %v, in the recording %v", i, got[i].Elapsed, want[i].Elapsed)
							}
						}
						got[i].Elapsed = want[i].Elapsed
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("-recorded +replayed\n%s", diff)
					}
				})
				if took := time.Since(began); took > 0 {
					t.Errorf("the replay took %v", took)
				}
			})
		})
	}
}
