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
	"fabsh/fabric/plural"
)

// remembered is the number of rounds in a trend.
const remembered = 24

// trend has the values of a port in the last rounds, the newest last, and its symbol
// errors and bits in total.
type trend struct {
	past         [numBy][]float32
	errors, bits float64
}

// table is the latest round, prepared for output.
type table struct {
	Options
	round round  // the latest with rows
	shown []*row // of it, sorted and filtered
	err   error  // why the latest round has no rows
	order []key  // of shown, for the next time
}

func newTable(o Options) *table { return &table{Options: o} }

// add adds the next round. After a failed one, the rows of the last stay.
func (t *table) add(r round) {
	t.err = r.err
	if r.err != nil {
		t.round.at, t.round.num, t.round.sent = r.at, r.num, r.sent
		return
	}
	t.goOn(r.rows)
	t.round = r
	t.arrange()
}

// goOn copies the trends of ports to their new rows.
func (t *table) goOn(rows []row) {
	old := t.round.rows
	var moved map[place]*trend // of old; nil: not needed yet
	for i := range rows {
		r := &rows[i]
		switch {
		case i < len(old) && old[i].place == r.place:
			r.trend = old[i].trend
		default:
			if moved == nil {
				moved = make(map[place]*trend, len(old))
				for j := range old {
					moved[old[j].place] = old[j].trend
				}
			}
			r.trend = moved[r.place]
		}
		if r.trend == nil {
			r.trend = new(trend)
		}
		r.trend.add(r)
	}
}

// add adds a round, and sets the row's bit error rate over all rounds.
func (x *trend) add(r *row) {
	if r.bits != unknown {
		x.errors += r.symbols
		x.bits += r.bits
		r.rate[BER], r.bits = x.errors/x.bits, x.bits
	}
	for by, v := range r.rate {
		p := &x.past[by]
		if len(*p) == remembered {
			copy(*p, (*p)[1:])
			*p = (*p)[:remembered-1]
		}
		*p = append(*p, float32(v))
	}
}

// key is a sort key of rows, and its position.
type key struct {
	value float64
	row   int
}

// arrange sorts and filters again.
func (t *table) arrange() {
	t.shown, t.order = t.shown[:0], t.order[:0]
	parts := strings.Split(t.Filter, "*")
	for i := range t.round.rows {
		r := &t.round.rows[i]
		if (t.Tier == "" || r.tier == t.Tier) && (like(parts, r.name) || like(parts, r.peer)) {
			t.order = append(t.order, key{rounded(r.rate[t.By]), i})
		}
	}
	slices.SortFunc(t.order, func(a, b key) int { return cmp.Or(cmp.Compare(b.value, a.value), a.row-b.row) })
	for _, k := range t.order {
		t.shown = append(t.shown, &t.round.rows[k.row])
	}
}

// rounded returns v in three digits, as displayed: rows that look equal keep their
// places.
func rounded(v float64) float64 {
	if v <= 0 {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	return math.Round(v/unit) * unit
}

// like reports whether name contains the parts of a pattern in their order, with any
// text between them.
func like(parts []string, name string) bool {
	for _, part := range parts {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return true
}

// summary returns the round in a line.
func (t *table) summary() string {
	if t.err != nil {
		first, _, _ := strings.Cut(t.err.Error(), "\n")
		return "connection to the fabric lost, retrying: " + lang.OneLine(first)
	}
	s := fmt.Sprintf("%s, by %s: %s", t.Name, Words[t.By], plural.Count(len(t.round.rows), "port", "ports"))
	if t.round.silent > 0 {
		s += fmt.Sprintf(", %d not answered", t.round.silent)
	}
	if t.round.lacks > 0 {
		s += fmt.Sprintf(", missing from the sweep: %s", plural.Count(t.round.lacks, "answer", "answers"))
	}
	s += fmt.Sprintf(", %s per round", plural.Count(int(t.round.sent), "datagram", "datagrams"))
	if t.round.ar != "" {
		s += "; " + t.round.ar
	}
	if t.Tier != "" {
		s += "; tier " + t.Tier
	}
	if t.Filter != "" {
		s += fmt.Sprintf("; %d like %s", len(t.shown), lang.OneLine(strconv.Quote(t.Filter)))
	}
	return s
}

// column is a column of numbers.
type column struct {
	head  string
	width int // of its cells
	from  int // the minimum width of the table with this column, unless the table is sorted by it
	by    By
	cell  func(r *row) string
}

var columns = []column{
	{"SENT b/s", 8, 0, Data, func(r *row) string { return si(r.rate[Data]) }},
	{"USE", 4, wide, -1, func(r *row) string { return percent(r.use) }},
	{"RECV b/s", 8, wide, -1, func(r *row) string { return si(r.received) }},
	{"WAIT/s", 6, 0, Wait, func(r *row) string { return si(r.rate[Wait]) }},
	{"SHARE", 5, 0, -1, func(r *row) string { return percent(r.share) }},
	{"ERR/s", 5, 0, Errors, func(r *row) string { return si(r.rate[Errors]) }},
	{"BER", 6, wide, BER, ber},
}

// wide is the width from which a table names the errors.
const wide = 100

// lines returns the head of the table and up to n rows from one on, none wider than
// width; 0 is unlimited, without a trend.
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
		if limit >= c.from || c.by == t.By {
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
	out := []string{line("PORT", "PEER", func(c column) string { return c.head }, "TREND", "ERRORS PER SECOND")}
	for i := range rows {
		r := rows[i]
		out = append(out, line(r.name, r.peer, func(c column) string { return c.cell(r) }, spark(r.trend.past[t.By], points), r.what))
	}
	return out
}

// pad fills s up to width columns.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-text.StringWidth(s)))
}

// tail returns the end of s, which has a port's number, in width columns.
func tail(s string, width int) string {
	if text.StringWidth(s) <= width {
		return s
	}
	if width == 0 {
		return ""
	}
	runes := []rune(s)
	from := len(runes)
	for room := width - 1; from > 0 && text.RuneWidth(runes[from-1]) <= room; from-- {
		room -= text.RuneWidth(runes[from-1])
	}
	return "…" + string(runes[from:])
}

var bars = []rune("▁▂▃▄▅▆▇█")

// spark draws the last n values, the largest of them as the highest bar. Unknown values
// are gaps.
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

// si formats v in three digits: 12.3G.
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

// ber returns the bit error rate; if no error was seen, an upper bound: for n bits 3/n,
// at 95 % (the rule of three).
func ber(r *row) string {
	switch v := r.rate[BER]; {
	case v < 0:
		return "?"
	case v > 0:
		return strconv.FormatFloat(v, 'e', 0, 64)
	}
	// Rounded up, except for the hundredth by which windows differ.
	unit := math.Pow(10, math.Floor(math.Log10(2.97/r.bits)))
	return "<" + strconv.FormatFloat(math.Ceil(2.97/r.bits/unit)*unit, 'e', 0, 64)
}

func percent(v float64) string {
	if v < 0 {
		return "?"
	}
	return strconv.FormatFloat(100*v, 'f', 0, 64) + "%"
}
