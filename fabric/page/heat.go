package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// heatView is the view of a heat map, a figure of the ports between two tiers: their matrices
// side by side, with a column for each switch of the lower tier, and a row for each switch of the
// upper one. All maps have equal cells, so that they can be compared.
type heatView struct {
	Title, Note string
	grid
	Columns string   // what columns and rows are, in words
	Blocks  []string // names of the columns and rows of each matrix
	Legend  []shade
	Top     []portFigure
	Unknown int // ports
	Ports   int
}

type shade struct{ Class, Text string }

type portFigure struct{ Port, Value string }

// figure is what a heat map shows of a port.
type figure struct {
	title, unit string
	one         string // the unit of 1; "": unit
	value       picture.Value
	scale       func(lowest, highest float64) picture.Scale
}

const (
	maxHeatCells = 4000 // columns
	maxTop       = 10
)

// heat returns the maps of all pairs of tiers, and what there is no map of, with the reason.
func (p *Page) heat(t *topology) (views []heatView, none []string) {
	var figures []figure
	if p.Balance != nil {
		figures = append(figures, figure{title: "LIDs whose packets leave by the port", unit: "LIDs", one: "LID", value: p.lids, scale: picture.Steps})
	} else {
		none = append(none, "LIDs per port: "+cmp.Or(clean(p.NoRoutes), "the forwarding tables are unknown")+".")
	}
	if rates := p.rates(); rates != nil {
		figures = append(figures,
			figure{title: "Utilisation: data sent, share of the link's rate", unit: "%", value: rates.use, scale: picture.Even},
			figure{title: "Time waiting for credits (PortXmitWait), share of waiting and sending", unit: "%", value: rates.wait, scale: picture.Even},
			figure{title: "Bit errors (symbol errors)", unit: "of 10^15 bits", value: rates.bits, scale: powers},
			figure{title: "Errors between two reads", unit: "errors", one: "error", value: rates.errors, scale: powers})
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

// text returns a value with its unit.
func (x *figure) text(v float64) string {
	if v == 1 && x.one != "" {
		return "1 " + x.one
	}
	return number(v) + " " + x.unit
}

// powers returns the scale of a figure that is mostly 0.
func powers(_, highest float64) picture.Scale { return picture.Powers(highest) }

// view returns the map of x for matrices between two tiers: of the ports of the lower tier, or of
// the ports at the other ends (far).
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
		v.Note = x.text(highest) + " for all " + plural.Count(v.Ports, "port", "ports") + "."
		return v
	}
	v.Unknown = unknown
	v.Top = x.top(list, far)
	if columns > maxHeatCells {
		v.Note = fmt.Sprintf("%d columns are too many for a picture.", columns)
		return v
	}
	scale := x.scale(lowest, highest)
	gap, named := 1, false // columns between two matrices; whether names of rows are there
	if names := rowNames(list); columns <= labelled && len(list)*names+14*columns <= ladderWidth {
		gap, named = (names+13)/14, true
	}
	columns += gap * (len(list) - 1)
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
			left += len(m.Rows) + gap
		}
	}
	v.Layers = drawn.layers()
	v.W, v.H = columns*drawn.wide+4, rows*drawn.high+4
	v.axes(list, &drawn, gap, named || len(list) == 1)
	for i := range scale {
		v.Legend = append(v.Legend, shade{"h" + strconv.Itoa(scale.ShadeOf(i)), scale.Text(i)})
	}
	v.Legend[len(v.Legend)-1].Text += " " + x.unit
	if unknown > 0 {
		v.Legend = append(v.Legend, shade{"unknown", "unknown"})
	}
	return v
}

// Describe returns a description of the map for those who do not see it.
func (v heatView) Describe() string { return v.Title + ": the highest are listed below" }

// room returns the width of a text beside cells, in pixels.
func room(text string) int { return 8 + charWidth*len([]rune(text)) }

// rowNames returns the width of the longest name of a row.
func rowNames(list []*picture.Matrix) (most int) {
	for _, m := range list {
		for _, n := range m.Columns {
			most = max(most, room(picture.NodeName(n, labelText)))
		}
	}
	return most
}

