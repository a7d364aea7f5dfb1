package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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

// TestOrder: who asks for what follows from the answers gets them in the order
// of the recording, however long it thinks about each; who asks for other
// things, or in another order, does not wait long.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		var order []int
		ask := func(e *engine.Engine, list []int, think time.Duration) (order []int) {
			done := make(chan int, n)
			for _, i := range list {
				time.Sleep(think)
				c := smp(mad.AttrPortInfo, uint32(i), 1)
				c.Notify = engine.CompleterFunc(func(c *engine.Call) { done <- int(c.Header().Modifier) })
				e.Start(c)
			}
			for range list {
				order = append(order, <-done)
			}
			return order
		}
		var all, shuffled, some []int
		for i := range n {
			all = append(all, i)
			shuffled = append(shuffled, i*77%n)
			if i%7 == 3 {
				some = append(some, i)
			}
		}
		recording := record(t, newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) {
			p.after(time.Duration(int(d.MAD[23])*31%n+1)*ms, respond(d, 1))
		}), engine.Options{}, func(e *engine.Engine) { order = ask(e, all, 0) })
		play(t, recording, engine.Options{}, func(e *engine.Engine) {
			if diff := cmp.Diff(order, ask(e, all, 0)); diff != "" {
				t.Errorf("all at once: -recorded +replayed\n%s", diff)
			}
		})
		play(t, recording, engine.Options{}, func(e *engine.Engine) {
			if diff := cmp.Diff(order, ask(e, shuffled, 0)); diff != "" {
				t.Errorf("shuffled: -recorded +replayed\n%s", diff)
			}
		})
		play(t, recording, engine.Options{}, func(e *engine.Engine) {
			began := time.Now()
			var got []int
			for _, i := range shuffled {
				got = append(got, ask(e, []int{i}, 0)...)
			}
			if diff := cmp.Diff(shuffled, got); diff != "" {
				t.Errorf("one by one: -asked +replayed\n%s", diff)
			}
			if took := time.Since(began); took > 2*longestWait {
				t.Errorf("one by one took %v", took)
			}
		})
		play(t, recording, engine.Options{}, func(e *engine.Engine) {
			var want []int
			for _, i := range order {
				if i%7 == 3 {
					want = append(want, i)
				}
			}
			began := time.Now()
			if diff := cmp.Diff(want, ask(e, some, 0)); diff != "" {
				t.Errorf("some: -recorded +replayed\n%s", diff)
			}
			if took := time.Since(began); took > 2*longestWait {
				t.Errorf("some took %v", took)
			}
		})
	})
}

// TestOrderThinking: the asker is slower than when it was recorded.
func TestOrderThinking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The answer to 1 comes before that to 2; after it, 3 is asked, whose
		// answer comes before that to 2, too.
		ask := func(e *engine.Engine, think time.Duration) (order []int) {
			done := make(chan int, 3)
			start := func(i uint32) {
				c := smp(mad.AttrPortInfo, i, 1)
				c.Notify = engine.CompleterFunc(func(c *engine.Call) { done <- int(c.Header().Modifier) })
				e.Start(c)
			}
			start(1)
			start(2)
			order = append(order, <-done)
			time.Sleep(think)
			start(3)
			return append(order, <-done, <-done)
		}
		recording := record(t, newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) {
			p.after(map[byte]time.Duration{1: 10 * ms, 2: 100 * ms, 3: 10 * ms}[d.MAD[23]], respond(d, 1))
		}), engine.Options{}, func(e *engine.Engine) { ask(e, 0) })
		for think, want := range map[time.Duration][]int{
			0: {1, 3, 2}, longestWait - ms: {1, 3, 2}, longestWait + ms: {1, 2, 3},
		} {
			play(t, recording, engine.Options{}, func(e *engine.Engine) {
				if diff := cmp.Diff(want, ask(e, think)); diff != "" {
					t.Errorf("thinking for %v: -want +got\n%s", think, diff)
				}
			})
		}
	})
}

// TestWait: how long an outcome waits for the outcomes before it.
func TestWait(t *testing.T) {
	var o order
	step := func(place int, want ...time.Duration) {
		t.Helper()
		for _, want := range want {
			if got := o.wait(place); got != want {
				t.Errorf("place %d: waits %v, want %v", place, got, want)
			}
			if want > 0 {
				o.expire()
			}
		}
	}
	step(0, 0)
	step(1, 0)
	for i := range maxBackOff { // others are asked for
		step(10+10*i, longestWait>>i, 0)
	}
	step(100, 0)
	step(200, 0)
	step(unordered, 0)
	step(150, 0)
	step(201, 0) // the next
	step(210, longestWait>>(maxBackOff-1), 0)
	for i := range maxBackOff + 1 {
		step(211+i, 0)
	}
	step(300, longestWait, 0)
}

