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
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/cabling"
	"fabsh/fabric/diff"
	"fabsh/fabric/format"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
	"fabsh/shell/mcp"
	"fabsh/shell/prompt"
	"fabsh/shell/session"
)

// snapshotOptions are what is read beside the forwarding tables.
type snapshotOptions struct{ adaptive, all, force bool }

// snapshotCommand writes a fabric with its tables.
func snapshotCommand(p *session.Program) *cobra.Command {
	var o snapshotOptions
	c := &cobra.Command{
		Use:   "snapshot FILE [--adaptive] [--all] [--force]",
		Short: "Sweep the fabric, read its forwarding tables, and save all of it to a file",
		Long: `Sweep the fabric, read the forwarding tables of all switches, and write the result to
FILE, compressed and with a checksum; keys are left out. -F file:FILE and
load_fabric(FILE) read the fabric; load_routes(FILE) and verify --lfts FILE read the
tables. -F file:PATH converts a topology. --adaptive also saves the tables of adaptive
routing, which replace the forwarding tables where it is on: for 11,664 hosts about a
million datagrams. --all saves these too, and the input of audits: P_Key, SL2VL, VL
arbitration and multicast tables, counters, the records of the subnet administrator,
and what devices of NVIDIA report of the health of ports, virtual ports and routers.
For 11,664 hosts that takes millions of datagrams.

A FILE with more than twice as many nodes, of the same subnet, is not replaced without
--force: a link may be down, and most of the fabric out of reach.`,
		Example: `  fabsh snapshot monday.snap
  fabsh snapshot golden.snap --all
  fabsh -F file:monday.snap verify --lfts monday.snap`,
		Annotations: map[string]string{atPrompt: ""},
		Args: func(_ *cobra.Command, words []string) error {
			switch {
			case len(words) == 0:
				return errors.New("missing FILE")
			case len(words) > 1:
				return fmt.Errorf("unexpected argument %q; want one FILE", words[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			return onFabric(p, func(ctx context.Context, s *session.Session) error { return writeSnapshot(ctx, s, words[0], o) })
		},
	}
	c.Flags().BoolVar(&o.adaptive, "adaptive", false, "read the tables of adaptive routing too")
	c.Flags().BoolVar(&o.force, "force", false, "replace FILE even if it has many more nodes of the same subnet")
	c.Flags().BoolVar(&o.all, "all", false, "read all tables, counters and records too")
	return c
}

// writeSnapshot writes the fabric to a file, with the tables of its switches if they
// can be read.
func writeSnapshot(ctx context.Context, s *session.Session, path string, o snapshotOptions) error {
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	if err := mayReplace(ctx, s, path, f, o.force); err != nil {
		return err
	}
	tables := "no tables: a topology does not contain them"
	if s.Engine != nil || f.HasLFTs() {
		live, err := audits.ReadRoutes(ctx, s.Runtime, f, o.adaptive || o.all)
		if err != nil {
			return err
		}
		f = f.With(fabric.Reading{LFTs: rows(live), Adaptive: adaptiveOf(live)})
		tables = "the tables of " + plural.Count(len(live.Graph().Switches()), "switch", "switches")
	}
	unread := len(f.Problems())
	if o.all && s.Engine != nil {
		if f, err = audits.ReadAnswers(ctx, s.Runtime, f); err != nil {
			return err
		}
	}
	unread = len(f.Problems()) - unread
	if n := len(f.Answers()); n > 0 {
		tables += ", " + plural.Count(n, "answer", "answers")
	}
	if err := session.WriteNamed(ctx, path, func(w io.Writer) error { return format.WriteSnapshot(w, f) }); err != nil {
		return err
	}
	s.Print(fmt.Sprintf("%s: %s, %s\n", path, f, tables))
	if unread > 0 {
		return &lang.ExitError{Code: lang.StatusFabric}
	}
	return nil
}

// mayReplace returns an error if f must not replace the file at path: a fabric with more than twice as
// many nodes, of which f has some. What is not a fabric is replaced.
func mayReplace(ctx context.Context, s *session.Session, path string, f *fabric.Fabric, force bool) error {
	if force {
		return nil
	}
	file, err := format.OpenRegular(path) // a pipe has no earlier content
	if err != nil {
		return nil
	}
	defer file.Close()
	old, err := format.Load(file, path, s.Included(ctx))
	if err != nil || len(old.Nodes()) <= 2*len(f.Nodes()) {
		return nil
	}
	same := slices.ContainsFunc(f.Nodes(), func(n fabric.Node) bool { return len(old.NodeByGUID(n.GUID())) > 0 })
	if !same {
		return nil
	}
	return &session.HostError{Err: fmt.Errorf("%s: it has %d nodes of this subnet, and the fabric %s; not replaced; check the fabric, or give --force", path, len(old.Nodes()), plural.Count(len(f.Nodes()), "node", "nodes"))}
}

// adaptiveOf returns the adaptive routing of r by node; nil: it was not read.
func adaptiveOf(r *routes.Routes) []*adaptive.Switch {
	if !r.AdaptiveKnown() {
		return nil
	}
	g := r.Graph()
	list := make([]*adaptive.Switch, len(g.Fabric().Nodes()))
	for i, sw := range g.Switches() {
		list[sw.ID()] = r.Adaptive(i)
	}
	return list
}

// rows returns the tables of r by node. If some were not read, one that drops
// everything is taken for unread: a file must not state that a switch that did not
// answer forwards nothing.
func rows(r *routes.Routes) [][]byte {
	g := r.Graph()
	tables := make([][]byte, len(g.Fabric().Nodes()))
	for i, sw := range g.Switches() {
		row := r.Row(i)
		if len(r.ReadNotes) > 0 && !slices.ContainsFunc(row, func(port uint8) bool { return port != routes.NoPort }) {
			continue
		}
		tables[sw.ID()] = row
	}
	return tables
}

// diffCapability compares two fabrics. server serves the tool.
func diffCapability(p *session.Program, server func() *mcp.Server) *capability[*diffOptions] {
	return &capability[*diffOptions]{command: &cobra.Command{
		Use:   "diff OLD [NEW]",
		Short: "Compare two files or times of a fabric, or one with the live fabric",
		Long: `Compare a fabric with an earlier state: cables moved, exchanged, removed and added,
nodes replaced, removed and added, settings of ports and switches, forwarding
tables. The effects of a change are listed below it.

OLD and NEW are snapshots, or topologies of any format that -F file: reads, or the fabric
at a time of a history: history:[SUBNET|FILE]@TIME, as with -F. If OLD is a plan of cables, the output is that of "fabsh cabling OLD".
Without NEW the fabric of the session is compared with OLD. What one of the formats
does not contain is not compared, which is reported once. What one side could not
read is not a change, and makes the exit status 3.

Exit status: 0 no difference; 1 differences; 2 usage error, or a file cannot be read;
3 a side is incomplete, or the fabric or this host failed.`,
		Example: `  fabsh diff yesterday.snap today.snap
  fabsh -F ibsim diff yesterday.snap
  fabsh diff history:@yesterday history:@now
  fabsh -o csv diff plan.topo today.snap`,
		Annotations: map[string]string{atPrompt: ""},
		Args: func(_ *cobra.Command, words []string) error {
			switch {
			case len(words) == 0:
				return errors.New("missing files; give OLD and NEW, or OLD alone to compare the fabric with it")
			case len(words) > 2:
				return fmt.Errorf("unexpected argument %q; want OLD and NEW", words[2])
			case len(words) == 2 && p.Line == nil && p.Settings.Given("fabric"):
				return errors.New("-F and NEW exclude each other")
			}
			return nil
		},
	},
		options: fresh[diffOptions],
		line: func(o *diffOptions, _ *cobra.Command, words []string) error {
			o.files = words
			return nil
		},
		start: func(o *diffOptions, _ *cobra.Command, run func(context.Context, *session.Session) error) error {
			if len(o.files) == 2 {
				return diffFiles(p, o.files...)
			}
			return onFabric(p, run)
		},
		run: func(ctx context.Context, s *session.Session, o *diffOptions) (shown starlark.Value, err error) {
			if len(o.files) > 0 {
				if o.old, err = sideOf(ctx, p, s, o.files[0]); err != nil {
					return nil, err
				}
			}
			return compare(ctx, s, o)
		},
		tool: "diff",
		doc:  "Default of old: the first complete sweep of this server.",
		words: []mcp.Param{
			{Name: "old", Kind: mcp.KindText, Doc: "a snapshot or a topology, the earlier state" + theFile},
			{Name: "new", Kind: mcp.KindText, Doc: "the later state (default: the fabric, which is swept)" + theFile},
		},
		take: func(ctx context.Context, s *session.Session, a mcp.Arguments, o *diffOptions) (err error) {
			o.old = server().First()
			switch {
			case a.Has("old"):
				if o.old, err = sideOf(ctx, p, s, a.Text("old")); err != nil {
					return err
				}
			case a.Has("new"):
				return errors.New("new needs old, the earlier state")
			case o.old == nil:
				return errors.New("no call of this server has swept the whole fabric yet; call run with the script discover(), and diff later; or name a file as old")
			}
			if a.Has("new") {
				o.now, err = sideOf(ctx, p, s, a.Text("new"))
			}
			return err
		},
	}
}

// params has no element: all options are words.
func (o *diffOptions) params() params { return nil }

// diffFiles compares two files. It needs no fabric and no session.
func diffFiles(p *session.Program, paths ...string) error {
	if err := p.Settings.Check(); err != nil {
		return err
	}
	limit := p.StartTime()
	d := p.StartDeadline(limit)
	defer d.Stop()
	names, err := p.NodeNames(p.TimeContext(limit), "file")
	if err != nil {
		return session.Late(err)
	}
	return p.Run(func(ctx context.Context) error {
		timed, cancel := d.Within(ctx)
		defer cancel()
		var sides [2]*fabric.Fabric
		for i, path := range paths {
			var err error
			if sides[i], err = side(timed, p, path, names); err != nil {
				return err
			}
		}
		v, name, status := starlark.Value(nil), "diff", 0
		if isPlan(sides[0]) {
			r := cabling.Compare(sides[0], sides[1])
			v, name, status = shownCabling(r, topology.WrapCabling(r), p.Settings.Output(), p.Warn), "cabling", cablingStatus(r)
		} else {
			r, err := diff.Compare(ctx, sides[0], sides[1])
			if err != nil {
				return err
			}
			v, status = shownDiff(r, p.Settings.Output(), p.Warn), diffStatus(r)
		}
		text, err := renderTable(p.Settings, p.Console.Err(), v, name)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(p.Console.Out(), text); err != nil {
			return err
		}
		return session.Exit(status)
	})
}

// diffOptions are the sides of a comparison.
type diffOptions struct {
	files    []string       // of the command line: the earlier state, and the later one
	old, now *fabric.Fabric // now may be nil: the fabric of the session
}

// compare returns the differences of two fabrics. Tables, and what snapshot --all reads, are read
// if the earlier state has any.
func compare(ctx context.Context, s *session.Session, o *diffOptions) (shown starlark.Value, err error) {
	now := o.now
	if now == nil {
		if now, err = currentLike(ctx, s, o.old); err != nil {
			return nil, err
		}
	}
	if isPlan(o.old) {
		r := cabling.Compare(o.old, now)
		return shownCabling(r, topology.WrapCabling(r), s.Format, s.Warn), session.Exit(cablingStatus(r))
	}
	r, err := diff.Compare(ctx, o.old, now)
	if err != nil {
		return nil, err
	}
	return shownDiff(r, s.Format, s.Warn), session.Exit(diffStatus(r))
}

// currentLike returns the fabric of the session, with what an earlier one has besides the topology.
func currentLike(ctx context.Context, s *session.Session, old *fabric.Fabric) (*fabric.Fabric, error) {
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return nil, err
	}
	if old.HasLFTs() && !f.HasLFTs() && s.Engine != nil {
		live, err := audits.ReadRoutes(ctx, s.Runtime, f, old.HasAdaptive())
		if err != nil {
			return nil, err
		}
		f = f.With(fabric.Reading{LFTs: rows(live), Adaptive: adaptiveOf(live)})
	}
	if len(old.Answers()) > 0 && len(f.Answers()) == 0 && s.Engine != nil {
		return audits.ReadAnswers(ctx, s.Runtime, f)
	}
	return f, nil
}

// sideOf is side for a file that the session may read.
func sideOf(ctx context.Context, p *session.Program, s *session.Session, path string) (*fabric.Fabric, error) {
	timed, cancel := s.Runner.Deadline.Within(ctx)
	defer cancel()
	names, err := p.NodeNames(timed, "file")
	if err != nil {
		return nil, session.Late(err)
	}
	if past, ok := strings.CutPrefix(path, pastPrefix); ok {
		f, _, err := session.LoadHistory(timed, p.Settings.StateDir(), past, func(path string) error {
			file, err := s.Files.OpenNamed(timed, path)
			if err == nil {
				file.Close()
			}
			return err
		})
		return loaded(f, session.Late(err), names)
	}
	f, err := loadBaseline(timed, s, path)
	return loaded(f, session.Late(err), names)
}

// pastPrefix is before a history and a time, as with -F.
const pastPrefix = "history:"

// side reads a file, or the fabric at a time of a history, to be compared.
func side(ctx context.Context, p *session.Program, path string, names map[mad.GUID]string) (*fabric.Fabric, error) {
	if past, ok := strings.CutPrefix(path, pastPrefix); ok {
		f, _, err := session.LoadHistory(ctx, p.Settings.StateDir(), past, nil)
		return loaded(f, err, names)
	}
	f, err := session.LoadFile(ctx, path, nil)
	return loaded(f, err, names)
}

// loaded returns a side that was read, unless there is an error.
func loaded(f *fabric.Fabric, err error, names map[mad.GUID]string) (*fabric.Fabric, error) {
	switch {
	case errors.Is(err, lang.ErrInterrupted):
		return nil, err
	case err != nil:
		return nil, err
	}
	return f.Renamed(names), nil
}

// shownDiff returns r in the format of the output: as rows, the changes alone, and what
// was not compared goes to stderr.
func shownDiff(r *diff.Report, format lang.Format, warn func(format string, args ...any)) starlark.Value {
	d := topology.WrapDiff(r)
	switch format {
	case lang.FormatText, lang.FormatJSON:
		return d
	}
	for _, note := range r.NotCompared {
		warn("not compared: %s", note)
	}
	for _, note := range r.Unread {
		warn("unread: %s", note)
	}
	changes, _ := d.Attr("changes")
	return changes
}

// diffStatus returns the exit status of a comparison.
func diffStatus(r *diff.Report) int {
	switch {
	case !r.Complete():
		return lang.StatusFabric
	case !r.Same():
		return lang.StatusFindings
	}
	return lang.StatusClean
}

// pictureFormats are what graph draws, by the value of its -o.
var pictureFormats = []string{"svg", "dot"}

// singleNodes is the number of nodes up to which DOT has each on its own: Graphviz
// takes long for more, and the picture cannot be read.
const singleNodes = 500

// graphCommand draws a fabric. Its -o is not the session's, because the output is not a
// value.
func graphCommand(p *session.Program) *cobra.Command {
	var as, out string
	var reads bool
	c := &cobra.Command{
		Use:   "graph [NODE...] -o svg|dot [--out FILE]",
		Short: "Draw the fabric, or the surroundings of nodes, as SVG or for Graphviz",
		Long: `Draw the fabric: tiers of switches above the hosts, and the number of links between
them. Nodes with the same connections are one box.

svg: an image for a browser, with a matrix of links for each two tiers of switches
below; cells that differ from most of the matrix are highlighted. dot: for Graphviz;
above 500 nodes, nodes with the same connections are one node there too.

A NODE is a name, GUID, GID or LID. With NODEs, only their links and the nodes at the
other ends are drawn.`,
		Example: `  fabsh graph -o svg --out tiers.svg
  fabsh graph leaf-3 -o dot | dot -Tpdf > leaf-3.pdf
  fabsh -F file:monday.snap graph -o svg --out monday.svg`,
		Annotations: map[string]string{atPrompt: ""},
		Args:        cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			if p.Line == nil { // a shell: the fabric is not open
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return prompt.NodeWords(p.Line.Session), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, words []string) error {
			switch {
			case as == "":
				return errors.New("missing format; give -o svg or -o dot")
			case !slices.Contains(pictureFormats, as):
				return fmt.Errorf("-o %q: want svg or dot", as)
			case c.Flags().Changed("out") && out == "":
				return errors.New("--out: missing file name")
			}
			return onFabric(p, func(ctx context.Context, s *session.Session) error { return drawGraph(ctx, s, words, as, out, reads) })
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVarP(&as, "format", "o", "", "draw as `FORMAT`: svg or dot")
	c.Flags().StringVar(&out, "out", "", "write to `FILE`, completely or not at all, instead of standard output")
	c.Flags().BoolVar(&reads, "adaptive", false, "read the adaptive routing of switches, for a line below the picture; it is known of a snapshot that has it")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(pictureFormats, cobra.ShellCompDirectiveNoFileComp))
	c.MarkFlagFilename("out")
	return c
}

// drawGraph draws the fabric. The picture of an incomplete fabric is marked so.
func drawGraph(ctx context.Context, s *session.Session, words []string, as, out string, reads bool) error {
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	o := picture.LadderOptions{}
	for _, word := range words {
		n, err := nodeNamed(f, word)
		if err != nil {
			return err
		}
		if !slices.Contains(o.Around, n) {
			o.Around = append(o.Around, n)
		}
	}
	if as == "dot" || len(o.Around) > 0 {
		o.Single = singleNodes
	}
	ladder, err := picture.NewLadder(ctx, f, o)
	if err != nil {
		return err
	}
	if reads || f.HasAdaptive() {
		tables, err := audits.ReadRoutes(ctx, s.Runtime, f, true)
		if err != nil {
			return fmt.Errorf("--adaptive: %w", err)
		}
		text := routes.DescribeAdaptive(tables)
		if text == "" {
			text = "off, or unknown"
		}
		ladder.Notes = append(ladder.Notes, "adaptive routing: "+text)
	}
	draw := ladder.SVG
	if as == "dot" {
		draw = ladder.DOT
	}
	if out == "" {
		return draw(s.Console.Out())
	}
	if err := session.WriteNamed(ctx, out, draw); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// nodeNamed returns the node that a word of the command line names.
func nodeNamed(f *fabric.Fabric, word string) (*fabric.Node, error) {
	var v starlark.Value = starlark.String(word)
	if lid, err := strconv.ParseUint(word, 10, 16); err == nil && len(f.NodeByName(word)) == 0 {
		v = starlark.MakeUint64(lid)
	}
	t := topology.FindValue(f, v)
	return t.Node, t.Err
}
