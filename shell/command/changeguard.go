package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/changes"
	"fabsh/fabric/change/apply"
	"fabsh/mad/engine"
	"fabsh/shell/session"
)

// guardWork is the input of a guard process, read from standard input. After it the
// input stays open until the change has ended: end of file means that the process that
// applies the change has died.
type guardWork struct {
	Journal string
	Flags   [][2]string // of the session
	Env     []string    // that select the fabric
	Keys    *engine.Keys
}

// guardFlags are the session flags that a guard needs, and guardEnv the variables.
var (
	guardFlags = []string{"fabric", "ca", "port", "timeout", "retries", "window", "sl", "pkey", "sm-lid", "write", "override-sm"}
	guardEnv   = []string{session.FabricVariable, "IBSIM_SOCKNAME", "SIM_HOST"}
)

// guardReady is the line by which a guard reports that it has journal and device.
const guardReady = "ready\n"

// guardStarts is how long a guard may take until it is ready.
const guardStarts = 30 * time.Second

// StartGuard starts the guard process of a journal, in a session of its own, and waits
// until it is ready.
func StartGuard(ctx context.Context, p *session.Program, e *engine.Engine, journal string) (apply.Guard, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	work := guardWork{Journal: journal, Keys: e.Options().Keys}
	p.Settings.Visit(func(f *pflag.Flag) {
		if slices.Contains(guardFlags, f.Name) {
			work.Flags = append(work.Flags, [2]string{f.Name, f.Value.String()})
		}
	})
	for _, name := range guardEnv {
		if v, ok := os.LookupEnv(name); ok {
			work.Env = append(work.Env, name+"="+v)
		}
	}
	text, err := json.Marshal(work)
	if err != nil {
		return nil, err
	}
	return runFirst(ctx, systemd{"/run/systemd/system", "/var/lib/systemd/linger"}.guardCommands(program), append(text, '\n'))
}

// runFirst starts a guard in the first way that succeeds.
func runFirst(ctx context.Context, commands [][]string, work []byte) (apply.Guard, error) {
	var first error
	for _, command := range commands {
		g, err := runGuard(ctx, command, work)
		if err == nil {
			return g, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// systemd is where systemd says that it runs, and whose units outlive their logout.
type systemd struct{ runs, linger string }

// guardCommands are ways to start a guard, the best first: where systemd runs, as a
// transient unit, because systemd may end the processes of a user who logs out
// (logind.conf(5), KillUserProcesses). It then also ends units of the user, unless the
// user lingers (loginctl(1)).
func (d systemd) guardCommands(program string) (commands [][]string) {
	plain := []string{program, "change", guardWord}
	run, err := exec.LookPath("systemd-run")
	if _, noSystemd := os.Stat(d.runs); noSystemd != nil || err != nil {
		return [][]string{plain}
	}
	unit := []string{run, "--quiet", "--collect", "--pipe", "--unit", fmt.Sprintf("fabsh-guard-%d", os.Getpid())}
	if os.Geteuid() != 0 {
		if _, err := os.Stat(filepath.Join(d.linger, session.Login())); err != nil {
			return [][]string{plain}
		}
		unit = append(unit, "--user")
	}
	return [][]string{slices.Concat(unit, []string{"--"}, plain), plain}
}

// guardProcess is a guard that this process has started.
type guardProcess struct {
	in   io.WriteCloser
	done chan struct{}
}

func (g *guardProcess) Done() <-chan struct{} { return g.done }
func (g *guardProcess) Release()              { g.in.Close() }

func runGuard(ctx context.Context, command []string, work []byte) (*guardProcess, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no signal of this terminal, and no hang-up
	cmd.Dir = "/"
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &guardProcess{in: in, done: make(chan struct{})}
	said := make(chan error, 1)
	go func() {
		_, err := in.Write(work)
		line, readErr := bufio.NewReader(io.LimitReader(out, 1<<16)).ReadString('\n')
		if line != guardReady {
			err = errors.Join(err, fmt.Errorf("its first line is %q, want \"ready\"", strings.TrimSpace(line)))
			if readErr != nil && line == "" {
				err = errors.New("it has ended")
			}
		}
		said <- err
		cmd.Wait()
		close(g.done)
	}()
	select {
	case err = <-said:
	case <-time.After(guardStarts):
		err = fmt.Errorf("not ready after %v", guardStarts)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		in.Close()
		cmd.Process.Kill()
		return nil, err
	}
	return g, nil
}

// guardWord is the hidden command of a guard; users do not type it.
const guardWord = "guard"

// guardCommand is the guard process.
func guardCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:    guardWord,
		Short:  "Revert a change when its time has expired (started by change apply)",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			in := bufio.NewReader(p.Stdin)
			text, err := in.ReadBytes('\n')
			if err != nil {
				return errors.New("change guard: no work on standard input; it is started by change apply")
			}
			var work guardWork
			if err := json.Unmarshal(text, &work); err != nil {
				return fmt.Errorf("change guard: %w", err)
			}
			return keep(p, work, in)
		},
	}
}

// keep runs a guard until its change has ended.
func keep(p *session.Program, work guardWork, in io.Reader) error {
	for _, env := range work.Env {
		name, value, _ := strings.Cut(env, "=")
		os.Setenv(name, value)
	}
	for _, f := range work.Flags {
		if err := p.Settings.Set(f[0], f[1]); err != nil {
			return fmt.Errorf("change guard: --%s: %w", f[0], err)
		}
	}
	settings := *p.Settings
	settings.Quiet = true
	p = p.With(settings)
	gone := make(chan struct{})
	return onChange(p, work.Keys, func(ctx context.Context, s *session.Session) error {
		go func() {
			io.Copy(io.Discard, in)
			close(gone)
		}()
		k, err := apply.NewKeeper(ctx, &apply.Run{Host: changes.HostOf(s.Runtime), Dir: filepath.Dir(work.Journal)})
		if err != nil {
			return err
		}
		fmt.Fprint(p.Console.Out(), guardReady)
		return k.Keep(ctx, gone)
	})
}
