package engine

import (
	"errors"
	"time"

	"fabsh/mad"
)

// A Transport carries single datagrams: it knows nothing of calls, retries or
// windows. BeforeWait comes first, if at all. Then one goroutine sends at a time
// (Send, TrySend) and another receives; Accept, GaveUp, Port, Traits and Close must be safe
// for concurrent use with these. Datagrams are the caller's: no method keeps one.
//
// What a transport cannot do it says by what it returns; one that can only send
// and receive embeds Basic. A wrapper embeds the Transport that it wraps, and so
// can do all that this one can. Where it replaces Send it replaces TrySend too,
// for a datagram goes out by either.
//
// Implementations: mad/umad (devices), mad/ibsim (the foreign simulator),
// fabric/sim (in process), mad/capture (recording and replay).
type Transport interface {
	// Send hands over one datagram. It may block, it does not keep d or
	// d.MAD. An error means the transport is broken for good, unless it
	// is a *SendError, which concerns this datagram alone.
	Send(d *Datagram) error
	// TrySend is Send without waiting: sent is false if it would have to wait.
	// It is called only where BeforeWait has returned true.
	TrySend(d *Datagram) (sent bool, err error)
	// Recv waits for the next datagram and fills d, growing d.MAD as
	// needed. After Close it returns ErrClosed; any error is final.
	Recv(d *Datagram) error
	// BeforeWait has Recv call f each time before it waits, and look again if f
	// returns true. ok is false where that cannot be.
	BeforeWait(f func() (again bool)) (ok bool)
	// Accept has Recv deliver the requests of others, traps and Reports, that are
	// of this class (in its current version) and method, until stop is called.
	// The error says who else has them, or why there are none here.
	Accept(c mad.Class, m mad.Method) (stop func(), err error)
	// GaveUp tells that the engine has given up a request, for no answer came; d
	// is the latest attempt, and stays the engine's. It is called with the
	// engine's lock held.
	GaveUp(d *Datagram)
	// Port reads the facts of the local port afresh.
	Port() (Port, error)
	// Traits says what the transport does by itself. It never changes.
	Traits() Traits
	// Close wakes a waiting Recv and gives the device back.
	Close() error
}

// Basic is the part of a Transport that only sends and receives: it has no way
// to send without waiting, takes no requests of others, and need not know what
// was given up.
type Basic struct{}

// TrySend sends nothing.
func (Basic) TrySend(*Datagram) (sent bool, err error) { return false, nil }

// BeforeWait cannot be done.
func (Basic) BeforeWait(func() (again bool)) (ok bool) { return false }

// Accept returns ErrNoRequests.
func (Basic) Accept(mad.Class, mad.Method) (stop func(), err error) { return nil, ErrNoRequests }

// GaveUp does nothing.
func (Basic) GaveUp(*Datagram) {}

// ErrNoRequests is returned by Accept: the transport takes answers only.
var ErrNoRequests = errors.New("to this fabric no traps and Reports come")

// ErrClosed is returned by a Transport or an Engine after Close.
var ErrClosed = errors.New("transport closed")

// SendError is a refusal of one datagram by a transport that goes on working.
type SendError struct{ Err error }

func (e *SendError) Error() string { return e.Err.Error() }
func (e *SendError) Unwrap() error { return e.Err }

// Datagram is one MAD with the address it goes to or came from.
type Datagram struct {
	Address
	// Undelivered, on receive: the transport returns our own request,
	// because it knows that no answer will come (the kernel's ETIMEDOUT,
	// ibsim's status 110). MAD may then hold only the first 24 bytes.
	Undelivered bool
	// Took, on receive from a recording: how long after the first attempt
	// this came. 0, with Undelivered: there was another attempt.
	Took time.Duration
	// Timeout, on send: how long the engine waits for an answer, for
	// transports that must tell a kernel. 0: no answer is expected.
	Timeout time.Duration
	// MAD is 256 bytes, or header and data of a whole RMPP transfer where
	// Traits.RMPP says that the transport does it.
	MAD []byte
	// Cut, on receive: the transport knows that the sender's data did not
	// fit and is lost (ibsim's client shim has no RMPP).
	Cut bool
}

// Traits is what a transport does by itself, and its limits.
type Traits struct {
	Name           string // "umad", "ibsim", "sim", "replay"
	RMPP           bool   // segments and reassembles SA transfers itself (kernel)
	NoACK          bool   // RMPP ACKs cannot reach the sender and must not be sent
	MaxOutstanding int    // datagrams that may wait for an answer; 0: no limit
	Window         int    // how many do best, where nobody says otherwise; 0: the engine's default
	QP             uint32 // where general requests to us come; 0: 1
	Simulated      bool   // in-process: no production fabric can be harmed
	// Recorded: a recording answers, which knows at once what becomes of each
	// attempt. The engine keeps no windows, makes no pauses and gives nothing
	// up by itself: Undelivered says when to try again, and when no more. It
	// hands over a request of many segments as one datagram.
	Recorded bool
}
