package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// heatView is a figure of the ports between two tiers. A column is a switch of the
// lower tier, a row one of its links upwards: the same in all maps, so that the eye
// compares.
type heatView struct {
	Title, Note string
	W, H        int
	Layers      []layer
	Legend      []shade
	Top         []portFigure
	Unknown     int // cells
	Cells       int
}

type shade struct{ Class, Text string }

type portFigure struct{ Port, Value string }

// figure is what a heat map shows of a port.
type figure struct {
	title, unit string
	log         bool // classes are powers of ten, for what is mostly 0
	value       func(p *fabric.Port) (v float64, known bool)
}

const (
	shades       = 8    // classes of colour
	maxHeatCells = 4000 // columns
	maxTop       = 10
)

// heat are the maps of all pairs of tiers.
func (p *Page) heat(t *tree) (views []heatView, none []string) {
	var figures []figure
	if p.Balance != nil {
		figures = append(figures, figure{title: "LIDs whose packets leave by the port", unit: "LIDs", value: p.lids})
	} else {
		none = append(none, "LIDs per port: "+cmp.Or(clean(p.NoRoutes), "the forwarding tables are not known")+".")
	}
	if rates := p.rates(); rates != nil {
		figures = append(figures,
			figure{title: "Errors that came in between two reads", unit: "errors", log: true, value: rates.errors},
			figure{title: "Ticks of waiting for credits (PortXmitWait)", unit: "ticks a second", log: true, value: rates.wait})
	} else {
		none = append(none, "Errors and waiting: counters were not read twice; fabsh report html counters --over 10s does.")
	}
	for _, x := range figures {
		for tier := 1; tier < t.top; tier++ {
			for _, upwards := range []bool{true, false} {
				if v, ok := t.heat(x, tier, upwards); ok {
					views = append(views, v)
				}
			}
		}
	}
	if len(figures) > 0 && t.top < 2 {
		none = append(none, "The fabric has one tier of switches: there are no ports between tiers.")
	}
	return views, none
}

// heat is the map of x between a tier and the next: of the ports that send upwards, or
// of those at the other ends.
func (t *tree) heat(x figure, tier int, upwards bool) (v heatView, ok bool) {
	type spot struct {
		x, y  int
		port  *fabric.Port
		value float64
		known bool
	}
	var spots []spot
	columns, rows := 0, 0
	lowest, highest := math.Inf(1), 0.0
	for _, g := range t.groups {
		if g.tier != tier {
			continue
		}
		slots := t.slots(g)
		for _, n := range g.switches {
			next := maps.Clone(slots)
			for y, p := range t.upLinks(n) {
				if slots != nil {
					above := p.Peer().Node()
					y = next[above]
					next[above]++
				}
				rows = max(rows, y+1)
				if !upwards {
					p = p.Peer()
				}
				s := spot{x: columns, y: y, port: p}
				s.value, s.known = x.value(p)
				if s.known {
					lowest = min(lowest, s.value)
					highest = max(highest, s.value)
				}
				spots = append(spots, s)
			}
			columns++
		}
	}
	if len(spots) == 0 {
		return v, false
	}
	from, to := t.tierName(tier), fmt.Sprintf("tier %d", tier+1)
	if !upwards {
		from, to = to, from
	}
	v.Title = fmt.Sprintf("%s: ports of %s to %s", x.title, from, to)
	v.Cells = len(spots)
	scale := x.scale(lowest, highest)
	var layers [shades + 1]cells
	wide, high := max(1, min(14, ladderWidth/columns)), max(4, min(14, 300/rows))
	gap := 0
	if wide >= 4 {
		gap = 1
	}
	for i := range layers {
		layers[i] = cells{wide: wide, high: high, gap: gap}
	}
	slices.SortStableFunc(spots, func(a, b spot) int { return cmp.Or(cmp.Compare(a.y, b.y), cmp.Compare(a.x, b.x)) })
	for _, s := range spots {
		at := shades
		if s.known {
			at = scale.class(s.value)
		} else {
			v.Unknown++
		}
		layers[at].add(s.x, s.y)
	}
	switch {
	case v.Unknown == v.Cells:
		v.Note = "Unknown of all of " + fabric.Plural(v.Cells, "port", "ports") + "."
		v.Unknown = 0
	case v.Unknown == 0 && lowest == highest:
		v.Note = number(highest) + " " + x.unit + " at all of " + fabric.Plural(v.Cells, "port", "ports") + "."
		return v, true
	case columns > maxHeatCells:
		v.Note = fmt.Sprintf("%d columns are too many for a picture.", columns)
	default:
		v.W, v.H = columns*wide, rows*high
		for i := range layers {
			if d := layers[i].path(); d != "" {
				v.Layers = append(v.Layers, layer{heatClass(i), d})
			}
		}
		v.Legend = scale.legend(x.unit, v.Unknown > 0)
	}
	slices.SortStableFunc(spots, func(a, b spot) int { return cmp.Compare(b.value, a.value) })
	for _, s := range spots {
		if len(v.Top) == maxTop {
			break
		}
		if s.known && s.value > 0 {
			v.Top = append(v.Top, portFigure{clean(s.port.Name()), number(s.value) + " " + x.unit})
		}
	}
	return v, true
}

