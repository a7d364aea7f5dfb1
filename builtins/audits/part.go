package audits

import (
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"go.starlark.net/starlark"
)

// auditPart is an audit within a run: what it finds, prints and requests is its own, because others
// may run at the same time.
type auditPart struct {
	audit   *Audit
	judge   *judge
	fiber   *lang.Fiber
	output  output
	collect func() // adds its findings to those of the run

	err   error // why it did not run or finish
	ended error // why no other may run
}

// part returns a part of the run for an audit.
func (j *judge) part(a *Audit) *auditPart {
	p := &auditPart{audit: a, judge: j}
	whole := lang.StateOf[topology.Observer](j.runtime)
	observed := whole.Part()
	if whole.Report != nil {
		observed.Report = (&observer{coverage: j.requests.coverage, details: j.requests.details, audit: a.Name, state: observed}).observe
	}
	p.fiber = &lang.Fiber{Context: j.ctx, Sink: &p.output, Account: new(lang.Account)}
	clock := j.runtime.Clock
	if hasty, ok := clock.(*hastyClock); ok { // the sleeps of others are not its own
		clock = hasty.part()
	}
	p.fiber.Runtime, p.collect = Part(j.runtime, clock, a.Name, observed)
	return p
}

// run runs the audit.
func (p *auditPart) run(f *topology.Fabric, own starlark.StringDict) {
	j, a := p.judge, p.audit
	stopped := false
	p.fiber.Exclusive(func() {
		if stopped = j.stopped; !stopped && late(j.ctx) == nil {
			j.runtime.Progress("audit " + a.Name)
		}
	})
	if p.err = late(j.ctx); p.err != nil || stopped {
		return
	}
	t, release := lang.NewThread(p.fiber, a.script)
	defer release()
	err := lang.Protect(a.script, func() error {
		_, err := starlark.Call(t, a.Entry.Fn, starlark.Tuple{f}, a.arguments(own))
		return notExit(err)
	})
	switch late := late(j.ctx); {
	case err == nil:
	case late != nil: // it only computed; the findings of others remain
		p.err = late
	case !lang.Catchable(p.fiber, err):
		p.ended = err
		p.fiber.Exclusive(func() { j.stopped = true })
	default:
		p.err = err
	}
}

// join adds what the audit has found and printed to the run.
func (p *auditPart) join() {
	p.collect()
	for _, l := range p.output {
		p.judge.runtime.Emit(l.stream, l.text)
	}
}

// output is what an audit has printed while others ran.
type output []struct {
	stream lang.Stream
	text   string
}

// Emit keeps text.
func (o *output) Emit(stream lang.Stream, text string) error {
	*o = append(*o, struct {
		stream lang.Stream
		text   string
	}{stream, text})
	return nil
}

// part returns a clock for one of several audits that run together.
func (c *hastyClock) part() *hastyClock {
	p := &hastyClock{Clock: c.Clock, whole: c}
	p.ahead.Store(c.ahead.Load())
	return p
}