// TestWaitQueue: who comes first, goes first, unless the recording says otherwise.
func TestWaitQueue(t *testing.T) {
	var h waitQueue
	for i, place := range []int{5, unordered, 3, unordered, 4, unordered, 3} {
		h.push(&call{attempt: i}, place)
	}
	var got []int
	for h.Len() > 0 {
		got = append(got, h.pop().attempt)
	}
	if diff := cmp.Diff([]int{1, 3, 5, 2, 6, 4, 0}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestRepeat: a request is answered as often as it was recorded, in that
// order, and from then on like the last time.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := func(e *engine.Engine, route uint8) string {
			r := do(t, e, smp(mad.AttrNodeInfo, 0, route))[0]
			if r.Err != "" {
				return r.Err
			}
			return fmt.Sprint(r.MAD[marked])
		}
		recording := record(t, newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) {
			silent := nth >= 1 && nth <= 6 && d.MAD[mad.SMPInitialPathOffset+1] == 1 || nth > 0 && d.MAD[mad.SMPInitialPathOffset+1] == 2
			if !silent {
				p.after(ms, respond(d, byte(nth)))
			}
		}), engine.Options{}, func(e *engine.Engine) {
			for range 3 {
				one(e, 1)
			}
			for range 2 {
				one(e, 2)
			}
		})
		play(t, recording, engine.Options{}, func(e *engine.Engine) {
			var got []string
			for range 5 {
				got = append(got, one(e, 1), one(e, 2))
			}
			const first, second = "SubnGet(NodeInfo) to route 0,1: timed out after 6 attempts in 3s", "SubnGet(NodeInfo) to route 0,2: timed out after 6 attempts in 3s"
			want := []string{"0", "0", first, second, "7", second, "7", second, "7", second}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	})
}

// TestNotRecorded: each part of what a request is makes it another one, but
// not how it travels.
func TestNotRecorded(t *testing.T) {
	set := func() *engine.Call {
		c := new(engine.Call)
		c.PutSMP(mad.MethodSet, mad.AttrPortInfo.ID, 1, count(64))
		c.SetLID(9)
		return c
	}
	query := func() *engine.Call {
		c := new(engine.Call)
		c.PutSA(mad.MethodGet, mad.AttrNodeRecord.ID, 0, 1, count(100))
		c.SetLID(3)
		return c
	}
	global := func() *engine.Call {
		c := new(engine.Call)
		c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, nil)
		c.SetLID(9)
		c.To.HasGRH, c.To.GID = true, mad.GID{15: 1}
		return c
	}
	recorded := func() []*engine.Call {
		return []*engine.Call{smp(mad.AttrNodeInfo, 0, 1, 2), set(), query(), global()}
	}
	synctest.Test(t, func(t *testing.T) {
		recording := record(t, newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) {
			p.after(ms, respond(d, 1))
		}), engine.Options{Write: true}, func(e *engine.Engine) { do(t, e, recorded()...) })
		play(t, recording, engine.Options{Write: true}, func(e *engine.Engine) {
			try := func(what string, there bool, c *engine.Call) {
				t.Helper()
				e.Do(context.Background(), c)
				switch {
				case there && c.Err != nil, !there && !errors.Is(c.Err, engine.ErrNotRecorded):
					t.Errorf("%s: got %v", what, c.Err)
				}
			}
			for i, c := range recorded() {
				c.To.SL, c.To.PKeyIndex, c.To.FlowLabel, c.To.HopLimit = 3, 1, 5, 7
				try(fmt.Sprint("recorded ", i), true, c)
			}
			try("attribute", false, smp(mad.AttrNodeDescription, 0, 1, 2))
			try("modifier", false, smp(mad.AttrNodeInfo, 1, 1, 2))
			try("route", false, smp(mad.AttrNodeInfo, 0, 1, 3))
			try("shorter route", false, smp(mad.AttrNodeInfo, 0, 1))
			try("longer route", false, smp(mad.AttrNodeInfo, 0, 1, 2, 3))
			byLID := smp(mad.AttrNodeInfo, 0, 1, 2)
			byLID.SetLID(9)
			try("class", false, byLID)
			c := set()
			c.MAD[marked]++
			try("data of a Set", false, c)
			c = set()
			c.To.LID++
			try("LID", false, c)
			c = set()
			c.MAD[3] = byte(mad.MethodGet)
			try("method", false, c)
			c = query()
			c.MAD[mad.SAMaskOffset+7] = 3
			try("component mask", false, c)
			c = query()
			c.MAD[mad.SADataOffset]++
			try("record data", false, c)
			c = query()
			c.To.QP = 0x123456
			try("queue pair", false, c)
			c = global()
			c.To.GID[15]++
			try("GID", false, c)
			c = global()
			c.To.HasGRH = false
			try("no GID", false, c)

			c = smp(mad.AttrNodeDescription, 0, 1, 2)
			e.Do(context.Background(), c)
			if want := "SubnGet(NodeDescription) to route 0,1,2: not in the recording a.pcap"; c.Err.Error() != want {
				t.Errorf("got %v, want %s", c.Err, want)
			}
		})
	})
}

