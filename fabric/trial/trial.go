// Package trial reads, from a few devices of each model, everything that fabsh can read,
// and reports what was answered, unsupported and timed out, and whether other sources agree:
// the first contact with hardware on which fabsh was not tested. It never writes.
//
// Run sweeps, reads the Devices of each Model with requests made from the declared attributes,
// reads the records of the subnet administrator, subscribes to Events, and makes Comparisons of
// answers field by field, also with the output of other tools. A Budget limits the datagrams.
//
// A Report has no names, GUIDs or serial numbers, so that it can be published, and the recording
// of a trial replays to an equal Report. Run and its values are for one goroutine; a Budget is
// safe for concurrent use.
package trial

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/plural"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// RunOptions are the options of a trial.
type RunOptions struct {
	Client *sa.Client // with its engine, which must be read-only
	Events time.Duration
	// Sleep waits for events. It returns early with an error.
	Sleep func(context.Context, time.Duration) error
	// Recorded returns the Reports in the recording that the engine replays; nil: it is live.
	Recorded func() []mad.Notice
	// Chosen is called with the devices before they are read. It may be nil.
	Chosen func(f *fabric.Fabric, devices []*Device)
	// Foreign returns what other sources report of a device that was read; it may be nil.
	Foreign func(context.Context, *Device) []Foreign
	// Progress shows the activity. It may be nil.
	Progress func(doing string)
}

// ErrWrites is the error of an engine that may change the fabric.
var ErrWrites = errors.New("trial: the engine must be read-only")

// Run runs a trial. The error is the end of ctx, or why nothing could be read.
func Run(ctx context.Context, o RunOptions) (*Report, error) {
	e := o.Client.Engine
	if e.Write() {
		return nil, ErrWrites
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	defer o.Progress("")
	o.Progress("sweeping the fabric")
	f, err := discover.Sweep(ctx, e, discover.Options{Progress: func(n int) { o.Progress(fmt.Sprintf("sweeping the fabric: %s", plural.Count(n, "node", "nodes"))) }})
	if f == nil || ctx.Err() != nil {
		return nil, err
	}
	t := &trial{RunOptions: o, e: e, report: &Report{Nodes: len(f.Nodes()), SweepProblems: len(f.Problems()), SweepEnded: err != nil}}
	if t.port, err = e.Port(); err != nil {
		return nil, err
	}
	t.report.Models = models(f)
	devices := t.report.devices()
	if o.Chosen != nil {
		o.Chosen(f, devices)
	}
	for i, d := range devices {
		o.Progress(fmt.Sprintf("reading device %d of %d", i+1, len(devices)))
		if err := t.read(ctx, d); err != nil {
			return nil, err
		}
	}
	for _, step := range []func(context.Context) error{t.administrator, t.events, t.foreign} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return t.report, nil
}

// trial is a trial that is under way.
type trial struct {
	RunOptions
	e      *engine.Engine
	port   engine.Port
	report *Report
}

// foreign compares with other sources.
func (t *trial) foreign(ctx context.Context) error {
	if t.Foreign == nil {
		return nil
	}
	for _, d := range t.report.devices() {
		if d.Unread != "" {
			continue
		}
		t.Progress("comparing with other tools")
		for _, x := range t.Foreign(ctx, d) {
			addComparison(&t.report.Host, x.compare(d))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

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