// axes names the columns and rows of a map: beside its cells where there is room, and in words. gap
// is the number of columns between two matrices; named: there is room for the names of rows.
func (v *heatView) axes(list []*picture.Matrix, drawn *sheet, gap int, named bool) {
	lower, upper := picture.TierName(list[0].Tiers[0]), picture.TierName(list[0].Tiers[1])
	v.Columns = fmt.Sprintf("Columns: %s; rows: %s.", lower, upper)
	if len(list) > 1 {
		v.Columns = fmt.Sprintf("%d matrices side by side; columns: %s; rows: %s.", len(list), lower, upper)
	}
	column := func(x int, text string) {
		v.Above = max(v.Above, room(text))
		v.ColumnLabels = append(v.ColumnLabels, label{x, -5, text})
	}
	left := 0
	for i, m := range list {
		if i < maxNotes {
			v.Blocks = append(v.Blocks, fmt.Sprintf("columns: %s; rows: %s", names(m.Rows, titleNames), names(m.Columns, titleNames)))
		}
		first, wide := left*drawn.wide, len(m.Rows)*drawn.wide
		switch {
		case drawn.wide >= 10:
			for c, n := range m.Rows {
				column(first+(c+1)*drawn.wide-3, picture.NodeName(n, labelText))
			}
		case wide < 10:
		case len(list) == 1:
			column(first+10, span(m.Rows))
		default:
			column(first+10, strconv.Itoa(i+1))
		}
		step := (9 + drawn.high) / drawn.high // rows from name to name
		for r := 0; named && r < len(m.Columns); r += step {
			text := picture.NodeName(m.Columns[r], labelText)
			if i == 0 {
				v.Left = max(v.Left, room(text))
			}
			v.RowLabels = append(v.RowLabels, label{first - 5, r*drawn.high + min(drawn.high, 11) - 1, text})
		}
		left += len(m.Rows) + gap
	}
	v.W, v.H = v.W+v.Left, v.H+v.Above
}

// top returns the ports with the highest values.
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
		top = append(top, portFigure{clean(k.port.Name()), x.text(k.value)})
	}
	return top
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// lids returns how many LIDs a port of a switch sends to.
func (p *Page) lids(port *fabric.Port) (float64, bool) {
	n, known := p.Balance.LIDsBy(port)
	return float64(n), known
}

// portRates are counters that were read twice, by port.
type portRates map[portKey]*audit.PortRates

// portKey is a port in any sweep: findings are confirmed in a second one.
type portKey struct {
	node mad.GUID
	num  int
}

func keyOf(p *fabric.Port) portKey { return portKey{p.Node().GUID(), p.Num()} }

// rates returns the counters of the report; nil: no port was read twice.
func (p *Page) rates() portRates {
	m := portRates{}
	twice := false
	for i := range p.Report.Rates {
		r := &p.Report.Rates[i]
		key := keyOf(r.Port)
		if old := m[key]; old != nil && old.Port.Node().Fabric() == r.Port.Node().Fabric() {
			m[key] = &audit.PortRates{Port: r.Port} // of two nodes with one GUID: it is unknown which
			continue
		}
		m[key] = r
		if r.Answered() {
			newest := r.Newest()
			_, ok := newest.Length()
			twice = twice || ok
		}
	}
	if !twice {
		return nil
	}
	return m
}

// window returns the newest window of a port; nil: unknown.
func (m portRates) window(p *fabric.Port) *audit.Window {
	r := m[keyOf(p)]
	if r == nil || !r.Answered() {
		return nil
	}
	w := r.Newest()
	if _, ok := w.Length(); !ok {
		return nil
	}
	return &w
}

// errors returns how many errors of all kinds a port has counted in the newest window.
func (m portRates) errors(p *fabric.Port) (sum float64, known bool) {
	w := m.window(p)
	if w == nil {
		return 0, false
	}
	return errorsOf(w)
}

// use returns how much of the rate of its link a port sent, in percent.
func (m portRates) use(p *fabric.Port) (float64, bool) {
	w := m.window(p)
	if w == nil {
		return 0, false
	}
	counted := m[keyOf(p)].Port
	return percent(w.Use(audit.LinkBits(counted.Width(), counted.Speed())))
}

// wait returns how much of its time a port waited, in percent.
func (m portRates) wait(p *fabric.Port) (float64, bool) {
	w := m.window(p)
	if w == nil {
		return 0, false
	}
	return percent(w.WaitShare())
}

func percent(share float64, known bool) (float64, bool) {
	return math.Round(1000*share) / 10, known // less is noise
}

// berTarget is the bit error rate up to which a window without errors counts as good.
const berTarget = 1e-12

// bits returns how many of 10^15 bits were wrong. No errors in a window that is too short
// count as unknown.
func (m portRates) bits(p *fabric.Port) (float64, bool) {
	r := m[keyOf(p)]
	if r == nil {
		return 0, false
	}
	rate, window, known := r.BER()
	if known && rate == 0 && audit.JudgeBER(0, window, audit.LinkBits(r.Port.Width(), r.Port.Speed()), berTarget).Verdict != audit.BEROK {
		return 0, false
	}
	return rate * 1e15, known
}
