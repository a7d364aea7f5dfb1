package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

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

// topologyCapability writes topologies for schedulers.
func topologyCapability(p *session.Program) *capability[*topologyOptions] {
	return &capability[*topologyOptions]{command: &cobra.Command{
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

--class sets the purpose of an adapter, or of all adapters at a switch: only compute nodes
(cn) are written; others are io, an, gateway, sm. By default "*storage*" is io, and so are
login and management hosts: login*, *-login*, mgmt*, *-mgmt*, management*, admin*,
headnode*, *ufm*. A leaf that serves hosts of several groups, which have more adapters
elsewhere, is inferred to be one of storage or management; if hosts have as many adapters
there as elsewhere, its role is ambiguous: give the class.

Adapters whose names identify no host, such as "localhost mlx5_0", are left out and listed.
Hosts with the same name are an error. HOST may have upper case and a domain: case and
domain are ignored if one host fits.

--domains makes a group of the hosts of each NVLink domain, such as a rack of GB200 NVL72:
the blocks of Slurm, and a level below the leaves for the others. Without it, hosts of one
leaf, or of the leaves that serve the same hosts, are assumed to be one domain where a kind
writes blocks. "nvidia-smi -q" on each host shows its domain: ClusterUUID and CliqueId.`,
		Example: `  fabsh topology slurm --class 'storage-leaf*=io' --out /etc/slurm/topology.yaml
  fabsh topology slurm-conf --baseline yesterday.snap --diff /etc/slurm/topology.conf
  fabsh -F file:cluster.net topology kueue > kueue.yaml
  fabsh -F file:cluster.net topology slurm-node node-0007
  pdsh -w 'node[01-18]' nvidia-smi -q > domains; fabsh topology slurm --plugin block --domains domains
  fabsh topology hostfile --slots 8 > hosts`,
		Annotations:       map[string]string{atPrompt: ""},
		ValidArgsFunction: completeTopology,
	},
		options: fresh[topologyOptions],
		line:    (*topologyOptions).take, scripts: script.Topologies, missing: "kind",
		run: func(ctx context.Context, s *session.Session, o *topologyOptions) (starlark.Value, error) {
			return nil, writeTopology(ctx, p, s, *o)
		},
		tool: "topology",
		doc:  "The value is the text of the file.",
		words: []mcp.Param{
			{Name: "kind", Kind: mcp.KindText, Required: true, Doc: "the kind of file: " + docsOf(script.Topologies) + "; or a .star file below a directory of -I"},
			optionsParam("the kind, such as {\"slots\": 8} of hostfile"),
		},
		take: func(ctx context.Context, s *session.Session, a mcp.Arguments, o *topologyOptions) (err error) {
			o.kind, o.args, err = clientScript(ctx, s, a, script.Topologies, a.Text("kind"), script.TopologyEntry)
			return err
		},
		isText: func(a mcp.Arguments) bool { return a.Text("diff") == "" },
	}
}

// topologyOptions are the options behind topology on the command line.
type topologyOptions struct {
	kind string   // a .star file, or the name of a shipped one
	args []string // the kind's options

	rules               []graph.Rule // of --class
	levels              int
	baseline, out, diff string
	domains, label      string // NVLink domains
	skip                bool
}

// params declares the parameters.
func (o *topologyOptions) params() params {
	return params{
		{name: "class", to: (*classRules)(&o.rules), doc: "purpose of adapters by name (with * and ?) or GUID, or by that of their switch, as `NAME=CLASS` (repeatable)"},
		{name: "baseline", to: &o.baseline, file: true, doc: "keep parts that are absent now in the place that they have in `FILE`, a snapshot or topology"},
		{name: "levels", to: &o.levels, doc: "at most `N` levels of groups below the root; with 1 the network need not be a tree"},
		{name: "domains", to: &o.domains, file: true, doc: "group the hosts of each NVLink domain, below their leaves: `FILE` has lines HOSTS ClusterUUID.CliqueID, nvidia-smi -q or fabsh audit host of the hosts (HOST: LINE, as pdsh and clush write it), or kubectl get nodes -o json"},
		{name: "domain-label", to: &o.label, doc: "with --domains: the `LABEL` of nodes of Kubernetes that has the domain (default: " + hosts.DomainLabel + ")"},
		{name: "skip-misplaced", to: &o.skip, doc: "leave out the few hosts that are attached to spines"},
		{name: "out", to: &o.out, doc: "write to `FILE`, completely or not at all, instead of standard output", withheld: writesFiles},
		{name: "diff", to: &o.diff, file: true, doc: "compare with `FILE`, such as the one in use; show differences, and exit with 1 if there are any"},
		{name: "list", to: new(bool), doc: "list the kinds", withheld: listsNames},
	}
}

// take sets what the command line has besides the flags of the command.
func (o *topologyOptions) take(c *cobra.Command, words []string) error {
	if len(words) > 0 {
		o.kind, o.args = words[0], scriptWords(c, words)
	}
	if o.label != "" && o.domains == "" {
		return errors.New("--domain-label needs --domains")
	}
	return nil
}

// classRules is --class, which may be repeated.
type classRules []graph.Rule

func (l *classRules) Set(text string) error {
	rule, err := classRule(text)
	leaf := rule
	leaf.Leaf = true
	*l = append(*l, rule, leaf)
	return err
}

func (l *classRules) Type() string   { return "textArray" }
func (l *classRules) String() string { return "" }

// classRule reads NAME=CLASS, where NAME may be a GUID, and contain a =.
func classRule(text string) (graph.Rule, error) {
	i := strings.LastIndexByte(text, '=')
	if i <= 0 {
		return graph.Rule{}, errors.New("want NAME=CLASS, such as 'storage*=io'")
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
	kind, err := program.LoadTopology(ctx, s.Interpreter, o.kind, o.args)
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
	var domains hosts.Domains
	if o.domains != "" {
		data, err := s.Files.ReadNamed(ctx, o.domains)
		if err == nil {
			domains, err = hosts.ReadDomains(data, cmp.Or(o.label, hosts.DomainLabel))
		}
		if err != nil {
			return fmt.Errorf("--domains: %s: %w", o.domains, err)
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
		return &session.HostError{Err: err}
	}
	if domains != nil {
		if err := g.SplitByDomain(domains); err != nil {
			return fmt.Errorf("--domains: %s: %w", o.domains, err)
		}
	}
	for _, note := range g.Notes {
		s.Warn("topology: %s", note)
	}
	text, now, err := kind.Write(ctx, g)
	if err != nil {
		return err
	}
	if o.out != "" && o.baseline == "" && !f.Complete() {
		return &session.HostError{Err: fmt.Errorf("%s: not written: hosts may be missing (%s); --baseline FILE keeps absent ones", o.out, f.Missing())}
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

// completeTopology proposes kinds.
func completeTopology(_ *cobra.Command, words []string, typed string) (list []string, _ cobra.ShellCompDirective) {
	if len(words) == 0 {
		list = docWords(script.Topologies)
	}
	return check.Matching(list, typed), cobra.ShellCompDirectiveDefault
}
