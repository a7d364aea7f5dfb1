package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// trendView is the view of what ports counted from read to read of a job, the worst ports first.
type trendView struct {
	Reads int
	From  string // how long ago the first of them was
	Rows  []trendRow
	More  int // ports
}

type trendRow struct {
	Port, Words string
	Curve       *curve
}

// maxTrends limits the ports with a trend.
const maxTrends = 20

// trends returns the trends of ports that the state of a job has more than two reads of;
// nil: there is no such port, or none of them counted errors.
func (p *Page) trends() *trendView {
	type trend struct {
		port   *fabric.Port
		points []point // seconds before the last read, and errors since
	}
	v := &trendView{}
	var list []trend
	longest := time.Duration(0)
	for i := range p.Report.Rates {
		r := &p.Report.Rates[i]
		t := trend{port: r.Port, points: []point{{}}}
		for w := range r.Windows() {
			length, ok := w.Length()
			n, known := errorsOf(&w)
			if last := t.points[len(t.points)-1]; !ok || !known || n < last.y {
				break // reads that are older have fewer counters
			}
			t.points = append(t.points, point{-length.Seconds(), n})
			longest = max(longest, length)
		}
		if n := len(t.points); n > 2 {
			v.Reads = max(v.Reads, n)
			if t.points[n-1].y > 0 {
				list = append(list, t)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b trend) int {
		return cmp.Compare(b.points[len(b.points)-1].y, a.points[len(a.points)-1].y)
	})
	v.From, v.More = longest.Round(time.Second).String(), max(0, len(list)-maxTrends)
	for _, t := range list[:len(list)-v.More] {
		// What had been counted at each read, the oldest first.
		total := t.points[len(t.points)-1].y
		var since []point
		for _, x := range slices.Backward(t.points) {
			since = append(since, point{x.x, total - x.y})
		}
		newest := t.points[1].y
		v.Rows = append(v.Rows, trendRow{
			Port:  clean(t.port.Name()),
			Words: fmt.Sprintf("%s errors in %s, %s of them since the last read", number(total), time.Duration(-t.points[len(t.points)-1].x*float64(time.Second)).Round(time.Second), number(newest)),
			Curve: newCurve(since, 200, 24),
		})
	}
	return v
}

// errorsOf returns how many errors of all kinds came in a window, without counters that stand at
// their largest value.
func errorsOf(w *audit.Window) (sum float64, known bool) {
	rates, known := w.ErrorRates()
	for _, r := range rates {
		sum += float64(r.Count)
	}
	return sum, known
}

// curve is the view of a line of SVG.
type curve struct {
	W, H          int
	Points        string
	Highest, Last string // in words: of y, and of x
}

type point struct{ x, y float64 }

// newCurve returns the line through points, which are sorted by x, in w times h pixels; y begins
// at 0.
func newCurve(points []point, w, h int) *curve {
	highest, first, last := 1.0, points[0].x, points[len(points)-1].x
	for _, p := range points {
		highest = max(highest, p.y)
	}
	var b strings.Builder
	for i, p := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		x := 0.0
		if last > first {
			x = (p.x - first) / (last - first)
		}
		fmt.Fprintf(&b, "%.1f,%.1f", 1+x*float64(w-2), float64(h-1)-p.y/highest*float64(h-2))
	}
	return &curve{W: w, H: h, Points: b.String(), Highest: number(highest), Last: number(last)}
}
