package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/order"
	"fabsh/fabric/change/plan"
	"fabsh/fabric/lock"
	"fabsh/fabric/routing"
	"fabsh/fabric/sa"
	"fabsh/mad"
)

// defaultWithin is how long a change waits to be confirmed, besides four times the
// time in which packets of the old tables are gone.
const defaultWithin = 60 * time.Second

// applyOptions are the flags of change apply and change resume.
type applyOptions struct {
	within        duration
	stage, reload string
	levels        string
	risk          bool
}

// riskFlag lets a change be made, or taken back, though packets may deadlock on the way.
const riskFlag = "accept-credit-loop-risk"

func (o *applyOptions) addFlags(c *cobra.Command) {
	o.within = duration{unit: time.Second, units: "seconds"}
	c.Flags().Var(&o.within, "confirm-within", "take the change back unless it is confirmed in `TIME` (default 60s, and 4 times the drains)")
	c.Flags().StringVar(&o.stage, "stage", "", "have OpenSM write the tables, which it reads from `FILE` (opensm -R file,no_fallback -U FILE)")
	c.Flags().StringVar(&o.reload, "reload", "", "with --stage: the process ID of OpenSM, or a file that holds it (`PID|FILE`)")
	c.Flags().StringVar(&o.levels, "sl", "", "the service levels of paths in `FILE` are those in use (default: those of path records)")
	c.MarkFlagFilename("sl")
	c.Flags().BoolVar(&o.risk, riskFlag, false, "where no order is free of credit loops, make the change all the same: packets in one are dropped after HOQLife, or never")
	c.SetFlagErrorFunc(flagError)
}

func (a *app) applyCommand() *cobra.Command {
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
			return a.onChange(func(ctx context.Context, s *session) error { return s.applyPlan(ctx, words[0], &o) })
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

func (a *app) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "resume",
		Short:   "Make the rest of a change that was broken off",
		Example: `  fabsh --write change resume`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.onChange(func(ctx context.Context, s *session) error {
				r, err := s.journaled()
				if err != nil {
					return err
				}
				staged, err := r.Staged()
				if err != nil {
					return err
				}
				f, manager, err := s.mayApply(ctx, staged)
				if err != nil {
					return err
				}
				return s.told(r.Resume(ctx, f, manager))
			})
		},
	}
}

func (a *app) revertCommand() *cobra.Command {
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
			return a.onChange(func(ctx context.Context, s *session) error {
				r, err := s.journaled()
				if err != nil {
					return err
				}
				r.AcceptCreditLoops = risk
				if abandon {
					return s.abandon(ctx, r)
				}
				staged, err := r.Staged()
				if err != nil {
					return err
				}
				if _, _, err := s.mayApply(ctx, staged); err != nil {
					return err
				}
				return s.told(r.Revert(ctx))
			})
		},
	}
	c.Flags().BoolVar(&risk, riskFlag, false, "take it back even where packets may deadlock without end (HOQLife without a bound)")
	c.Flags().BoolVar(&abandon, "abandon", false, "write nothing: end the change with the fabric as it is, and show what is left standing")
	c.SetFlagErrorFunc(flagError)
	return c
}

func (a *app) confirmCommand() *cobra.Command {
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
			return a.onChange(func(ctx context.Context, s *session) error {
				r, err := s.journaled()
				if err != nil {
					return err
				}
				outcome, err := r.Confirm(ctx)
				if outcome == apply.Nothing && err == nil {
					return errors.New("change confirm: no change waits to be confirmed: see fabsh change status")
				}
				return s.told(outcome, err)
			})
		},
	}
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Tell what became of the latest change, and what the fabric has of it",
		Long: `Tell what became of the latest change of the subnet, and which of its blocks are as
before and as after it. Exit status: 0 it has ended; 1 it is open; 3 the fabric
did not answer.`,
		Example: `  fabsh change status`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.onChange(func(ctx context.Context, s *session) error { return s.changeStatus(ctx) })
		},
	}
}

// onChange runs a command on a change in the fabric's session.
func (a *app) onChange(run func(context.Context, *session) error) error {
	a.changing = true
	return a.onFabric("change", run)
}

// applyPlan makes the change of a plan's file.
func (s *session) applyPlan(ctx context.Context, path string, o *applyOptions) error {
	file, err := lang.OpenNamed(ctx, path)
	if err != nil {
		return noFile(err)
	}
	p, err := plan.Load(file, path)
	file.Close()
	if err != nil {
		return err
	}
	return s.told(s.make(ctx, p, path, o))
}

// makeInScript is plan.apply().
func (s *session) makeInScript(ctx context.Context, p *plan.Plan, within time.Duration) (confirmed bool, err error) {
	o := applyOptions{within: duration{value: within}}
	outcome, err := s.make(ctx, p, "the plan", &o)
	return outcome == apply.Confirmed || outcome == apply.Nothing, err
}

// make makes the change of a plan, which is called what.
func (s *session) make(ctx context.Context, p *plan.Plan, what string, o *applyOptions) (apply.Outcome, error) {
	f, manager, err := s.mayApply(ctx, o.stage != "")
	if err != nil {
		return apply.Stuck, err
	}
	now := plan.FingerprintOf(f, manager)
	if since := p.Base.Since(&now); len(since) > 0 {
		return apply.Stuck, fmt.Errorf("change apply: %s is stale, for the fabric is another one since: %s; plan it anew", what, lang.OneLine(strings.Join(firstFew(since), "; ")))
	}
	cells, err := apply.Planned(p, f)
	if err != nil {
		return apply.Stuck, fmt.Errorf("change apply: %w", err)
	}
	if len(cells) == 0 {
		return apply.Nothing, nil
	}
	r, err := s.runOf(fabric.SubnetOf(f, ""))
	if err != nil {
		return apply.Stuck, err
	}
	if o.stage != "" || p.NeedsTables(f) {
		if r.Live, err = s.allTables(ctx, f); err != nil {
			return apply.Stuck, err
		}
	}
	b, err := s.begin(ctx, p, f, r.Live, manager, cells, o)
	if err != nil {
		return apply.Stuck, fmt.Errorf("change apply: %w", err)
	}
	return r.Apply(ctx, f, manager, b)
}

