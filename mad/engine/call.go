package engine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"time"

	"fabsh/mad"
)

// Call is one request and its answer. The caller owns it, including its buffer;
// from Start until Complete it belongs to the engine, and then it may be used
// again. It is not safe for concurrent use; different Calls are independent. A
// Call is usually embedded in the caller's state for it:
//
//	type portCall struct {
//		engine.Call
//		port *port
//	}
//	func (c *portCall) Complete(*engine.Call) { ... c.Err, c.Data() ... }
type Call struct {
	To Address
	// Guard selects the M_Key of an SMP, from the engine's keys.
	Guard Guard
	// MAD is the request, written by PutSMP, PutPerf, PutSA or directly; the
	// engine chooses the transaction ID. After an answer it holds the
	// response (of a table, the first segment).
	MAD [mad.Size]byte
	// Payload is the data of a request to subnet administration that may be
	// longer than one MAD, such as GetMulti: it is sent by RMPP, with the header
	// in MAD, whose own data is ignored. Nil: MAD is the whole request.
	Payload []byte
	// Table is the data of an answer to GetTable and similar methods, all
	// segments joined, without headers: never nil after such an answer, nil
	// after others. A short one is part of MAD.
	Table []byte
	// Subscribes is set if the call is a subscription (InformInfo), or the end of
	// one, by a caller who ends it with the session. That needs no Options.Write.
	Subscribes bool
	// KeepTID is set if MAD has its transaction ID, of a message in several MADs; only
	// for calls without an answer.
	KeepTID bool
	// MaxTable is the largest size of the answer's table, in bytes; 0: 64 MiB.
	MaxTable int
	// Timeout and Retries replace the engine's for this call; 0 means the engine's,
	// negative Retries means no retries.
	Timeout time.Duration
	Retries int
	// Notify is called when the call has ended, on one of the engine's
	// goroutines or on the one that calls Cancel or Close. It must not block; it
	// may Start calls. It may be nil.
	Notify Completer
	// Err is nil when MAD holds a response with status 0; otherwise an *Error.
	Err error
	// Attempts is the number of times that the request was sent.
	Attempts int
	// Elapsed is the time from Start to the end.
	Elapsed time.Duration

	s         callState
	announced bool              // the device announces the attribute
	refused   bool              // it is not sent: the device does not announce the attribute
	answered  func(*Call) error // what Interceptor.Request returned, or nil
}

// Completer receives calls that have ended. An engine may call Complete from several
// goroutines at the same time, with different calls; each call then belongs to its owner again.
type Completer interface{ Complete(*Call) }

// CompleterFunc is a function that is a Completer.
type CompleterFunc func(*Call)

// Complete calls f.
func (f CompleterFunc) Complete(c *Call) { f(c) }

// Header returns the base header of the request or response in c.
func (c *Call) Header() mad.Header { return mad.ParseHeader(c.MAD[:]) }

func (c *Call) maxTable() int { return cmp.Or(c.MaxTable, maxTable) }

func (c *Call) isAnswered() bool { h := c.Header(); return h.IsAnswered() }

// Data returns the attribute in c's MAD, of which it is a part: it changes with c.
func (c *Call) Data() []byte {
	h := c.Header()
	return c.MAD[h.DataOffset():]
}

// Records returns the records of an SA answer, parts of c, each at least size bytes
// long: one after Get, any number after GetTable. The error is c.Err, or describes an
// answer that is not a whole number of records.
func (c *Call) Records(size int) (iter.Seq[[]byte], error) {
	switch {
	case c.Err != nil:
		return nil, c.Err
	case c.Table == nil:
		return slices.Values([][]byte{c.Data()[:min(size, len(c.Data()))]}), nil
	case len(c.Table) == 0:
		return func(func([]byte) bool) {}, nil
	}
	// AttributeOffset is the distance of records in units of 8 bytes; the
	// last record may come without its padding (IBA 15.2.1.1).
	step := 8 * int(binary.BigEndian.Uint16(c.MAD[mad.SAPlacesIn(c.MAD[mad.ClassVersionOffset]).AttrOffset:]))
	if step < max(size, 1) {
		return nil, newError(c, fmt.Errorf("malformed table: records %d bytes apart, but at least %d bytes long", step, size))
	}
	if rest := len(c.Table) % step; rest != 0 && rest < size {
		return nil, newError(c, fmt.Errorf("malformed table: %d bytes are not a whole number of records %d bytes apart", len(c.Table), step))
	}
	return slices.Chunk(c.Table, step), nil
}

// PutSMP makes c's MAD a subnet management request for attribute a; SetRoute or
// SetLID set its destination. data, at most 64 bytes, is the content of a Set.
func (c *Call) PutSMP(m mad.Method, a mad.AttributeID, modifier uint32, data []byte) {
	c.put(mad.ClassSubn, m, a, modifier, data)
}

// PutPerf makes c's MAD a performance management request; SetLID sets its
// destination.
func (c *Call) PutPerf(m mad.Method, a mad.AttributeID, modifier uint32, data []byte) {
	c.put(mad.ClassPerf, m, a, modifier, data)
}

// PutSA makes c's MAD a subnet administration request; SetLID, with the LID of the
// subnet manager's port, sets its destination. mask is the component mask: the
// components of record that count.
func (c *Call) PutSA(m mad.Method, a mad.AttributeID, modifier uint32, mask uint64, record []byte) {
	c.put(mad.ClassSubnAdm, m, a, modifier, record)
	mad.PutSA(c.MAD[:], mask, len(record))
}

// PutMAD makes c's MAD a request of any class; SetRoute or SetLID set its
// destination. data is put at the position of h's class, and truncated to its size.
func (c *Call) PutMAD(h mad.Header, data []byte) {
	clear(c.MAD[:]) // so that nothing of an earlier answer is sent
	h.Put(c.MAD[:])
	copy(c.MAD[h.DataOffset():][:h.DataSize()], data)
}

func (c *Call) put(class mad.Class, m mad.Method, a mad.AttributeID, modifier uint32, data []byte) {
	c.PutMAD(mad.Header{Class: class, ClassVersion: class.Version(), Method: m, Attribute: a, Modifier: modifier}, data)
}

// PutOUI sets the vendor of the MAD, in the vendor classes from 0x30 on.
func (c *Call) PutOUI(oui uint32) {
	binary.BigEndian.PutUint32(c.MAD[mad.VendorOUIOffset-1:], oui&0xffffff)
}

// SetRoute sends c's SMP along a directed route.
func (c *Call) SetRoute(r mad.DirectedRoute) {
	mad.SetRoute(c.MAD[:], r)
	c.To.LID, c.To.QP = mad.PermissiveLID, 0
}

// SetLID sends c's MAD to a LID: SMPs to queue pair 0, all others to queue
// pair 1. The rest of c.To stays: SL, P_Key index, global route.
func (c *Call) SetLID(lid mad.LID) {
	c.To.LID, c.To.QP = lid, 1
	if mad.Class(c.MAD[mad.ClassOffset]).Family() == mad.ClassSubn {
		c.MAD[mad.ClassOffset] = byte(mad.ClassSubn)
		c.To.QP = 0
	}
}
