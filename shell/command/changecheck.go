package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/shell/session"
)

// checkPlanCommand checks the certificate of a plan.
func checkPlanCommand(p *session.Program) *cobra.Command {
	var levels string
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Verify the certificate of a plan on the fabric, independently of the planner",
		Long: `Verify the certificate of a plan on the fabric, or on a snapshot with forwarding
tables. Nothing is written. The certificate holds the rounds of the plan block by
block, and the proof that they are safe whatever the order of the writes in a round:

  delivery      for each LID and round in which its entries change, a rank of each
                switch. It decreases along each old and each new entry, so packets
                arrive from each switch from which they arrive before and after
  credit loops  for the rounds up to each drain, a position of each link on each
                virtual lane. It increases along each two links that packets take one
                after the other, by old or new entries, so no credit loop arises

Another program verifies these than the one that finds them, and it trusts nothing
else in the file. A plan made with --accept-credit-loop-risk has no positions: of it
only the delivery is verified.

Exit status: 0 the certificate holds; 1 it does not, is missing, or the fabric is not the
one that the plan was made for; 2 the command line or the file is invalid; 3 the fabric
did not answer.`,
		Example: `  fabsh change check new.plan
  fabsh -F sim:today.fab change check new.plan`,
		Args: oneFile("check"),
		RunE: func(_ *cobra.Command, words []string) error {
			return onFabric(p, "change", func(ctx context.Context, s *session.Session) error {
				p, err := loadPlan(ctx, words[0])
				if err != nil {
					return err
				}
				s.Env.Levels = levels
				return checkPlan(ctx, s, p)
			})
		},
	}
	c.Flags().StringVar(&levels, "sl", "", "read the service levels of paths from `FILE` (default: from path records)")
	c.MarkFlagFilename("sl")
	c.SetFlagErrorFunc(FlagError)
	return c
}

// checkPlan prints whether the certificate of a plan holds.
func checkPlan(ctx context.Context, s *session.Session, p *change.Plan) error {
	verdict, notes, err := changes.Check(ctx, s.Runtime, p)
	if failed := new(certificate.FailureError); errors.As(err, &failed) || errors.Is(err, change.ErrNoCertificate) {
		s.Print("not ok: " + lang.OneLine(err.Error()) + "\n")
		return session.Exit(lang.StatusFindings)
	}
	if err != nil {
		return err
	}
	s.Print(verdict + "\n")
	for _, note := range notes {
		s.Print("not covered: " + lang.OneLine(note) + "\n")
	}
	return nil
}

// showCommand shows a plan.
func showCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "Show a plan: what it writes, in which rounds, and what its certificate proves",
		Long: `Show what a plan writes, the rounds of its certificate, and what the certificate
proves. Nothing is verified: change check does that, on the fabric. What the file
records of the time when the plan was made (pairs, load, what was not judged) is
marked "recorded".

Exit status: 0 the plan is shown; 1 it records that no safe order was found; 2 the file
is not a plan.`,
		Example: `  fabsh change show new.plan
  fabsh -o json change show new.plan`,
		Args: oneFile("show"),
		RunE: func(_ *cobra.Command, words []string) error {
			return withoutFabric(p, "change", func(ctx context.Context, s *session.Session) error {
				p, err := loadPlan(ctx, words[0])
				if err != nil {
					return err
				}
				if err := s.Show(&changes.Value{Plan: p}); err != nil {
					return err
				}
				if p.Recorded != nil && !p.Recorded.OK {
					return session.Exit(lang.StatusFindings)
				}
				return nil
			})
		},
	}
}
