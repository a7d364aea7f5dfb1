package page

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/traffic"
)

// routesView is the view of the forwarding tables.
type routesView struct {
	Class, Verdict string
	Why            string // the reason why they are unknown
	Lines          []string
	Notes          []string
	Broken         []string
	Charts         []chart
	Ring           *ring
	Loop           []string
	Shift          string // contention of shifts, in words
	Curve          *curve
	Loads          []loadView
}

// loadView is the view of a Load.
type loadView struct{ Pattern, Samples, Static, Ideal, Bound, Worst, Lost string }

// chart is a histogram.
type chart struct {
	Title, Across, Along string
	Bars                 []bar
	H                    int
}

type bar struct {
	Y, W, TextX, TextY int
	Name, Count        string
}

// ring is a credit loop that is short enough to be drawn.
type ring struct {
	Nodes []ringNode
	Arcs  []ringArc
}

type ringNode struct{ X, Y, TextX, TextY, Text, Anchor string }

type ringArc struct{ X1, Y1, X2, Y2, Title string }

const (
	maxRing   = 12
	maxBroken = 20
	maxBars   = 24
	barHeight = 18
	barWidth  = 400
)

func (p *Page) routes() (v routesView) {
	d := p.Verdict
	if d == nil {
		v.Class, v.Verdict, v.Why = "unknown", "Not judged", clean(p.NoRoutes)
		return v
	}
	switch {
	case d.Wrong():
		v.Class, v.Verdict = "bad", "Wrong"
	case d.OK():
		v.Class, v.Verdict = "fine", "All packets arrive, and none can deadlock"
	default:
		v.Class, v.Verdict = "unknown", "Incomplete: not everything could be judged"
	}
	add := func(format string, args ...any) { v.Lines = append(v.Lines, clean(fmt.Sprintf(format, args...))) }
	add("Judged: %s, between %s.", d.Judged, d.Endpoints)
	if p.Adaptive != "" {
		add("Adaptive routing is %s.", p.Adaptive)
	}
	if d.Reason != "" {
		add("Adaptive routing is %s: %s.", d.Adaptive.Word(), d.Reason)
	}
	add("%s; %d do not reach each other, %d of these because of loops.", plural.Count(int(d.Pairs), "pair", "pairs"), d.Unreachable, d.Loops)
	if n := d.UnreachableSwitches(); n > 0 {
		add("%d of %d paths to LIDs of switches, which management packets take, are missing.", n, d.SwitchPairs)
	}
	switch {
	case !d.Acyclic:
		add("There is a credit loop of %s.", plural.Count(len(d.Cycle), "channel", "channels"))
	case d.Channels > 0:
		add("There is no credit loop among %s.", plural.Count(d.Channels, "channel", "channels"))
	}
	if n := len(d.LeftOut); n > 0 {
		add("%s left out: no LID of their own.", plural.Count(n, "port is", "ports are"))
	}
	for _, n := range d.Notes[:min(len(d.Notes), maxNotes)] {
		v.Notes = append(v.Notes, clean(n))
	}
	for _, b := range d.Broken[:min(len(d.Broken), maxBroken)] {
		v.Broken = append(v.Broken, clean(fmt.Sprintf("%s to LID %d: %s", b.From.Name(), b.LID, b.Why)))
	}
	p.loop(&v)
	var rows []histRow
	for hops, n := range d.Hops {
		if n > 0 {
			rows = append(rows, histRow{fmt.Sprint(hops), n})
		}
	}
	if len(rows) > 0 {
		v.Charts = append(v.Charts, newChart("Length of paths", "links, those of hosts included", "pairs", rows))
	}
	if p.Balance != nil {
		if rows := histogram(p.Balance.DLIDs); len(rows) > 0 {
			v.Charts = append(v.Charts, newChart("Load of ports between switches", "LIDs", "ports", rows))
		}
	}
	p.shifts(&v)
	for _, l := range p.Loads {
		mean := func(e traffic.Extremes) string {
			if e.Mean >= 1000 {
				return fmt.Sprintf("%.0f", e.Mean)
			}
			return fmt.Sprintf("%.4g", e.Mean)
		}
		v.Loads = append(v.Loads, loadView{l.Pattern, fmt.Sprint(l.Samples), mean(l.Static), mean(l.Ideal), mean(l.Bound), mean(l.Worst), fmt.Sprint(l.Lost)})
	}
	return v
}