// TestPort: the facts of the local port are the recorded facts at this point of the recording.
func TestPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) { p.after(ms, respond(d, 1)) })
		session := func(e *engine.Engine) (ports []engine.Port) {
			for i := range 4 {
				port, err := e.Port()
				if err != nil {
					t.Fatal(err)
				}
				ports = append(ports, port)
				do(t, e, smp(mad.AttrPortInfo, uint32(i), 1))
				if i%2 == 0 {
					p.mu.Lock()
					p.port.LID++
					p.port.PKeys = p.port.PKeys[:10+i]
					p.mu.Unlock()
				}
			}
			return ports
		}
		var want []engine.Port
		recording := record(t, p, engine.Options{}, func(e *engine.Engine) { want = session(e) })
		play(t, recording, engine.Options{}, func(e *engine.Engine) {
			got := session(e)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-recorded +replayed\n%s", diff)
			}
			last := got[3].PKeys
			last[0]++
			if port, _ := e.Port(); port.PKeys[0] == last[0] {
				t.Error("the caller can change the facts")
			}
		})
	})
}

// TestTraits: a replay is as simulated as what was recorded.
func TestTraits(t *testing.T) {
	for _, simulated := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			recording := record(t, newPeer(engine.Traits{Simulated: simulated}, nil), engine.Options{}, func(*engine.Engine) {})
			play(t, recording, engine.Options{}, func(e *engine.Engine) {
				want := engine.Traits{Name: "replay", NoACK: true, Recorded: true, Simulated: simulated}
				if diff := cmp.Diff(want, e.Traits()); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		})
	}
}

// TestClock: the time is the time of the recorded answers, and sleeping takes none.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		recording := record(t, newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) {
			p.after(time.Second, respond(d, 1))
		}), engine.Options{Retries: -1, Timeout: time.Minute}, func(e *engine.Engine) {
			do(t, e, smp(mad.AttrPortInfo, 1, 1))
			time.Sleep(time.Minute)
			do(t, e, smp(mad.AttrPortInfo, 2, 1))
		})
		r, err := Load(bytes.NewReader(recording), "a.pcap")
		if err != nil {
			t.Fatal(err)
		}
		clock := NewReplay(r)
		e := engine.New(clock, engine.Options{})
		defer e.Close()
		defer func() {
			if len(clock.calls) > 0 {
				t.Errorf("%d calls are kept", len(clock.calls))
			}
		}()
		var got []time.Duration
		tell := func() { got = append(got, clock.Now().Sub(began)) }
		tell()
		do(t, e, smp(mad.AttrPortInfo, 1, 1))
		tell()
		if err := clock.Sleep(context.Background(), 10*time.Second); err != nil {
			t.Error(err)
		}
		tell()
		do(t, e, smp(mad.AttrPortInfo, 2, 1))
		tell()
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errFull)
		if err := clock.Sleep(ctx, time.Hour); err != errFull {
			t.Errorf("got %v", err)
		}
		tell()
		clock.Sleep(context.Background(), time.Hour)
		do(t, e, smp(mad.AttrPortInfo, 2, 1))
		tell()
		want := []time.Duration{0, time.Second, 11 * time.Second, 62 * time.Second, 62 * time.Second, time.Hour + 62*time.Second}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}
