package trial

import (
	"context"
	"errors"
	"fmt"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Outcome is the outcome of a request.
type Outcome uint8

// The outcomes.
const (
	Answered    Outcome = iota
	Unsupported         // the device reports that it does not have it
	Refused             // another status
	TimedOut            // no answer came
	Malformed           // the answer is not one
	NotSent             // the device does not announce it, or the transport cannot send it
	Unread              // the trial did not request it
)

var outcomeWords = []string{"answered", "unsupported", "refused", "timed_out", "malformed", "not_announced", "not_read"}

// Outcomes lists the words of all outcomes, in their order.
func Outcomes() []string { return append([]string(nil), outcomeWords...) }

// String returns the outcome as a word: "timed_out".
func (o Outcome) String() string { return outcomeWords[o] }

// Result is the outcome of a request to a device.
type Result struct {
	Class, Attribute string
	Place            string // "port 1, block 0"
	Outcome          Outcome
	Detail           string // the status, or why it was not requested
	Count            int    // of records

	attr     *mad.Attribute
	modifier uint32
	data     []byte
}

// ask sends a request to a device: SMPs along its route, the others to its LID. The error is
// the end of ctx.
func (t *trial) ask(ctx context.Context, d *Device, call *engine.Call, r *Result) error {
	if d.timeouts >= maxTimeouts {
		r.Outcome, r.Detail = Unread, fmt.Sprintf("%d requests to the device timed out", maxTimeouts)
		return nil
	}
	if mad.Class(call.MAD[mad.ClassOffset]).Family() == mad.ClassSubn {
		fabric.Dest{Route: d.Node.Route(), Guard: d.Node.Guard()}.Address(call)
	} else if err := t.Client.PutGMP(call, &t.port, d.LID()); err != nil {
		r.Outcome = NotSent
		return nil
	}
	if err := t.e.Do(ctx, call); err != nil {
		return err
	}
	r.judge(call.Err)
	if r.Outcome == TimedOut {
		d.timeouts++
	}
	return nil
}

// judge sets the outcome of a request that ended with err. A recording does not have the
// requests that were not sent, whatever the reason was.
func (r *Result) judge(err error) {
	e, _ := errors.AsType[*engine.Error](err)
	switch {
	case err == nil:
		r.Outcome = Answered
	case errors.Is(err, errBudget):
		r.Outcome, r.Detail = Unread, "the budget of datagrams is used up"
	case errors.Is(err, engine.ErrTimeout) && e != nil && e.Attempts > 0:
		r.Outcome = TimedOut // otherwise the question whether the device announces it
	case e != nil && e.Status != 0:
		r.Outcome, r.Detail = Refused, e.Status.Text(e.Class)
		switch e.Status & 0x1c { // IBA 13.4.7
		case mad.StatusBadVersion, mad.StatusBadMethod, mad.StatusBadMethodAttribute:
			r.Outcome = Unsupported
		}
	case e != nil && e.Attempts > 0 && !isSendError(err):
		r.Outcome, r.Detail = Malformed, e.Err.Error()
	default:
		r.Outcome = NotSent
	}
}

func isSendError(err error) bool {
	_, ok := errors.AsType[*engine.SendError](err)
	return ok
}
