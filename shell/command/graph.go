package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/picture"
	"fabsh/fabric/routing/routes"
	"fabsh/shell/prompt"
	"fabsh/shell/session"
)

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
				return errors.New("graph: missing format; give -o svg or -o dot")
			case !slices.Contains(pictureFormats, as):
				return fmt.Errorf("graph: -o %q: want svg or dot", as)
			case c.Flags().Changed("out") && out == "":
				return errors.New("graph: --out: missing file name")
			}
			return onFabric(p, "graph", func(ctx context.Context, s *session.Session) error { return drawGraph(ctx, s, words, as, out, reads) })
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
	if reads || f.HasAdaptive() {
		tables, err := audits.ReadRoutes(ctx, s.Runtime, f, true)
		if err != nil {
			return fmt.Errorf("graph: --adaptive: %w", err)
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
		return fmt.Errorf("graph: --out: %w", err)
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
