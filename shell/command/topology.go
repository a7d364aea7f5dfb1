package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/audits"
	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	values "fabsh/builtins/routing"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/hosts"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// topologyCommand writes topologies for schedulers.
func topologyCommand(p *session.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "topology KIND | FILE.star [HOST] [options of the kind]",
		Short: "Write the topology for a scheduler: Slurm, topograph, Kueue, Volcano, nfd, MPI",
		Long: `Write the topology of the fabric for a job scheduler.

A kind is the name of a shipped script (--list), or a .star file that defines
topology(groups, *, ...) and read(text): "fabsh topology KIND --help" lists its
options. Some kinds write the place of one HOST. Hosts are grouped by leaf; hosts with
an adapter for each rail are grouped by the leaves that serve the same hosts. Higher
groups follow the number of tiers that packets climb. Adapters are named "HOST
ADAPTER", as in "node-7 HCA-1". The text is read back and compared before it is shown
or replaces a file.

--class sets the purpose of an adapter: only compute nodes (cn) are written; others are
io, an, gateway, sm. By default "*storage*" is io, and so are login and management
hosts: login*, *-login*, mgmt*, *-mgmt*, management*, admin*, headnode*, *ufm*.`,
		Example: `  fabsh topology slurm --class 'storage*=io' --out /etc/slurm/topology.yaml
  fabsh topology slurm-conf --baseline yesterday.snap --diff /etc/slurm/topology.conf
  fabsh -F file:cluster.net topology kueue > kueue.yaml
  fabsh -F file:cluster.net topology slurm-node node-0007
  fabsh topology hostfile --slots 8 > hosts`,
		Annotations:        map[string]string{atPrompt: ""},
		DisableFlagParsing: true, // session flags are distinguishable only when the kind is known
		ValidArgsFunction:  completeTopology,
		RunE: func(c *cobra.Command, words []string) error {
			words, err := takeTopology(p, words)
			if err != nil {
				return err
			}
			o, err := parseTopology(words)
			switch {
			case err != nil:
				return fmt.Errorf("topology: %w", err)
			case o.list:
				return writeDocs(p.Console.Out(), script.Topologies.Shipped())
			case o.kind == "" && o.help:
				return c.Help()
			case o.kind == "":
				return errors.New(`topology: missing kind; give a name ("fabsh topology --list" lists the shipped ones) or a .star file`)
			case strings.HasSuffix(o.kind, ".star"):
				if err := CheckScript(c, o.kind); err != nil {
					return err
				}
			default:
				if _, err := script.Topologies.Locate(o.kind); err != nil {
					return fmt.Errorf("topology: %w", err)
				}
			}
			run := func(ctx context.Context, s *session.Session) error { return writeTopology(ctx, p, s, o) }
			if o.help {
				return withoutFabric(p, "topology", run)
			}
			return onFabric(p, "topology", run)
		},
	}
	return withFlags(c, new(topologyOptions).flags())
}

// topologyOptions are the options behind topology on the command line.
type topologyOptions struct {
	kind string   // a .star file, or the name of a shipped one
	args []string // the kind's options

	rules               []graph.Rule // of --class
	levels              int
	baseline, out, diff string
	list, help, skip    bool
}

// flags declares the command's own flags, and sets o to their defaults.
func (o *topologyOptions) flags() *pflag.FlagSet {
	f := newFlags("topology")
	f.Func("class", "purpose of adapters by name (with * and ?) or GUID, as `NAME=CLASS` (repeatable)", func(text string) error {
		rule, err := classRule(text)
		o.rules = append(o.rules, rule)
		return err
	})
	f.StringVar(&o.baseline, "baseline", "", "keep parts that are absent now in the place that they have in `FILE`, a snapshot or topology")
	f.Func("levels", "at most `N` levels of groups below the root; with 1 the network need not be a tree", func(text string) (err error) {
		if o.levels, err = strconv.Atoi(text); err != nil || o.levels < 1 {
			return fmt.Errorf("want a number from 1, got %q", text)
		}
		return nil
	})
	f.BoolVar(&o.skip, "skip-misplaced", false, "leave out the few hosts that are attached to spines")
	f.StringVar(&o.out, "out", "", "write to `FILE`, completely or not at all, instead of standard output")
	f.StringVar(&o.diff, "diff", "", "compare with `FILE`, such as the one in use; show differences, and exit with 1 if there are any")
	f.BoolVar(&o.list, "list", false, "list the kinds")
	return f
}

