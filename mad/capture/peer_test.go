package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// peer is a transport whose far end is a function, in virtual time.
type peer struct {
	engine.Basic
	traits engine.Traits
	// answer is called for each datagram sent; nth counts the equal datagrams
	// before it.
	answer func(p *peer, d engine.Datagram, nth int)
	refuse error // of Send

	recv   chan engine.Datagram
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	port engine.Port
	seen map[string]int
}

func newPeer(traits engine.Traits, answer func(p *peer, d engine.Datagram, nth int)) *peer {
	return &peer{
		traits: traits, answer: answer, port: localPort(),
		recv: make(chan engine.Datagram, 1000), closed: make(chan struct{}), seen: map[string]int{},
	}
}

// localPort has each fact set to something.
func localPort() engine.Port {
	p := engine.Port{
		Device: "mlx5_0", Num: 2, NodeGUID: 0x0002c90300000001, PortGUID: 0x0002c90300000003, LID: 7, LMC: 1,
		SMLID: 3, SMSL: 5, State: mad.PortStateActive, GIDPrefix: 0xfe80000000000001,
	}
	for i := range 33 {
		p.PKeys = append(p.PKeys, 0x8001+uint16(i))
	}
	return p
}

func (p *peer) Send(d *engine.Datagram) error {
	if p.refuse != nil {
		return p.refuse
	}
	c := *d
	c.MAD = bytes.Clone(d.MAD)
	if s := segmentOf(c.MAD); s != nil && s.RMPPType != mad.RMPPTypeData {
		return nil // an ACK
	}
	p.mu.Lock()
	key := keyOf(&c.Address, c.MAD)
	nth := p.seen[key]
	p.seen[key]++
	p.mu.Unlock()
	p.answer(p, c, nth)
	return nil
}

func (p *peer) Recv(d *engine.Datagram) error {
	select {
	case r := <-p.recv:
		m := append(d.MAD[:0], r.MAD...)
		*d = r
		d.MAD = m
		return nil
	case <-p.closed:
		return engine.ErrClosed
	}
}

func (p *peer) Port() (engine.Port, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.port, nil
}

func (p *peer) Traits() engine.Traits { return p.traits }
func (p *peer) Close() error          { p.once.Do(func() { close(p.closed) }); return nil }

// after delivers d in a while.
func (p *peer) after(wait time.Duration, d engine.Datagram) {
	time.AfterFunc(wait, func() { p.recv <- d })
}

// marked is a byte in the data of all MADs; in PortInfo it is no key's.
const marked = 100

// respond is the answer to d, with a byte of the data set to mark it.
func respond(d engine.Datagram, mark byte) engine.Datagram {
	d.MAD = bytes.Clone(d.MAD)
	d.MAD[3] |= byte(mad.Response)
	binary.BigEndian.PutUint32(d.MAD[mad.TIDOffset:], 0xabcd0000) // as a kernel might
	if len(d.MAD) > marked {
		d.MAD[marked] = mark
	}
	return d
}

// file is a recording in memory.
type file struct{ bytes.Buffer }

func (*file) Close() error { return nil }

// record runs fn with an engine on p, and returns what was recorded.
func record(t *testing.T, p engine.Transport, o engine.Options, fn func(e *engine.Engine)) []byte {
	t.Helper()
	var f file
	tr, err := Record(p, &f)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(tr, o)
	fn(e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Bytes()
}

// play runs fn with an engine on a recording.
func play(t *testing.T, recording []byte, o engine.Options, fn func(e *engine.Engine)) {
	t.Helper()
	r, err := Load(bytes.NewReader(recording), "a.pcap")
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(NewReplay(r), o)
	fn(e)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// do starts all calls and returns what became of them.
func do(t *testing.T, e *engine.Engine, calls ...*engine.Call) (list []result) {
	t.Helper()
	if err := e.Do(context.Background(), calls...); err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		r := result{Attempts: c.Attempts, Elapsed: c.Elapsed, Table: string(c.Table)}
		if c.Err != nil {
			r.Err = c.Err.Error()
		} else {
			m := bytes.Clone(c.MAD[:])
			clear(m[mad.TIDOffset:][:8])
			if c.Table != nil {
				clear(m[mad.RMPPOffset:mad.SAKeyOffset]) // how it was cut into pieces
			}
			r.MAD = string(m)
		}
		list = append(list, r)
	}
	return list
}

// result is what became of a call.
type result struct {
	Err        string
	MAD, Table string
	Attempts   int
	Elapsed    time.Duration
}

func smp(a *mad.Attribute, modifier uint32, route ...uint8) *engine.Call {
	c := new(engine.Call)
	c.PutSMP(mad.MethodGet, a.ID, modifier, nil)
	c.SetRoute(append(mad.DirectedRoute{0}, route...))
	return c
}

func table(a *mad.Attribute) *engine.Call {
	c := new(engine.Call)
	c.PutSA(mad.MethodGetTable, a.ID, 0, 0, nil)
	c.SetLID(3)
	return c
}

// segments are the segments of a table, answering d.
func segments(d engine.Datagram, data []byte) (list []engine.Datagram) {
	d = respond(d, 0)
	binary.BigEndian.PutUint16(d.MAD[mad.SAAttrOffsetOffset:], 1)
	split(append(d.MAD[:mad.SADataOffset], data...), func(m []byte) {
		s := d
		s.MAD = m
		list = append(list, s)
	})
	return list
}

// count is n bytes that differ from their neighbours.
func count(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + i/251)
	}
	return b
}

var errFull = errors.New("no space left on device")

// full takes n bytes and no more.
type full struct{ n int }

func (f *full) Write(b []byte) (int, error) {
	if f.n -= len(b); f.n < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func (f *full) Close() error { return nil }

var _ io.WriteCloser = (*full)(nil)
