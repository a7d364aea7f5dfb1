package command

import (
	"context"
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
	var ended syscall.Signal // between two processes
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
		if running == nil {
			ended, _ = sig.(syscall.Signal)
			cancel()
		} else if sig != syscall.SIGINT || !session.InForeground() { // else it has got that from the terminal
			running.Signal(sig)
		}
	}, func() { status, err = supervisor.Serve(ctx, p.Stdin, p.Console.Out()) })
	switch {
	case err != nil:
		return err
	case ended != 0:
		status = 128 + int(ended)
	}
	return session.Exit(status)
}
