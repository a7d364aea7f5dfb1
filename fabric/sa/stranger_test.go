package sa_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// alter has all reports and traps that come changed.
func (s *subnet) alter(change func(d *engine.Datagram)) {
	s.on.faults.Store(&faults{answer: func(h mad.Header, d *engine.Datagram) {
		if h.Method == mad.MethodReport || h.Method == mad.MethodTrap {
			change(d)
		}
	}})
}

// TestForgedReports: a Report that does not come from the subnet administrator, or
// of a trap never asked for, is counted and told to nobody; only those of the
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
