package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"fabsh/builtins/scenario"
	"fabsh/fabric/sim/control"
	"fabsh/shell/session"
)

// actionLog receives what changes a simulated subnet, the actions of a scenario and the
// calls of other programs, and writes a line of JSON for each.
type actionLog struct {
	begin time.Time // 0 s of calls

	mu  sync.Mutex // a line is written as a whole
	out io.Writer  // nil: there is no log
	err error      // the first one: the subnet is also served while the disk is full
}

// logged calls fn with the log of o.
func (o *simServe) logged(p *session.Program, fn func(*actionLog) error) error {
	switch {
	case o.log == "" && o.scenario == "":
		return fn(new(actionLog))
	case o.log == "" && o.run: // standard output is the command's
		return fn(&actionLog{out: p.Console.Err()})
	case o.log == "":
		return fn(&actionLog{out: p.Console.Out()})
	}
	f, err := os.OpenFile(o.log, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("sim: --log: %w", err)
	}
	log := &actionLog{out: f}
	err = fn(log)
	if bad := cmp.Or(log.err, f.Close()); err == nil && bad != nil {
		err = &session.HostError{Err: fmt.Errorf("sim: --log: %w", bad)}
	}
	return err
}

// add writes an action.
func (l *actionLog) add(a scenario.Action) {
	line, err := a.JSON()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == nil {
		return
	}
	if err == nil {
		_, err = l.out.Write(append(line, '\n'))
	}
	l.err = cmp.Or(l.err, err)
}

// call writes a change that a call of another program has made or tried.
func (l *actionLog) call(from *control.Peer, method string, args map[string]any, err error) {
	now := time.Now()
	a := scenario.Action{At: now.Sub(l.begin).Seconds(), Time: now, Action: method, Args: args, Peer: from}
	if err != nil {
		a.Error = err.Error()
	}
	l.add(a)
}
