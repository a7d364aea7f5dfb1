package sa_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// subnet is a simulated one in virtual time, with a program on its second CA.
type subnet struct {
	*sim.Subnet
	*sa.Subscriber
	t  *testing.T
	f  *fabric.Fabric
	e  *engine.Engine
	on *wire
}

func onSubnet(t *testing.T, fn func(t *testing.T, s *subnet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, o, err := sim.Parse("ring:n=4")
		if err != nil {
			t.Fatal(err)
		}
		s := &subnet{Subnet: sim.New(f, o), t: t, f: f}
		conn, err := s.Attach(f.OfType(mad.NodeTypeCA)[1].ID(), 1)
		if err != nil {
			t.Fatal(err)
		}
		s.on = &wire{Transport: conn}
		s.e = engine.New(s.on, engine.Options{Write: true})
		defer s.e.Close()
		s.Subscriber = sa.NewSubscriber(&sa.Client{Engine: s.e})
		defer s.Subscriber.Close()
		fn(t, s)
	})
}

func trap(n uint16) mad.InformInfo {
	return mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Type: mad.InformTypeAll, TrapNumber: n, ProducerType: mad.ProducerTypeAll}
}

func (s *subnet) subscribe(traps ...uint16) *sa.Subscription {
	s.t.Helper()
	var infos []mad.InformInfo
	for _, n := range traps {
		infos = append(infos, trap(n))
	}
	sub, err := s.Subscribe(s.t.Context(), infos...)
	if err != nil {
		s.t.Fatal(err)
	}
	return sub
}

func (s *subnet) guid(name string) mad.GUID { return s.f.NodeByName(name)[0].GUID() }

