package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

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

// TestPort: the facts of the local port are those at the same point of the recording.
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

// TestClock: the time is that of the answers, and sleeping takes none.
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