// takeTopology takes the session flags out of the words behind topology: those that
// neither the command nor the kind has.
func takeTopology(p *session.Program, words []string) ([]string, error) {
	own := new(topologyOptions).flags()
	var options []string
	if o, err := parseTopology(withoutSession(p.Settings, words, own)); err == nil && o.kind != "" {
		options = topologyKindOptions(o.kind)
	}
	return extractSession(p.Settings, words, own, func(flag string) bool { return slices.Contains(options, flag) })
}

// topologyKindOptions are the options of a kind.
func topologyKindOptions(name string) []string {
	for _, d := range script.Topologies.Shipped() {
		if d.Name == name {
			return d.Options
		}
	}
	return script.ProgramOf(name, sourceAt(name), script.TopologyEntry).Options
}

// parseTopology separates the command's own flags, which may stand anywhere, from the
// kind's.
func parseTopology(words []string) (o topologyOptions, err error) {
	words, err = extractOwn(words, finder(o.flags()), invalidValue)
	if err != nil {
		return o, err
	}
	for _, w := range words {
		switch isFlag := strings.HasPrefix(w, "-"); {
		case w == "-h" || w == "--help":
			o.help = true
			o.args = append(o.args, w)
		case o.kind != "" || isFlag && strings.Contains(w, "="):
			o.args = append(o.args, w)
		case isFlag: // is the next word its value, or the kind?
			return o, fmt.Errorf("%s: ambiguous before the kind; write it after the kind", w)
		default:
			o.kind = w
		}
	}
	return o, nil
}

// classRule reads NAME=CLASS, where NAME may be a GUID, and contain a =.
func classRule(text string) (graph.Rule, error) {
	i := strings.LastIndexByte(text, '=')
	if i <= 0 {
		return graph.Rule{}, fmt.Errorf("want NAME=CLASS, such as 'storage*=io', got %q", text)
	}
	class, err := graph.ParseClass(text[i+1:])
	if err == nil && class&graph.ClassSwitch != 0 {
		err = errors.New("a switch has no class: only adapters do")
	}
	r := graph.Rule{Class: class, Name: text[:i], Also: class == graph.ClassSM}
	if hex, ok := strings.CutPrefix(strings.ToLower(r.Name), "0x"); ok {
		if n, bad := strconv.ParseUint(hex, 16, 64); bad == nil {
			r.Name, r.GUIDs = "", []mad.GUID{mad.GUID(n)}
		}
	}
	return r, err
}

