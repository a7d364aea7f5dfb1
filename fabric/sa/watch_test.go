package sa_test

import (
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// wire is a transport that can be cut, and can lie; it counts requests that
// change subscriptions, and SMPs.
type wire struct {
	engine.Transport
	cut        atomic.Bool
	sets, smps atomic.Int32
	lie        atomic.Pointer[lie]
}

// lie is what becomes of what goes over a wire.
type lie struct {
	lost   func(mad.Header) bool
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
	if l := w.lie.Load(); w.cut.Load() || l != nil && l.lost != nil && l.lost(h) {
		return nil
	}
	return w.Transport.Send(d)
}

func (w *wire) Recv(d *engine.Datagram) error {
	err := w.Transport.Recv(d)
	if l := w.lie.Load(); err == nil && l != nil && l.answer != nil {
		l.answer(mad.ParseHeader(d.MAD), d)
	}
	return err
}

func (w *wire) Port() (engine.Port, error) {
	p, err := w.Transport.Port()
	if l := w.lie.Load(); l != nil && l.port != nil {
		l.port(&p)
	}
	return p, err
}

// TestManager: whatever says that the subnet manager may not know the
// subscriptions any more has them made again; what says nothing of it does not.
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
		before *lie
		change func(s *subnet)
		within time.Duration
		want   string // a part of what is told; "": nothing is
	}{
		{"another GUID", nil, func(s *subnet) {
			s.on.lie.Store(&lie{answer: func(h mad.Header, d *engine.Datagram) {
				if h.Class == mad.ClassSubn {
					d.MAD[mad.SMPDataOffset+7]++
				}
			}})
		}, 6 * time.Second, "another subnet manager, with GUID 0x0002c90310000002, is at LID 5; subscribed again"},
		{"another LID of ours", nil, func(s *subnet) {
			s.on.lie.Store(&lie{port: func(p *engine.Port) { p.LID = 99 }})
		}, 6 * time.Second, "this port has LID 99 now, no longer 6; subscribed again"},
		{"restart while it was away", nil, func(s *subnet) {
			s.on.cut.Store(true)
			time.Sleep(30 * time.Second)
			s.RestartSM(0)
			s.on.cut.Store(false)
		}, 16 * time.Second, "had forgotten the subscription; subscribed again"},
		{"restart, no SMPs come through", &lie{lost: smps}, func(s *subnet) { s.bounce("switch-4"); time.Sleep(7 * time.Second); s.RestartSM(0) },
			6 * time.Second, "has started anew; subscribed again"},
		{"it does not say who it is", &lie{lost: smps, answer: status(mad.AttrSMInfoRecord, mad.StatusBadMethodAttribute)}, func(s *subnet) { s.RestartSM(0) },
			time.Minute + 10*time.Second, "had forgotten the subscription; subscribed again"},
		{"it does not say what it knows", &lie{answer: status(mad.AttrInformInfoRecord, mad.StatusBadMethodAttribute)}, func(s *subnet) {}, 5 * time.Minute, ""},
		{"it refuses", nil, func(s *subnet) {
			s.bounce("switch-4")
			time.Sleep(6 * time.Second)
			s.on.lie.Store(&lie{answer: status(mad.AttrInformInfo, mad.StatusRequestInvalid)})
			s.RestartSM(0)
		}, 6 * time.Second, "has started anew, and it refuses to be subscribed to again: SubnAdmSet(InformInfo) to LID 5: request invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onSubnet(t, func(t *testing.T, s *subnet) {
				s.on.lie.Store(c.before)
				sub := s.subscribe(64)
				time.Sleep(time.Second) // between two checks
				c.change(s)
				told(sub)
				smps := s.on.smps.Load()
				time.Sleep(c.within)
				got := told(sub)
				if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
					t.Errorf("told %q, want %q", got, c.want)
				}
				if c.before != nil && c.before.lost != nil && s.on.smps.Load() != smps {
					t.Errorf("SMPs are sent that do not come through")
				}
				s.on.lie.Store(nil)
			})
		})
	}
}

var _ sa.PutSA = putSA

// TestCloseWhileChecking: a check that waits for an answer does not keep the
// end from telling the subnet administrator.
func TestCloseWhileChecking(t *testing.T) {
	onSubnet(t, func(t *testing.T, s *subnet) {
		s.subscribe(64)
		s.on.lie.Store(&lie{lost: func(h mad.Header) bool { return h.Class == mad.ClassSubn }})
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
