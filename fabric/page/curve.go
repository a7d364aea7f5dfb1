package page

import (
	"fmt"
	"strings"
)

// curve is a line of SVG.
type curve struct {
	W, H          int
	Points        string
	Highest, Last string // in words: of y, and of x
}

type point struct{ x, y float64 }

// newCurve draws points, by x, in w times h pixels, from 0 up.
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
