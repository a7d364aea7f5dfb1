package command

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/order"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/mad/engine"
	"fabsh/shell/session"
)

// applyOptions are the flags of change apply and change resume.
type applyOptions struct {
	within        session.Duration
	stage, reload string
	levels        string
	risk          bool
}

// riskFlag declares the flag that allows a change, or its reversal, in which packets
// may deadlock.
const riskFlag = "accept-credit-loop-risk"

func (o *applyOptions) addFlags(c *cobra.Command) {
	o.within = session.Duration{Unit: time.Second, Units: "seconds"}
	c.Flags().Var(&o.within, "confirm-within", "revert the change unless it is confirmed within `TIME` (default: 60s plus 4 times the drains)")
	c.Flags().StringVar(&o.stage, "stage", "", "let OpenSM write the tables: it reads them from `FILE` (opensm -R file,no_fallback -U FILE)")
	c.Flags().StringVar(&o.reload, "reload", "", "with --stage: process ID of OpenSM, or a file that contains it (`PID|FILE`)")
	c.Flags().StringVar(&o.levels, "sl", "", "read the service levels of paths from `FILE` (default: from path records)")
	c.MarkFlagFilename("sl")
	c.Flags().BoolVar(&o.risk, riskFlag, false, "if no order is free of credit loops, apply the change nevertheless: packets in a loop are dropped after HOQLife, or never")
}

func applyCommand(p *session.Program) *cobra.Command {
	var o applyOptions
	engine := ""
	c := &cobra.Command{
		Use:   "apply FILE",
		Short: "Apply a planned change; it is reverted unless it is confirmed",
		Long: `Apply the change of a plan file. The rounds of the plan are sent if its certificate holds
for the current tables; otherwise a new order is found, its certificate is checked, and
one line is printed.

A journal is on disk before anything is sent. A guard process reverts the change if it is
not confirmed in time, if this process ends, or if a check fails: another subnet manager
takes over, the subnet administrator does not answer, a port goes down, or VL15Dropped or
discards for HOQLife increase. These counters are read after each round, on each port with
a link of the nodes that are written, and at the other end of the link; the number of ports
and datagrams is printed first. Before each round every block is read: a block that is
neither old nor new was changed by another writer, and stays unchanged.

If adaptive routing is on at a switch whose forwarding table the plan writes, and the plan
does not disable it (change plan --static), the plan is stale and nothing is sent. After each
round AdaptiveRoutingInfo must read back as off at the switches that were written. A revert
does not restore adaptive routing, and none is made where it was switched on again.

fabsh sends the Sets itself where no subnet manager is active. Where OpenSM runs with
-R file,no_fallback, --stage and --reload let OpenSM write the tables, round by round.

Beside any other subnet manager only plans of port states (PortPhysicalState) and link
speeds are applied, with --override-sm: it handles them like cables that are pulled and
plugged. The effect is predicted and printed first, and the plan is refused if a node
would lose its last path, or packets could deadlock. Then one link after the other is
changed. After each, fabsh waits up to 1 min until the subnet manager has written its new
tables, and reads them: if pairs are lost, or a credit loop has arisen, this link is
restored and the change stops there; the links before it wait for confirmation.

Exit status: 0 confirmed, or nothing to do; 1 the proof fails, or the change was not
confirmed and is reverted; 2 refused, or the plan is stale; 3 a check failed, or the
fabric did not answer.`,
		Example: `  fabsh --write change apply new.plan --confirm-within 5m
  fabsh -F sim:today.fab --write change apply new.plan
  fabsh --write change apply new.plan --stage lfts.dump --reload /run/opensm.pid
  fabsh --write --override-sm change apply links.plan`,
		Annotations: map[string]string{atPrompt: direct},
		Args:        oneFile,
		RunE: func(_ *cobra.Command, words []string) error {
			if (o.stage == "") != (o.reload == "") {
				return errors.New("--stage FILE and --reload PID|FILE require each other")
			}
			if err := cmp.Or(checkLevels(o.levels), checkReload(o.reload)); err != nil {
				return err
			}
			return onChange(p, nil, func(ctx context.Context, s *session.Session) error { return applyPlan(ctx, s, words[0], engine, &o) })
		},
	}
	o.addFlags(c)
	params{managerEngineParam(&engine)}.addTo(c)
	return c
}

func oneFile(_ *cobra.Command, words []string) error {
	switch len(words) {
	case 0:
		return errors.New("missing plan; give the file written by change plan --out")
	case 1:
		return nil
	}
	return fmt.Errorf("unexpected argument %q; want one file", words[1])
}

func resumeCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:         "resume",
		Short:       "Complete a change that was interrupted",
		Example:     `  fabsh --write change resume`,
		Annotations: map[string]string{atPrompt: direct},
		Args:        atMost(0),
		RunE: func(*cobra.Command, []string) error {
			return onChange(p, nil, func(ctx context.Context, s *session.Session) error {
				r, err := latestChange(ctx, s)
				if err != nil {
					return err
				}
				f, err := changes.Sweep(ctx, s.Runtime, r.Host)
				if err != nil {
					return err
				}
				outcome, err := r.Resume(ctx, f)
				addChange(ctx, s, "apply", outcome, err)
				return endedBy(s, r, outcome, err)
			})
		},
	}
}

// onChange runs a command on a change in the session of the fabric. keys are those of
// the process that started this one, if any.
func onChange(p *session.Program, keys *engine.Keys, run func(context.Context, *session.Session) error) error {
	open := func(ctx context.Context) (*session.Session, error) {
		return session.Open(ctx, p, session.Opening{Changing: true, Keys: keys})
	}
	return execute(p, task{time: p.StartTime(), open: open, run: run})
}

// applyPlan applies the change of a plan file. engine is the routing engine of the subnet manager
// that the command line states.
func applyPlan(ctx context.Context, s *session.Session, path, engine string, o *applyOptions) error {
	p, err := loadPlan(ctx, path)
	if err != nil {
		return err
	}
	if s.Engine == nil {
		return s.NoLive("a change needs a live fabric: this session reads a file; choose one with -F")
	}
	outcome, err := changes.Make(ctx, s.Runtime, p, apply.ChangeOptions{
		Plan: path, Within: o.within.Value, Stage: o.stage, Reload: o.reload, Levels: o.levels, AcceptCreditLoops: o.risk, ManagerEngine: engine,
	})
	addChange(ctx, s, "apply", outcome, err)
	return ended(s, outcome, err, change.Unrestored(len(p.Disables)))
}

// endedBy is ended for a change whose journal is r's.
func endedBy(s *session.Session, r *apply.Run, outcome apply.Outcome, err error) error {
	unrestored := ""
	if j, unread := r.Read(); unread == nil {
		unrestored = j.Begin().Unrestored()
	}
	return ended(s, outcome, err, unrestored)
}

// ended reports how a change ended, and returns its exit status. unrestored describes what a
// reversal does not restore; "": nothing.
func ended(s *session.Session, outcome apply.Outcome, err error, unrestored string) error {
	if unrestored != "" {
		unrestored = ", but " + unrestored
	}
	var refusal *order.Refusal
	var foreign *apply.ForeignError
	var check *apply.CheckError
	var silent *apply.AccessError
	switch {
	case errors.As(err, &refusal):
		s.Print("refused: " + err.Error() + "\n")
		return session.Exit(lang.StatusFindings)
	case outcome == apply.Failed:
		return &session.HostError{Err: fmt.Errorf("%w; the fabric is as before the change%s", err, unrestored)}
	case errors.As(err, &foreign), errors.As(err, &check), errors.As(err, &silent), errors.As(err, new(*apply.DamageError)), errors.Is(err, apply.ErrJournal):
		return &session.HostError{Err: err}
	case errors.Is(err, format.ErrLockHeld):
		return fmt.Errorf("another process works on it: %w", err)
	case errors.Is(err, fs.ErrPermission):
		return format.FileError(err)
	case err != nil:
		return err
	}
	switch outcome {
	case apply.Nothing:
		s.Print("nothing to do\n")
	case apply.Confirmed:
		s.Print("ok: the change is confirmed\n")
	case apply.Expired:
		s.Print("reverted: the change was not confirmed; the fabric is as before it" + unrestored + "\n")
		return session.Exit(lang.StatusFindings)
	case apply.RevertedOnRequest:
		s.Print("reverted: the fabric is as before the change" + unrestored + "\n")
	}
	return nil
}

// latestChange finds the latest change of the current fabric.
func latestChange(ctx context.Context, s *session.Session) (*apply.Run, error) {
	if s.Engine == nil {
		return nil, s.NoLive("this needs the fabric of the change: this session reads a file; choose one with -F")
	}
	return changes.HostOf(s.Runtime).Latest(ctx)
}

