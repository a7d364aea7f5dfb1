package mad

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrTimeout: no answer came to any attempt.
	ErrTimeout = errors.New("timed out")
	// ErrReadOnly: the request would change the fabric, which Options.Write
	// does not allow. It was not sent.
	ErrReadOnly = errors.New("refused, for it would change the fabric and the engine is read-only")
	// ErrCut: the transport lost a part of the answer's table.
	ErrCut = errors.New("table cut by the transport")
)

// Error is why a Call failed. All errors in Call.Err are of this type.
type Error struct {
	Op       string // class and method: "SubnGet"
	Attr     string // "PortInfo"
	Modifier uint32
	Dest     string // "LID 17", "route 0,1,3"
	Status   Status // of the response, if one came
	Attempts int    // how often the request was sent
	Elapsed  time.Duration
	Err      error // nil where Status says it all
}

// Error gives one line: what was asked, of whom, what came of it.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s(%s", e.Op, e.Attr)
	if e.Modifier != 0 {
		fmt.Fprintf(&b, " %d", e.Modifier)
	}
	fmt.Fprintf(&b, ") to %s: ", e.Dest)
	switch {
	case e.Err == nil:
		fmt.Fprintf(&b, "status %#04x", uint16(e.Status))
	case errors.Is(e.Err, ErrTimeout):
		fmt.Fprintf(&b, "%v after %d attempts", e.Err, e.Attempts)
	default:
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout: no answer came in time.
func (e *Error) Timeout() bool {
	return errors.Is(e.Err, ErrTimeout) || errors.Is(e.Err, context.DeadlineExceeded)
}
