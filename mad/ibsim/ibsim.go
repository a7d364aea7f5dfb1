// Package ibsim attaches to ibsim, the simulator of linux-rdma, as libumad2sim
// does for C programs: over its sockets, without a preloaded library. OpenSM
// and infiniband-diags can be on the simulated fabric beside it.
//
// Attach takes a client slot and returns a Transport, an engine.Transport. One socket
// carries datagrams, another the control requests: attach, detach, facts of the port.
// Requests that would damage ibsim are refused. The constants Off..., Ctl... and the
// functions on messages are also for fabsh's own server in place of ibsim.
//
// Sources: linux-rdma/ibsim, tag ibsim-0.10: include/ibsim.h (messages),
// ibsim/ibsim.c (sockets, clients), ibsim/sim_mad.c (handling of MADs).
//
// ibsim is one thread, which blocks without limit if a client does not read its
// answers. A client that waits meanwhile for ibsim to read a request is in deadlock
// with it. So the goroutine that calls Recv must not call Send (TrySend does not
// wait), and at most maxOutstanding requests may be outstanding.
package ibsim

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/nowait"
)

// Transport is an engine.Transport over one of ibsim's client slots.
type Transport struct {
	socket string // ibsim's name
	node   string // that we are attached to
	qp     uint32 // Options.QP
	issm   bool   // Options.ISSM
	fabsh  bool   // fabsh's own server has the name, not ibsim
	ctl    control
	data   *nowait.Conn // requests and answers
	tx, rx [MessageSize]byte

	// ended is done after Close or when ibsim has ended; its cause is the reason.
	ended context.Context
	end   context.CancelCauseFunc
	watch sync.WaitGroup
	close sync.Once
}

var _ engine.Transport = (*Transport)(nil)

// The buffers of each direction hold 167 messages (Linux's default of 208 KiB for
// a socket, 1280 bytes a message including the kernel's overhead).
const maxOutstanding = 128

// window keeps ibsim busy while we are being woken: with 32 it waits for us. ibsim
// loses nothing, and more than 64 gains little.
const window = 64

// watchInterval is the time until an idle client notices that ibsim has ended.
const watchInterval = 500 * time.Millisecond

// Traits returns the traits of the transport: ACKs of RMPP segments come back,
// because ibsim considers them responses to ourselves.
func (t *Transport) Traits() engine.Traits {
	return engine.Traits{Name: "ibsim", NoACK: true, MaxOutstanding: maxOutstanding, Window: window, QP: t.qp}
}

// Accept succeeds if requests come to us, which was decided when we attached. Traps
// go to the client of the subnet manager, on the port whose LID the agents have.
func (t *Transport) Accept(c mad.Class, m mad.Method) (stop func(), err error) {
	if c.Family() == mad.ClassSubn && !t.issm {
		return nil, fmt.Errorf("ibsim at %q: not attached as a client that receives requests to queue pair 0", t.socket)
	}
	return func() {}, nil
}

// Send passes d to ibsim. It refuses, with an *engine.SendError, requests that would
// damage ibsim or that it cannot carry.
func (t *Transport) Send(d *engine.Datagram) error {
	if err := t.message(d); err != nil {
		return err
	}
	if _, err := t.data.Write(t.tx[:]); err != nil {
		return t.fail(err)
	}
	return nil
}

// TrySend is Send, unless ibsim's queue is full.
func (t *Transport) TrySend(d *engine.Datagram) (sent bool, err error) {
	if err := t.message(d); err != nil {
		return false, err
	}
	switch _, err := t.data.TryWrite(t.tx[:]); {
	case err == nil:
		return true, nil
	case errors.Is(err, syscall.EAGAIN):
		return false, nil
	default:
		return false, t.fail(err)
	}
}

// BeforeWait makes Recv call f before it waits.
func (t *Transport) BeforeWait(f func() (again bool)) (ok bool) {
	t.data.BeforeWait(f)
	return true
}

// GaveUp does nothing: ibsim keeps no state of a request.
func (t *Transport) GaveUp(*engine.Datagram) {}

// Behind returns false: the simulator is another process.
func (t *Transport) Behind() bool { return false }