// slots are the rows of links of g to each switch above, so that a link that is not
// there leaves its row empty; nil: most of g have no link to most of these, and the
// links of each have the first rows.
func (t *tree) slots(g *group) map[*fabric.Node]int {
	most, longest, total := map[*fabric.Node]int{}, 0, 0
	for _, n := range g.switches {
		links, own := t.upLinks(n), map[*fabric.Node]int{}
		longest = max(longest, len(links))
		for _, p := range links {
			above := p.Peer().Node()
			own[above]++
			most[above] = max(most[above], own[above])
		}
	}
	for _, n := range most {
		total += n
	}
	if total > 2*longest {
		return nil
	}
	slots, at := map[*fabric.Node]int{}, 0
	for _, n := range slices.SortedFunc(maps.Keys(most), func(a, b *fabric.Node) int { return cmp.Compare(t.place[a.ID()], t.place[b.ID()]) }) {
		slots[n] = at
		at += most[n]
	}
	return slots
}

// upLinks are the ports of n to the tier above, by the switches there.
func (t *tree) upLinks(n *fabric.Node) (list []*fabric.Port) {
	for p := range n.Ports() {
		if q := p.Peer(); q != nil && q.Node().IsSwitch() && t.tier[q.Node().ID()] == t.tier[n.ID()]+1 {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b *fabric.Port) int {
		return cmp.Compare(t.place[a.Peer().Node().ID()], t.place[b.Peer().Node().ID()])
	})
	return list
}

// scale is from which value on each class of colour is, the lowest first.
type scale []float64

// scale of whole numbers has equal steps from the lowest to the highest; or, by powers
// of ten, a class for 0.
func (x *figure) scale(lowest, highest float64) (s scale) {
	if x.log {
		s = scale{0, math.SmallestNonzeroFloat64}
		for v := 10.0; v <= highest && len(s) < shades; v *= 10 {
			s = append(s, v)
		}
		return s
	}
	if lowest > highest {
		lowest = highest
	}
	for i := range shades {
		v := math.Ceil(lowest + float64(i)*(highest-lowest+1)/shades)
		if v <= highest && (len(s) == 0 || v > s[len(s)-1]) {
			s = append(s, v)
		}
	}
	return s
}

// class is that of a value. Where there are few classes they are far apart.
func (s scale) class(v float64) int {
	i := 0
	for i+1 < len(s) && v >= s[i+1] {
		i++
	}
	return s.color(i)
}

func (s scale) color(i int) int {
	if len(s) < 2 {
		return 0
	}
	return i * (shades - 1) / (len(s) - 1)
}

func (s scale) legend(unit string, unknown bool) (list []shade) {
	for i, v := range s {
		text := "from " + number(v)
		switch {
		case v == math.SmallestNonzeroFloat64:
			text = "above 0"
		case i == 0 && v == 0 && len(s) > 1 && s[1] <= 1:
			text = "0"
		}
		list = append(list, shade{heatClass(s.color(i)), text})
	}
	list[len(list)-1].Text += " " + unit
	if unknown {
		list = append(list, shade{heatClass(shades), "unknown"})
	}
	return list
}

func heatClass(i int) string {
	if i == shades {
		return "unknown"
	}
	return "h" + strconv.Itoa(i)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// lids is how many LIDs a port of a switch sends to.
func (p *Page) lids(port *fabric.Port) (float64, bool) {
	if port.Node().Fabric() != p.Graph.Fabric() {
		return 0, false
	}
	if c := p.Graph.ChannelOf(port); c >= 0 {
		return float64(p.Balance.DLIDs[c]), true
	}
	return 0, false
}

// portRates are the counters that were read twice, by port.
type portRates map[portKey]*audit.PortRates

// portKey is a port in any sweep: what is found is read a second time, in another.
type portKey struct {
	node mad.GUID
	num  int
}

func keyOf(p *fabric.Port) portKey { return portKey{p.Node().GUID(), p.Num()} }

// rates is nil where no port was read twice.
func (p *Page) rates() portRates {
	m := portRates{}
	twice := false
	for i := range p.Report.Rates {
		r := &p.Report.Rates[i]
		key := keyOf(r.Port)
		if old := m[key]; old != nil && old.Port.Node().Fabric() == r.Port.Node().Fabric() {
			m[key] = &audit.PortRates{Port: r.Port} // of two nodes with one GUID: nobody knows which
			continue
		}
		m[key] = r
		if len(r.Windows) > 0 {
			_, ok := r.Windows[0].Length()
			twice = twice || ok
		}
	}
	if !twice {
		return nil
	}
	return m
}

// window is the newest of a port; nil: nothing is known.
func (m portRates) window(p *fabric.Port) *audit.Window {
	r := m[keyOf(p)]
	if r == nil || len(r.Windows) == 0 {
		return nil
	}
	if _, ok := r.Windows[0].Length(); !ok {
		return nil
	}
	return &r.Windows[0]
}

// errors is how many errors of all kinds a port has counted; a counter that stands at
// its largest value tells nothing.
func (m portRates) errors(p *fabric.Port) (sum float64, known bool) {
	w := m.window(p)
	if w == nil {
		return 0, false
	}
	moving, saturated, silent := w.Errors()
	if len(moving) == 0 && len(saturated)+len(silent) > 0 {
		return 0, false
	}
	if fell, _ := w.Fell(); fell {
		return 0, false
	}
	for _, i := range moving {
		sum += float64(w.Rate(i).Count)
	}
	return sum, true
}

func (m portRates) wait(p *fabric.Port) (float64, bool) {
	w := m.window(p)
	if w == nil {
		return 0, false
	}
	r := w.Rate(audit.CounterIndex("port_xmit_wait"))
	if r.Why != audit.Known {
		return 0, false
	}
	return r.PerSecond(), true
}
