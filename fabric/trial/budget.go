package trial

import (
	"errors"
	"fmt"
	"sync/atomic"

	"fabsh/mad/engine"
)

// errBudget is why a datagram was not sent.
var errBudget = errors.New("the budget of datagrams is used up")

// Budget is a transport that sends a limited number of datagrams: requests, repetitions and
// acknowledgements. It refuses the others.
type Budget struct {
	engine.Transport
	limit int64
	sent  atomic.Int64
}

// NewBudget returns t, limited to a number of datagrams.
func NewBudget(t engine.Transport, limit int) *Budget {
	return &Budget{Transport: t, limit: int64(limit)}
}

// Sent returns the number of datagrams sent.
func (b *Budget) Sent() int { return int(min(b.sent.Load(), b.limit)) }

// Exhausted reports whether datagrams were refused.
func (b *Budget) Exhausted() bool { return b.sent.Load() > b.limit }

// Reserve takes n datagrams that others send from the budget. It reports whether they are left.
func (b *Budget) Reserve(n int) bool {
	if b.sent.Load()+int64(n) > b.limit {
		return false
	}
	b.sent.Add(int64(n))
	return true
}

// Send sends d within the limit.
func (b *Budget) Send(d *engine.Datagram) error {
	if err := b.take(); err != nil {
		return err
	}
	return b.Transport.Send(d)
}

// TrySend sends d within the limit, if that needs no waiting.
func (b *Budget) TrySend(d *engine.Datagram) (bool, error) {
	if err := b.take(); err != nil {
		return false, err
	}
	sent, err := b.Transport.TrySend(d)
	if !sent && err == nil {
		b.sent.Add(-1)
	}
	return sent, err
}

func (b *Budget) take() error {
	if b.sent.Add(1) > b.limit {
		return &engine.SendError{Err: fmt.Errorf("%w (%d); raise it with --budget", errBudget, b.limit)}
	}
	return nil
}