// bounce takes the link to a switch's host down and up again.
func (s *subnet) bounce(name string) {
	s.t.Helper()
	if err := errors.Join(s.Cables.Unlink(s.guid(name), 1), s.Cables.Link(s.guid(name), 1)); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// records is how many subscriptions the subnet administrator has.
func (s *subnet) records() int {
	s.t.Helper()
	client := sa.Client{Engine: s.e}
	records, err := client.Table(s.t.Context(), sa.NewRequest(mad.MethodGetTable, mad.AttrInformInfoRecord, nil))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(slices.Collect(records))
}

// queued returns what is in the queue of sub.
func queued(sub *sa.Subscription) (list []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
	defer cancel()
	for {
		ev, err := sub.Next(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return list
		case err != nil:
			return append(list, err.Error())
		case ev.Lost != "":
			list = append(list, fmt.Sprintf("lost %d: %s", ev.Count, ev.Lost))
		default:
			var n mad.Notice
			n.Decode(ev.Notice[:])
			list = append(list, fmt.Sprintf("%d of LID %d", n.TrapNumber, n.IssuerLID))
		}
	}
}

func (s *subnet) want(what string, sub *sa.Subscription, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, queued(sub)); diff != "" {
		s.t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

// TestSubscribe: of subscriptions that overlap each gets each event once; what
// two share is subscribed to once, and ended with the last of them.
func TestSubscribe(t *testing.T) {
	onSubnet(t, func(t *testing.T, s *subnet) {
		all, links, ports, again := s.subscribe(mad.AllTraps), s.subscribe(128), s.subscribe(64, 65), s.subscribe(128, 128)
		if n := s.records(); n != 4 {
			t.Errorf("%d subscriptions at the subnet administrator", n)
		}
		s.bounce("switch-3")
		s.bounce("switch-3")
		round := []string{"128 of LID 3", "65 of LID 5", "128 of LID 3", "64 of LID 5"}
		s.want("all", all, append(round, round...)...)
		s.want("links", links, "128 of LID 3", "128 of LID 3", "128 of LID 3", "128 of LID 3")
		s.want("ports", ports, "65 of LID 5", "64 of LID 5", "65 of LID 5", "64 of LID 5")
		s.want("again", again, "128 of LID 3", "128 of LID 3", "128 of LID 3", "128 of LID 3")
		if st := s.e.Stats(); st.Unsolicited != 16 || st.Dropped != 0 {
			t.Errorf("%+v", st.Counts)
		}
		links.Close(t.Context())
		all.Close(t.Context())
		if n := s.records(); n != 3 {
			t.Errorf("%d subscriptions after two were closed", n)
		}
		s.bounce("switch-3")
		s.want("closed", links, "the subscription is closed")
		s.want("the other of two", again, "128 of LID 3", "128 of LID 3")
		s.Subscriber.Close()
		s.want("all closed", again, "transport closed")
		if n := s.records(); n != 0 {
			t.Errorf("%d subscriptions at the end", n)
		}
		if _, err := s.Subscribe(t.Context(), trap(128)); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestSubscribeAgain: subscriptions that were lost are renewed, which is reported.
func TestSubscribeAgain(t *testing.T) {
	const again = "; subscribed again, but events in between were not reported"
	for _, c := range []struct {
		name   string
		change func(s *subnet) // afterwards the subscriptions are gone
		within time.Duration
		want   string
	}{
		{"restart, ActCount goes back", func(s *subnet) {
			s.bounce("switch-4") // ActCount 3
			time.Sleep(5 * time.Second)
			s.SM.Restart(0)
		}, 5 * time.Second, "the subnet manager at LID 5 has restarted"},
		{"restart, unseen", func(s *subnet) { s.SM.Restart(0) }, time.Minute, "the subnet administrator had lost the subscription"},
		{"elsewhere", func(s *subnet) { s.SM.Restart(s.guid("node-0004 HCA-1")) }, 5 * time.Second, "the subnet manager moved from LID 5 to LID 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onSubnet(t, func(t *testing.T, s *subnet) {
				links, all := s.subscribe(128), s.subscribe(128, 64)
				time.Sleep(2 * time.Minute)
				queued(links)
				queued(all)
				c.change(s)
				queued(links)
				queued(all)
				time.Sleep(c.within + time.Second)
				s.want("links", links, "lost 0: "+c.want+again)
				s.want("all", all, "lost 0: "+c.want+again)
				if n := s.records(); n != 2 {
					t.Errorf("%d subscriptions", n)
				}
				s.bounce("switch-3")
				s.want("afterwards", links, "128 of LID 3", "128 of LID 3")
				time.Sleep(3 * time.Minute)
				s.want("and then", links)
			})
		})
	}
}

// TestSubscribeIdle: while nothing changes an SMP is sent each 5 s, and a query
// each minute.
func TestSubscribeIdle(t *testing.T) {
	onSubnet(t, func(t *testing.T, s *subnet) {
		sub := s.subscribe(128)
		before := s.e.Stats().Sent
		time.Sleep(10*time.Minute + time.Second)
		if n := s.e.Stats().Sent - before; n < 125 || n > 160 {
			t.Errorf("%d MADs in 10 minutes", n)
		}
		if n := s.on.sets.Load(); n != 1 {
			t.Errorf("subscribed %d times", n)
		}
		s.want("nothing happened", sub)
		sub.Close(t.Context())
		before = s.e.Stats().Sent
		time.Sleep(10 * time.Minute)
		if n := s.e.Stats().Sent - before; n != 0 {
			t.Errorf("%d MADs without a subscription", n)
		}
	})
}

// TestSubscribeDead: a subnet manager that does not answer causes no delay; it is
// an event after a minute, and none when it is back with the subscriptions.
func TestSubscribeDead(t *testing.T) {
	onSubnet(t, func(t *testing.T, s *subnet) {
		sub, other := s.subscribe(128), s.subscribe(64)
		s.on.cut.Store(true)
		time.Sleep(50 * time.Second)
		s.want("not yet", sub)
		time.Sleep(30 * time.Second)
		got := queued(sub)
		if len(got) != 1 || !strings.HasPrefix(got[0], "lost 0: the subnet manager at LID 5 has not answered for 1m") {
			t.Errorf("silent: %q", got)
		}
		time.Sleep(10 * time.Minute)
		s.want("once is enough", sub)
		s.on.cut.Store(false)
		time.Sleep(30 * time.Second)
		s.want("back, with all it knew", sub)
		if n := s.on.sets.Load(); n != 2 {
			t.Errorf("subscribed %d times", n)
		}
		s.on.cut.Store(true)
		time.Sleep(7 * time.Second) // in the middle of a check
		began := time.Now()
		if _, err := s.Subscribe(t.Context(), trap(65)); !errors.Is(err, engine.ErrTimeout) {
			t.Errorf("subscribe: %v", err)
		}
		if took := time.Since(began); took > 12*time.Second {
			t.Errorf("subscribe took %v", took)
		}
		began = time.Now()
		other.Close(t.Context())
		if took := time.Since(began); took > time.Second {
			t.Errorf("close took %v", took)
		}
		began = time.Now()
		s.Subscriber.Close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end took %v", took)
		}
	})
}

// TestSubscribeRefused: of a subscription that is refused nothing remains.
func TestSubscribeRefused(t *testing.T) {
	onSubnet(t, func(t *testing.T, s *subnet) {
		_, err := s.Subscribe(t.Context(), trap(128), trap(256)) // security
		var e *engine.Error
		if !errors.As(err, &e) || e.Status != mad.StatusRequestInvalid {
			t.Errorf("%v", err)
		}
		if n := s.records(); n != 0 {
			t.Errorf("%d subscriptions", n)
		}
		// What reports come to is free again.
		stop, err := s.on.Accept(mad.ClassSubnAdm, mad.MethodReport)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Subscribe(t.Context(), trap(128)); err == nil || !strings.HasPrefix(err.Error(), "another program receives each Report") {
			t.Errorf("taken: %v", err)
		}
		stop()
		s.subscribe(128)
	})
}

// TestSubscribeStorm: when the queue is full the newest events are dropped, and
// their number is an event.
func TestSubscribeStorm(t *testing.T) {
	onSubnet(t, func(t *testing.T, s *subnet) {
		sub := s.subscribe(128)
		for range 600 {
			s.bounce("switch-3")
		}
		got := queued(sub)
		if n := len(got); n != 1025 || got[1023] != "128 of LID 3" || got[1024] != "lost 176: 176 arrived while 1024 waited to be read" {
			t.Errorf("%d told, the last %q", n, got[n-1])
		}
		s.bounce("switch-3")
		s.want("afterwards", sub, "128 of LID 3", "128 of LID 3")
	})
}

// TestSubscribeGone: the end of the transport comes after the queued events.
func TestSubscribeGone(t *testing.T) {
	onSubnet(t, func(t *testing.T, s *subnet) {
		sub := s.subscribe(128)
		s.bounce("switch-3")
		s.e.Close()
		synctest.Wait()
		s.want("the end", sub, "128 of LID 3", "128 of LID 3", "transport closed")
	})
}

// TestTraps: each trap that comes to this port goes to each subscription that it
// fits, and no request is sent.
func TestTraps(t *testing.T) {
	onSubnet(t, func(t *testing.T, s *subnet) {
		traps := sa.NewTrapSubscriber(s.e)
		defer traps.Close()
		var subs []*sa.Subscription
		for _, infos := range [][]mad.InformInfo{{trap(128), trap(mad.AllTraps)}, {trap(128)}, {trap(129)}} {
			sub, err := traps.Subscribe(t.Context(), infos...)
			if err != nil {
				t.Fatal(err)
			}
			subs = append(subs, sub)
		}
		s.manage(3)
		before := s.e.Stats().Sent
		s.bounce("switch-3")
		s.want("all", subs[0], "128 of LID 3", "128 of LID 3")
		s.want("links", subs[1], "128 of LID 3", "128 of LID 3")
		s.want("others", subs[2])
		if n := s.e.Stats().Sent - before; n != 2 { // TrapRepress
			t.Errorf("%d MADs were sent", n)
		}
	})
}

// manage tells the switch at lid that its subnet manager is here.
func (s *subnet) manage(lid mad.LID) {
	s.t.Helper()
	port, _ := s.e.Port()
	get := new(engine.Call)
	get.PutSMP(mad.MethodGet, mad.AttrPortInfo.ID, 0, nil)
	get.SetLID(lid)
	s.do(get)
	var info mad.PortInfo
	info.Decode(get.Data())
	info.MasterSMLID, info.PortState, info.PortPhysicalState = port.LID, 0, 0
	data := make([]byte, 64)
	info.Encode(data)
	set := new(engine.Call)
	set.PutSMP(mad.MethodSet, mad.AttrPortInfo.ID, 0, data)
	set.SetLID(lid)
	s.do(set)
}

func (s *subnet) do(c *engine.Call) {
	s.t.Helper()
	if err := s.e.Do(s.t.Context(), c); err != nil || c.Err != nil {
		s.t.Fatal(err, c.Err)
	}
}

// alter has all reports and traps that come changed.
func (s *subnet) alter(change func(d *engine.Datagram)) {
	s.on.faults.Store(&faults{answer: func(h mad.Header, d *engine.Datagram) {
		if h.Method == mad.MethodReport || h.Method == mad.MethodTrap {
			change(d)
		}
	}})
}

// TestForgedReports: a Report that does not come from the subnet administrator, or
// of a trap without a subscription, is counted and not delivered; only Reports of the
// subnet administrator are answered.
func TestForgedReports(t *testing.T) {
	onSubnet(t, func(t *testing.T, s *subnet) {
		sub := s.subscribe(128)
		port, err := s.e.Port()
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			name     string
			change   func(d *engine.Datagram)
			told     []string
			answered uint64
		}{
			{"a stranger's", func(d *engine.Datagram) { d.LID = 999 }, nil, 0},
			{"from no LID", func(d *engine.Datagram) { d.LID = 0 }, nil, 0},
			{"of a trap never asked for", func(d *engine.Datagram) { d.MAD[mad.SADataOffset+5]++ }, nil, 2},
			{"of no notice", func(d *engine.Datagram) { d.MAD[mad.AttributeOffset+1] = 0x11 }, nil, 2},
			{"the administrator's", func(*engine.Datagram) {}, []string{"128 of LID 3", "128 of LID 3"}, 2},
		} {
			s.alter(test.change)
			before := s.e.Stats()
			s.bounce("switch-3")
			after := s.e.Stats()
			s.want(test.name, sub, test.told...)
			if n := after.Sent - before.Sent; n != test.answered {
				t.Errorf("%s: %d answers, want %d", test.name, n, test.answered)
			}
			if n := after.Foreign - before.Foreign; n != 2-uint64(len(test.told)) {
				t.Errorf("%s: %d counted as foreign", test.name, n)
			}
		}
		s.alter(func(*engine.Datagram) {})
		s.bounce("switch-3")
		ev, err := sub.Next(t.Context())
		if err != nil || ev.Source != port.SMLID {
			t.Errorf("source %d, %v; the administrator is at LID %d", ev.Source, err, port.SMLID)
		}
	})
}

