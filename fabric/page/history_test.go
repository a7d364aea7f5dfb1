package page

import (
	"strings"
	"testing"
	"time"

	"fabsh/fabric/picture"
)

// TestPortTrends: a gap breaks the line, and events are ticks.
func TestPortTrends(t *testing.T) {
	p := pageOf(t, parse(t, "fattree:k=4"))
	if text := written(t, p); strings.Contains(text, `id="trends"`) {
		t.Error("trends without a history")
	}
	begin := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	hour := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Hour) }
	c := &picture.Chart{Unit: "°C", From: hour(0), To: hour(10), Gaps: [][2]time.Time{{hour(3), hour(5)}}, Marks: []picture.ChartMark{{Time: hour(6), Text: "x"}}}
	for _, h := range []int{0, 1, 2, 5, 6, 7, 8, 9} {
		c.Points = append(c.Points, picture.ChartPoint{Time: hour(h), Width: time.Hour, Value: float64(40 + h)})
	}
	p.PortTrends = []PortTrend{{Port: "<leaf>/7", What: "temperature", Chart: c}}
	text := written(t, p)
	for _, want := range []string{`id="trends"`, `href="#trends"`, "&lt;leaf&gt;/7", "49 °C", "Nothing was recorded from 2026-05-01 03:00 to 2026-05-01 05:00."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if lines, gaps, ticks := strings.Count(text, `<polyline class="curve"`), strings.Count(text, `class="curvegap"`), strings.Count(text, `<path class="tick"`); lines != 2 || gaps != 1 || ticks != 1 {
		t.Errorf("%d lines, %d gaps, %d ticks", lines, gaps, ticks)
	}
}
