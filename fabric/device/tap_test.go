package device_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// tap is a transport that keeps the Sets that go out, and may change answers.
type tap struct {
	engine.Transport
	mu     sync.Mutex // orders Send's notes before an answer that reads them
	sets   []set
	answer func(h mad.Header, data []byte)
	hops   func(n int) // of what is answered next; may be nil
}

type set struct {
	Attr     mad.AttributeID
	Modifier uint32
	Data     []byte
}

func (t *tap) Send(d *engine.Datagram) error {
	if h := mad.ParseHeader(d.MAD); h.Method == mad.MethodSet {
		t.mu.Lock()
		t.sets = append(t.sets, set{h.Attribute, h.Modifier, slices.Clone(d.MAD[mad.SMPDataOffset:][:64])})
		t.mu.Unlock()
	}
	return t.Transport.Send(d)
}

func (t *tap) TrySend(d *engine.Datagram) (bool, error) { return true, t.Send(d) }

func (t *tap) Recv(d *engine.Datagram) error {
	err := t.Transport.Recv(d)
	if err == nil && t.answer != nil && len(d.MAD) == mad.Size {
		t.mu.Lock()
		defer t.mu.Unlock()
		h := mad.ParseHeader(d.MAD)
		if t.hops != nil {
			t.hops(mad.RouteOf(d.MAD).Hops())
		}
		t.answer(h, d.MAD[h.Class.DataOffset():])
	}
	return err
}

// onTap runs fn on a simulated ring of two switches, through a tap that
// prepare, unless it is nil, has set up.
func onTap(t *testing.T, prepare func(*tap), fn func(t *testing.T, e *engine.Engine, tap *tap)) {
	t.Helper()
	onTapOf(t, "ring:n=2", prepare, fn)
}

func onTapOf(t *testing.T, spec string, prepare func(*tap), fn func(t *testing.T, e *engine.Engine, tap *tap)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, o, err := sim.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
		if err != nil {
			t.Fatal(err)
		}
		tap := &tap{Transport: conn}
		if prepare != nil {
			prepare(tap)
		}
		e := engine.New(tap, engine.Options{Write: true})
		defer e.Close()
		fn(t, e, tap)
	})
}

var leaf = fabric.Dest{Route: mad.DirectedRoute{0, 1}}

// lossy is a transport that loses what lost says, and changes the facts of the
// port.
type lossy struct {
	engine.Transport
	lost func(*engine.Datagram) bool
	port func(*engine.Port)
}

func (l lossy) Send(d *engine.Datagram) error {
	if l.lost != nil && l.lost(d) {
		return nil
	}
	return l.Transport.Send(d)
}

func (l lossy) TrySend(d *engine.Datagram) (bool, error) { return true, l.Send(d) }

func (l lossy) Port() (engine.Port, error) {
	p, err := l.Transport.Port()
	if l.port != nil {
		l.port(&p)
	}
	return p, err
}
