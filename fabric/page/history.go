package page

import (
	"fmt"

	"fabsh/fabric/picture"
)

// PortTrend is the course of a value of a port that has findings, as a history recorded it.
type PortTrend struct {
	Port, What string
	*picture.Chart
}

// historyView is the view of PortTrends.
type historyView struct {
	From, To string
	Rows     []historyRow
	Gaps     []string // when nothing was recorded
}

type historyRow struct {
	Port, What, Highest string
	W, H                int
	Runs                []string // points of lines
	Dots                [][2]string
	Gaps                [][2]string // x and width
	Marks               []string    // x of events
	Events              int
}

// Sizes of a course, in pixels, and how many gaps and events are drawn.
const (
	courseWidth  = 300
	courseHeight = 30
	maxDrawn     = 100
	maxGaps      = 10
)

// historyTrends returns the view of the trends that a history recorded; nil: no history.
func (p *Page) historyTrends() *historyView {
	if len(p.PortTrends) == 0 {
		return nil
	}
	first := p.PortTrends[0]
	v := &historyView{From: first.From.Format("2006-01-02 15:04"), To: first.To.Format("2006-01-02 15:04 MST")}
	for i, g := range first.Chart.Gaps {
		if i == maxGaps {
			v.Gaps = append(v.Gaps, fmt.Sprintf("and %d more times", len(first.Chart.Gaps)-i))
			break
		}
		v.Gaps = append(v.Gaps, fmt.Sprintf("from %s to %s", g[0].Format("2006-01-02 15:04"), g[1].Format("2006-01-02 15:04")))
	}
	x := func(share float64) float64 { return 1 + share*(courseWidth-2) }
	for _, t := range p.PortTrends {
		row := historyRow{Port: clean(t.Port), What: clean(t.What), W: courseWidth, H: courseHeight, Events: len(t.Marks)}
		highest := 0.0
		for _, point := range t.Points {
			highest = max(highest, point.Value)
		}
		row.Highest = number(highest)
		if t.Unit != "" {
			row.Highest += " " + t.Unit
		}
		for _, run := range t.Runs() {
			points := ""
			for i, q := range run {
				if i > 0 {
					points += " "
				}
				points += fmt.Sprintf("%.1f,%.1f", x(q[0]), float64(courseHeight-6)-q[1]*float64(courseHeight-7))
			}
			if len(run) == 1 {
				row.Dots = append(row.Dots, [2]string{fmt.Sprintf("%.1f", x(run[0][0])), fmt.Sprintf("%.1f", float64(courseHeight-6)-run[0][1]*float64(courseHeight-7))})
			} else {
				row.Runs = append(row.Runs, points)
			}
		}
		for _, g := range t.Chart.Gaps[:min(len(t.Chart.Gaps), maxDrawn)] {
			from, to := x(t.Share(g[0])), x(t.Share(g[1]))
			row.Gaps = append(row.Gaps, [2]string{fmt.Sprintf("%.1f", from), fmt.Sprintf("%.1f", max(1, to-from))})
		}
		for _, m := range t.Marks[:min(len(t.Marks), maxDrawn)] {
			row.Marks = append(row.Marks, fmt.Sprintf("%.1f", x(t.Share(m.Time))))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}
