package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/fabric/audit"
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
	highest := 0.0
	for _, g := range t.groups {
		if g.tier != tier {
			continue
		}
		for _, n := range g.switches {
			links := t.upLinks(n)
			for y, p := range links {
				if !upwards {
					p = p.Peer()
				}
				s := spot{x: columns, y: y, port: p}
				s.value, s.known = x.value(p)
				if s.known {
					highest = max(highest, s.value)
				}
				spots = append(spots, s)
			}
			columns, rows = columns+1, max(rows, len(links))
		}
	}
	if len(spots) == 0 {
		return v, false
	}
	direction := "up"
	if !upwards {
		direction = "down"
	}
	v.Title = fmt.Sprintf("%s, %s between %s and %s", x.title, direction, t.tierName(tier), t.tierName(tier+1))
	v.Cells = len(spots)
	var layers [shades + 1]cells
	wide, high := max(1, min(14, ladderWidth/columns)), max(4, min(14, 300/rows))
	for i := range layers {
		layers[i] = cells{wide: wide, high: high}
	}
	slices.SortStableFunc(spots, func(a, b spot) int { return cmp.Or(cmp.Compare(a.y, b.y), cmp.Compare(a.x, b.x)) })
	for _, s := range spots {
		at := shades
		if s.known {
			at = x.shade(s.value, highest)
		} else {
			v.Unknown++
		}
		layers[at].add(s.x, s.y)
	}
	if columns > maxHeatCells {
		v.Note = fmt.Sprintf("%d columns are too many for a picture.", columns)
	} else {
		v.W, v.H = columns*wide, rows*high
		for i := range layers {
			if d := layers[i].path(); d != "" {
				v.Layers = append(v.Layers, layer{heatClass(i), d})
			}
		}
		v.Legend = x.legend(highest, v.Unknown > 0)
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

// shade is the class of a value; 0 is of 0 alone where classes are powers of ten.
func (x *figure) shade(value, highest float64) int {
	if x.log {
		if value <= 0 {
			return 0
		}
		return min(shades-1, 1+max(0, int(math.Floor(math.Log10(value)))))
	}
	if highest <= 0 {
		return 0
	}
	return min(shades-1, int(value/highest*shades))
}

func (x *figure) legend(highest float64, unknown bool) (list []shade) {
	for i := range shades {
		var text string
		switch {
		case x.log && i == 0:
			text = "0"
		case x.log && i == 1:
			text = "below 10"
		case x.log:
			text = "from " + number(math.Pow10(i-1))
		case highest <= 0:
			text = "0"
		default:
			text = "from " + number(math.Ceil(float64(i)*highest/shades))
		}
		list = append(list, shade{heatClass(i), text})
		if highest <= 0 || x.log && x.shade(highest, highest) == i {
			break
		}
	}
	list[len(list)-1].Text += " " + x.unit
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
type portRates map[*fabric.Port]*audit.PortRates

// rates is nil where no port was read twice.
func (p *Page) rates() portRates {
	m := portRates{}
	twice := false
	for i := range p.Report.Rates {
		r := &p.Report.Rates[i]
		m[r.Port] = r
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
	r := m[p]
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