// begin is how the journal begins. A plan that takes ports down is judged anew first.
// live are the tables of f; nil: the plan changes none.
func (s *session) begin(ctx context.Context, p *plan.Plan, f *fabric.Fabric, live *routing.Routes, manager *sa.SM, cells []*apply.Cell, o *applyOptions) (*apply.Begin, error) {
	port, err := s.engine.Port()
	if err != nil {
		return nil, err
	}
	b := &apply.Begin{
		ID: fmt.Sprintf("%s-%d", s.Clock.Now().UTC().Format("20060102T150405Z"), os.Getpid()), Summary: lang.OneLine(cmp.Or(p.From, "a plan")), By: login(),
		Port: port.PortGUID, Prefix: port.GIDPrefix, Within: o.within.value, Cells: cells, AcceptCreditLoops: o.risk,
	}
	if o.levels != "" {
		if b.Levels, err = filepath.Abs(o.levels); err != nil {
			return nil, err
		}
	}
	if b.Within == 0 {
		b.Within, b.Drains = defaultWithin, 4
	}
	if manager != nil && manager.Info != nil {
		b.Manager = manager.Info.GUID
	}
	if slices.ContainsFunc(cells, func(c *apply.Cell) bool { return c.Attr == mad.AttrPortInfo }) {
		if live == nil {
			if live, err = s.allTables(ctx, f); err != nil {
				return nil, err
			}
		}
		t := &plan.Tables{
			Live: live, AcceptCreditLoops: o.risk,
			Last: slices.DeleteFunc([]mad.LID{port.SMLID, port.LID}, func(lid mad.LID) bool { return lid == 0 }),
		}
		s.levels(b.Levels).InForce(t, s.engine)
		report, err := p.Prove(ctx, t)
		if err != nil {
			return nil, err
		}
		if !report.OK {
			return nil, &order.Refusal{Round: -1, Reason: report.Reason}
		}
	}
	if o.stage != "" {
		b.Staged, err = s.stage(live, cells, o)
	}
	return b, err
}

// allTables are the forwarding tables in force: of each switch, or nothing is proven.
func (s *session) allTables(ctx context.Context, f *fabric.Fabric) (*routing.Routes, error) {
	live, failed, err := change.ReadRoutes(ctx, s.engine, f)
	if err == nil && len(failed) > 0 {
		err = &hostError{fmt.Errorf("change apply: the forwarding table of %s cannot be read, so nothing is proven, and nothing is sent: %w", failed[0].Switch.Label(), failed[0].Err)}
	}
	return live, err
}

func firstFew(list []string) []string {
	const few = 8
	if len(list) <= few {
		return list
	}
	return append(list[:few:few], fmt.Sprintf("and %d more", len(list)-few))
}

// mayApply sweeps the fabric, and says why no change may be made of it: by Sets, or
// staged for OpenSM.
func (s *session) mayApply(ctx context.Context, staged bool) (*fabric.Fabric, *sa.SM, error) {
	switch {
	case s.engine == nil:
		return nil, nil, s.noLive("change", "a change needs a live fabric: this session reads a file")
	case !s.engine.Write():
		return nil, nil, errors.New("change: it would change the fabric, which takes --write (before the word change)")
	}
	f, err := s.Sweep(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !f.Complete() {
		return nil, nil, &hostError{fmt.Errorf("change: the sweep is not complete, so nothing is sent: %s", firstMissing(f))}
	}
	manager, err := s.SA().FindSM(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	if staged && (manager == nil || manager.Info == nil || manager.Info.SMState != mad.SMStateMaster) {
		return nil, nil, &hostError{errors.New("change: no subnet manager is MASTER, so there is nobody to write staged tables")}
	}
	if manager != nil && !staged && !s.engine.Traits().Simulated {
		return nil, nil, fmt.Errorf("change: %v is at work, and nothing is sent: OpenSM neither sees nor repairs what others write. Have it write the tables (opensm -R file,no_fallback -U FILE, and change apply --stage FILE --reload PIDFILE), or stop it first", manager)
	}
	return f, manager, nil
}

// told tells how a change ended, and makes an exit status of it.
func (s *session) told(outcome apply.Outcome, err error) error {
	var refusal *order.Refusal
	var foreign *apply.ForeignError
	var check *apply.CheckError
	var silent *apply.SilentError
	switch {
	case errors.As(err, &refusal):
		s.Print("refused: " + err.Error() + "\n")
		return findings()
	case outcome == apply.Failed:
		return &hostError{fmt.Errorf("%w; all is as before the change", err)}
	case errors.As(err, &foreign), errors.As(err, &check), errors.As(err, &silent), errors.Is(err, apply.ErrJournal):
		return &hostError{err}
	case errors.Is(err, lock.ErrHeld):
		return fmt.Errorf("change: another process is at it: %w", err)
	case errors.Is(err, fs.ErrPermission):
		return noFile(err)
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
		return findings()
	case apply.Asked:
		s.Print("taken back: all is as before the change\n")
	}
	return nil
}
