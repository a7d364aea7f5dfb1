package command

import (
	"context"

	"github.com/spf13/cobra"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/shell/session"
)

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
