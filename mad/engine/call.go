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

// Call is one request and its answer. The caller owns it, buffer included,
// and lends it to the engine from Start until Complete; it may then be used
// again. It is not safe for concurrent use; different Calls are independent. A Call is usually embedded in what the caller keeps about it:
//
//	type portCall struct {
//		engine.Call
//		port *port
//	}
//	func (c *portCall) Complete(*engine.Call) { ... c.Err, c.Data() ... }
type Call struct {
	To Address
	// Guard is whose M_Key an SMP takes along, of those that the engine has.
	Guard Guard
	// MAD is the request, written by PutSMP, PutPerf, PutSA or by hand; the
	// engine chooses the transaction ID. After an answer it holds the
	// response (of a table, the first segment).
	MAD [mad.Size]byte
	// Payload is the data of a request to subnet administration that may be
	// longer than one MAD, as GetMulti's: it goes by RMPP, with the header in
	// MAD, whose own data does not count. Nil: MAD is all.
	Payload []byte
	// Table is the data of an answer to GetTable and its like, all segments
	// joined, without headers: never nil after such an answer, nil after
	// others. A short one lies in MAD.
	Table []byte
	// Subscribes: the call is a subscription (InformInfo), or the end of one, of
	// somebody who ends it with the session. That needs no Options.Write.
	Subscribes bool
	// KeepTID: MAD has its transaction ID, of a message in several MADs; only without an
	// answer.
	KeepTID bool
	// MaxTable is how long the answer's table may be, in bytes; 0: 64 MiB.
	MaxTable int
	// Timeout and Retries of this call; 0 means the engine's, negative
	// Retries none.
	Timeout time.Duration
	Retries int
	// Notify is told when the call has ended, on one of the engine's
	// goroutines or on the one that calls Cancel or Close. It must not
	// block; it may Start calls. Nil: nobody is told.
	Notify Completer
	// Err is nil when MAD holds a response with status 0; otherwise an *Error.
	Err error
	// Attempts is how many times the request was sent.
	Attempts int
	// Elapsed is from Start to the end.
	Elapsed time.Duration

	s        callState
	answered func(*Call) error // of the Interceptor; nil: none
}

// Completer receives calls that have ended. An engine may call Complete from several
// goroutines at the same time, with different calls; each call is then its owner's again.
type Completer interface{ Complete(*Call) }

// CompleterFunc makes a Completer of a function.
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
// long: one after Get, any number after GetTable. The error is c.Err, or says
// why the answer is not a whole number of records.
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
		return nil, newError(c, fmt.Errorf("malformed table: %d bytes are no whole number of records %d bytes apart", len(c.Table), step))
	}
	return slices.Chunk(c.Table, step), nil
}
