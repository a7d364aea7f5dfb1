package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/remedies"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/remedy"
	"fabsh/shell/session"
)

// remedyLogCommand shows the log of decisions.
func remedyLogCommand(p *session.Program) *cobra.Command {
	var subnet string
	c := &cobra.Command{
		Use:   "log",
		Short: "Show what remedies decided, when and why",
		Long: `Show what runs of fabsh remedy --out decided, the oldest first: what was planned or
declined, by which rule, and why; which plans were applied; and which ports another has
enabled since. The log is the file remedies in the directory of --state, one for each
subnet. Its oldest entries are left out from 8 MB on; which ports are isolated stays
known.

Exit status: 0; 2 usage error; 3 fabric or host error, or the log is damaged.`,
		Example: `  fabsh remedy log
  fabsh -o jsonl remedy log`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return onFabric(p, "remedy", func(ctx context.Context, s *session.Session) error { return showRemedyLog(ctx, s, subnet) })
		},
	}
	subnetFlag(c.Flags(), &subnet)
	return c
}

// showRemedyLog shows the log of the subnet.
func showRemedyLog(ctx context.Context, s *session.Session, given string) error {
	if s.StateDir == "" {
		return errors.New("remedy log: no directory for state; give --state DIR")
	}
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	subnet := fabric.SubnetOf(f, given)
	path := remedy.LogFile(s.StateDir, subnet)
	err = audit.CheckSubnet(s.StateDir, subnet)
	var l *remedy.Log
	if err == nil {
		l, err = remedy.Current(path, s.StateDir)
	}
	if err != nil {
		return &session.HostError{Err: fmt.Errorf("remedy log: %w", err)}
	}
	if len(l.Entries) == 0 && s.Format == lang.FormatText {
		s.Print(fmt.Sprintf("no decisions (%s)\n", path))
		return nil
	}
	return s.Show(remedies.WrapLog(l.Entries))
}

// remedyMetrics returns metrics of the log of the report's subnet; none without a log. A log
// that cannot be read is among the failures of the report, because its values are unknown.
func remedyMetrics(s *session.Session, report *audit.Report) []audit.Metric {
	if s.StateDir == "" || report.Model == nil || !report.Subnet.IsKnown() {
		return nil
	}
	l, err := remedy.Current(remedy.LogFile(s.StateDir, report.Subnet), s.StateDir)
	switch {
	case err != nil:
		report.Fail("remedies", err)
		return nil
	case len(l.Entries) == 0:
		return nil
	}
	return l.Metrics(report.Model)
}
