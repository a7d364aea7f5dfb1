package capture

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"slices"
	"sync"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/erf"
)

// Record returns t, with its traffic recorded in w. Each MAD is written at once, so that
// the recording of a crashed session can be read. An error of w ends the recording, not
// the transport. Close closes w, and returns that error.
func Record(t engine.Transport, w io.WriteCloser) (engine.Transport, error) {
	file, err := erf.NewWriter(w)
	if err != nil {
		return nil, err
	}
	r := &recorder{Transport: t, out: w, file: file}
	if _, err := r.Port(); err != nil {
		return nil, err
	}
	return r, r.err
}

// recorder is an engine.Transport that records another one.
type recorder struct {
	engine.Transport

	out  io.Closer
	mu   sync.Mutex // guards all below
	file *erf.Writer
	err  error
	port *engine.Port // as recorded last
	// underWay is the datagram that Send has passed to the transport, until that
	// returns: it may refuse it, and an answer may come before it returns.
	underWay []erf.Packet
}

// Send sends d. It is recorded before any answer to it, but only if the
// transport takes it.
func (r *recorder) Send(d *engine.Datagram) error {
	r.begin(d)
	err := r.Transport.Send(d)
	r.end(err == nil)
	return err
}

// TrySend is Send, if the transport takes d at once.
func (r *recorder) TrySend(d *engine.Datagram) (bool, error) {
	r.begin(d)
	taken, err := r.Transport.TrySend(d)
	r.end(taken && err == nil)
	return taken, err
}

// begin records that d is about to be sent.
func (r *recorder) begin(d *engine.Datagram) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	split(d.MAD, func(m []byte) {
		mad.MaskKeys(m)
		r.underWay = append(r.underWay, packet(ifaceSent, now, &d.Address, r.port, m))
	})
}

// end writes the datagram of begin, if the transport has sent it.
func (r *recorder) end(taken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if taken {
		r.flush()
	}
	r.underWay = r.underWay[:0]
}

// Recv receives into d.
func (r *recorder) Recv(d *engine.Datagram) error {
	if err := r.Transport.Recv(d); err != nil || d.Undelivered || len(d.MAD) < mad.HeaderSize {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.flush()
	split(d.MAD, func(m []byte) {
		mad.MaskKeys(m)
		p := packet(ifaceReceived, now, &d.Address, r.port, m)
		r.write(&p)
	})
	return nil
}

// Port reads the facts of the port, and records them if they have changed.
func (r *recorder) Port() (engine.Port, error) {
	port, err := r.Transport.Port()
	if err != nil {
		return port, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.port != nil && reflect.DeepEqual(*r.port, port) {
		return port, nil
	}
	r.port = &port
	now := time.Now()
	for _, m := range portMADs(&port) {
		p := packet(r.localInterface(), now, &engine.Address{LID: mad.PermissiveLID}, &port, m)
		r.write(&p)
	}
	return port, nil
}

// localInterface returns the interface of packets that were not on a wire.
func (r *recorder) localInterface() uint8 {
	if r.Traits().Simulated {
		return ifaceSimulated
	}
	return ifaceLocal
}

// GaveUp records that no answer came to d.
func (r *recorder) GaveUp(d *engine.Datagram) {
	r.Transport.GaveUp(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.underWay, func(p erf.Packet) bool { return tidOf(p.Payload) == tidOf(d.MAD) }) {
		r.flush() // it came back before Send returned
	}
	m := bytes.Clone(d.MAD)
	mad.MaskKeys(m)
	p := packet(r.localInterface(), time.Now(), &d.Address, r.port, m)
	p.Error = true
	r.write(&p)
}

// Close closes the transport, and then the recording.
func (r *recorder) Close() error {
	err := r.Transport.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = errClosed
		return errors.Join(err, r.out.Close())
	}
	if e := r.out.Close(); e != nil { // it gives the name of the file
		return errors.Join(err, e)
	}
	return errors.Join(err, r.err)
}

// errClosed is the error after Close: later datagrams are not recorded.
var errClosed = errors.New("the recording is closed")

func (r *recorder) flush() {
	for i := range r.underWay {
		r.write(&r.underWay[i])
	}
	r.underWay = r.underWay[:0]
}

// write records p, unless the recording has ended.
func (r *recorder) write(p *erf.Packet) {
	if r.err == nil {
		r.err = r.file.Write(p)
	}
}
