package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
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

// SetCombinedRoute sends c's SMP by LID to start, and from there along a directed route. source is
// the LID of the local port, to which the answer comes by LID.
func (c *Call) SetCombinedRoute(start, source mad.LID, r mad.DirectedRoute) {
	c.SetRoute(r)
	mad.SetRouteSource(c.MAD[:], source)
	c.To.LID = start
}

// SetPathOf sends c's SMP to where o's goes.
func (c *Call) SetPathOf(o *Call) {
	c.To = o.To
	if mad.Class(o.MAD[mad.ClassOffset]) != mad.ClassSubnDirected {
		c.SetLID(o.To.LID)
		return
	}
	if !o.combined() {
		c.SetRoute(mad.RouteOf(o.MAD[:]))
		return
	}
	c.SetCombinedRoute(o.To.LID, mad.RouteSourceOf(o.MAD[:]), mad.RouteOf(o.MAD[:]))
}

// combined reports whether c, a directed-route SMP, has a combined route. The header of a MAD that a
// program makes may have any LID.
func (c *Call) combined() bool {
	source := mad.RouteSourceOf(c.MAD[:])
	return c.To.LID != mad.PermissiveLID && source != 0 && source <= mad.MaxUnicastLID
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

var (
	// ErrTimeout means that no answer came to any attempt.
	ErrTimeout = errors.New("timed out")
	// ErrReadOnly means that the request would change the fabric, which
	// Options.Write does not allow. It was not sent.
	ErrReadOnly = errors.New("refused: the request would change the fabric, and the engine is read-only")
	// ErrOnlyReads means that the request would do more than read, which
	// Options.OnlyReads refuses. It was not sent.
	ErrOnlyReads = errors.New("refused: only requests that read are allowed here; subscriptions are not available")
	// ErrRegister means that the request would write a register of a device, or
	// clear its counters. No option allows that. It was not sent.
	ErrRegister = errors.New("refused: the request may write a register of the device; registers are only read, and only known ones (help(reg_get))")
	// ErrNotRecorded means that the replayed recording does not have the request.
	ErrNotRecorded = errors.New("not in the recording")
	// ErrCut means that the transport lost a part of the answer's table.
	ErrCut = errors.New("table cut by the transport, which cannot carry long tables; request fewer records")
)

// Error is why a Call failed. All errors in Call.Err are of this type.
type Error struct {
	Class    mad.Class
	Op       string // class and method: "SubnGet"
	Attr     string // "PortInfo"
	Modifier uint32
	Dest     string     // "LID 17", "route 0,1,3"
	Status   mad.Status // of the response, if one came
	Attempts int        // how often the request was sent
	Elapsed  time.Duration
	// TotalTimeout is, of a call that timed out, (Retries+1) x Timeout. 0: it
	// ended earlier, because the transport knew that no answer would come.
	TotalTimeout time.Duration
	Err          error // nil if Status is the whole cause
}

// newError returns the Error of c for err; nil if err is nil. A statusError becomes
// the Error's Status, with known details.
func newError(c *Call, err error) error {
	if err == nil {
		return nil
	}
	e := c.failure(err)
	if t := c.s.totalTimeout(); errors.Is(err, ErrTimeout) && c.Elapsed-(c.s.firstSent-c.s.started) >= t && !c.s.tooLong() {
		e.TotalTimeout = t
	}
	switch err := err.(type) {
	case statusError:
		e.Status, e.Err = mad.Status(err), nil
	case *redirectError:
		e.Status = err.status
	}
	return e
}

// failure returns the Error of c, which failed with err.
func (c *Call) failure(err error) *Error {
	h := c.Header()
	if c.s.method != 0 {
		h.Method = c.s.method
	}
	e := &Error{
		Class:    h.Class,
		Op:       h.Class.Family().String() + (h.Method&^mad.Response).Name(h.Class, h.ClassVersion),
		Attr:     fmt.Sprintf("attribute %#04x", uint16(h.Attribute)),
		Modifier: h.Modifier,
		Dest:     c.destination(),
		Attempts: c.Attempts,
		Elapsed:  c.Elapsed,
		Err:      err,
	}
	if a := mad.Lookup(h.Class, h.Attribute); a != nil {
		e.Attr = a.Name
	}
	return e
}

// statusError is the status of a response that is not 0.
type statusError mad.Status

func (s statusError) Error() string { return mad.Status(s).String() }

// destination returns the destination of c as text.
func (c *Call) destination() string {
	if mad.Class(c.MAD[mad.ClassOffset]) == mad.ClassSubnDirected {
		route := "route " + mad.RouteOf(c.MAD[:]).String()
		if c.combined() {
			return fmt.Sprintf("LID %d, then %s", c.To.LID, route)
		}
		return route
	}
	if c.s.phase != phaseIdle && c.s.to != c.To {
		return fmt.Sprintf("%v, redirected to %v", c.To, c.s.to)
	}
	return c.To.String()
}

// Error returns one line: the request, its destination, and the result.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s(%s", e.Op, e.Attr)
	if e.Modifier != 0 {
		b.WriteByte(' ')
		b.WriteString(modifierText(mad.LookupName(e.Class, e.Attr), e.Modifier))
	}
	fmt.Fprintf(&b, ") to %s: ", e.Dest)
	if e.Status != 0 {
		fmt.Fprintf(&b, "%s (status %#04x)", e.Status.Text(e.Class), uint16(e.Status))
		if e.Status&mad.StatusBusy != 0 {
			fmt.Fprintf(&b, " after %s", e.attempts())
		}
		if e.Err != nil {
			b.WriteString(": ")
		}
	}
	switch {
	case e.Err == nil:
	case errors.Is(e.Err, ErrTimeout) && e.Attempts > 0:
		fmt.Fprintf(&b, "%v after %s", e.Err, e.attempts())
		if e.TotalTimeout > 0 {
			fmt.Fprintf(&b, " in %v", e.TotalTimeout)
		}
	default:
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

func (e *Error) attempts() string {
	if e.Attempts == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", e.Attempts)
}

// modifierText returns an attribute modifier other than 0, by its parts: "3" if only
// the first part is set, otherwise "block 1 port 3".
func modifierText(a *mad.Attribute, m uint32) string {
	if a == nil {
		return strconv.FormatUint(uint64(m), 10)
	}
	var words []string
	rest := m
	for _, p := range a.Modifier {
		mask := uint32(1<<p.Bits - 1)
		v := m >> p.Shift & mask
		rest &^= mask << p.Shift
		switch {
		case v == 0:
		case p.Bits == 1:
			words = append(words, p.Name)
		case v == m:
			return strconv.FormatUint(uint64(v), 10)
		default:
			words = append(words, fmt.Sprintf("%s %d", p.Name, v))
		}
	}
	if rest != 0 {
		return fmt.Sprintf("modifier %#08x", m)
	}
	return strings.Join(words, " ")
}

// Describe returns the request, its destination, and the result in a word.
func (e *Error) Describe() (op, dest, status string) {
	switch {
	case e.Timeout():
		status = ErrTimeout.Error()
	case errors.Is(e.Err, ErrUnsupported):
		status = ErrUnsupported.Error()
	case e.Err != nil:
		status = e.Err.Error()
	default:
		status = e.Status.String()
	}
	return e.Op + "(" + e.Attr + ")", e.Dest, status
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Unanswered reports whether err is of a call that got no answer, so that another call
// will not be answered either before something changes.
func Unanswered(err error) bool {
	var e *Error
	return errors.As(err, &e) &&
		(e.Timeout() || errors.Is(err, ErrClosed) || errors.Is(err, ErrNotRecorded))
}

// Timeout reports whether no answer came in time.
func (e *Error) Timeout() bool {
	return errors.Is(e.Err, ErrTimeout) || errors.Is(e.Err, context.DeadlineExceeded)
}
