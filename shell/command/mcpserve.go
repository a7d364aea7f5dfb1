package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fabsh/fabric/format"
	"fabsh/shell/exporter"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// mcpServing is how fabsh mcp reaches its clients.
type mcpServing struct {
	listen   []string // addresses of HTTP; none: standard input and output
	config   string   // TLS and passwords
	logCalls bool
	isWorker bool
}

// check finds contradictions.
func (v *mcpServing) check() error {
	if err := exporter.CheckConfig(v.config); err != nil {
		return fmt.Errorf("--web.config.file: %w", format.FileError(err))
	}
	if v.config != "" && len(v.listen) == 0 {
		return errors.New("--web.config.file: needs --listen; without it clients are at standard input and output")
	}
	for _, address := range v.listen {
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			return fmt.Errorf("--listen %q: %w; give an address such as 127.0.0.1:9317", address, err)
		}
		if !mcp.IsLoopback(address) && !exporter.IsProtected(v.config) {
			return fmt.Errorf("--listen %q: other hosts reach this address; give TLS and passwords in --web.config.file, or listen at 127.0.0.1", address)
		}
	}
	return nil
}

// open listens at the addresses, as files for the process that serves.
func (v *mcpServing) open(ctx context.Context) (files []*os.File, err error) {
	listeners, err := exporter.Listen(ctx, v.listen, false)
	if err != nil {
		return nil, &session.HostError{Err: fmt.Errorf("--listen: %w", err)}
	}
	for _, l := range listeners {
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "listening at %v/mcp\n", l.Addr())
		l.Close()
		files = append(files, file)
	}
	return files, nil
}

// Files of the process that serves.
const (
	stateInput  = 3 // what an earlier process has kept
	stateOutput = 4 // what it keeps itself
	firstSocket = 5
)

// keptState is what the process that serves has kept for the next one.
type keptState struct {
	mu    sync.Mutex
	frame []byte // nil: no process has served yet
}

// isServing reports whether a process has served.
func (k *keptState) isServing() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.frame != nil
}

// start starts a process that serves, with what the earlier one has kept, and the sockets.
func (k *keptState) start(c *exec.Cmd, sockets []*os.File) error {
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirIn.Close()
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		ourOut.Close()
		return err
	}
	defer theirOut.Close()
	c.ExtraFiles = append([]*os.File{theirIn, theirOut}, sockets...)
	if err := c.Start(); err != nil {
		ourIn.Close()
		ourOut.Close()
		return err
	}
	k.mu.Lock()
	kept := k.frame
	k.mu.Unlock()
	go func() {
		defer ourOut.Close()
		mcp.WriteFrame(ourOut, kept)
	}()
	go func() {
		defer ourIn.Close()
		for {
			frame, err := mcp.ReadFrame(ourIn)
			if err != nil {
				return
			}
			k.mu.Lock()
			k.frame = frame
			k.mu.Unlock()
		}
	}()
	return nil
}

// serveMCP serves the client at standard input and output, and ends with the input; or clients by
// HTTP, until a signal.
func serveMCP(p *session.Program, root *cobra.Command, o mcp.ServerOptions, v *mcpServing) error {
	if v.logCalls {
		o.Log = slog.New(slog.NewJSONHandler(p.Console.Err(), nil))
	}
	server, err := newMCP(p, root, o)
	if err != nil {
		return err
	}
	in, out := os.NewFile(stateInput, "state"), os.NewFile(stateOutput, "state")
	if kept, err := mcp.ReadFrame(in); err == nil && len(kept) > 0 {
		if err := server.Restore(kept); err != nil {
			p.Warn(err.Error())
		}
	}
	in.Close()
	err = p.Interrupts.Run(func(ctx context.Context) error {
		keeping, stop := context.WithCancel(ctx)
		defer stop()
		go server.Keep(keeping, out)
		if len(v.listen) == 0 {
			return server.Serve(ctx, mcp.Stdio(p.Stdin, p.Console.Out()))
		}
		var listeners []net.Listener
		for i := range v.listen {
			file := os.NewFile(uintptr(firstSocket+i), "socket")
			l, err := net.FileListener(file)
			if err != nil {
				return err
			}
			file.Close()
			listeners = append(listeners, l)
		}
		log := slog.New(slog.NewTextHandler(p.Console.Err(), &slog.HandlerOptions{Level: slog.LevelError}))
		return exporter.ServeHandler(ctx, listeners, server.Handler(ctx), v.config, log)
	})
	return errors.Join(err, server.Close())
}

// superviseMCP runs the server as a process of its own, which a script may end.
func superviseMCP(p *session.Program, v *mcpServing) error {
	if len(v.listen) == 0 && p.StdinIsTerminal() {
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
	sockets, err := v.open(ctx)
	if err != nil {
		return err
	}
	state := new(keptState)
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
			if err := state.start(c, sockets); err != nil {
				return nil, err
			}
			running = c.Process
			return &mcp.Process{In: in, Out: out, Wait: func() int {
				c.Wait()
				mu.Lock()
				defer mu.Unlock()
				running = nil
				return c.ProcessState.ExitCode()
			}, Kill: func() { c.Process.Kill() }}, nil
		},
		Apart: restartsApart,
	}
	var in io.Reader = p.Stdin
	gone := make(chan struct{})
	supervisor.Gone = gone
	if len(v.listen) > 0 { // clients are not at standard input
		in, _ = io.Pipe()
		supervisor.Serves = state.isServing
	}
	go func() {
		if len(v.listen) == 0 && session.WaitHangup(os.Stdout) {
			mu.Lock()
			ended = cmp.Or(ended, syscall.SIGPIPE)
			mu.Unlock()
			close(gone)
		}
	}()
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
	}, func() { status, err = supervisor.Serve(ctx, in, p.Console.Out()) })
	mu.Lock()
	defer mu.Unlock()
	switch {
	case ended != 0:
		status = 128 + int(ended)
	case err != nil:
		return err
	case status < 0:
		return errors.New("a signal has ended the process that serves, such as for lack of memory; start the server again")
	}
	return session.Exit(status)
}
