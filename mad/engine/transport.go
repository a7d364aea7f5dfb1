package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/mad"
)

// A Transport carries single datagrams, without calls, retries or windows.
// BeforeWait is called first, if at all. Then one goroutine sends at a time (Send,
// TrySend) and another receives; Accept, GaveUp, Port, Traits and Close must be safe
// for concurrent use with these. Datagrams belong to the caller: no method keeps one.
//
// A transport reports by its results what it does not support; one that can only
// send and receive embeds Basic. A wrapper embeds the Transport that it wraps, and so
// supports what that one supports. If it replaces Send it must also replace TrySend, because a
// datagram is sent by either.
//
// Implementations: mad/umad (devices), mad/ibsim (the foreign simulator),
// fabric/sim (in process), mad/capture (recording and replay).
type Transport interface {
	// Send sends one datagram. It may block; it does not keep d or d.MAD. An error
	// means that the transport has failed permanently, unless it is a *SendError,
	// which concerns only this datagram.
	Send(d *Datagram) error
	// TrySend is Send without waiting: sent is false if it would have to wait.
	// It is called only if BeforeWait has returned true.
	TrySend(d *Datagram) (sent bool, err error)
	// Recv waits for the next datagram and fills d, growing d.MAD as
	// needed. After Close it returns ErrClosed; any error is final.
	Recv(d *Datagram) error
	// BeforeWait makes Recv call f each time before it waits, and try again if f
	// returns true. ok is false if that is unsupported.
	BeforeWait(f func() (again bool)) (ok bool)
	// Accept makes Recv deliver the requests of others, traps and Reports, of this
	// class (in its current version) and method, until stop is called. The error
	// names who else receives them, or why this transport cannot.
	Accept(c mad.Class, m mad.Method) (stop func(), err error)
	// GaveUp reports that the engine has abandoned a request without an answer; d
	// is the latest attempt, and belongs to the engine. It is called with the
	// engine's lock held.
	GaveUp(d *Datagram)
	// Behind reports whether the transport itself still has to execute requests: a request
	// without an answer is then not lost, and its deadlines are postponed. It is called with the
	// engine's lock held.
	Behind() bool
	// Port reads the current facts of the local port.
	Port() (Port, error)
	// Traits returns what the transport itself does. It never changes.
	Traits() Traits
	// Close wakes a waiting Recv and releases the device.
	Close() error
}

// Basic is the part of a Transport that only sends and receives: it cannot send
// without waiting, receives no requests of others, ignores abandoned requests, and is never
// behind.
type Basic struct{}

// TrySend sends nothing.
func (Basic) TrySend(*Datagram) (sent bool, err error) { return false, nil }

// BeforeWait returns false: it is unsupported.
func (Basic) BeforeWait(func() (again bool)) (ok bool) { return false }

// Accept returns ErrNoRequests.
func (Basic) Accept(mad.Class, mad.Method) (stop func(), err error) { return nil, ErrNoRequests }

// GaveUp does nothing.
func (Basic) GaveUp(*Datagram) {}

// Behind returns false: answers are lost, or late on their way.
func (Basic) Behind() bool { return false }

// ErrNoRequests is returned by Accept: the transport receives only answers.
var ErrNoRequests = errors.New("this transport cannot receive traps or Reports")

// ErrClosed is returned by a Transport or an Engine after Close.
var ErrClosed = errors.New("transport closed")

// SendError is a refusal of one datagram by a transport that continues to work.
type SendError struct{ Err error }

func (e *SendError) Error() string { return e.Err.Error() }
func (e *SendError) Unwrap() error { return e.Err }

// Datagram is one MAD with the address it goes to or came from.
type Datagram struct {
	Address
	// Undelivered is set, on receive, if the transport returns our own request
	// because it knows that no answer will come (the kernel's ETIMEDOUT,
	// ibsim's status 110). MAD may then hold only the first 24 bytes.
	Undelivered bool
	// Took is, on receive from a recording, the time since the first attempt. 0
	// with Undelivered means that there was another attempt.
	Took time.Duration
	// Timeout is, on send, how long the engine waits for an answer, for
	// transports that pass it to a kernel. 0: no answer is expected.
	Timeout time.Duration
	// MAD is 256 bytes, or header and data of a whole RMPP transfer with
	// Traits.RMPP.
	MAD []byte
	// Cut is set, on receive, if the transport knows that the sender's data did
	// not fit and is lost (ibsim's client shim has no RMPP).
	Cut bool
}

// Traits is what a transport itself does, and its limits.
type Traits struct {
	Name           string // "umad", "ibsim", "sim", "replay"
	RMPP           bool   // segments and reassembles SA transfers itself (kernel)
	NoACK          bool   // RMPP ACKs cannot reach the sender and must not be sent
	MaxOutstanding int    // datagrams that may wait for an answer; 0: unlimited
	Window         int    // the best number by default; 0: the engine's default
	QP             uint32 // for general requests to us; 0: 1
	Simulated      bool   // in-process: no production fabric can be harmed
	// Recorded is set if a recording answers, which has the result of each attempt
	// at once. The engine has no windows and no pauses, and abandons nothing
	// itself: Undelivered means to try again, or to stop. It sends a request of
	// many segments as one datagram.
	Recorded bool
}

// Address is the remote end of a datagram.
type Address struct {
	LID       mad.LID // PermissiveLID for directed-route SMPs
	QP        uint32  // 0: the subnet management interface, 1: general services
	QKey      uint32  // of that queue pair; 0: GeneralQKey
	SL        uint8
	PKeyIndex uint16
	// HasGRH is set if there is a global route header, with GID, FlowLabel,
	// HopLimit and TrafficClass.
	HasGRH       bool
	GID          mad.GID
	FlowLabel    uint32
	HopLimit     uint8
	TrafficClass uint8
}

// String returns a as text: "LID 17", or "GID fe80::1" with a global route header, and
// the queue pair unless it is the usual one.
func (a Address) String() string {
	s := fmt.Sprintf("LID %d", a.LID)
	if a.HasGRH {
		s = fmt.Sprintf("GID %v", a.GID)
	}
	if a.QP > 1 {
		s += fmt.Sprintf(" queue pair %#x", a.QP)
	}
	return s
}

// Port is the facts of the local port.
type Port struct {
	Device    string // "mlx5_0", an ibsim node id, "sim"
	Num       uint8
	NodeGUID  mad.GUID
	PortGUID  mad.GUID
	LID       mad.LID
	LMC       uint8
	SMLID     mad.LID
	SMSL      uint8
	State     mad.PortState
	GIDPrefix uint64
	// Planarized is set if other devices send SMPs than general requests, one for
	// each plane (XDR). Nodes behind them support only directed-route SMPs.
	Planarized bool
	PKeys      []uint16
}

// PKeyIndex returns the index of a P_Key of key's partition in p: of key itself,
// otherwise with the other membership; -1 if p is not in that partition.
func (p *Port) PKeyIndex(key uint16) int {
	const full = 1 << 15 // member
	if i := slices.Index(p.PKeys, key); i >= 0 {
		return i
	}
	return slices.IndexFunc(p.PKeys, func(k uint16) bool { return k&^full == key&^full && k&^full != 0 })
}
