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
)

const ms = time.Millisecond

// TestReplay: whatever became of a call when it was recorded becomes of it
// again, in no time: the answer or the error, after as many attempts.
func TestReplay(t *testing.T) {
	get := func() []*mad.Call { return []*mad.Call{smp(mad.AttrNodeInfo, 0, 1)} }
	big := count(10*segmentData + 77)
	getTable := func() []*mad.Call { return []*mad.Call{table(mad.AttrNodeRecord)} }
	for _, tt := range []struct {
		name   string
		traits mad.Traits
		calls  func() []*mad.Call
		answer func(p *peer, d mad.Datagram, nth int)
		want   string // of the first call's error
	}{
		{"answer", mad.Traits{}, get, func(p *peer, d mad.Datagram, nth int) {
			p.after(5*ms, respond(d, 1))
		}, ""},
		{"answer to the second attempt", mad.Traits{}, get, func(p *peer, d mad.Datagram, nth int) {
			if nth == 1 {
				p.after(5*ms, respond(d, 1))
			}
		}, ""},
		{"answer to the first attempt after the second", mad.Traits{}, get, func(p *peer, d mad.Datagram, nth int) {
			if nth == 0 {
				p.after(1200*ms, respond(d, 1))
			}
		}, ""},
		{"answers to both attempts", mad.Traits{}, get, func(p *peer, d mad.Datagram, nth int) {
			p.after(1500*ms, respond(d, byte(nth)))
		}, ""},
		{"silence", mad.Traits{}, get, func(p *peer, d mad.Datagram, nth int) {},
			"SubnGet(NodeInfo) to route 0,1: timed out after 6 attempts in 3s"},
		{"too late", mad.Traits{}, get, func(p *peer, d mad.Datagram, nth int) {
			if nth == 0 {
				p.after(3500*ms, respond(d, 1))
			}
		}, "SubnGet(NodeInfo) to route 0,1: timed out after 6 attempts in 3s"},
		{"undelivered", mad.Traits{}, get, func(p *peer, d mad.Datagram, nth int) {
			d.Undelivered = true
			p.after(0, d)
		}, "SubnGet(NodeInfo) to route 0,1: timed out after 6 attempts"},
		{"status", mad.Traits{}, get, func(p *peer, d mad.Datagram, nth int) {
			d = respond(d, 0)
			binary.BigEndian.PutUint16(d.MAD[offStatus:], 0x8000|0x000c)
			p.after(ms, d)
		}, "SubnGet(NodeInfo) to route 0,1: method/attribute combination not supported (status 0x000c)"},
		{"busy at first", mad.Traits{}, get, func(p *peer, d mad.Datagram, nth int) {
			a := respond(d, 1)
			if nth < 3 {
				binary.BigEndian.PutUint16(a.MAD[offStatus:], uint16(mad.StatusBusy))
			}
			p.after(ms, a)
		}, ""},
		{"busy for ever", mad.Traits{}, get, func(p *peer, d mad.Datagram, nth int) {
			d = respond(d, 1)
			binary.BigEndian.PutUint16(d.MAD[offStatus:], uint16(mad.StatusBusy))
			p.after(ms, d)
		}, "SubnGet(NodeInfo) to route 0,1: busy (status 0x0001)"},
		{"busy, then silent", mad.Traits{}, get, func(p *peer, d mad.Datagram, nth int) {
			if nth == 0 {
				d = respond(d, 1)
				binary.BigEndian.PutUint16(d.MAD[offStatus:], uint16(mad.StatusBusy))
				p.after(ms, d)
			}
		}, "SubnGet(NodeInfo) to route 0,1: timed out after 7 attempts in 3s"},
		{"table", mad.Traits{}, getTable, func(p *peer, d mad.Datagram, nth int) {
			if nth == 0 {
				for i, s := range segments(d, big) {
					p.after(time.Duration(i)*ms, s)
				}
			}
		}, ""},
		{"table out of order, with repetitions", mad.Traits{}, getTable, func(p *peer, d mad.Datagram, nth int) {
			if nth == 0 {
				list := segments(d, big)
				slices.Reverse(list[1:])
				for i, s := range append(list, list...) {
					p.after(time.Duration(i)*ms, s)
				}
			}
		}, ""},
		{"table whole at the second attempt", mad.Traits{NoACK: true}, getTable, func(p *peer, d mad.Datagram, nth int) {
			for i, s := range segments(d, big) {
				if nth == 1 || i != 4 {
					p.after(time.Duration(i)*ms, s)
				}
			}
		}, ""},
		{"table never whole", mad.Traits{NoACK: true}, getTable, func(p *peer, d mad.Datagram, nth int) {
			for i, s := range segments(d, big)[:5] {
				p.after(time.Duration(i)*ms, s)
			}
		}, "SubnAdmGetTable(NodeRecord) to LID 3: table incomplete, segment 6: timed out after 3 attempts in 3s"},
		{"table aborted", mad.Traits{}, getTable, func(p *peer, d mad.Datagram, nth int) {
			if nth == 0 {
				list := segments(d, big)
				p.after(0, list[0])
				list[1].MAD[mad.RMPPOffset+1], list[1].MAD[mad.RMPPOffset+3] = byte(mad.RMPPTypeAbort), byte(mad.RMPPStatusResourcesExhausted)
				p.after(ms, list[1])
			}
		}, "SubnAdmGetTable(NodeRecord) to LID 3: the sender aborted the table: RMPP status 1, resources exhausted"},
		{"malformed table", mad.Traits{}, getTable, func(p *peer, d mad.Datagram, nth int) {
			if nth == 0 {
				s := segments(d, big)[0]
				s.MAD[mad.RMPPOffset+7] = 2
				p.after(0, s)
			}
		}, "SubnAdmGetTable(NodeRecord) to LID 3: malformed table: segment number 2 does not go with the flag of the first segment"},
		{"table from a transport that does RMPP", mad.Traits{RMPP: true}, getTable, func(p *peer, d mad.Datagram, nth int) {
			d = respond(d, 0)
			d.MAD = append(d.MAD[:mad.SADataOffset], big...)
			p.after(ms, d)
		}, ""},
		{"short table from one that does RMPP", mad.Traits{RMPP: true}, getTable, func(p *peer, d mad.Datagram, nth int) {
			d = segments(d, big[:100])[0]
			d.MAD = d.MAD[:mad.SADataOffset+100]
			p.after(ms, d)
		}, ""},
		{"no records", mad.Traits{NoACK: true}, getTable, func(p *peer, d mad.Datagram, nth int) {
			d = respond(d, 0)
			d.MAD = d.MAD[:mad.SADataOffset]
			p.after(ms, d)
		}, ""},
		{"table whose length is that of the datagram", mad.Traits{NoACK: true}, getTable, func(p *peer, d mad.Datagram, nth int) {
			d = respond(d, 0)
			d.MAD = append(d.MAD[:mad.SADataOffset], big[:100]...)
			p.after(ms, d)
		}, ""},
		{"table cut", mad.Traits{NoACK: true}, getTable, func(p *peer, d mad.Datagram, nth int) {
			d = respond(d, 0)
			d.Cut = true
			p.after(ms, d)
		}, "SubnAdmGetTable(NodeRecord) to LID 3: table cut by the transport, which cannot carry a long one: ask for fewer records"},
		{"refused table", mad.Traits{RMPP: true}, getTable, func(p *peer, d mad.Datagram, nth int) {
			d = respond(d, 0)
			binary.BigEndian.PutUint16(d.MAD[offStatus:], 0x0200)
			d.MAD = d.MAD[:mad.SADataOffset]
			p.after(ms, d)
		}, "SubnAdmGetTable(NodeRecord) to LID 3: request invalid (status 0x0200)"},
		{"set that is not answered", mad.Traits{}, func() []*mad.Call {
			c := new(mad.Call)
			c.PutSMP(mad.MethodSet, mad.AttrPortInfo.ID, 1, make([]byte, 64))
			c.SetLID(9)
			return []*mad.Call{c}
		}, func(p *peer, d mad.Datagram, nth int) {
			d.Undelivered = true
			p.after(0, d)
		}, "SubnSet(PortInfo 1) to LID 9: timed out after 3 attempts in 3s"},
		{"many", mad.Traits{}, func() (calls []*mad.Call) {
			for i := range 100 {
				calls = append(calls, smp(mad.AttrPortInfo, uint32(i), 1))
			}
			return calls
		}, func(p *peer, d mad.Datagram, nth int) {
			i := d.MAD[23]
			if i%10 != 0 && int(i)%3 <= nth {
				p.after(time.Duration(100-i)*ms, respond(d, i))
			}
		}, "SubnGet(PortInfo 0) to route 0,1: timed out after 6 attempts in 3s"},
		{"the same again and again", mad.Traits{}, func() []*mad.Call {
			return []*mad.Call{smp(mad.AttrNodeInfo, 0, 1), smp(mad.AttrNodeInfo, 0, 1), smp(mad.AttrNodeInfo, 0, 1)}
		}, func(p *peer, d mad.Datagram, nth int) {
			if nth < 3 {
				p.after(ms, respond(d, byte(nth)))
			}
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := mad.Options{Write: true}
				var want []result
				recording := record(t, newPeer(tt.traits, tt.answer), o, func(e *mad.Engine) {
					want = do(t, e, tt.calls()...)
					time.Sleep(5 * time.Second) // late answers, too
				})
				if want[0].Err != tt.want && tt.name != "many" {
					t.Errorf("recorded: %s, want %s", want[0].Err, tt.want)
				}
				began := time.Now()
				play(t, recording, o, func(e *mad.Engine) {
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

// TestRepeat: a request is answered as often as it was recorded, in that
// order, and from then on like the last time.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := func(e *mad.Engine, route uint8) string {
			r := do(t, e, smp(mad.AttrNodeInfo, 0, route))[0]
			if r.Err != "" {
				return r.Err
			}
			return fmt.Sprint(r.MAD[marked])
		}
		recording := record(t, newPeer(mad.Traits{}, func(p *peer, d mad.Datagram, nth int) {
			silent := nth >= 1 && nth <= 6 && d.MAD[mad.SMPInitialPathOffset+1] == 1 || nth > 0 && d.MAD[mad.SMPInitialPathOffset+1] == 2
			if !silent {
				p.after(ms, respond(d, byte(nth)))
			}
		}), mad.Options{}, func(e *mad.Engine) {
			for range 3 {
				one(e, 1)
			}
			for range 2 {
				one(e, 2)
			}
		})
		play(t, recording, mad.Options{}, func(e *mad.Engine) {
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
	set := func() *mad.Call {
		c := new(mad.Call)
		c.PutSMP(mad.MethodSet, mad.AttrPortInfo.ID, 1, count(64))
		c.SetLID(9)
		return c
	}
	query := func() *mad.Call {
		c := new(mad.Call)
		c.PutSA(mad.MethodGet, mad.AttrNodeRecord.ID, 0, 1, count(100))
		c.SetLID(3)
		return c
	}
	global := func() *mad.Call {
		c := new(mad.Call)
		c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, nil)
		c.SetLID(9)
		c.To.HasGRH, c.To.GID = true, mad.GID{15: 1}
		return c
	}
	recorded := func() []*mad.Call {
		return []*mad.Call{smp(mad.AttrNodeInfo, 0, 1, 2), set(), query(), global()}
	}
	synctest.Test(t, func(t *testing.T) {
		recording := record(t, newPeer(mad.Traits{}, func(p *peer, d mad.Datagram, nth int) {
			p.after(ms, respond(d, 1))
		}), mad.Options{Write: true}, func(e *mad.Engine) { do(t, e, recorded()...) })
		play(t, recording, mad.Options{Write: true}, func(e *mad.Engine) {
			try := func(what string, there bool, c *mad.Call) {
				t.Helper()
				e.Do(context.Background(), c)
				switch {
				case there && c.Err != nil, !there && !errors.Is(c.Err, mad.ErrNotRecorded):
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

// TestOrder: who asks for what follows from the answers gets them in the order
// of the recording, however long it thinks about each; who asks for other
// things, or in another order, does not wait long.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		var order []int
		ask := func(e *mad.Engine, list []int, think time.Duration) (order []int) {
			done := make(chan int, n)
			for _, i := range list {
				time.Sleep(think)
				c := smp(mad.AttrPortInfo, uint32(i), 1)
				c.Notify = mad.CompleterFunc(func(c *mad.Call) { done <- int(c.Header().Modifier) })
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
		recording := record(t, newPeer(mad.Traits{}, func(p *peer, d mad.Datagram, nth int) {
			p.after(time.Duration(int(d.MAD[23])*31%n+1)*ms, respond(d, 1))
		}), mad.Options{}, func(e *mad.Engine) { order = ask(e, all, 0) })
		play(t, recording, mad.Options{}, func(e *mad.Engine) {
			if diff := cmp.Diff(order, ask(e, all, 0)); diff != "" {
				t.Errorf("all at once: -recorded +replayed\n%s", diff)
			}
		})
		play(t, recording, mad.Options{}, func(e *mad.Engine) {
			if diff := cmp.Diff(order, ask(e, shuffled, 0)); diff != "" {
				t.Errorf("shuffled: -recorded +replayed\n%s", diff)
			}
		})
		play(t, recording, mad.Options{}, func(e *mad.Engine) {
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
		play(t, recording, mad.Options{}, func(e *mad.Engine) {
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
		ask := func(e *mad.Engine, think time.Duration) (order []int) {
			done := make(chan int, 3)
			start := func(i uint32) {
				c := smp(mad.AttrPortInfo, i, 1)
				c.Notify = mad.CompleterFunc(func(c *mad.Call) { done <- int(c.Header().Modifier) })
				e.Start(c)
			}
			start(1)
			start(2)
			order = append(order, <-done)
			time.Sleep(think)
			start(3)
			return append(order, <-done, <-done)
		}
		recording := record(t, newPeer(mad.Traits{}, func(p *peer, d mad.Datagram, nth int) {
			p.after(map[byte]time.Duration{1: 10 * ms, 2: 100 * ms, 3: 10 * ms}[d.MAD[23]], respond(d, 1))
		}), mad.Options{}, func(e *mad.Engine) { ask(e, 0) })
		for think, want := range map[time.Duration][]int{
			0: {1, 3, 2}, longestWait - ms: {1, 3, 2}, longestWait + ms: {1, 2, 3},
		} {
			play(t, recording, mad.Options{}, func(e *mad.Engine) {
				if diff := cmp.Diff(want, ask(e, think)); diff != "" {
					t.Errorf("thinking for %v: -want +got\n%s", think, diff)
				}
			})
		}
	})
}

// TestPort: the facts of the local port are those at the same point of the recording.
func TestPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(mad.Traits{}, func(p *peer, d mad.Datagram, nth int) { p.after(ms, respond(d, 1)) })
		session := func(e *mad.Engine) (ports []mad.Port) {
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
		var want []mad.Port
		recording := record(t, p, mad.Options{}, func(e *mad.Engine) { want = session(e) })
		play(t, recording, mad.Options{}, func(e *mad.Engine) {
			if diff := cmp.Diff(want, session(e)); diff != "" {
				t.Errorf("-recorded +replayed\n%s", diff)
			}
		})
	})
}

// TestTraits: a replay is as simulated as what was recorded.
func TestTraits(t *testing.T) {
	for _, simulated := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			recording := record(t, newPeer(mad.Traits{Simulated: simulated}, nil), mad.Options{}, func(*mad.Engine) {})
			play(t, recording, mad.Options{}, func(e *mad.Engine) {
				want := mad.Traits{Name: "replay", NoACK: true, Recorded: true, Simulated: simulated}
				if diff := cmp.Diff(want, e.Traits()); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		})
	}
}

// TestClock: the time is that of the answers, and sleeping takes none.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		recording := record(t, newPeer(mad.Traits{}, func(p *peer, d mad.Datagram, nth int) {
			p.after(time.Second, respond(d, 1))
		}), mad.Options{Retries: -1, Timeout: time.Minute}, func(e *mad.Engine) {
			do(t, e, smp(mad.AttrPortInfo, 1, 1))
			time.Sleep(time.Minute)
			do(t, e, smp(mad.AttrPortInfo, 2, 1))
		})
		r, err := Load(bytes.NewReader(recording), "a.pcap")
		if err != nil {
			t.Fatal(err)
		}
		clock := NewReplay(r)
		e := mad.NewEngine(clock, mad.Options{})
		defer e.Close()
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
		want := []time.Duration{0, time.Second, 11 * time.Second, 62 * time.Second, 62 * time.Second}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}
