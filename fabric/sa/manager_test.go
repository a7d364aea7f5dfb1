package sa_test

import (
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// wire is a transport that can be cut, or have faults; it counts SMPs, and Sets
// of InformInfo.
type wire struct {
	engine.Transport
	cut        atomic.Bool
	sets, smps atomic.Int32
	faults     atomic.Pointer[faults]
}

// faults are what a wire loses or changes.
type faults struct {
	lost   func(mad.Header) bool
	sent   func(*engine.Datagram)
	answer func(mad.Header, *engine.Datagram)
	port   func(*engine.Port)
}

func (w *wire) Send(d *engine.Datagram) error {
	h := mad.ParseHeader(d.MAD)
	if h.Method == mad.MethodSet && h.Attribute == mad.AttrInformInfo.ID {
		w.sets.Add(1)
	}
	if h.Class == mad.ClassSubn {
		w.smps.Add(1)
	}
	if l := w.faults.Load(); w.cut.Load() || l != nil && l.lost != nil && l.lost(h) {
		return nil
	} else if l != nil && l.sent != nil {
		changed := *d
		l.sent(&changed)
		d = &changed
	}
	return w.Transport.Send(d)
}

func (w *wire) TrySend(d *engine.Datagram) (bool, error) { return true, w.Send(d) }

func (w *wire) Recv(d *engine.Datagram) error {
	err := w.Transport.Recv(d)
	if l := w.faults.Load(); err == nil && l != nil && l.answer != nil {
		l.answer(mad.ParseHeader(d.MAD), d)
	}
	return err
}

func (w *wire) Port() (engine.Port, error) {
	p, err := w.Transport.Port()
	if l := w.faults.Load(); l != nil && l.port != nil {
		l.port(&p)
	}
	return p, err
}

// TestManager: whatever tells that the subnet manager may have lost the
// subscriptions has them renewed; nothing else does.
func TestManager(t *testing.T) {
	smps := func(h mad.Header) bool { return h.Class == mad.ClassSubn }
	status := func(a *mad.Attribute, s mad.Status) func(h mad.Header, d *engine.Datagram) {
		return func(h mad.Header, d *engine.Datagram) {
			if h.Class == mad.ClassSubnAdm && h.Attribute == a.ID {
				binary.BigEndian.PutUint16(d.MAD[4:], uint16(s))
			}
		}
	}
	for _, c := range []struct {
		name   string
		before *faults
		change func(s *subnet)
		within time.Duration
		want   string // a part of what is reported; "": nothing
	}{
		{"another GUID", nil, func(s *subnet) {
			s.on.faults.Store(&faults{answer: func(h mad.Header, d *engine.Datagram) {
				if h.Class == mad.ClassSubn {
					d.MAD[mad.SMPDataOffset+7]++
				}
			}})
		}, 6 * time.Second, "another subnet manager, with GUID 0x0002c90310000002, is at LID 5; subscribed again"},
		{"another LID of ours", nil, func(s *subnet) {
			s.on.faults.Store(&faults{port: func(p *engine.Port) { p.LID = 99 }})
		}, 6 * time.Second, "this port's LID changed from 6 to 99; subscribed again"},
		{"restart while it was away", nil, func(s *subnet) {
			s.on.cut.Store(true)
			time.Sleep(30 * time.Second)
			s.SM.Restart(0)
			s.on.cut.Store(false)
		}, 16 * time.Second, "had lost the subscription; subscribed again"},
		{"restart, no SMPs come through", &faults{lost: smps}, func(s *subnet) { s.bounce("switch-4"); time.Sleep(7 * time.Second); s.SM.Restart(0) },
			6 * time.Second, "has restarted; subscribed again"},
		{"it does not say who it is", &faults{lost: smps, answer: status(mad.AttrSMInfoRecord, mad.StatusBadMethodAttribute)}, func(s *subnet) { s.SM.Restart(0) },
			time.Minute + 10*time.Second, "had lost the subscription; subscribed again"},
		{"it does not say what it knows", &faults{answer: status(mad.AttrInformInfoRecord, mad.StatusBadMethodAttribute)}, func(s *subnet) {}, 5 * time.Minute, ""},
		{"it refuses", nil, func(s *subnet) {
			s.bounce("switch-4")
			time.Sleep(6 * time.Second)
			s.on.faults.Store(&faults{answer: status(mad.AttrInformInfo, mad.StatusRequestInvalid)})
			s.SM.Restart(0)
		}, 6 * time.Second, "has restarted, and subscribing again failed: SubnAdmSet(InformInfo) to LID 5: request invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onSubnet(t, func(t *testing.T, s *subnet) {
				s.on.faults.Store(c.before)
				sub := s.subscribe(64)
				time.Sleep(time.Second) // between two checks
				c.change(s)
				queued(sub)
				smps := s.on.smps.Load()
				time.Sleep(c.within)
				got := queued(sub)
				if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
					t.Errorf("told %q, want %q", got, c.want)
				}
				if c.before != nil && c.before.lost != nil && s.on.smps.Load() != smps {
					t.Errorf("SMPs are sent that do not come through")
				}
				s.on.faults.Store(nil)
			})
		})
	}
}

// TestCloseWhileChecking: Close ends the subscriptions even while a check waits
// for an answer.
func TestCloseWhileChecking(t *testing.T) {
	onSubnet(t, func(t *testing.T, s *subnet) {
		s.subscribe(64)
		s.on.faults.Store(&faults{lost: func(h mad.Header) bool { return h.Class == mad.ClassSubn }})
		time.Sleep(6 * time.Second)
		began := time.Now()
		s.Subscriber.Close()
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		if n := s.records(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}