// TestRedirectedReports: where the subnet administrator has its subscriptions made
// elsewhere, the Reports of that place count, and its own.
func TestRedirectedReports(t *testing.T) {
	onSubnet(t, func(t *testing.T, s *subnet) {
		const there = 777
		port, err := s.e.Port()
		if err != nil {
			t.Fatal(err)
		}
		reportsFrom := port.SMLID
		s.on.faults.Store(&faults{
			sent: func(d *engine.Datagram) {
				if d.LID == there {
					d.LID = port.SMLID
					d.MAD = slices.Clone(d.MAD)
					d.MAD[mad.Size-1] = 1
				}
			},
			answer: func(h mad.Header, d *engine.Datagram) {
				switch {
				case h.Method == mad.MethodReport:
					d.LID = reportsFrom
				case h.Attribute == mad.AttrInformInfo.ID && d.MAD[mad.Size-1] == 1:
					d.LID = there
				case h.Attribute == mad.AttrInformInfo.ID:
					h.Status = mad.StatusRedirect
					h.Put(d.MAD)
					info := mad.ClassPortInfo{RedirectLID: there, RedirectQP: 1}
					info.Encode(d.MAD[mad.SADataOffset:])
				}
			},
		})
		sub := s.subscribe(128)
		for _, test := range []struct {
			from mad.LID
			want []string
		}{{there, []string{"128 of LID 3", "128 of LID 3"}}, {port.SMLID, []string{"128 of LID 3", "128 of LID 3"}}, {999, nil}} {
			reportsFrom = test.from
			s.bounce("switch-3")
			s.want(fmt.Sprint("from LID ", test.from), sub, test.want...)
		}
	})
}