// message puts d in t.tx.
func (t *Transport) message(d *engine.Datagram) error {
	if err := t.refuse(d); err != nil {
		return &engine.SendError{Err: err}
	}
	m := t.tx[:]
	clear(m[:OffMAD])
	if mad.Class(d.MAD[1]) == mad.ClassSubnDirected {
		PutLID(m[OffDLID:], mad.PermissiveLID)
		PutLID(m[OffSLID:], mad.PermissiveLID)
	} else {
		PutLID(m[OffDLID:], d.LID) // SLID 0: ibsim fills in ours
	}
	binary.BigEndian.PutUint32(m[OffDQP:], d.QP)
	switch {
	case d.QP == 0: // to a subnet management agent, from ours
	case t.qp != 0:
		binary.BigEndian.PutUint32(m[OffSQP:], t.qp) // for reports to us
	default:
		binary.BigEndian.PutUint32(m[OffSQP:], 1)
	}
	binary.BigEndian.PutUint64(m[OffLength:], mad.Size)
	copy(m[OffMAD:], d.MAD)
	return nil
}

// Recv waits for the next datagram.
func (t *Transport) Recv(d *engine.Datagram) error {
	for {
		n, err := t.data.Read(t.rx[:])
		if err != nil {
			return t.fail(err)
		}
		if n == MessageSize {
			break
		}
	}
	decodeMessage(d, t.rx[:])
	return nil
}

// decodeMessage fills d from message m.
func decodeMessage(d *engine.Datagram, m []byte) {
	d.Address = engine.Address{LID: GetLID(m[OffSLID:]), QP: binary.BigEndian.Uint32(m[OffSQP:])}
	d.Timeout = 0
	// Not delivered: our request comes back, or the response if it could not
	// reach us.
	d.Undelivered = binary.BigEndian.Uint32(m[OffStatus:]) != 0
	h := mad.ParseHeader(m[OffMAD:])
	if d.Undelivered && !h.Method.IsResponse() {
		d.LID, d.QP = GetLID(m[OffDLID:]), binary.BigEndian.Uint32(m[OffDQP:])
	}
	length := binary.BigEndian.Uint64(m[OffLength:])
	if length < mad.HeaderSize || length > mad.Size {
		length = mad.Size
	}
	d.MAD = append(d.MAD[:0], m[OffMAD:OffMAD+length]...)
	d.Cut = !d.Undelivered && isCut(h, d.MAD)
}

// isCut reports whether m is a table truncated by libumad2sim. OpenSM passes it the
// whole table and expects a kernel that splits it into segments; the library sends the
// first 256 bytes. (A complete table of exactly that length cannot be distinguished.)
func isCut(h mad.Header, m []byte) bool {
	if h.Class != mad.ClassSubnAdm || len(m) < mad.Size || m[mad.RMPPVersionOffset] != 0 {
		return false
	}
	switch h.Method {
	case mad.MethodGetTableResp, mad.MethodGetTraceTableResp, mad.MethodGetMultiResp:
		return true
	}
	return false
}

// Close releases the client slot: there are only ten, and ibsim does not notice that
// a client has ended.
func (t *Transport) Close() error {
	t.close.Do(func() {
		t.end(engine.ErrClosed)
		t.wake()
		t.watch.Wait()
		if t.cause() == engine.ErrClosed {
			t.ctl.request(CtlDisconnect, nil, closeTimeout) // if it fails, ibsim has ended
		}
		t.data.Close()
		t.ctl.Close()
	})
	return nil
}

// watchIbsim notices that ibsim has ended while nothing is sent, which a reading
// socket without connection never would. ibsim ignores empty messages.
func (t *Transport) watchIbsim() {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-t.ended.Done():
			return
		case <-tick.C:
		}
		var err error
		cerr := t.data.Control(func(fd uintptr) { _, err = syscall.Write(int(fd), nil) })
		if err = cmp.Or(cerr, err); err != nil && !errors.Is(err, syscall.EAGAIN) {
			t.fail(err)
			return
		}
	}
}

// fail ends the transport because of err, wakes waiting calls of Send and Recv, and
// returns why it has ended.
func (t *Transport) fail(err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTCONN):
		err = fmt.Errorf("ibsim at %q: it has ended or crashed; start it and attach again", t.socket)
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ECONNRESET):
		err = fmt.Errorf("ibsim at %q: another client has our slot; attach again", t.socket)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, os.ErrClosed): // woken
		err = engine.ErrClosed
	default:
		err = fmt.Errorf("ibsim at %q: %w", t.socket, err)
	}
	t.end(err)
	t.wake()
	return t.cause()
}

func (t *Transport) cause() error { return context.Cause(t.ended) }

// wake ends the waiting of Send and Recv, now and later.
func (t *Transport) wake() { t.data.Interrupt() }
