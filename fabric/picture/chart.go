package picture

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Chart is the course of a value over time. Where nothing is known the line is broken.
type Chart struct {
	Title    string
	Unit     string // of values; "": a count
	From, To time.Time
	Points   []ChartPoint // by time
	Gaps     [][2]time.Time
	Marks    []ChartMark // events
}

// ChartPoint is a value of the Width from Time on.
type ChartPoint struct {
	Time  time.Time
	Width time.Duration
	Value float64
}

// ChartMark is an event.
type ChartMark struct {
	Time time.Time
	Text string
}

// Sizes of a chart, in pixels.
const (
	chartWidth  = 760
	chartHeight = 240
	chartLeft   = 70
	chartTop    = 34
	chartBottom = 40
	maxMarks    = 200 // events that are drawn
	maxTold     = 10  // events that are listed below a chart of text
)

const chartStyle = `
.bg{fill:#fff}.t{fill:#222}.s{fill:#666}.gap{fill:#ddd}.line{fill:none;stroke:#0072b2;stroke-width:1.5}.dot{fill:#0072b2}.axis{stroke:#999}.mark{stroke:#d55e00}
@media (prefers-color-scheme:dark){.bg{fill:#14181c}.t{fill:#eee}.s{fill:#aaa}.gap{fill:#333a40}.line{stroke:#56b4e9}.dot{fill:#56b4e9}.mark{stroke:#e69f00}}
`

// highest returns the highest value; at least 1 for counts.
func (c *Chart) highest() float64 {
	highest := 0.0
	for _, p := range c.Points {
		highest = max(highest, p.Value)
	}
	if highest == 0 {
		return 1
	}
	return highest
}

// Share returns where a time is, from 0 to 1.
func (c *Chart) Share(t time.Time) float64 {
	whole := c.To.Sub(c.From)
	if whole <= 0 {
		return 0
	}
	return min(1, max(0, float64(t.Sub(c.From))/float64(whole)))
}

// broken reports whether the line ends between two points.
func (c *Chart) broken(a, b ChartPoint) bool {
	if b.Time.Sub(a.Time) > a.Width+a.Width/2 {
		return true
	}
	for _, g := range c.Gaps {
		if g[0].Before(b.Time) && g[1].After(a.Time.Add(a.Width)) {
			return true
		}
	}
	return false
}

// Runs returns the points as lines of x and y, from 0 to 1, y upwards.
func (c *Chart) Runs() (runs [][][2]float64) {
	highest := c.highest()
	for i, p := range c.Points {
		if i == 0 || c.broken(c.Points[i-1], p) {
			runs = append(runs, nil)
		}
		last := &runs[len(runs)-1]
		*last = append(*last, [2]float64{c.Share(p.Time), max(0, p.Value) / highest})
	}
	return runs
}

// SVG writes the chart as a self-contained SVG image. The output is deterministic.
func (c *Chart) SVG(w io.Writer) error {
	b := bufio.NewWriter(w)
	x := func(share float64) float64 { return chartLeft + share*(chartWidth-chartLeft-margin) }
	y := func(share float64) float64 {
		return chartHeight - chartBottom - share*(chartHeight-chartTop-chartBottom)
	}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%d" font-family="sans-serif" font-size="11" role="img">`+"\n<style>%s</style>\n", chartWidth, chartHeight, chartStyle)
	fmt.Fprintf(b, "<title>%s</title>\n"+`<rect class="bg" width="%d" height="%d"/>`+"\n", svgText(c.Title), chartWidth, chartHeight)
	fmt.Fprintf(b, `<text class="t" x="%d" y="20" font-size="13">%s</text>`+"\n", chartLeft, svgText(c.Title))
	for _, g := range c.Gaps {
		from, to := x(c.Share(g[0])), x(c.Share(g[1]))
		fmt.Fprintf(b, `<rect class="gap" x="%.1f" y="%d" width="%.1f" height="%d"><title>%s</title></rect>`+"\n", from, chartTop, max(1, to-from), chartHeight-chartTop-chartBottom,
			svgText("nothing was recorded from "+chartTime(g[0])+" to "+chartTime(g[1])))
	}
	fmt.Fprintf(b, `<path class="axis" fill="none" d="M%d %dV%dH%d"/>`+"\n", chartLeft, chartTop, chartHeight-chartBottom, chartWidth-margin)
	for _, v := range []float64{0, 0.5, 1} {
		fmt.Fprintf(b, `<text class="s" x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", chartLeft-6, y(v)+4, svgText(c.value(v*c.highest())))
	}
	fmt.Fprintf(b, `<text class="s" x="%d" y="%d">%s</text><text class="s" x="%d" y="%[2]d" text-anchor="end">%s</text>`+"\n", chartLeft, chartHeight-chartBottom+16, svgText(chartTime(c.From)), chartWidth-margin, svgText(chartTime(c.To)))
	for _, m := range c.Marks[:min(len(c.Marks), maxMarks)] {
		fmt.Fprintf(b, `<path class="mark" d="M%.1f %dv%d"><title>%s</title></path>`+"\n", x(c.Share(m.Time)), chartHeight-chartBottom, 8, svgText(chartTime(m.Time)+": "+m.Text))
	}
	for _, run := range c.Runs() {
		if len(run) == 1 {
			fmt.Fprintf(b, `<circle class="dot" cx="%.1f" cy="%.1f" r="1.5"/>`+"\n", x(run[0][0]), y(run[0][1]))
			continue
		}
		b.WriteString(`<polyline class="line" points="`)
		for i, p := range run {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(b, "%.1f,%.1f", x(p[0]), y(p[1]))
		}
		b.WriteString("\"/>\n")
	}
	if len(c.Points) == 0 {
		fmt.Fprintf(b, `<text class="s" x="%d" y="%d">no values were recorded</text>`+"\n", chartLeft+20, chartHeight/2)
	}
	b.WriteString("</svg>\n")
	return b.Flush()
}

func (c *Chart) value(v float64) string {
	text := strconv.FormatFloat(v, 'g', 4, 64)
	if c.Unit != "" {
		text += " " + c.Unit
	}
	return text
}

func chartTime(t time.Time) string { return t.Format("2006-01-02 15:04") }

func svgText(text string) string {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(strings.ToValidUTF8(text, "?")))
	return b.String()
}

