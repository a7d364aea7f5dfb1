package top

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"fabsh/builtins/lang"
)

// remembered is how many rounds a trend is of.
const remembered = 24

// trend is what a port did in the last rounds, the newest last.
type trend [numBy][]float32

// table is the latest round as it is to be shown.
type table struct {
	Options
	round  round // the latest that had rows
	shown  []row // of it, sorted and filtered
	err    error // why the latest round has none
	trends map[place]*trend
}

func newTable(o Options) *table { return &table{Options: o, trends: map[place]*trend{}} }

// add takes over the next round. Of one that failed, what was there stays.
func (t *table) add(r round) {
	t.err = r.err
	if r.err != nil {
		t.round.at, t.round.num, t.round.sent = r.at, r.num, r.sent
		return
	}
	t.round = r
	trends := make(map[place]*trend, len(r.rows)) // without those of ports that have gone
	for i := range r.rows {
		row := &r.rows[i]
		x := t.trends[row.place]
		if x == nil {
			x = new(trend)
		}
		for by, v := range row.rate {
			if len(x[by]) == remembered {
				x[by] = append(x[by][:0], x[by][1:]...)
			}
			x[by] = append(x[by], float32(v))
		}
		trends[row.place] = x
	}
	t.trends = trends
	t.arrange()
}

// arrange sorts and filters anew.
func (t *table) arrange() {
	t.shown = t.shown[:0]
	for _, r := range t.round.rows {
		if like(t.Filter, r.name) || like(t.Filter, r.peer) {
			t.shown = append(t.shown, r)
		}
	}
	slices.SortStableFunc(t.shown, func(a, b row) int { return cmp.Compare(rounded(b.rate[t.By]), rounded(a.rate[t.By])) })
}

// rounded is v in three digits, as it is shown: rows that look alike keep their places.
func rounded(v float64) float64 {
	if v <= 0 {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	return math.Round(v/unit) * unit
}

// like: pattern is in name, * in it stands for any text.
func like(pattern, name string) bool {
	for part := range strings.SplitSeq(pattern, "*") {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return true
}

// summary is the round in a line.
func (t *table) summary() string {
	if t.err != nil {
		first, _, _ := strings.Cut(t.err.Error(), "\n")
		return "the fabric is lost, and tried again: " + lang.OneLine(first)
	}
	s := fmt.Sprintf("%s, by %s: %s", t.Name, Words[t.By], lang.Count(len(t.round.rows), "port"))
	if t.round.silent > 0 {
		s += fmt.Sprintf(", %d without an answer", t.round.silent)
	}
	if t.round.lacks > 0 {
		s += fmt.Sprintf(", the sweep lacks %s", lang.Count(t.round.lacks, "answer"))
	}
	s += fmt.Sprintf(", %s a round", lang.Count(int(t.round.sent), "datagram"))
	if t.Filter != "" {
		s += fmt.Sprintf("; %d like %s", len(t.shown), lang.OneLine(strconv.Quote(t.Filter)))
	}
	return s
}

// column is one of numbers.
type column struct {
	head  string
	width int // of its cells
	from  int // how wide the table must be to have it
	cell  func(r *row) string
}

var columns = []column{
	{"SENT b/s", 8, 0, func(r *row) string { return si(r.rate[Data]) }},
	{"USE", 4, wide, func(r *row) string { return percent(r.use) }},
	{"RECV b/s", 8, wide, func(r *row) string { return si(r.received) }},
	{"WAIT/s", 6, 0, func(r *row) string { return si(r.rate[Wait]) }},
	{"SHARE", 5, 0, func(r *row) string { return percent(r.share) }},
	{"ERR/s", 5, 0, func(r *row) string { return si(r.rate[Errors]) }},
}

// wide is from where on a table says which errors there are.
const wide = 100

// lines are the head of the table and up to n rows from one on, none wider than
// width; 0: that is no limit, and there is no trend.
func (t *table) lines(width, from, n int) []string {
	from = max(0, min(from, len(t.shown)))
	rows := t.shown[from:min(len(t.shown), from+max(0, n))]
	points, limit := 0, width
	switch {
	case width == 0:
		limit = 1 << 16
	case width >= wide:
		points = remembered
	default:
		points = 10
	}
	left := limit - points - 3
	var cols []column
	for _, c := range columns {
		if limit >= c.from {
			cols = append(cols, c)
			left -= c.width + 1
		}
	}
	name, peer := len("PORT"), len("PEER")
	for i := range rows {
		name, peer = max(name, text.StringWidth(rows[i].name)), max(peer, text.StringWidth(rows[i].peer))
	}
	left = max(0, left)
	name, peer = min(name, max(left/2, left-peer)), min(peer, max(left/2, left-name))
	line := func(a, b string, cell func(column) string, trend, what string) string {
		var s strings.Builder
		s.WriteString(pad(tail(a, name), name) + " " + pad(tail(b, peer), peer))
		for _, c := range cols {
			fmt.Fprintf(&s, " %*s", c.width, cell(c))
		}
		if points > 0 {
			s.WriteString(" " + pad(trend, points))
		}
		if limit >= wide {
			s.WriteString(" " + what)
		}
		return strings.TrimRight(text.Trim(s.String(), limit), " ")
	}
	out := []string{line("PORT", "PEER", func(c column) string { return c.head }, "TREND", "ERRORS A SECOND")}
	for i := range rows {
		r := &rows[i]
		out = append(out, line(r.name, r.peer, func(c column) string { return c.cell(r) }, spark(t.trends[r.place][t.By], points), r.what))
	}
	return out
}

// pad fills s up to width columns.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-text.StringWidth(s)))
}

// tail is the end of s, which has a port's number, in width columns.
func tail(s string, width int) string {
	if text.StringWidth(s) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && text.StringWidth(string(runes))+1 > width {
		runes = runes[1:]
	}
	if width == 0 {
		return ""
	}
	return "…" + string(runes)
}

var bars = []rune("▁▂▃▄▅▆▇█")

// spark draws the last n values, the largest of them as the highest bar. What is
// not known is a gap.
func spark(values []float32, n int) string {
	values = values[max(0, len(values)-n):]
	top := float32(0)
	for _, v := range values {
		top = max(top, v)
	}
	var b strings.Builder
	for _, v := range values {
		switch {
		case v < 0:
			b.WriteRune(' ')
		case top == 0:
			b.WriteRune(bars[0])
		default:
			b.WriteRune(bars[int(v/top*float32(len(bars)-1)+0.5)])
		}
	}
	return b.String()
}

// si is v in three digits: 12.3G.
func si(v float64) string {
	if v < 0 {
		return "?"
	}
	units := "kMGTPE"
	unit := ""
	for v >= 999.5 && units != "" {
		v, unit, units = v/1000, units[:1], units[1:]
	}
	digits := 2
	switch {
	case v >= 99.95:
		digits = 0
	case v >= 9.995:
		digits = 1
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if digits > 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "0" && v > 0 {
		s = "<.01"
	}
	return s + unit
}

func percent(v float64) string {
	if v < 0 {
		return "?"
	}
	return strconv.FormatFloat(100*v, 'f', 0, 64) + "%"
}
