package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/order"
	"fabsh/fabric/format"
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
	c := &cobra.Command{
		Use:   "apply FILE",
		Short: "Apply a planned change; it is reverted unless it is confirmed",
		Long: `Apply the change of a plan file. Order and proof are computed again. A journal is on
disk before anything is sent. A guard process reverts the change if it is not confirmed
in time, if this process ends, or if a check fails: another subnet manager takes over,
the subnet administrator does not answer, a port goes down, or VL15Dropped or discards
for HOQLife increase. Before each round every block is read: a block that is neither
old nor new was changed by another writer, and stays unchanged.

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
		Args:        oneFile("apply"),
		RunE: func(_ *cobra.Command, words []string) error {
			if (o.stage == "") != (o.reload == "") {
				return errors.New("change apply: --stage FILE and --reload PID|FILE require each other")
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
			return fmt.Errorf("change %s: missing plan; give the file written by change plan --out", command)
		case 1:
			return nil
		}
		return fmt.Errorf("change %s: unexpected argument %q; want one file", command, words[1])
	}
}

func resumeCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:         "resume",
		Short:       "Complete a change that was interrupted",
		Example:     `  fabsh --write change resume`,
		Annotations: map[string]string{atPrompt: direct},
		Args:        cobra.NoArgs,
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
	return execute(p, task{name: "change", time: p.StartTime(), open: open, run: run})
}

// applyPlan applies the change of a plan file.
func applyPlan(ctx context.Context, s *session.Session, path string, o *applyOptions) error {
	p, err := loadPlan(ctx, path)
	if err != nil {
		return err
	}
	if s.Engine == nil {
		return s.NoLive("change", "a change needs a live fabric: this session reads a file; choose one with -F")
	}
	outcome, err := changes.Make(ctx, s.Runtime, p, apply.ChangeOptions{
		Plan: path, Within: o.within.Value, Stage: o.stage, Reload: o.reload, Levels: o.levels, AcceptCreditLoops: o.risk,
	})
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
		return fmt.Errorf("change: another process works on it: %w", err)
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
		return nil, s.NoLive("change", "this needs the fabric of the change: this session reads a file; choose one with -F")
	}
	return changes.HostOf(s.Runtime).Latest(ctx)
}
