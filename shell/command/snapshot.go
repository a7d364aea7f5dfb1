package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/read"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/picture"
	"fabsh/fabric/routing/routes"
	"fabsh/shell/session"
)

// snapshotCommand writes a fabric with its tables.
func snapshotCommand(p *session.Program) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "snapshot FILE [--all]",
		Short: "Sweep the fabric, read its forwarding tables, and keep all in a file",
		Long: `Sweep the fabric, read the forwarding tables of all switches, and write what was
found to FILE, compressed and with a checksum; keys are left out. -F file:FILE
and load_fabric(FILE) read the fabric, load_routes(FILE) and verify --lfts FILE
the tables. With -F file:PATH a topology is converted. --all reads what audits
look at too: P_Key, SL2VL, VL arbitration and multicast tables, counters, and
the records of the subnet administrator. Of 11,664 hosts that takes millions of
datagrams.`,
		Example: `  fabsh snapshot monday.snap
  fabsh snapshot golden.snap --all
  fabsh -F file:monday.snap verify --lfts monday.snap`,
		Args: func(_ *cobra.Command, words []string) error {
			switch {
			case len(words) == 0:
				return errors.New("snapshot: to which file?")
			case len(words) > 1:
				return fmt.Errorf("snapshot: takes one FILE, and here is also %q", words[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, words []string) error {
			return onFabric(p, "snapshot", func(ctx context.Context, s *session.Session) error { return writeSnapshot(ctx, s, words[0], all) })
		},
	}
	c.Flags().BoolVar(&all, "all", false, "read all tables, counters and records too")
	c.SetFlagErrorFunc(FlagError)
	return c
}

// writeSnapshot writes the fabric to a file, and the tables of its switches, if there
// are any to be asked.
func writeSnapshot(ctx context.Context, s *session.Session, path string, all bool) error {
	f, err := read.Fabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	tables := "no tables: they are not in a topology"
	if s.Engine != nil || f.HasLFTs() {
		live, err := read.Routes(ctx, s.Runtime, f)
		if err != nil {
			return err
		}
		f = f.With(fabric.Reading{LFTs: rows(live)})
		tables = "the tables of " + fabric.Plural(len(live.Graph().Switches()), "switch", "switches")
	}
	unread := len(f.Problems())
	if all && s.Engine != nil {
		if f, err = read.Answers(ctx, s.Runtime, f); err != nil {
			return err
		}
	}
	unread = len(f.Problems()) - unread
	if n := len(f.Answers()); n > 0 {
		tables += ", " + fabric.Plural(n, "answer", "answers")
	}
	if err := session.WriteNamed(ctx, path, func(w io.Writer) error { return format.WriteSnapshot(w, f) }); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	s.Print(fmt.Sprintf("%s: %s, %s\n", path, f, tables))
	if unread > 0 {
		return &lang.ExitError{Code: lang.StatusFabric}
	}
	return nil
}

// rows are the tables of r by node. Where some were not read, one that drops all is
// taken for such a one: a file must not say that a silent switch forwards nothing.
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

// pictureFormats are what graph draws, by the value of its -o.
var pictureFormats = []string{"svg", "dot"}

// singleNodes is up to how many nodes DOT has each for itself: Graphviz takes long for
// more, and nobody can read it.
const singleNodes = 500

// graphCommand draws a fabric. Its -o is not the session's, for what it writes is no value.
func graphCommand(p *session.Program) *cobra.Command {
	var as, out string
	c := &cobra.Command{
		Use:   "graph [NODE...] -o svg|dot [--out FILE]",
		Short: "Draw the fabric, or what is around nodes, as SVG or for Graphviz",
		Long: `Draw the fabric: tiers of switches above the hosts, and how many links there are
between them. Nodes that are connected alike are one box.

svg: an image that a browser shows, with a matrix of links for each two tiers of
switches below; what differs from most of a matrix stands out. dot: for Graphviz;
above 500 nodes what is connected alike is one node there too.

A NODE is a name, GUID, GID or LID. With any, their links alone are drawn, and who
is at the other end.`,
		Example: `  fabsh graph -o svg --out tiers.svg
  fabsh graph leaf-3 -o dot | dot -Tpdf > leaf-3.pdf
  fabsh -F file:monday.snap graph -o svg --out monday.svg`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, words []string) error {
			switch {
			case as == "":
				return errors.New("graph: as what? -o svg or -o dot")
			case !slices.Contains(pictureFormats, as):
				return fmt.Errorf("graph: -o %q: want svg or dot", as)
			case c.Flags().Changed("out") && out == "":
				return errors.New("graph: --out needs the name of a file")
			}
			return onFabric(p, "graph", func(ctx context.Context, s *session.Session) error { return drawGraph(ctx, s, words, as, out) })
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVarP(&as, "format", "o", "", "draw as `FORMAT`: svg or dot")
	c.Flags().StringVar(&out, "out", "", "write to `FILE`, whole or not at all, instead of the output")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(pictureFormats, cobra.ShellCompDirectiveNoFileComp))
	c.MarkFlagFilename("out")
	c.SetFlagErrorFunc(FlagError)
	return c
}

// drawGraph draws the fabric. Of one that is incomplete the picture says so.
func drawGraph(ctx context.Context, s *session.Session, words []string, as, out string) error {
	f, err := read.Fabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	o := picture.Options{}
	for _, word := range words {
		n, err := nodeNamed(f, word)
		if err != nil {
			return fmt.Errorf("graph: %w", err)
		}
		if !slices.Contains(o.Around, n) {
			o.Around = append(o.Around, n)
		}
	}
	if as == "dot" || len(o.Around) > 0 {
		o.Single = singleNodes
	}
	ladder, err := picture.New(ctx, f, o)
	if err != nil {
		return err
	}
	draw := ladder.SVG
	if as == "dot" {
		draw = ladder.DOT
	}
	if out == "" {
		return draw(s.Console.Out())
	}
	if err := session.WriteNamed(ctx, out, draw); err != nil {
		return fmt.Errorf("graph: --out: %w", err)
	}
	return nil
}

// nodeNamed is the node that a word of the command line means.
func nodeNamed(f *fabric.Fabric, word string) (*fabric.Node, error) {
	var v starlark.Value = starlark.String(word)
	if lid, err := strconv.ParseUint(word, 10, 16); err == nil && len(f.NodeByName(word)) == 0 {
		v = starlark.MakeUint64(lid)
	}
	t := topology.FindValue(f, v)
	return t.Node, t.Err
}
