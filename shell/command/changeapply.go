package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/order"
	"fabsh/fabric/format"
	"fabsh/fabric/lock"
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

// riskFlag lets a change be made, or taken back, though packets may deadlock on the way.
const riskFlag = "accept-credit-loop-risk"

func (o *applyOptions) addFlags(c *cobra.Command) {
	o.within = session.Duration{Unit: time.Second, Units: "seconds"}
	c.Flags().Var(&o.within, "confirm-within", "take the change back unless it is confirmed in `TIME` (default 60s, and 4 times the drains)")
	c.Flags().StringVar(&o.stage, "stage", "", "have OpenSM write the tables, which it reads from `FILE` (opensm -R file,no_fallback -U FILE)")
	c.Flags().StringVar(&o.reload, "reload", "", "with --stage: the process ID of OpenSM, or a file that holds it (`PID|FILE`)")
	c.Flags().StringVar(&o.levels, "sl", "", "the service levels of paths in `FILE` are those in use (default: those of path records)")
	c.MarkFlagFilename("sl")
	c.Flags().BoolVar(&o.risk, riskFlag, false, "where no order is free of credit loops, make the change all the same: packets in one are dropped after HOQLife, or never")
	c.SetFlagErrorFunc(FlagError)
}

func applyCommand(p *session.Program) *cobra.Command {
	var o applyOptions
	c := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make a planned change; it is taken back unless it is confirmed",
		Long: `Make the change of a plan's file. Order and proof are computed anew. A journal is on
the disk before anything is sent, and a guard process runs that takes the change back
when it is not confirmed in time, when this process ends, or when a check fails:
another subnet manager, a subnet administrator that falls silent, a port that goes
down, VL15Dropped or discards for HOQLife that rise. Before each round every block
is read: what is not as planned is somebody else's, and stays.

fabsh sends Sets itself where no subnet manager is at work. Where OpenSM runs with
-R file,no_fallback, --stage and --reload have it write the tables, round by round.

Exit status: 0 confirmed, or nothing to do; 1 the proof fails, or the change was
taken back unconfirmed; 2 refused, or the plan is stale; 3 a check failed or the
fabric did not answer.`,
		Example: `  fabsh --write change apply new.plan --confirm-within 5m
  fabsh -F sim:today.fab --write change apply new.plan
  fabsh --write change apply new.plan --stage lfts.dump --reload /run/opensm.pid`,
		Args: oneFile("apply"),
		RunE: func(_ *cobra.Command, words []string) error {
			if (o.stage == "") != (o.reload == "") {
				return errors.New("change apply: --stage FILE and --reload PID|FILE go together: the file that OpenSM reads, and OpenSM")
			}
			return onChange(p, nil, func(ctx context.Context, s *session.Session) error { return applyPlan(ctx, s, words[0], &o) })
		},
	}
	o.addFlags(c)
	return c
}

func oneFile(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, words []string) error {
		switch len(words) {
		case 0:
			return fmt.Errorf("change %s: which plan? give the file that change plan --out wrote", command)
		case 1:
			return nil
		}
		return fmt.Errorf("change %s: takes one file, and here is also %q", command, words[1])
	}
}

func resumeCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:     "resume",
		Short:   "Make the rest of a change that was broken off",
		Example: `  fabsh --write change resume`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return onChange(p, nil, func(ctx context.Context, s *session.Session) error {
				r, err := latestChange(s)
				if err != nil {
					return err
				}
				f, err := changes.Sweep(ctx, s.Runtime, r.Host)
				if err != nil {
					return err
				}
				outcome, err := r.Resume(ctx, f)
				return told(s, outcome, err)
			})
		},
	}
}

func revertCommand(p *session.Program) *cobra.Command {
	var risk, abandon bool
	c := &cobra.Command{
		Use:   "revert",
		Short: "Take the latest change back, days later too",
		Long: `Take the latest change back, days later too: in an order that is found and proven anew
from what the fabric has now. What somebody else wrote since stays, and then nothing
is written. Where that is for good, or what is left is wanted so, --abandon ends the
change: it writes nothing, and shows what of the change is left standing.`,
		Example: `  fabsh --write change revert
  fabsh change revert --abandon`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return onChange(p, nil, func(ctx context.Context, s *session.Session) error {
				r, err := latestChange(s)
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
				outcome, err := r.Revert(ctx, f)
				return told(s, outcome, err)
			})
		},
	}
	c.Flags().BoolVar(&risk, riskFlag, false, "take it back even where packets may deadlock without end (HOQLife without a bound)")
	c.Flags().BoolVar(&abandon, "abandon", false, "write nothing: end the change with the fabric as it is, and show what is left standing")
	c.SetFlagErrorFunc(FlagError)
	return c
}

func confirmCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "confirm",
		Short: "Let the change stay that was just made",
		Long: `Let the change stay that was just made: all its blocks are read once more. Only the
user who made it can. A fabric that is simulated in the process that makes the change
(-F sim) is out of reach of others: there a change is confirmed by itself when all
checks have passed.`,
		Example: `  fabsh change confirm`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return onChange(p, nil, func(ctx context.Context, s *session.Session) error {
				r, err := latestChange(s)
				if err != nil {
					return err
				}
				outcome, err := r.Confirm(ctx)
				if outcome == apply.Nothing && err == nil {
					return errors.New("change confirm: no change waits to be confirmed: see fabsh change status")
				}
				return told(s, outcome, err)
			})
		},
	}
}

func statusCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Tell what became of the latest change, and what the fabric has of it",
		Long: `Tell what became of the latest change of the subnet, and which of its blocks are as
before and as after it. Exit status: 0 it has ended; 1 it is open; 3 the fabric
did not answer.`,
		Example: `  fabsh change status`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return onChange(p, nil, changeStatus)
		},
	}
}

// onChange runs a command on a change in the fabric's session. keys are those of the
// process that started this one, if any.
func onChange(p *session.Program, keys *engine.Keys, run func(context.Context, *session.Session) error) error {
	open := func(ctx context.Context) (*session.Session, error) {
		return session.Open(ctx, p, session.Opening{Changing: true, Keys: keys})
	}
	return execute(p, task{name: "change", time: p.StartTime(), open: open, run: run})
}

// applyPlan makes the change of a plan's file.
func applyPlan(ctx context.Context, s *session.Session, path string, o *applyOptions) error {
	p, err := loadPlan(ctx, path)
	if err != nil {
		return err
	}
	if s.Engine == nil {
		return s.NoLive("change", "a change needs a live fabric: this session reads a file")
	}
	outcome, err := changes.Make(ctx, s.Runtime, p, apply.Options{
		Plan: path, Within: o.within.Value, Stage: o.stage, Reload: o.reload, Levels: o.levels, AcceptCreditLoops: o.risk,
	})
	return told(s, outcome, err)
}

// told tells how a change ended, and makes an exit status of it.
func told(s *session.Session, outcome apply.Outcome, err error) error {
	var refusal *order.Refusal
	var foreign *apply.ForeignError
	var check *apply.CheckError
	var silent *apply.SilentError
	switch {
	case errors.As(err, &refusal):
		s.Print("refused: " + err.Error() + "\n")
		return session.Exit(lang.StatusFindings)
	case outcome == apply.Failed:
		return &session.HostError{Err: fmt.Errorf("%w; all is as before the change", err)}
	case errors.As(err, &foreign), errors.As(err, &check), errors.As(err, &silent), errors.Is(err, apply.ErrJournal):
		return &session.HostError{Err: err}
	case errors.Is(err, lock.ErrHeld):
		return fmt.Errorf("change: another process is at it: %w", err)
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
		s.Print("taken back: all is as before the change, which nobody confirmed\n")
		return session.Exit(lang.StatusFindings)
	case apply.Asked:
		s.Print("taken back: all is as before the change\n")
	}
	return nil
}

// latestChange finds the latest change of the fabric at hand, without a sweep.
func latestChange(s *session.Session) (*apply.Run, error) {
	if s.Engine == nil {
		return nil, s.NoLive("change", "this needs the fabric of the change: this session reads a file")
	}
	return changes.HostOf(s.Runtime).Latest()
}

// changeStatus tells what became of the latest change.
func changeStatus(ctx context.Context, s *session.Session) error {
	r, err := latestChange(s)
	if err != nil {
		return err
	}
	j, err := apply.ReadJournal(apply.JournalIn(r.Dir))
	if err != nil {
		return err
	}
	b := j.Begin()
	last := j.Records[len(j.Records)-1]
	text := fmt.Sprintf("%s: begun %s by %s, %s\n", b.Summary, j.Records[0].At.Format(time.RFC3339), cmp.Or(b.By, "somebody"), plural.Count(len(b.Cells), "block", "blocks"))
	text += fmt.Sprintf("%s %s", last.Kind, last.At.Format(time.RFC3339))
	if last.Why != "" {
		text += ": " + last.Why
	}
	switch {
	case j.Open() && r.Unguarded():
		text += "; its guard process is gone, and nothing takes it back by itself: confirm, revert or resume it, or end it as it is (change revert --abandon)"
	case last.Kind == apply.KindApplied:
		text += fmt.Sprintf("; it is taken back at %s unless it is confirmed", last.At.Add(last.Within).Format(time.RFC3339))
	}
	s.Print(text + "\n")
	states, err := apply.Look(ctx, s.Engine, j)
	var foreign *apply.ForeignError
	if err != nil && !errors.As(err, &foreign) {
		return &session.HostError{Err: err}
	}
	count := map[apply.State]int{}
	for _, state := range states {
		count[state]++
	}
	s.Print(fmt.Sprintf("in the fabric: %d old, %d new, %d between, %d foreign\n", count[apply.Old], count[apply.New], count[apply.Between], count[apply.Foreign]))
	if foreign != nil {
		s.Print(foreign.Error() + "\n")
	}
	if j.Open() {
		return session.Exit(lang.StatusFindings)
	}
	return nil
}

// abandonChange ends a change with the fabric as it is.
func abandonChange(ctx context.Context, s *session.Session, r *apply.Run) error {
	left, err := r.Abandon(ctx)
	if err != nil {
		return told(s, apply.Stuck, err)
	}
	for _, text := range left {
		s.Print("left: " + lang.OneLine(text) + "\n")
	}
	s.Print(fmt.Sprintf("abandoned: nothing was written; %s not as before the change\n", plural.Count(len(left), "block is", "blocks are")))
	return nil
}
