package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/plural"
	"fabsh/shell/session"
)

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
				return errors.New("change revert: --from-fabric and --abandon exclude each other")
			case len(words) > 0 && !fromFabric:
				return fmt.Errorf("change revert: %q: a plan goes with --from-fabric", words[0])
			case len(words) > 1:
				return fmt.Errorf("change revert: unexpected argument %q; want one plan", words[1])
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
	force := false
	c := &cobra.Command{
		Use:   "confirm",
		Short: "Keep the change that was just applied",
		Long: `Keep the change that was just applied: all its blocks are read once more. It is not
confirmed if a port of its switches was active before the change and is not active now,
or if another subnet manager is in charge, unless --force is given. While the change
waits, the process that applies it checks this every 2 s, and reverts it. Only the user
who applied the change can confirm it. No other process can reach a fabric that is
simulated in the process that applies the change (-F sim): there a change is confirmed
automatically when all checks have passed.`,
		Example:     `  fabsh change confirm`,
		Annotations: map[string]string{atPrompt: direct},
		Args:        cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return onChange(p, nil, func(ctx context.Context, s *session.Session) error {
				r, err := latestChange(ctx, s)
				if err != nil {
					return err
				}
				outcome, err := r.Confirm(ctx, force)
				if outcome == apply.Nothing && err == nil {
					return errors.New("change confirm: no change waits for confirmation; see fabsh change status")
				}
				return endedBy(s, r, outcome, err)
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "confirm although links are down, or another subnet manager is in charge")
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

Exit status: 0 it has ended; 1 it is open; 3 the journal is damaged, or the fabric did
not answer.`,
		Example: `  fabsh change status`,
		Args:    cobra.NoArgs,
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
