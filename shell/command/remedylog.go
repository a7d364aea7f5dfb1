package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/remedies"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/fabric/remedy"
	"fabsh/shell/session"
)

// remedyLogOptions are the flags of remedy log.
type remedyLogOptions struct{ subnet, note, by string }

// remedyLogCommand shows the log of decisions.
func remedyLogCommand(p *session.Program) *cobra.Command {
	var o remedyLogOptions
	c := &cobra.Command{
		Use:   "log",
		Short: "Show what remedies decided, and what was repaired, when and why",
		Long: `Show what runs of fabsh remedy --out decided, the oldest first: what was planned or
declined, by which rule, and why; which plans were applied; which ports another has
enabled since; and which steps of repair were done ("fabsh remedy log add"). The log is the file remedies in the directory of --state, one for each
subnet. Its oldest entries are left out from 8 MB on; which ports are isolated stays
known.

Exit status: 0; 2 usage error; 3 fabric or host error, or the log is damaged.`,
		Example: `  fabsh remedy log
  fabsh remedy log add leaf-3/7 reseat
  fabsh -o jsonl remedy log`,
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			return onFabric(p, func(ctx context.Context, s *session.Session) error { return showRemedyLog(ctx, s, o.subnet) })
		},
	}
	c.PersistentFlags().AddFlagSet(params{subnetParam(&o.subnet)}.flags())
	c.AddCommand(remedyLogAddCommand(p, &o))
	return c
}

// showRemedyLog shows the log of the subnet.
func showRemedyLog(ctx context.Context, s *session.Session, given string) error {
	_, subnet, err := remedyLogOf(ctx, s, given)
	if err != nil {
		return err
	}
	path := remedy.LogFile(s.StateDir, subnet)
	l, err := remedy.Current(path, s.StateDir)
	if err != nil {
		return &session.HostError{Err: err}
	}
	if len(l.Entries) == 0 && s.Format == lang.FormatText {
		s.Print(fmt.Sprintf("no decisions (%s)\n", path))
		return nil
	}
	return s.Show(remedies.WrapLog(l.Entries))
}

// remedyLogAddCommand records a step of repair.
func remedyLogAddCommand(p *session.Program, o *remedyLogOptions) *cobra.Command {
	c := &cobra.Command{
		Use:   "add LINK STEP",
		Short: "Record that a step of repair of a link was done",
		Long: `Record in the log of the subnet that a step of repair of a link was done. LINK is an end
of it, NAME/PORT or GUID/PORT, or NAME/PORT - NAME/PORT. STEP is one of

  reset    the link was trained again, and its counters were cleared
  reseat   the cable and the modules were pulled out and plugged in
  clean    the fibre and the modules were cleaned
  swap     both modules, or a cable with fixed ends, were replaced
  replace  the fibre, the adapter or the switch was replaced
  support  the vendor was contacted

The remedy repair proposes the next step if the link stays bad, and the same one not
before a week has passed. The remedy restore enables a link that is isolated for a test,
and lists what to watch. If the subnet has a history, the step is added there too.`,
		Example: `  fabsh remedy log add leaf-3/7 reseat
  fabsh remedy log add leaf-3/7 - spine-1/3 swap --note "modules of both ends, spares 17 and 18"`,
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) < 2 {
				return errors.New("missing LINK or STEP; give a port and a step: fabsh remedy log add leaf-3/7 reseat")
			}
			_, err := remedy.ParseStep(words[len(words)-1])
			return err
		},
		RunE: func(_ *cobra.Command, words []string) error {
			return onFabric(p, func(ctx context.Context, s *session.Session) error { return addRemedyStep(ctx, s, *o, words) })
		},
		ValidArgsFunction: func(_ *cobra.Command, words []string, _ string) (list []string, _ cobra.ShellCompDirective) {
			if len(words) > 0 {
				for _, step := range remedy.Steps() {
					list = append(list, string(step))
				}
			}
			return list, cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&o.note, "note", "", "add the note `TEXT`")
	c.Flags().StringVar(&o.by, "by", "", "`WHO` did it (default: the user)")
	return c
}

// remedyLogOf returns the fabric and its subnet, whose log is below the directory of states.
func remedyLogOf(ctx context.Context, s *session.Session, given string) (*fabric.Fabric, fabric.Subnet, error) {
	if s.StateDir == "" {
		return nil, fabric.Subnet{}, errors.New("no directory for state; give --state DIR")
	}
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return nil, fabric.Subnet{}, err
	}
	subnet := fabric.SubnetOf(f, given)
	if err := audit.CheckSubnet(s.StateDir, subnet); err != nil {
		return nil, fabric.Subnet{}, &session.HostError{Err: err}
	}
	return f, subnet, nil
}

// addRemedyStep records the step that words name.
func addRemedyStep(ctx context.Context, s *session.Session, o remedyLogOptions, words []string) error {
	f, subnet, err := remedyLogOf(ctx, s, o.subnet)
	if err != nil {
		return err
	}
	if !subnet.IsKnown() {
		return errors.New("the log is kept by subnet, and this one is unknown: it has neither a prefix nor a subnet manager; give --subnet NAME")
	}
	step, err := remedy.ParseStep(words[len(words)-1])
	if err != nil {
		return err
	}
	link := strings.Join(words[:len(words)-1], " ")
	port, err := portOfLink(f, link)
	if err != nil {
		return err
	}
	if o.by == "" {
		o.by = session.Login()
	}
	if err := remedy.AddStep(remedy.LogFile(s.StateDir, subnet), port, step, o.by, o.note, s.Clock.Now()); err != nil {
		return &session.HostError{Err: err}
	}
	if err := audit.RecordSubnet(s.StateDir, subnet, f.Complete()); err != nil {
		return &session.HostError{Err: err}
	}
	addToHistory(ctx, s, historyFolder(s, subnet), func(c *history.Contributor) {
		place, outcome := remedy.PlaceOf(port), "done"
		if o.note != "" {
			outcome += ": " + o.note
		}
		c.Change("remedy", string(step)+" "+audit.OfPort(port).Name(), o.by, fabric.Clip(outcome), place.GUID, place.Num)
	})
	return nil
}

// portOfLink returns the port at an end of the link that a text names.
func portOfLink(f *fabric.Fabric, link string) (*fabric.Port, error) {
	subject, err := subjectIn(f, link)
	if err != nil {
		return nil, err
	}
	var port *fabric.Port
	if end := subject.Ends[0]; end.Num != audit.NoPort {
		port = remedy.Place{GUID: end.Node, Num: end.Num}.In(f)
	}
	if port == nil {
		return nil, fmt.Errorf("%q: not a port of this fabric; give NAME/PORT or GUID/PORT of an end of the link", link)
	}
	return port, nil
}