// shifts reports how much links are shared when all endpoints send at once.
func (p *Page) shifts(v *routesView) {
	if p.Shift == nil || len(p.Shifts) == 0 {
		return
	}
	counted := map[float64]int64{}
	var points []point
	for _, s := range p.Shifts {
		counted[s.Load]++
		points = append(points, point{float64(s.Distance), s.Load})
	}
	var rows []histRow
	for _, load := range slices.Sorted(maps.Keys(counted)) {
		rows = append(rows, histRow{fmt.Sprintf("%.4g", load), counted[load]})
	}
	if len(rows) > maxBars {
		rows = nil
	}
	v.Shift = clean(fmt.Sprintf("In %s, each of %s sends to the endpoint that many places on: the busiest link carries %.4g flows on average and at most %.4g, in shift %d; effective bandwidth %.1f %%.",
		plural.Count(p.Shift.Samples, "shift", "shifts"), plural.Count(p.Shift.Endpoints, "endpoint", "endpoints"), p.Shift.Mean, p.Shift.Max, p.Shift.Worst, 100*p.Shift.Bandwidth))
	if p.Shift.Reference > 0 {
		v.Shift += fmt.Sprintf(" Rates of links differ: flows are counted per capacity, in flows on a link of %g Gb/s.", p.Shift.Reference)
	}
	if n := p.Shift.Lost; n > 0 {
		v.Shift += " " + plural.Count(int(n), "flow does", "flows do") + " not arrive."
	}
	if len(counted) > 1 { // else the text has it all
		v.Curve = newCurve(points, 600, 120)
	}
	if len(rows) > 0 {
		v.Charts = append(v.Charts, newChart("Contention of shifts", "flows on the busiest link", "shifts", rows))
	}
}

type histRow struct {
	name string
	n    int64
}

// histogram counts loads in at most maxBars classes of whole numbers.
func histogram(loads []int64) (rows []histRow) {
	if len(loads) == 0 {
		return nil
	}
	low, high := slices.Min(loads), slices.Max(loads)
	step := (high-low)/maxBars + 1
	rows = make([]histRow, (high-low)/step+1)
	for i := range rows {
		from := low + int64(i)*step
		rows[i].name = fmt.Sprint(from)
		if step > 1 {
			rows[i].name = fmt.Sprintf("%d–%d", from, from+step-1)
		}
	}
	for _, n := range loads {
		rows[(n-low)/step].n++
	}
	return rows
}

func newChart(title, across, along string, rows []histRow) chart {
	c := chart{Title: title, Across: across, Along: along, H: len(rows)*barHeight + 4}
	most := int64(1)
	for _, r := range rows {
		most = max(most, r.n)
	}
	for i, r := range rows {
		w := int(math.Round(float64(r.n) / float64(most) * barWidth))
		if r.n > 0 {
			w = max(w, 1)
		}
		c.Bars = append(c.Bars, bar{Y: i * barHeight, W: w, TextX: 110 + w, TextY: i*barHeight + 13, Name: r.name, Count: fmt.Sprint(r.n)})
	}
	return c
}

// loop describes a credit loop: in words, and if it is short as a ring.
func (p *Page) loop(v *routesView) {
	cycle := p.Verdict.Cycle
	for i, c := range cycle {
		if i == maxNotes {
			v.Loop = append(v.Loop, fmt.Sprintf("and %d more", len(cycle)-i))
			break
		}
		v.Loop = append(v.Loop, clean(fmt.Sprintf("%s -> %s, VL %d, to LID %d", c.Port.Name(), c.Port.Peer().Name(), c.VL, c.LID)))
	}
	if len(cycle) == 0 || len(cycle) > maxRing {
		return
	}
	v.Ring = &ring{}
	at := func(i int, r float64) (x, y string) {
		a := 2*math.Pi*float64(i)/float64(len(cycle)) - math.Pi/2
		return fmt.Sprintf("%.1f", 250+r*math.Cos(a)), fmt.Sprintf("%.1f", 170+r*math.Sin(a))
	}
	for i, c := range cycle {
		n := ringNode{Text: picture.NodeName(c.Port.Node(), labelText), Anchor: "middle"}
		n.X, n.Y = at(i, 120)
		n.TextX, n.TextY = at(i, 138)
		switch side := math.Sin(2 * math.Pi * float64(i) / float64(len(cycle))); {
		case side > 0.1:
			n.Anchor = "start"
		case side < -0.1:
			n.Anchor = "end"
		}
		v.Ring.Nodes = append(v.Ring.Nodes, n)
		a := ringArc{Title: v.Loop[i]}
		a.X1, a.Y1 = at(i, 120)
		a.X2, a.Y2 = at((i+1)%len(cycle), 120)
		v.Ring.Arcs = append(v.Ring.Arcs, a)
	}
}