// TestForgedTraps: a trap counts where it comes from the port that issued it.
func TestForgedTraps(t *testing.T) {
	onSubnet(t, func(t *testing.T, s *subnet) {
		traps := sa.NewTrapSubscriber(s.e)
		defer traps.Close()
		sub, err := traps.Subscribe(t.Context(), trap(128))
		if err != nil {
			t.Fatal(err)
		}
		s.manage(3)
		for _, test := range []struct {
			name   string
			change func(d *engine.Datagram)
			told   []string
		}{
			{"a stranger's", func(d *engine.Datagram) { d.LID = 999 }, nil},
			{"from no LID", func(d *engine.Datagram) { d.LID = mad.PermissiveLID }, nil},
			{"the switch's", func(*engine.Datagram) {}, []string{"128 of LID 3", "128 of LID 3"}},
		} {
			s.alter(test.change)
			before := s.e.Stats()
			s.bounce("switch-3")
			after := s.e.Stats()
			s.want(test.name, sub, test.told...)
			if n := after.Sent - before.Sent; n != uint64(len(test.told)) {
				t.Errorf("%s: %d answers", test.name, n)
			}
			if n := after.Foreign - before.Foreign; n != 2-uint64(len(test.told)) {
				t.Errorf("%s: %d counted as foreign", test.name, n)
			}
		}
		synctest.Wait()
	})
}