// writeTopology makes the text of a kind, compares it with a file and writes it.
func writeTopology(ctx context.Context, p *session.Program, s *session.Session, o topologyOptions) error {
	kind, err := program.LoadTopology(ctx, s.Interpreter, o.kind, o.args, session.FlagNames(new(topologyOptions).flags()))
	if err != nil {
		return err
	}
	if kind.Help != "" {
		_, err := io.WriteString(s.Console.Out(), kind.Help)
		return err
	}
	// The file in use is read first: if it cannot be read, no request is sent in vain.
	var inUse *values.HostsFile
	if o.diff != "" {
		data, err := s.Files.ReadNamed(ctx, o.diff)
		if err != nil {
			return fmt.Errorf("--diff: %w", err)
		}
		if inUse, err = kind.Read(ctx, string(data)); err != nil {
			return fmt.Errorf("--diff: %s: %w", o.diff, err)
		}
	}
	var baseline *fabric.Fabric
	if o.baseline != "" {
		timed, cancel := s.Runner.Deadline.Within(ctx)
		defer cancel()
		names, err := p.NodeNames(timed, "file")
		if err != nil {
			return session.Late(err)
		}
		if baseline, err = loadBaseline(ctx, s, o.baseline); err != nil {
			return fmt.Errorf("--baseline: %w", err)
		}
		baseline = baseline.Renamed(names)
	}
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	g, err := hosts.Find(f, hosts.GroupOptions{Rules: slices.Concat(o.rules, hosts.ServiceRules(), graph.DefaultRules()), Baseline: baseline, Levels: o.levels, DNS: kind.DNS, SkipMisplaced: o.skip})
	if err != nil {
		return blameFabric(s, fmt.Errorf("topology: %w", err))
	}
	for _, note := range g.Notes {
		s.Warn("topology: %s", note)
	}
	text, now, err := kind.Write(ctx, g)
	if err != nil {
		return err
	}
	if o.out != "" && o.baseline == "" && !f.Complete() {
		return blameFabric(s, fmt.Errorf("topology: %s: not written: hosts may be missing (%s); --baseline FILE keeps absent ones", o.out, f.Missing()))
	}
	if o.out != "" {
		if err := session.WriteNamed(ctx, o.out, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	switch {
	case inUse != nil:
		d := values.HostsDiffOf(inUse, now)
		if err := s.Show(d); err != nil {
			return err
		}
		if !d.Same {
			return session.Exit(lang.StatusFindings)
		}
	case o.out == "":
		_, err := io.WriteString(s.Console.Out(), text)
		return err
	}
	return nil
}

// blameFabric turns an error into one of the fabric, for the exit status.
func blameFabric(s *session.Session, err error) error {
	s.Console.Fail(&session.HostError{Err: err})
	return &lang.ExitError{Code: lang.StatusFabric}
}

// completeTopology proposes kinds, then their options, and the command's own flags.
func completeTopology(_ *cobra.Command, words []string, typed string) ([]string, cobra.ShellCompDirective) {
	var names []string
	switch o, err := parseTopology(words); {
	case err != nil:
	case o.kind != "":
		names = topologyKindOptions(o.kind)
	default:
		for _, d := range script.Topologies.Shipped() {
			names = append(names, d.Name+"\t"+d.Doc)
		}
	}
	return check.Matching(append(names, session.FlagNames(new(topologyOptions).flags())...), typed), cobra.ShellCompDirectiveDefault
}

// topologyTool returns the file of a scheduler.
func topologyTool(p *session.Program) *agentTool {
	offered := []string{"class", "baseline", "levels", "skip-misplaced", "diff"}
	return &agentTool{
		name: "topology", command: "topology",
		doc: "The value is the text of the file.",
		params: []mcp.Param{
			{Name: "kind", Kind: mcp.KindText, Required: true, Doc: "the kind of file: " + docsOf(script.Topologies) + "; or a .star file below a directory of -I"},
			optionsParam("the kind, such as {\"slots\": 8} of hostfile"),
		},
		flags: new(topologyOptions).flags(), offered: offered,
		withheld: map[string]string{"out": writesFiles, "list": listsNames},
		isText:   func(a mcp.Arguments) bool { return a.Text("diff") == "" },
		run: func(ctx context.Context, s *session.Session, a mcp.Arguments) error {
			var o topologyOptions
			if err := a.SetFlags(o.flags(), offered...); err != nil {
				return fmt.Errorf("topology: %w", err)
			}
			names, err := clientScripts(ctx, s, script.Topologies, []string{a.Text("kind")})
			if err != nil {
				return err
			}
			o.kind = names[0]
			if o.args, err = a.Words("options", topologyKindOptions(o.kind)); err != nil {
				return fmt.Errorf("topology %s: %w", a.Text("kind"), err)
			}
			return writeTopology(ctx, p, s, o)
		},
	}
}
