package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"fabsh/mad"
)

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
	case *redirect:
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
		return "route " + mad.RouteOf(c.MAD[:]).String()
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