func revertCommand(p *session.Program) *cobra.Command {
	var risk, abandon, fromFabric bool
	c := &cobra.Command{
		Use:   "revert [PLAN]",
		Short: "Revert the latest change, even days later",
		Long: `Revert the latest change, even days later, in an order that is computed and proven from
the current tables of the fabric. Blocks that another writer has changed since are foreign:
then nothing is written. --from-fabric reverts all other blocks, and leaves foreign
ones unchanged; --abandon ends the change without a write. Both list the blocks that
are then not as before the change. Adaptive routing that the change disabled is not
restored; if it was switched on again since, nothing is written.

--from-fabric and --abandon accept a damaged journal, of which a copy is kept. Where
its first line is damaged, which has the change, --from-fabric needs the PLAN that
was applied.`,
		Example: `  fabsh --write change revert
  fabsh --write change revert --from-fabric
  fabsh change revert --abandon`,
		Annotations: map[string]string{atPrompt: direct},
		Args: func(_ *cobra.Command, words []string) error {
			switch {
			case fromFabric && abandon:
				return errors.New("--from-fabric and --abandon exclude each other")
			case len(words) > 0 && !fromFabric:
				return fmt.Errorf("%q: a plan goes with --from-fabric", words[0])
			case len(words) > 1:
				return fmt.Errorf("unexpected argument %q; want one plan", words[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			return onChange(p, nil, func(ctx context.Context, s *session.Session) error {
				var from *change.Plan
				var err error
				if len(words) > 0 {
					if from, err = loadPlan(ctx, words[0]); err != nil {
						return err
					}
				}
				r, err := latestChange(ctx, s)
				if err != nil {
					return err
				}
				r.AcceptCreditLoops = risk
				if abandon {
					return abandonChange(ctx, s, r)
				}
				f, err := changes.Sweep(ctx, s.Runtime, r.Host)
				if err != nil {
					return err
				}
				if fromFabric {
					return revertFromFabric(ctx, s, r, f, from)
				}
				outcome, err := r.Revert(ctx, f)
				addChange(ctx, s, "revert", outcome, err)
				return endedBy(s, r, outcome, err)
			})
		},
	}
	c.Flags().BoolVar(&risk, riskFlag, false, "revert even where packets may deadlock for ever (HOQLife is unlimited)")
	c.Flags().BoolVar(&abandon, "abandon", false, "write nothing: end the change, and show which blocks are not as before it")
	c.Flags().BoolVar(&fromFabric, "from-fabric", false, "revert what the fabric shows of the change, even if the journal is damaged, and leave foreign blocks unchanged")
	return c
}

func confirmCommand(p *session.Program) *cobra.Command {
	var force, wait bool
	c := &cobra.Command{
		Use:   "confirm",
		Short: "Keep the change that was just applied",
		Long: `Keep the change that was just applied: all its blocks are read once more. It is not
confirmed if a port of its switches was active before the change and is not active now,
or if another subnet manager is in charge, unless --force is given. While the change
waits, the process that applies it checks this every 2 s, and reverts it. Only the user
who applied the change can confirm it. A change that is still being applied is not
confirmed, and the time left is estimated; --wait waits until it is applied. No other process can reach a fabric that is
simulated in the process that applies the change (-F sim): there a change is confirmed
automatically when all checks have passed.`,
		Example: `  fabsh change confirm
  fabsh change confirm --wait`,
		Annotations: map[string]string{atPrompt: direct},
		Args:        atMost(0),
		RunE: func(*cobra.Command, []string) error {
			return onChange(p, nil, func(ctx context.Context, s *session.Session) error {
				r, err := latestChange(ctx, s)
				if err != nil {
					return err
				}
				confirm := r.Confirm
				if wait {
					confirm = r.ConfirmWhenApplied
				}
				outcome, err := confirm(ctx, force)
				if under := new(apply.UnderWayError); errors.As(err, &under) {
					return err
				}
				if outcome == apply.Nothing && err == nil {
					return errors.New("no change waits for confirmation; see fabsh change status")
				}
				addChange(ctx, s, "confirm", outcome, err)
				return endedBy(s, r, outcome, err)
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "confirm although links are down, or another subnet manager is in charge")
	c.Flags().BoolVar(&wait, "wait", false, "wait until the change is applied, then confirm it")
	c.SetFlagErrorFunc(FlagError)
	return c
}

func statusCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the latest change, and the state of its blocks in the fabric",
		Long: `Show the latest change of the subnet, and which of its blocks are old (as before it),
new (as after it), between, or foreign (neither). The blocks are read for it. They are
listed unless all are the same.

Exit status: 0 it has ended; 1 it is open; 3 the journal is damaged, the fabric did not
answer, or it was reverted and ports that were active before are not, or are slower, or
the subnet manager is missing.`,
		Example: `  fabsh change status`,
		Args:    atMost(0),
		RunE: func(*cobra.Command, []string) error {
			return onChange(p, nil, changeStatus)
		},
	}
}

// changeStatus shows the latest change, and the state of its blocks in the fabric.
func changeStatus(ctx context.Context, s *session.Session) error {
	r, err := latestChange(ctx, s)
	if err != nil {
		return err
	}
	status, err := r.Status(ctx)
	if err != nil {
		return endedBy(s, r, apply.Unresolved, err)
	}
	open := false
	if j := status.Journal; j.Begin() != nil {
		open = j.Open() || status.Damage != nil
		s.Print(recorded(r, status))
		s.Print(inFabric(status.Blocks))
	}
	unread := slices.IndexFunc(status.Blocks, func(b apply.Block) bool { return b.State == apply.Unread })
	switch {
	case status.Damage != nil:
		return &session.HostError{Err: status.Damage}
	case unread >= 0:
		return &session.HostError{Err: errors.New(status.Blocks[unread].Text)}
	case status.Differs != nil:
		return &session.HostError{Err: status.Differs}
	case open:
		return session.Exit(lang.StatusFindings)
	}
	return nil
}

// recorded returns what the journal contains about a change.
func recorded(r *apply.Run, status *apply.Status) string {
	j := status.Journal
	b, last := j.Begin(), j.Records[len(j.Records)-1]
	text := fmt.Sprintf("%s: begun %s by %s, %s\n", b.Summary, j.Records[0].At.Format(time.RFC3339), cmp.Or(b.By, "somebody"), plural.Count(len(b.Cells), "block", "blocks"))
	if status.Damage != nil {
		return text
	}
	text += fmt.Sprintf("%s %s", last.Kind, last.At.Format(time.RFC3339))
	if last.Why != "" {
		text += ": " + last.Why
	}
	switch {
	case j.Open() && r.Unguarded():
		text += "; its guard process has ended, and no process reverts the change: confirm, revert or resume it, or end it without a write (change revert --abandon)"
	case last.Kind == apply.KindApplied:
		text += fmt.Sprintf("; it is reverted %v later unless it is confirmed", last.Within.Round(time.Millisecond))
	}
	return text + "\n"
}

// inFabric returns the state of a change in the fabric: how many blocks are in which
// state, and which, unless all are in one state.
func inFabric(blocks []apply.Block) string {
	var counts [apply.Unread + 1]int
	for _, b := range blocks {
		counts[b.State]++
	}
	text := fmt.Sprintf("in the fabric: %d old, %d new, %d between, %d foreign", counts[apply.Old], counts[apply.New], counts[apply.Between], counts[apply.Foreign])
	if n := counts[apply.Unread]; n > 0 {
		text += fmt.Sprintf(", %d not read", n)
	}
	text += "\n"
	if slices.Max(counts[:apply.Foreign]) == len(blocks) {
		return text
	}
	for _, b := range blocks {
		text += fmt.Sprintf("  %v: %s\n", b.State, lang.OneLine(b.Text))
	}
	return text
}

// abandonChange ends a change without a write.
func abandonChange(ctx context.Context, s *session.Session, r *apply.Run) error {
	left, err := r.Abandon(ctx)
	if damage := new(apply.DamageError); errors.As(err, &damage) && damage.Copy != "" && left == nil {
		s.Print(fmt.Sprintf("abandoned: the journal is now %s; its first line, which has the change, is damaged, so no block was read or written\n", damage.Copy))
		return nil
	}
	if err != nil {
		return endedBy(s, r, apply.Unresolved, err)
	}
	printLeft(s, left)
	s.Print(fmt.Sprintf("abandoned: nothing was written; %s not known to be as before the change\n", plural.Count(len(left), "block is", "blocks are")))
	return nil
}

// revertFromFabric reverts all blocks but foreign ones.
func revertFromFabric(ctx context.Context, s *session.Session, r *apply.Run, f *fabric.Fabric, p *change.Plan) error {
	left, err := r.RevertFromFabric(ctx, f, p)
	addChange(ctx, s, "revert", apply.RevertedOnRequest, err)
	if err != nil || len(left) == 0 {
		return endedBy(s, r, apply.RevertedOnRequest, err)
	}
	printLeft(s, left)
	s.Print(fmt.Sprintf("reverted in part: %s not known to be as before the change\n", plural.Count(len(left), "block is", "blocks are")))
	return session.Exit(lang.StatusFindings)
}

// printLeft lists blocks that are not as before a change.
func printLeft(s *session.Session, left []string) {
	for _, text := range left {
		s.Print("left: " + lang.OneLine(text) + "\n")
	}
}

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
		Args:   atMost(0),
		Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			in := bufio.NewReader(p.Stdin)
			text, err := in.ReadBytes('\n')
			if err != nil {
				return errors.New("no work on standard input; it is started by change apply")
			}
			var work guardWork
			if err := json.Unmarshal(text, &work); err != nil {
				return err
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
			return fmt.Errorf("--%s: %w", f[0], err)
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
