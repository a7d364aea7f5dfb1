package mcp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fabsh/builtins/lang"
	"fabsh/fabric/plural"
	"fabsh/shell/session"
)

// call is a call of a tool that runs in the session.
type call struct {
	began  time.Time
	ctx    context.Context // ends when the call is cancelled, exceeds a limit, or ends
	sent   int             // datagrams of the server before it
	maxAge time.Duration   // how old a sweep may be that it uses
	rows   int             // of each list of its answer; 0: a summary
	of     any             // the session of the client

	mu    sync.Mutex
	doing string    // what its progress is
	swept time.Time // the begin of its latest sweep
}

// callTool answers a call of a tool.
func (s *Server) callTool(ctx context.Context, r *mcp.CallToolRequest, t *Tool, a Arguments) (*mcp.CallToolResult, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if s.options.Served != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, servedTime, errLate)
		defer cancel()
	}
	ended := s.ended()
	defer context.AfterFunc(ended, func() { stop(context.Cause(ended)) })() // the SDK waits for calls
	if t.Run == nil {
		return s.help(ctx, t, a)
	}
	leave, err := s.jobs.enter(ctx)
	if err != nil {
		s.usage.count(r, t.Name, "refused", 0, 0)
		return failure(err), nil
	}
	defer leave()
	if t.more {
		return s.more(s.client(r), a).answer(), nil
	}
	if err := s.session.Renew(); err != nil {
		return failure(err), nil
	}
	s.begin()
	defer s.meter.watch(stop)()
	c := &call{began: time.Now(), ctx: ctx, sent: s.meter.sent(), maxAge: a.maxAge(t), rows: a.number("rows"), of: s.client(r)}
	s.setCall(c)
	defer s.setCall(nil)
	defer s.notify(r, c)()
	result := s.run(c, t, a)
	s.usage.count(r, t.Name, fmt.Sprint(result.Status), time.Since(c.began), s.meter.sent()-c.sent)
	return result.answer(), nil
}

// begin prepares a new session for a call.
func (s *Server) begin() {
	s.output.reset()
	s.session.Runtime.Shown = s.output.shownValue
	s.reads.Begin()
}

// servedTime is how long a call takes at most of a server that serves what another session reads.
const servedTime = 40 * time.Second

var errLate = fmt.Errorf("the call took longer than %v", servedTime)

// client returns whose results a call may read: those of the session; without sessions, of all clients,
// which see the same.
func (s *Server) client(r *mcp.CallToolRequest) any {
	if s.options.Served != nil {
		return nil
	}
	return r.Session
}

// maxHelp is the maximum length of a text that help returns at a time, in bytes.
const maxHelp = 5500

// help answers a call that needs no fabric.
func (s *Server) help(ctx context.Context, t *Tool, a Arguments) (*mcp.CallToolResult, error) {
	leave, err := s.texts.enter(ctx)
	if err != nil {
		return failure(err), nil
	}
	defer leave()
	text, err := t.Help(a)
	if err != nil {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: clipped(err.Error())}}, IsError: true}, nil
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: truncated(text, a.number("from"), maxHelp)}}}, nil
}

// truncated returns at most maximum bytes of a text from an offset on, with a message if there are
// more.
func truncated(text string, from, maximum int) string {
	rest := text[min(from, len(text)):]
	if len(rest) <= maximum {
		return rest
	}
	end := strings.LastIndexByte(rest[:maximum], '\n') + 1
	if end == 0 {
		end = maximum
	}
	return lang.Harmless(rest[:end]) + fmt.Sprintf("\n\n%d bytes of %d; give from = %d for the next, or a narrower topic\n", end, len(text), from+end)
}

// run evaluates a call within the limits of the session.
func (s *Server) run(c *call, t *Tool, a Arguments) *Result {
	limit := s.program.StartTime()
	d := s.program.StartDeadline(limit)
	s.session.Runner.LimitTo(d)
	defer d.Stop()
	var limited *lang.LimitError
	evaluate := func(ctx context.Context) error {
		defer func() { errors.As(context.Cause(ctx), &limited) }()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()
		err := session.Named(t.Name, lang.Protect(t.Name, func() error { return t.Run(ctx, s.session, a) }))
		if beyond := s.meter.err(); beyond != nil {
			s.output.reset() // requests that were not sent are no faults of the fabric
			return beyond
		}
		return err
	}
	status := s.session.Runner.Evaluate(evaluate)
	if s.reads.Compared() { // it measures growth: once more, with counters that it reads itself
		s.reads.ForgetCounters()
		if err := s.session.Renew(); err != nil {
			evaluate = func(context.Context) error { return err }
		}
		s.begin()
		status = s.session.Runner.Evaluate(evaluate)
	}
	if limited != nil {
		runtime.GC() // what the call has left, such as stacks, must not count for the next one
	}
	if s.meter.err() == nil {
		s.keepSweep(c)
	}
	r := &Result{Schema: resultName, Status: status, Meaning: meaningOf(status)}
	var all string
	r.Data, r.Server, all = s.output.data(t.IsText != nil && t.IsText(a), c.rows)
	if !t.NoFabric && s.session.Env.Fabric() != nil {
		r.Age = s.age()
		if at := s.reads.Oldest(); !at.IsZero() {
			seconds := int(time.Since(at).Seconds())
			r.CountersAge = &seconds
		}
	}
	if len(r.Data.Cut) > 0 {
		r.Data.Lines = s.output.lines()
		r.Name = s.results.add(c.of, all)
		r.Server = append(r.Server, fmt.Sprintf("%d bytes, of which the lists and texts in cut are shortened: call more with result %q and a place of cut as at, or give rows, or select in a script", len(all), r.Name))
	}
	if late := d != nil && limit.Over(); late {
		r.Server = append(r.Server, "the time of the call was over before it ended: name one audit, report or node, or read fewer ports in a script")
	}
	return r
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
	err := s.sweep.pass(ctx, func(wait time.Duration) {
		s.progress(fmt.Sprintf("waiting for %v: the fabric is swept at most once in %v", wait.Round(time.Second), s.options.SweepInterval))
	})
	if c := s.current(); c != nil {
		c.mu.Lock()
		c.swept = time.Now()
		c.mu.Unlock()
	}
	return err
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
