package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/server"
	"fabsh/mad/engine"
	"fabsh/shell/session"
)

// scenarioLimit is how long a scenario without an end lasts where no program can attach.
const scenarioLimit = 24 * time.Hour

// simControl is a session on a simulated subnet that changes it: by a scenario, and by
// calls of other programs.
type simControl struct {
	*builtins.Session
	engine *engine.Engine
	sim    *topology.Sim
}

// controlOf returns a session on the subnet that was made from f, with a clock; nil: the
// real one.
func controlOf(p *session.Program, subnet *sim.Subnet, f *fabric.Fabric, clock lang.Clock) (*simControl, error) {
	node, err := session.SimNode(f, "")
	if err != nil {
		return nil, err
	}
	t, err := subnet.Attach(node, 0)
	if err != nil {
		return nil, err
	}
	c := &simControl{engine: engine.New(t, engine.Options{Write: true})}
	c.Session, err = builtins.NewSession(builtins.SessionOptions{
		Env:    topology.Env{Engine: c.engine, Sim: subnet, Write: true},
		Stdout: p.Console.Err(), Stderr: p.Console.Err(), Quiet: p.Settings.Quiet, Clock: clock,
	})
	if err != nil {
		return nil, errors.Join(err, c.engine.Close())
	}
	c.sim = &topology.Sim{Subnet: subnet}
	return c, nil
}

// close ends the session.
func (c *simControl) close() {
	c.Close()
	c.engine.Close()
}

// call returns the server.ControlHandler of the subnet, which logs changes.
func (c *simControl) call(ctx context.Context, log *actionLog) server.ControlHandler {
	in := c.Interpreter.Beside()
	*topology.EnvOf(in.Runtime) = *c.Env
	return func(from server.Peer, method string, args []byte) (result []byte, err error) {
		observed := &topology.Sim{Subnet: c.sim.Subnet, Acted: func(since time.Time, method string, args map[string]any, err error) {
			log.call(&from, since, method, args, err)
		}}
		err = in.Runtime.Evaluate(ctx, method, func(t *starlark.Thread) error {
			v, err := observed.Execute(t, method, args)
			if err == nil {
				result, err = lang.EncodeJSON(v)
			}
			return err
		})
		var refused *lang.RefusalError
		var eval *starlark.EvalError
		if !errors.As(err, &refused) && errors.As(err, &eval) && eval.Unwrap() != nil {
			err = eval.Unwrap() // without the calls
		}
		if err != nil { // the caller adds the name of the method
			err = errors.New(strings.TrimPrefix(err.Error(), method+": "))
		}
		return result, err
	}
}

// load loads a scenario, a file or the name of a shipped one. Its actions go to log.
func (c *simControl) load(ctx context.Context, name string, log *actionLog) (*script.Scenario, error) {
	path, err := script.Scenarios.Locate(name)
	if err != nil {
		return nil, err
	}
	src, err := c.Interpreter.Read(ctx, path)
	if err != nil {
		return nil, err
	}
	s, err := script.LoadScenario(ctx, c.Interpreter, c.sim, path, src, script.ScenarioSeed(c.sim), log.add)
	if err != nil {
		return nil, fmt.Errorf("%s", c.Explain(err))
	}
	return s, nil
}

// control lets programs of the same user change a served subnet, and plays the scenario of
// o, until end is called.
func (o *simServe) control(ctx context.Context, p *session.Program, subnet *sim.Subnet, f *fabric.Fabric, name string, log *actionLog) (end func(), err error) {
	c, err := controlOf(p, subnet, f, nil)
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	log.begin = time.Now()
	var running sync.WaitGroup
	end = func() {
		cancel()
		running.Wait()
		c.close()
	}
	if o.scenario != "" {
		s, err := c.load(ctx, o.scenario, log)
		if err != nil {
			end()
			return nil, fmt.Errorf("sim: --scenario: %w", err)
		}
		log.begin = s.Begin()
		running.Go(func() {
			if err := s.Play(ctx, 0); err != nil && ctx.Err() == nil {
				p.Warn("sim: --scenario: an action failed: %s", c.Explain(err))
			}
		})
	}
	srv, err := server.ListenControl(name, c.call(ctx, log))
	if err != nil {
		end()
		return nil, &session.HostError{Err: fmt.Errorf("sim: %w", err)}
	}
	running.Go(func() { srv.Serve(ctx) })
	return end, nil
}

// rehearse plays a scenario on a subnet of its own by a virtual clock, and writes its
// actions.
func rehearse(p *session.Program, spec, name string, log *actionLog) error {
	limit := p.StartTime()
	defer p.StartDeadline(limit).Stop()
	ctx := limit.Context()
	f, options, err := sim.ParseFiles(spec, session.OpenNamed(ctx, lang.OpenNamed), session.Secrets(nil).Open)
	if err != nil {
		return session.Late(fmt.Errorf("sim: %w", err))
	}
	c, err := controlOf(p, sim.New(f, options), f, lang.NewVirtualClock())
	if err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	defer c.close()
	s, err := c.load(ctx, name, log)
	if err == nil {
		err = s.Play(ctx, scenarioLimit)
	}
	if err != nil {
		return fmt.Errorf("sim: --scenario: %w", err)
	}
	return nil
}

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
func (l *actionLog) add(a script.ScenarioAction) {
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
func (l *actionLog) call(from *server.Peer, since time.Time, method string, args map[string]any, err error) {
	a := script.ScenarioAction{At: since.Sub(l.begin).Seconds(), Time: since, Action: method, Args: args, Peer: from}
	if err != nil {
		a.Error = err.Error()
	}
	l.add(a)
}
