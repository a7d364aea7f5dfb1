package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"fabsh/builtins/lang"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/run"
	"fabsh/fabric/sim/server"
	"fabsh/shell/session"
)

// runFlag ends the flags of sim: what follows is the command to run.
const runFlag = "--run"

// SplitRun inserts -- behind the flag --run of sim, so that the flags that follow are
// those of the command. words are those behind the program's name.
func SplitRun(p *session.Program, words []string) []string {
	i := 0
	for ; i < len(words) && words[i] != "sim"; i++ {
		if !strings.HasPrefix(words[i], "-") {
			return words // of another command, or a script
		}
		for _, g := range p.Settings.Groups() {
			if takesValue(g, words[i]) && len(words[i]) > 1 && !strings.Contains(words[i], "=") && isWhole(words[i]) {
				i++
				break
			}
		}
	}
	for j := i + 1; j < len(words) && words[j] != "--"; j++ {
		if words[j] == runFlag {
			return slices.Insert(slices.Clone(words), j+1, "--")
		}
	}
	return words
}

// isWhole reports whether a word is a flag alone, without a value at once behind it.
func isWhole(word string) bool { return strings.HasPrefix(word, "--") || len(word) == 2 }

// commandError reports that a command cannot be run, and returns the status of a shell
// for it.
func commandError(p *session.Program, status int, err error) error {
	fmt.Fprintf(p.Console.Err(), "fabsh: %v\n", err)
	return session.Exit(status)
}

// runOn runs a command on a simulated subnet, and returns its exit status as an error.
func runOn(p *session.Program, spec string, o *simServe, args []string, actions *actionLog) error {
	path, err := exec.LookPath(args[0])
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return commandError(p, 127, fmt.Errorf("sim: --run %s: command not found", args[0]))
	case err != nil && !errors.Is(err, exec.ErrDot):
		return commandError(p, 126, fmt.Errorf("sim: --run %s: %w", args[0], errors.Unwrap(err)))
	}
	limit := p.StartTime()
	defer p.StartDeadline(limit).Stop()
	ctx, cancel := context.WithCancel(limit.Context())
	defer cancel()
	f, options, err := sim.ParseFiles(spec, session.OpenNamed(ctx, lang.OpenNamed), session.Secrets(nil).Open)
	if err != nil {
		return session.Late(fmt.Errorf("sim: %w", err))
	}
	options.Bare, options.NoSM = options.Bare || o.bare, o.noSM
	subnet := sim.New(f, options)
	log := func(text string) { fmt.Fprintln(p.Console.Err(), "fabsh: sim: "+text) }
	if o.name != "" {
		srv, err := server.Listen(subnet, f, server.Options{Name: o.name, AnyUser: o.anyUser})
		if errors.Is(err, server.ErrName) {
			return fmt.Errorf("sim: %w", err)
		}
		if err != nil {
			return &session.HostError{Err: fmt.Errorf("sim: %w", err)}
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			srv.Serve(ctx)
		}()
		defer func() {
			cancel()
			<-served
		}()
	}
	name := cmp.Or(o.name, fmt.Sprintf("fabsh-run-%d", os.Getpid()))
	end, err := o.control(ctx, p, subnet, f, name, actions)
	if err != nil {
		return err
	}
	defer end()
	os.Setenv(session.ControlVariable, name)
	status := 0
	var r *run.Running
	started := make(chan struct{})
	p.Interrupts.Forward(func(sig os.Signal) {
		<-started
		// What the terminal sends, the command has got from it.
		if s, ok := sig.(syscall.Signal); ok && r != nil && !((s == syscall.SIGINT || s == syscall.SIGQUIT) && session.InForeground()) {
			r.Signal(s)
		}
	}, func() { // also Start: the command may be signalled as soon as it runs
		r, err = run.Start(run.ProgramOptions{Subnet: subnet, Fabric: f, Node: o.host, Program: os.Args[0], Path: path, Args: args, Log: log})
		close(started)
		if err == nil {
			defer context.AfterFunc(ctx, func() { r.Signal(syscall.SIGTERM) })()
			status, err = r.Wait()
		}
	})
	if _, ok := errors.AsType[*run.NodeError](err); ok {
		return fmt.Errorf("sim: --host: %w", err)
	}
	switch {
	case err != nil:
		return &session.HostError{Err: fmt.Errorf("sim: --run: %w", err)}
	case limit.Context().Err() != nil:
		return session.Late(context.Cause(limit.Context()))
	}
	return session.Exit(status)
}
