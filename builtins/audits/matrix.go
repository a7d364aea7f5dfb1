package audits

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	values "fabsh/builtins/routing"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/traffic"
)

// MatrixMethod is fabric.matrix().
var MatrixMethod = lang.Builtin{
	Name:    "matrix",
	Returns: "matrix",
	Params: []lang.Param{
		{Name: "rows", Kind: kindTextOrValue, Default: `"leaf"`, Doc: `a tier: "host", "leaf" (switches with hosts), "spine" (next to these), "core", or its number, from 0 (the hosts) up; or a list of nodes`},
		{Name: "columns", Kind: kindTextOrValue, Default: `"spine"`, Doc: "the same"},
		{Name: "value", Kind: kindTextOrValue, Default: `"links"`, Keyword: true, Doc: `value of a cell: "links", their number; "lids", the number of LIDs of CAs and routers whose packets leave by the port; "use", data sent, in % of the link's rate; "wait", PortXmitWait in % of the time of waiting and sending; "errors", per second; "ber", the bit error rate; or a function that takes a port and returns a number or None`},
		{Name: "over", Kind: lang.KindDuration, Default: `"10s"`, Keyword: true, Doc: "for use, wait, errors and ber: the time between the two reads of the counters, 2s or more"},
		{Name: "far", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "use the ports of the columns, at the other ends of the links"},
	},
	Doc: `Returns a matrix of the links between two tiers, or two lists of nodes: one value for each pair of nodes.
A cell is the highest value of its links. Unknown values are None. Pairs without links are None too, or 0 with "links". The matrix is split into the parts that these links join, such as pods; equal parts are drawn once. A tier is a distance from the hosts. show() draws it: as marks in colour on a terminal that supports it, else in figures or marks.
"lids" reads the forwarding tables of all switches, or uses those of the file; use, wait, errors and ber read counters twice.`,
	Example: `
> m = discover().matrix("leaf", "spine")
> m.highest, len(m.rows), m.parts[0].cells[0]
(1.0, 8, [1.0, 1.0, 1.0, 1.0])
> discover().matrix("leaf", "spine", value=lambda port: port.lid).parts[0].cells[1]
[2.0, 2.0, 2.0, 2.0]
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Rows, Columns, Value starlark.Value
		Over                 time.Duration
		Far                  bool
	}) (starlark.Value, error) {
		f := c.Recv.(*topology.Fabric).Fabric
		m := &Matrix{far: a.Far}
		var err error
		if m.rows, m.from, err = tierNodes(c, f, "rows", a.Rows); err != nil {
			return nil, err
		}
		if m.columns, m.to, err = tierNodes(c, f, "columns", a.Columns); err != nil {
			return nil, err
		}
		var parts []*picture.Matrix
		if parts, m.alone, err = picture.Parts(f, m.rows, m.columns); err != nil {
			return nil, lang.Errorf("%w", err)
		}
		if m.figure, err = figureOf(c, f, a.Value, a.Over, parts, a.Far); err != nil {
			return nil, err
		}
		m.fill(parts)
		return m, nil
	}),
}

// kindTextOrValue is the kind of a parameter that takes a word or other values.
var kindTextOrValue = &lang.Kind{
	Convert: func(v starlark.Value) (any, error) { return v, nil },
	Type:    reflect.TypeFor[starlark.Value](),
	Default: func(text string) any {
		word, ok := lang.TextDefault(text).(string)
		if !ok {
			return nil
		}
		return starlark.Value(starlark.String(word))
	},
}

// tierNodes returns the nodes of a parameter, and their name.
func tierNodes(c *lang.Call, f *fabric.Fabric, param string, v starlark.Value) (nodes []*fabric.Node, name string, err error) {
	tier := -1
	switch v := v.(type) {
	case starlark.String:
		if tier = slices.Index(picture.TierWords, string(v)); tier < 0 {
			return nil, "", lang.ParamError(param, "unknown tier %q%s; supported: %s, a number, or a list of nodes", string(v), fabric.DidYouMean(string(v), picture.TierWords), strings.Join(picture.TierWords, ", "))
		}
	case starlark.Int:
		if tier, err = starlark.AsInt32(v); err != nil || tier < 0 {
			return nil, "", lang.ParamError(param, "got %s, want a tier from 0 (the hosts) up", v)
		}
	case starlark.Iterable:
		return matrixNodes(f, param, v)
	default:
		return nil, "", lang.ParamError(param, "got %s, want a tier or a list of nodes", v.Type())
	}
	var tiers [][]*fabric.Node
	if err := c.Block(func(ctx context.Context) (err error) {
		tiers, err = picture.Tiers(ctx, f)
		return err
	}); err != nil {
		return nil, "", err
	}
	if tier >= len(tiers) || len(tiers[tier]) == 0 {
		return nil, "", lang.ParamError(param, "tier %d does not exist: the fabric has %s of switches above the hosts; give a list of nodes", tier, plural.Count(max(0, len(tiers)-1), "tier", "tiers"))
	}
	if tier < len(picture.TierWords) {
		return tiers[tier], picture.TierWords[tier], nil
	}
	return tiers[tier], fmt.Sprintf("tier %d", tier), nil
}

// matrixNodes returns the nodes of a list, each once.
func matrixNodes(f *fabric.Fabric, param string, list starlark.Iterable) (nodes []*fabric.Node, name string, err error) {
	seen := map[int]bool{}
	for v := range starlark.Elements(list) {
		n, ok := v.(topology.Node)
		switch {
		case !ok:
			return nil, "", lang.ParamError(param, "an element is %s, want node", v.Type())
		case n.Node.Fabric() != f:
			return nil, "", lang.ParamError(param, "%q is a node of another snapshot", n.Node.Name())
		case !seen[n.Node.ID()]:
			seen[n.Node.ID()] = true
			nodes = append(nodes, n.Node)
		}
	}
	return nodes, "nodes", nil
}

// Matrix is the value `matrix`.
type Matrix struct {
	rows, columns   []*fabric.Node
	from, to        string // names of the two tiers
	far             bool
	figure          figure
	parts           []matrixPart
	alone           int // nodes without a link to the others
	lowest, highest float64
	known, unknown  int            // cells
	list            *starlark.List // of parts, as values; nil: not made yet
}

// matrixPart has the nodes that some of the links join, with their figures.
type matrixPart struct {
	*picture.Matrix
	figures [][]picture.Figure
}

// fill computes the figures of all parts.
func (m *Matrix) fill(parts []*picture.Matrix) {
	for _, p := range parts {
		q := matrixPart{p, p.Figures(m.figure.value, m.far)}
		for r := range q.figures {
			for c := range q.figures[r] {
				f := &q.figures[r][c]
				if m.figure.count {
					f.Value, f.Known, f.Unknown = float64(len(p.Links[r][c])), 1, 0
				}
				switch {
				case f.Known > 0 && m.known == 0:
					m.lowest, m.highest = f.Value, f.Value
					fallthrough
				case f.Known > 0:
					m.known++
					m.lowest, m.highest = min(m.lowest, f.Value), max(m.highest, f.Value)
				case f.Unknown > 0:
					m.unknown++
				}
			}
		}
		m.parts = append(m.parts, q)
	}
}

// MatrixType is the type of a matrix in scripts.
var MatrixType = lang.NewType("matrix", "Values of the links between two tiers, or two lists of nodes: show() draws it.",
	lang.Member[*Matrix]{Name: "value", Column: true, Doc: `what cells show: "links"`, Get: func(m *Matrix) starlark.Value { return starlark.String(m.figure.name) }},
	lang.Member[*Matrix]{Name: "unit", Column: true, Doc: "of cells, in words", Get: func(m *Matrix) starlark.Value { return starlark.String(m.figure.unit) }},
	lang.Member[*Matrix]{Name: "lowest", Column: true, Doc: "of all cells; None: unknown", Get: func(m *Matrix) starlark.Value { return lang.OrNone(m.known > 0, starlark.Float(m.lowest)) }},
	lang.Member[*Matrix]{Name: "highest", Column: true, Doc: "of all cells; None: unknown", Get: func(m *Matrix) starlark.Value { return lang.OrNone(m.known > 0, starlark.Float(m.highest)) }},
	lang.Member[*Matrix]{Name: "rows", Type: "list of node", Doc: "the nodes of the one tier", Get: func(m *Matrix) starlark.Value { return nodeValues(m.rows) }},
	lang.Member[*Matrix]{Name: "columns", Type: "list of node", Doc: "the nodes of the other", Get: func(m *Matrix) starlark.Value { return nodeValues(m.columns) }},
	lang.Member[*Matrix]{Name: "unlinked", Column: true, Doc: "number of nodes without a link to the others, which are in no part", Get: func(m *Matrix) starlark.Value { return starlark.MakeInt(m.alone) }},
	lang.Member[*Matrix]{Name: "parts", Type: "list of matrix_part", Column: true, Doc: "the parts that these links join, by the first row", Get: (*Matrix).values},
)

// MatrixPartType is the type of a part.
var MatrixPartType = &lang.ResultType{
	Name: "matrix_part",
	Doc:  "Nodes of a matrix that are joined by its links.",
	Members: []lang.ResultMember{
		{Name: "rows", Doc: "names"},
		{Name: "columns", Doc: "names"},
		{Name: "cells", Doc: "a list for each row with the value of each column; None: no link, or unknown"},
	},
}

var (
	_ lang.Factual = (*Matrix)(nil)
	_ lang.Drawn   = (*Matrix)(nil)
)

func (m *Matrix) Type() string          { return "matrix" }
func (m *Matrix) Freeze()               {}
func (m *Matrix) Truth() starlark.Bool  { return true }
func (m *Matrix) Hash() (uint32, error) { return 0, lang.Unhashable(m) }
func (m *Matrix) AttrNames() []string   { return MatrixType.Names }
func (m *Matrix) TypeDoc() lang.TypeDoc { return MatrixType.TypeDoc() }
func (m *Matrix) Schema() string        { return MatrixType.Schema() }
func (m *Matrix) Facts() []lang.Fact    { return MatrixType.Facts(m) }
func (m *Matrix) Display() string       { return m.Draw(0, false) }
func (m *Matrix) String() string {
	return fmt.Sprintf("matrix(%s, %d x %d)", m.figure.name, len(m.rows), len(m.columns))
}

func (m *Matrix) Attr(name string) (starlark.Value, error) { return MatrixType.Attr(m, name) }

// nodeValues returns nodes as a list of values.
func nodeValues(list []*fabric.Node) starlark.Value {
	return lang.List(list, func(n *fabric.Node) starlark.Value { return topology.Node{Node: n} })
}

// values returns the parts as values, made once.
func (m *Matrix) values() starlark.Value {
	if m.list != nil {
		return m.list
	}
	names := func(list []*fabric.Node) starlark.Value {
		return lang.List(list, func(n *fabric.Node) starlark.Value { return starlark.String(n.Name()) })
	}
	var parts []starlark.Value
	for _, p := range m.parts {
		var cells []starlark.Value
		for _, row := range p.figures {
			cells = append(cells, lang.List(row, func(f picture.Figure) starlark.Value { return lang.OrNone(f.Known > 0, starlark.Float(f.Value)) }))
		}
		parts = append(parts, lang.NewResult(MatrixPartType, names(p.Rows), names(p.Columns), starlark.NewList(cells)))
	}
	m.list = starlark.NewList(parts)
	m.list.Freeze()
	return m.list
}

// figure is a value of ports that a matrix shows.
type figure struct {
	name, unit string
	count      bool // the number of links of a cell, which can be 0
	value      picture.Value
	scale      func(lowest, highest float64) picture.Scale
}

// counterFigures are the figures computed from counters.
var counterFigures = map[string]struct {
	unit  string
	scale picture.Scale
	value func(w *audit.Window, bits float64) (float64, bool)
}{
	"use":    {"% of the link's rate", picture.Scale{0, 12.5, 25, 37.5, 50, 62.5, 75, 87.5}, percent((*audit.Window).Use)},
	"wait":   {"% of the time waiting for credits", picture.Scale{0, math.SmallestNonzeroFloat64, 1, 5, 10, 25, 50, 75}, percent(func(w *audit.Window, _ float64) (float64, bool) { return w.WaitShare() })},
	"errors": {"errors a second", nil, errorsOf},
	"ber":    {"bit error rate", picture.Scale{0, math.SmallestNonzeroFloat64, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5}, (*audit.Window).BitErrorRate},
}

// percent returns share as a percentage.
func percent(share func(*audit.Window, float64) (float64, bool)) func(*audit.Window, float64) (float64, bool) {
	return func(w *audit.Window, bits float64) (float64, bool) {
		v, known := share(w, bits)
		return 100 * v, known
	}
}

// errorsOf returns the sum of the rates of errors in a window.
func errorsOf(w *audit.Window, _ float64) (sum float64, known bool) {
	rates, known := w.ErrorRates()
	for _, r := range rates {
		sum += r.PerSecond()
	}
	return sum, known
}

// figureWords are the names of all figures.
var figureWords = []string{"ber", "errors", "lids", "links", "use", "wait"}

// figureOf returns the figure that a script requests, after reading its data.
func figureOf(c *lang.Call, f *fabric.Fabric, v starlark.Value, over time.Duration, parts []*picture.Matrix, far bool) (figure, error) {
	if fn, ok := v.(starlark.Callable); ok {
		return functionFigure(c, fn, parts, far)
	}
	name, ok := starlark.AsString(v)
	switch {
	case !ok:
		return figure{}, lang.ParamError("value", "got %s, want a word or a function", v.Type())
	case !slices.Contains(figureWords, name):
		return figure{}, lang.ParamError("value", "unknown value %q%s; supported: %s, or a function", name, fabric.DidYouMean(name, figureWords), strings.Join(figureWords, ", "))
	case name == "links":
		counted := func(*fabric.Port) (float64, bool) { return 1, true }
		return figure{name: name, unit: "links", count: true, value: counted, scale: picture.Steps}, nil
	case name == "lids":
		return lidFigure(c, f)
	case over < audit.MinWindow:
		return figure{}, lang.ParamError("over", "got %v, want %v or more: agents do not update counters at each read", over, audit.MinWindow)
	}
	ports := portsOf(parts, far)
	read, err := ratesOver(c, ports, over)
	if err != nil {
		return figure{}, err
	}
	rates := make(map[*fabric.Port]*audit.Window, len(read))
	for i := range read {
		if !read[i].Answered() {
			continue
		}
		w := read[i].Newest()
		if _, ok := w.Length(); ok {
			rates[read[i].Port] = &w
		}
	}
	x := counterFigures[name]
	value := func(p *fabric.Port) (float64, bool) {
		w := rates[p]
		if w == nil {
			return 0, false
		}
		return x.value(w, audit.LinkBits(p.Width(), p.Speed()))
	}
	scale := func(_, highest float64) picture.Scale { return picture.Powers(highest) }
	if x.scale != nil {
		scale = func(_, _ float64) picture.Scale { return x.scale }
	}
	return figure{name: name, unit: x.unit, value: value, scale: scale}, nil
}

// portsOf returns the ports of a matrix.
func portsOf(parts []*picture.Matrix, far bool) (list []*fabric.Port) {
	for _, m := range parts {
		for _, row := range m.Links {
			for _, cell := range row {
				for _, p := range cell {
					if far {
						p = p.Peer()
					}
					list = append(list, p)
				}
			}
		}
	}
	return list
}

// lidFigure returns the number of LIDs whose packets leave through a port.
func lidFigure(c *lang.Call, f *fabric.Fabric) (figure, error) {
	r, err := values.ReadRoutes(c.Thread, f, false)
	if err != nil {
		return figure{}, err
	}
	var b *traffic.Balance
	if err := c.Block(func(ctx context.Context) (err error) {
		b, err = traffic.MeasureBalance(ctx, r, 0, nil)
		return err
	}); err != nil {
		return figure{}, err
	}
	value := func(p *fabric.Port) (float64, bool) {
		n, known := b.LIDsBy(p)
		return float64(n), known
	}
	return figure{name: "lids", unit: "LIDs", value: value, scale: picture.Steps}, nil
}

// functionFigure returns the results of a script's function, which it calls for each port, in the
// order of the matrix.
func functionFigure(c *lang.Call, fn starlark.Callable, parts []*picture.Matrix, far bool) (figure, error) {
	figures := map[*fabric.Port]float64{}
	for _, p := range portsOf(parts, far) {
		v, err := starlark.Call(c.Thread, fn, starlark.Tuple{topology.PortOf(p)}, nil)
		if err != nil {
			return figure{}, err
		}
		x, ok := starlark.AsFloat(v)
		switch {
		case v == starlark.None:
			continue
		case v == starlark.True || v == starlark.False:
			x, ok = 0, true
			if v == starlark.True {
				x = 1
			}
		}
		if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
			return figure{}, lang.ParamError("value", "%s returned %s of %s, want a number, or None where it is unknown", fn.Name(), v.Type(), p.Name())
		}
		figures[p] = x
	}
	value := func(p *fabric.Port) (float64, bool) {
		x, known := figures[p]
		return x, known
	}
	return figure{name: fn.Name(), value: value, scale: linear}, nil
}

// linear returns a scale of equal steps, of integers if both ends are.
func linear(lowest, highest float64) picture.Scale {
	if lowest == math.Trunc(lowest) && highest == math.Trunc(highest) {
		return picture.Steps(lowest, highest)
	}
	return picture.Even(lowest, highest)
}