// chartRows is how many lines a chart of text has.
const chartRows = 8

// Text returns the chart as text of so many columns: blocks, or # where blocks are not supported. A column
// has the highest value of its time; "?" stands where nothing was recorded, ^ below for events.
func (c *Chart) Text(columns int, blocks bool) string {
	label := 0
	for _, v := range []float64{0, 1} {
		label = max(label, len([]rune(c.value(v*c.highest()))))
	}
	width := min(200, max(20, columns-label-2))
	heights, known, marked := make([]float64, width), make([]bool, width), make([]bool, width)
	at := func(t time.Time) int { return min(width-1, int(c.Share(t)*float64(width))) }
	for _, p := range c.Points {
		for i := at(p.Time); i <= at(p.Time.Add(p.Width-1)); i++ {
			known[i] = true
			heights[i] = max(heights[i], p.Value/c.highest())
		}
	}
	for _, m := range c.Marks {
		marked[at(m.Time)] = true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", c.Title)
	for row := chartRows - 1; row >= 0; row-- {
		name := ""
		switch row {
		case chartRows - 1:
			name = c.value(c.highest())
		case 0:
			name = c.value(0)
		}
		fmt.Fprintf(&b, "%s%s ", strings.Repeat(" ", label-len([]rune(name))), name)
		line := make([]rune, width)
		for i := range line {
			switch level := heights[i]*chartRows - float64(row); {
			case !known[i] && row == 0:
				line[i] = '?'
			case !known[i] || level <= 0:
				line[i] = ' '
			case !blocks && (level >= 0.5 || row == 0):
				line[i] = '#'
			case !blocks:
				line[i] = ' '
			default:
				line[i] = []rune("▁▂▃▄▅▆▇█")[min(7, max(0, int(math.Ceil(level*8))-1))]
			}
		}
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	line := []rune(strings.Repeat(" ", width))
	for i, m := range marked {
		if m {
			line[i] = '^'
		}
	}
	if text := strings.TrimRight(string(line), " "); text != "" {
		fmt.Fprintf(&b, "%s %s\n", strings.Repeat(" ", label), text)
	}
	from, to := chartTime(c.From), chartTime(c.To)
	fmt.Fprintf(&b, "%s %s%s%s\n", strings.Repeat(" ", label), from, strings.Repeat(" ", max(1, width-len(from)-len(to))), to)
	for i, m := range c.Marks {
		if i == maxTold {
			fmt.Fprintf(&b, "^ and %d more events\n", len(c.Marks)-i)
			break
		}
		fmt.Fprintf(&b, "^ %s %s\n", chartTime(m.Time), m.Text)
	}
	for i, g := range c.Gaps {
		if i == maxTold {
			fmt.Fprintf(&b, "? and %d more gaps\n", len(c.Gaps)-i)
			break
		}
		fmt.Fprintf(&b, "? nothing was recorded from %s to %s\n", chartTime(g[0]), chartTime(g[1]))
	}
	return b.String()
}
