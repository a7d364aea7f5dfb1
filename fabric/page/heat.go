package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
)

// heatView is a figure of the ports between two tiers: the matrices of these side by
// side, a column for each switch of the lower tier, a row for a switch above. The cells
// are the same in all maps, so that the eye compares.
type heatView struct {
	Title, Note string
	W, H        int
	Layers      []layer
	Legend      []shade
	Top         []portFigure
	Unknown     int // ports
	Ports       int
}

type shade struct{ Class, Text string }

type portFigure struct{ Port, Value string }

// figure is what a heat map shows of a port.
type figure struct {
	title, unit string
	value       picture.Value
	scale       func(lowest, highest float64) picture.Scale
}

const (
	maxHeatCells = 4000 // columns
	maxTop       = 10
)

// heat are the maps of all pairs of tiers.
func (p *Page) heat(t *topology) (views []heatView, none []string) {
	var figures []figure
	if p.Balance != nil {
		figures = append(figures, figure{title: "LIDs whose packets leave by the port", unit: "LIDs", value: p.lids, scale: picture.Steps})
	} else {
		none = append(none, "LIDs per port: "+cmp.Or(clean(p.NoRoutes), "the forwarding tables are unknown")+".")
	}
	if rates := p.rates(); rates != nil {
		figures = append(figures,
			figure{title: "Utilisation: data sent, share of the link's rate", unit: "%", value: rates.use, scale: picture.Even},
			figure{title: "Time waiting for credits (PortXmitWait), share of waiting and sending", unit: "%", value: rates.wait, scale: picture.Even},
			figure{title: "Bit errors (symbol errors)", unit: "of 10^15 bits", value: rates.bits, scale: powers},
			figure{title: "Errors between two reads", unit: "errors", value: rates.errors, scale: powers})
	} else {
		none = append(none, "Utilisation, waiting and errors: counters were read only once; run fabsh report html counters --over 10s.")
	}
	for _, x := range figures {
		for i := 0; i < len(t.Matrices); {
			j := i + 1
			for j < len(t.Matrices) && t.Matrices[j].Tiers == t.Matrices[i].Tiers {
				j++
			}
			views = append(views, x.view(t.Matrices[i:j], false))
			if tiers := t.Matrices[i].Tiers; tiers[0] != tiers[1] { // else both ends are in it
				views = append(views, x.view(t.Matrices[i:j], true))
			}
			i = j
		}
	}
	if len(figures) > 0 && len(t.Matrices) == 0 {
		none = append(none, "There are no links between switches to draw.")
	}
	return views, none
}

// powers are the classes of what is mostly 0.
func powers(_, highest float64) picture.Scale { return picture.Powers(highest) }

// view is the map of x of matrices of the same tiers: of the ports of the lower tier, or
// of those at the other ends.
func (x *figure) view(list []*picture.Matrix, far bool) (v heatView) {
	from, to := picture.TierName(list[0].Tiers[0]), picture.TierName(list[0].Tiers[1])
	if far {
		from, to = to, from
	}
	v.Title = fmt.Sprintf("%s: ports of %s to %s", x.title, from, to)
	columns, rows, unknown := 0, 0, 0
	lowest, highest := math.Inf(1), 0.0
	figures := make([][][]picture.Figure, len(list))
	for i, m := range list {
		columns, rows = columns+len(m.Rows), max(rows, len(m.Columns))
		figures[i] = m.Figures(x.value, far)
		for _, line := range figures[i] {
			for _, f := range line {
				v.Ports, unknown = v.Ports+f.Known+f.Unknown, unknown+f.Unknown
				if f.Known > 0 {
					lowest, highest = min(lowest, f.Value), max(highest, f.Value)
				}
			}
		}
	}
	switch {
	case unknown == v.Ports:
		v.Note = "Unknown for all " + plural.Count(v.Ports, "port", "ports") + "."
		return v
	case unknown == 0 && lowest == highest:
		v.Note = number(highest) + " " + x.unit + " for all " + plural.Count(v.Ports, "port", "ports") + "."
		return v
	}
	v.Unknown = unknown
	v.Top = x.top(list, far)
	if columns > maxHeatCells {
		v.Note = fmt.Sprintf("%d columns are too many for a picture.", columns)
		return v
	}
	scale := x.scale(lowest, highest)
	drawn := sheet{wide: max(1, min(14, ladderWidth/columns)), high: max(4, min(14, 300/rows))}
	if drawn.wide >= 4 {
		drawn.gap = 1
	}
	for y := range rows {
		left := 0
		for i, m := range list {
			for r := range m.Rows {
				switch {
				case y >= len(m.Columns):
				case figures[i][r][y].Known > 0:
					drawn.add("h"+strconv.Itoa(scale.Shade(figures[i][r][y].Value)), left+r, y)
				case figures[i][r][y].Unknown > 0:
					drawn.add("unknown", left+r, y)
				}
			}
			left += len(m.Rows)
		}
	}
	v.W, v.H, v.Layers = columns*drawn.wide, rows*drawn.high, drawn.layers()
	for i := range scale {
		v.Legend = append(v.Legend, shade{"h" + strconv.Itoa(scale.ShadeOf(i)), scale.Text(i)})
	}
	v.Legend[len(v.Legend)-1].Text += " " + x.unit
	if unknown > 0 {
		v.Legend = append(v.Legend, shade{"unknown", "unknown"})
	}
	return v
}

// top are the ports with the highest values.
func (x *figure) top(list []*picture.Matrix, far bool) (top []portFigure) {
	type known struct {
		port  *fabric.Port
		value float64
	}
	var all []known
	for _, m := range list {
		for _, line := range m.Links {
			for _, links := range line {
				for _, p := range links {
					if far {
						p = p.Peer()
					}
					if v, ok := x.value(p); ok && v > 0 {
						all = append(all, known{p, v})
					}
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b known) int { return cmp.Compare(b.value, a.value) })
	for _, k := range all[:min(len(all), maxTop)] {
		top = append(top, portFigure{clean(k.port.Name()), number(k.value) + " " + x.unit})
	}
	return top
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// lids is how many LIDs a port of a switch sends to.
func (p *Page) lids(port *fabric.Port) (float64, bool) {
	n, known := p.Balance.LIDsBy(port)
	return float64(n), known
}
