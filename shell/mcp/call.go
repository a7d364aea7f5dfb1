package mcp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// call is a call of a tool that runs in the session.
type call struct {
	began time.Time
	ctx   context.Context // ends when the call is cancelled, exceeds a limit, or ends
	sent  int             // datagrams of the server before it

	mu    sync.Mutex
	doing string // what its progress is
}

// sweep is a sweep of the fabric.
type sweep struct {
	found *fabric.Fabric
	at    time.Time
}

// callTool answers a call of a tool.
func (s *Server) callTool(ctx context.Context, r *mcp.CallToolRequest, t *Tool, a Arguments) (*mcp.CallToolResult, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := s.ended()
	defer context.AfterFunc(ended, func() { stop(context.Cause(ended)) })() // the SDK waits for calls
	if t.Run == nil {
		return s.help(ctx, t, a)
	}
	leave, err := s.jobs.enter(ctx)
	if err != nil {
		return failure(err), nil
	}
	defer leave()
	if err := s.session.Renew(); err != nil {
		return failure(err), nil
	}
	s.output.reset()
	defer s.meter.watch(stop)()
	c := &call{began: time.Now(), ctx: ctx, sent: s.meter.sent()}
	s.setCall(c)
	defer s.setCall(nil)
	defer s.notify(r, c)()
	return s.run(c, t, a).answer(), nil
}

// help answers a call that needs no fabric.
func (s *Server) help(ctx context.Context, t *Tool, a Arguments) (*mcp.CallToolResult, error) {
	leave, err := s.texts.enter(ctx)
	if err != nil {
		return failure(err), nil
	}
	defer leave()
	text, err := t.Help(a)
	if err != nil {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: lang.OneLine(err.Error())}}, IsError: true}, nil
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: truncated(text)}}}, nil
}

// truncated returns at most maxOutput bytes of a text, with a message if there are more.
func truncated(text string) string {
	if len(text) <= maxOutput {
		return text
	}
	return lang.Harmless(text[:maxOutput]) + fmt.Sprintf("\n\noutput truncated: %d bytes, more than %d; ask for a narrower topic\n", len(text), maxOutput)
}

// run evaluates a call within the limits of the session.
func (s *Server) run(c *call, t *Tool, a Arguments) *Result {
	limit := s.program.StartTime()
	d := s.program.StartDeadline(limit)
	s.session.Runner.LimitTo(d)
	defer d.Stop()
	var limited *lang.LimitError
	status := s.session.Runner.Evaluate(func(ctx context.Context) error {
		defer func() { errors.As(context.Cause(ctx), &limited) }()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()
		err := lang.Protect(t.Name, func() error { return t.Run(ctx, s.session, a) })
		if beyond := s.meter.err(); beyond != nil {
			s.output.reset() // requests that were not sent are no faults of the fabric
			return beyond
		}
		return err
	})
	if limited != nil {
		runtime.GC() // what the call has left, such as stacks, must not count for the next one
	}
	if s.meter.err() == nil {
		s.keepSweep()
	}
	r := &Result{Schema: resultName, Status: status, Meaning: meaningOf(status)}
	r.Data, r.Server = s.output.data(t.IsText != nil && t.IsText(a))
	if late := d != nil && limit.Over(); late {
		r.Server = append(r.Server, "the time of the call was over before it ended: read less, or have the operator raise --deadline")
	}
	return r
}

// keepSweep keeps the latest sweep of the session.
func (s *Server) keepSweep() {
	f := s.session.Env.Fabric()
	if f == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.last.found != f {
		s.last = &sweep{f, time.Now()}
	}
	if s.first == nil && f.Complete() {
		s.first = f
	}
}

// First returns the first complete sweep of the server; nil: none.
func (s *Server) First() *fabric.Fabric {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

func (s *Server) setCall(c *call) {
	s.mu.Lock()
	s.call = c
	s.mu.Unlock()
}

// current returns the call that runs; nil: none.
func (s *Server) current() *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.call
}

// beforeSweep waits until the fabric may be swept again.
func (s *Server) beforeSweep(ctx context.Context) error {
	return s.sweep.pass(ctx, func(wait time.Duration) {
		s.progress(fmt.Sprintf("waiting for %v: the fabric is swept at most once in %v", wait.Round(time.Second), s.options.SweepInterval))
	})
}

// progress receives what the running call does.
func (s *Server) progress(doing string) {
	if c := s.current(); c != nil {
		c.mu.Lock()
		c.doing = doing
		c.mu.Unlock()
	}
}

// notifyEvery is how often a client gets the progress of a call.
const notifyEvery = 500 * time.Millisecond

// notify sends the progress of a call to a client that requests it, until end is called.
func (s *Server) notify(r *mcp.CallToolRequest, c *call) (end func()) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(notifyEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			r.Session.NotifyProgress(c.ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: time.Since(c.began).Seconds(), Message: s.doing(c)})
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// doing returns the progress of a call in words.
func (s *Server) doing(c *call) string {
	c.mu.Lock()
	doing := c.doing
	c.mu.Unlock()
	parts := []string{plural.Count(s.meter.sent()-c.sent, "datagram", "datagrams") + " sent"}
	if doing != "" {
		parts = slices.Insert(parts, 0, doing)
	}
	text := parts[0]
	for _, p := range parts[1:] {
		text += "; " + p
	}
	return text
}
