package command

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// workerFlag is the flag of the process that serves, which fabsh mcp starts.
const workerFlag = "worker"

// restartsApart is the shortest time between two restarts of the server.
const restartsApart = time.Minute

// endsWithin is how long the server may go on after a signal: the process ends within 5 s, and a
// write to a client that does not read never does.
const endsWithin = 6 * time.Second

// superviseMCP runs the server as a process of its own, which a script may end.
func superviseMCP(p *session.Program) error {
	if p.StdinIsTerminal() {
		p.Warn("mcp: this command is for MCP clients, which send JSON on standard input; see fabsh help mcp-server (Ctrl-D ends it)")
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	words := slices.Clone(p.Words)
	if n := len(words); n > 0 && words[n-1] == "--" {
		words = words[:n-1]
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var mu sync.Mutex // guards the next two
	var running *os.Process
	var ended syscall.Signal // the signal that ends the server
	supervisor := &mcp.Supervisor{
		Start: func() (*mcp.Process, error) {
			c := exec.Command(program, append(words[:len(words):len(words)], "--"+workerFlag)...)
			c.Stderr = os.Stderr
			in, err := c.StdinPipe()
			if err != nil {
				return nil, err
			}
			out, err := c.StdoutPipe()
			if err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := c.Start(); err != nil {
				return nil, err
			}
			running = c.Process
			return &mcp.Process{In: in, Out: out, Wait: func() int {
				c.Wait()
				mu.Lock()
				defer mu.Unlock()
				running = nil
				return c.ProcessState.ExitCode()
			}}, nil
		},
		Apart: restartsApart,
	}
	status := 0
	p.Interrupts.Forward(func(sig os.Signal) {
		mu.Lock()
		defer mu.Unlock()
		if sig == syscall.SIGPIPE { // the client has closed its end; the process cannot notice that
			ended, sig = syscall.SIGPIPE, syscall.SIGTERM
		}
		if running != nil && (sig != syscall.SIGINT || !session.InForeground()) { // else it has got that from the terminal
			running.Signal(sig)
		}
		switch sig {
		case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
			ended = cmp.Or(ended, sig.(syscall.Signal))
			cancel()
			status := 128 + int(ended)
			time.AfterFunc(endsWithin, func() { p.Interrupts.Force(func() {}, status) })
		}
	}, func() { status, err = supervisor.Serve(ctx, p.Stdin, p.Console.Out()) })
	mu.Lock()
	defer mu.Unlock()
	switch {
	case ended != 0:
		status = 128 + int(ended)
	case err != nil:
		return err
	case status < 0:
		return errors.New("mcp: a signal has ended the process that serves, such as for lack of memory; start the server again")
	}
	return session.Exit(status)
}
