package serve

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/history"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// mapData is what the page Map shows.
type mapData struct {
	By     string
	Choose []choiceOf
	Orders []choiceOf
	Keys   []key2
	Rows   []tileRow
	Open   *opened
	Marked []item
	More   int
	Remark string
	Empty  string
	Zoom   int
	Zooms  []choiceOf
	Facts  string
}

type choiceOf struct {
	Text    string
	Current bool
	URL     template.URL
}

type key2 struct{ Class, Text string }

type tileRow struct {
	Name, Text string
	Tiles      []tile
	Folded     string // tiles without anything to report that are joined
	Columns    int
}

type tile struct {
	ID, Name, State string
	Mark            mark
	Open            bool
	URL             template.URL
	Cells           []cell
	W, H            int
}

type cell struct {
	X, Y, W, H int
	Class      string
}

// opened is a group that is unfolded: matrices.
type opened struct {
	Name    string
	Summary string
	Fold    template.URL
	Figures []figure
	Lines   []item
	More    int // lines that are left out
}

type figure struct {
	Title, Note string
	W, H, Left  int
	Top         int
	Wide, High  int // as drawn
	Rows        []label
	Columns     []label
	Cells       []linkCell
	Table       []item
}

type label struct {
	X, Y int
	Text string
	URL  template.URL
}

type linkCell struct {
	cell
	Title string
	URL   template.URL
	Cross bool
	Found bool
}

// group is what the map folds: a matrix of switches, and the links of its rows to hosts; or
// switches that are in no matrix.
type group struct {
	id, name string
	matrix   *picture.Matrix
	switches []*fabric.Node
	leaves   []*fabric.Node // with links to hosts
	row      string
}

// Colours of the map.
const (
	byState   = "state"
	byLoad    = "load"
	byErrors  = "errors"
	byChanges = "changes"
)

// groups returns what the map folds.
func groups(l *picture.Ladder) (list []*group) {
	seen := map[*fabric.Node]bool{}
	taken := map[*fabric.Node]bool{}
	count := map[string]int{}
	add := func(row, word string, m *picture.Matrix, nodes []*fabric.Node) {
		count[word]++
		g := &group{id: fmt.Sprintf("%s-%d", strings.ToLower(word), count[word]), name: fmt.Sprintf("%s %d", word, count[word]), matrix: m, switches: nodes, row: row}
		for _, n := range nodes {
			seen[n] = true
			if !taken[n] && len(hostPorts(n)) > 0 {
				taken[n] = true
				g.leaves = append(g.leaves, n)
			}
		}
		list = append(list, g)
	}
	for _, m := range l.Matrices {
		row, word := picture.TierName(m.Tiers[1])+" – "+picture.TierName(m.Tiers[0]), "Plane"
		switch {
		case m.Tiers[0] == m.Tiers[1]:
			word = "Group"
		case m.Tiers[0] <= 1:
			word = "Pod"
		}
		add(row, word, m, append(slices.Clone(m.Rows), m.Columns...))
	}
	for _, g := range l.Groups() {
		rest := slices.DeleteFunc(slices.Clone(g.Nodes), func(n *fabric.Node) bool { return seen[n] || !n.IsSwitch() })
		if len(rest) > 0 {
			add("Others", "Others", nil, rest)
		}
	}
	return list
}

func hostPorts(n *fabric.Node) (list []*fabric.Port) {
	for p := range n.Ports() {
		if q := p.Peer(); q != nil && !q.Node().IsSwitch() || p.PeerUnknown() {
			list = append(list, p)
		}
	}
	return list
}

// painter gives classes to links by what the map is coloured by.
type painter struct {
	m       *moment
	by      string
	changed map[history.End]bool
	nodes   map[mad.GUID]bool
	cells   map[mad.GUID]bool // nodes whose own cell is marked
}

// shade is the class of a value of one hue.
func shade(level int) string { return "r" + strconv.Itoa(min(max(level, 0), 4)) }

// of returns the class of the links at ports, the worst of them, what to say, and how bad it is.
func (p *painter) of(ports []*fabric.Port) (class, text string, rank float64) {
	worst, load, errors, known, changed := isFine, 0.0, 0.0, false, false
	for _, x := range ports {
		worst = max(worst, p.m.stateOf(x))
		ends := []*fabric.Port{x}
		if q := x.Peer(); q != nil {
			ends = append(ends, q)
		}
		for _, e := range ends {
			changed = changed || p.changed[endOf(e)] || p.nodes[e.Node().GUID()]
			f, ok := p.m.figuresOf(e)
			if ok && !math.IsNaN(float64(f.load)) && p.by == byLoad {
				load, known = max(load, float64(f.load)), true
			}
			if ok && !math.IsNaN(float64(f.errors)) && p.by == byErrors {
				errors, known = max(errors, float64(f.errors)), true
			}
		}
	}
	switch p.by {
	case byLoad:
		if !known {
			return "none", "load not known", -1
		}
		return shade(int(load * 5)), fmt.Sprintf("%.0f %%", 100*load), load
	case byErrors:
		if !known {
			return "none", "errors not known", -1
		}
		level := 0
		if errors > 0 {
			level = 1 + int(math.Log10(errors))
		}
		return shade(level), fmt.Sprintf("%.0f errors", errors), errors
	case byChanges:
		if p.changed == nil {
			return "none", "changes not known", -1
		}
		if changed {
			return "plan", "changed", 1
		}
		return "ok", "unchanged", 0
	}
	class = worst.Class()
	if worst == isFine {
		return "ok", "as expected", 0
	}
	return class, map[mark]string{isSeen: "acknowledged", isNone: "not known", isSlow: "slow or a warning", isDown: "not active or an error"}[worst], float64(worst)
}

const (
	cellSize  = 14
	maxMarked = 50
	maxTiles  = 72
	// maxMatrix limits the rows and the columns of a matrix, maxTile the switches of a tile.
	maxMatrix = 160
	maxTile   = 400
)

func (s *Site) mapPage(v *view) error {
	m := v.moment
	v.Template, v.Tab, v.Title = "map", "map", "Map"
	by, err := v.one("by", byState, byLoad, byErrors, byChanges)
	if err != nil {
		return err
	}
	zoom, err := v.one("zoom", "100", "150", "200", "400")
	if err != nil {
		return err
	}
	v.data = v.address("api/links")
	order, err := v.one("order", byGroups, byTiers, byRails, byRacks)
	if err != nil {
		return err
	}
	d := &mapData{By: by}
	d.Zoom, _ = strconv.Atoi(zoom)
	v.Data = d
	if m.fabric == nil {
		d.Empty = "The fabric was not read."
		return nil
	}
	m.read()
	for _, x := range []string{byState, byLoad, byErrors, byChanges} {
		d.Choose = append(d.Choose, choiceOf{strings.ToUpper(x[:1]) + x[1:], x == by, v.with("by", x)})
	}
	for _, x := range orderWords {
		q := v.with("order", x[0])
		d.Orders = append(d.Orders, choiceOf{x[1], x[0] == order, withoutParam(q, "open")})
	}
	for _, x := range []string{"100", "150", "200", "400"} {
		d.Zooms = append(d.Zooms, choiceOf{x + " %", x == zoom, v.with("zoom", x)})
	}
	d.Keys = keysOf(by)
	ladder, err := m.draw()
	if err != nil {
		return err
	}
	hosts, switches, links := m.counts()
	d.Facts = fmt.Sprintf("%s hosts, %s switches, %s links.", number(hosts), number(switches), number(links))
	if !m.fabric.Complete() {
		d.Facts += " A part was not read: it may have more."
	}
	paint := &painter{m: m, by: by}
	switch by {
	case byLoad, byErrors:
		if len(m.figures) == 0 {
			d.Remark = "Counters of that time are not read, so nothing is coloured. The page of a link has its course."
			if !m.isPast {
				d.Remark = "Rates need two readings of the counters. Reload after the next cycle."
			}
		}
	case byChanges:
		d.Remark = s.changedSince(v, paint)
	}
	list, unknown := v.groupsBy(order, ladder)
	if unknown != "" {
		d.Remark = strings.TrimSpace(d.Remark + " " + unknown)
		return nil
	}
	if len(list) == 0 {
		d.Empty = "The fabric has no switch, so there is nothing to fold. All nodes are in the search."
		return nil
	}
	open := s.openOf(v, list, paint)
	rows := map[string]int{}
	for _, g := range list {
		i, ok := rows[g.row]
		if !ok {
			i = len(d.Rows)
			rows[g.row] = i
			d.Rows = append(d.Rows, tileRow{Name: g.row})
		}
		t := v.tile(g, paint)
		t.Open = g == open
		d.Rows[i].Tiles = append(d.Rows[i].Tiles, t)
	}
	if order == byGroups {
		slices.Reverse(d.Rows) // the top first
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		r.Text = plural.Count(len(r.Tiles), "group", "groups")
		if len(r.Tiles) > maxTiles {
			all := len(r.Tiles)
			r.Tiles = slices.DeleteFunc(r.Tiles, func(t tile) bool { return t.Mark == isFine && !t.Open })
			r.Folded = fmt.Sprintf("%d of %d groups have nothing to report", all-len(r.Tiles), all)
			r.Tiles = r.Tiles[:min(len(r.Tiles), 4*maxTiles)]
		}
		r.Columns = columns(len(r.Tiles))
	}
	if open != nil {
		d.Open = v.opened(open, paint)
	}
	for _, c := range append(slices.Clone(m.causes), m.acked...) {
		if len(d.Marked) == maxMarked {
			d.More++
			continue
		}
		d.Marked = append(d.Marked, item{Mark: c.Mark(), Text: v.subject(c), Small: c.Message, URL: v.where(c)})
	}
	return nil
}

// columns returns how many tiles are in a row: the largest divisor of n up to 12, or 12.
func columns(n int) int {
	for c := min(n, 12); c > 5; c-- {
		if n%c == 0 {
			return c
		}
	}
	return max(1, min(n, 12))
}

func keysOf(by string) []key2 {
	switch by {
	case byLoad:
		return []key2{{"r0", "below 20 %"}, {"r1", "20 to 40 %"}, {"r2", "40 to 60 %"}, {"r3", "60 to 80 %"}, {"r4", "80 % and more"}, {"none", "not known"}}
	case byErrors:
		return []key2{{"r0", "no errors"}, {"r1", "up to 9"}, {"r2", "10 to 99"}, {"r3", "100 to 999"}, {"r4", "1,000 and more since the last reading"}, {"none", "not known"}}
	case byChanges:
		return []key2{{"ok", "unchanged"}, {"plan", "changed in the last 24 h"}, {"none", "not known"}}
	}
	return []key2{{"ok", "up, as expected"}, {"slow", "slow or narrow, or a warning"}, {"down", "down or missing, or an error"}, {"seen", "acknowledged"}, {"none", "not known"}}
}

// changedSince sets what changed within a day, and returns why that is not known.
func (s *Site) changedSince(v *view, p *painter) string {
	h, err := s.historyStore(v.ctx)
	if err != nil {
		return "No history is kept, so changes are not known."
	}
	events, err := h.Changes(v.ctx, v.moment.time.Add(-day), v.moment.time.Add(1))
	if err != nil {
		return clean(err.Error())
	}
	p.changed, p.nodes = map[history.End]bool{}, map[mad.GUID]bool{}
	for _, e := range events {
		switch {
		case e.Kind == history.CounterCleared:
		case e.Port < 0:
			p.nodes[e.Node] = true
		default:
			p.changed[history.End{Node: e.Node, Port: e.Port}] = true
			p.changed[history.End{Node: e.PeerNode, Port: e.PeerPort}] = true
		}
	}
	return ""
}

// openOf returns the group that is open: the one in the address, the one with a node that is searched
// for, or the one with the worst state; a fabric of one group is open.
func (s *Site) openOf(v *view, list []*group, p *painter) *group {
	want := v.query.Get("open")
	if q := v.query.Get("q"); q != "" && want == "" {
		nodes := v.moment.fabric.NodeByName(q)
		for _, n := range nodes {
			if n.IsSwitch() {
				continue
			}
			for port := range n.Ports() {
				if port.Peer() != nil {
					nodes = append(nodes, port.Peer().Node())
				}
			}
		}
		for _, g := range list {
			if slices.ContainsFunc(nodes, func(n *fabric.Node) bool { return slices.Contains(g.switches, n) }) {
				return g
			}
		}
	}
	for _, g := range list {
		if g.id == want {
			return g
		}
	}
	if want == "none" || want != "" {
		return nil
	}
	if len(list) == 1 {
		return list[0]
	}
	var worst *group
	rank := isSeen
	for _, g := range list {
		if k := v.worst(g, p); k > rank {
			worst, rank = g, k
		}
	}
	return worst
}

func portsOf(n *fabric.Node) (list []*fabric.Port) {
	for p := range n.Ports() {
		if p.Peer() != nil || p.PeerUnknown() {
			list = append(list, p)
		}
	}
	return list
}

// own returns the ports of a switch whose links a group has.
func (g *group) own(n *fabric.Node) (list []*fabric.Port) {
	for _, p := range portsOf(n) {
		if q := p.Peer(); q == nil || !q.Node().IsSwitch() && slices.Contains(g.leaves, n) || g.matrix == nil {
			list = append(list, p)
		}
	}
	if m := g.matrix; m != nil {
		if r := slices.Index(m.Rows, n); r >= 0 {
			for _, ports := range m.Links[r] {
				list = append(list, ports...)
			}
		} else if c := slices.Index(m.Columns, n); c >= 0 {
			for r := range m.Rows {
				list = append(list, m.Links[r][c]...)
			}
		}
	}
	return list
}

// missing returns how many links cells of a group have less than most.
func (g *group) missing() (n int) {
	if g.matrix == nil || g.matrix.Tiers[0] == g.matrix.Tiers[1] {
		return 0
	}
	for r := range g.matrix.Rows {
		for c := range g.matrix.Columns {
			n += g.matrix.Missing(r, c)
		}
	}
	return n
}

func (v *view) worst(g *group, p *painter) mark {
	k := isFine
	if g.missing() > 0 {
		k = isDown
	}
	for _, n := range g.switches {
		k = max(k, v.moment.nodes[n.GUID()])
		for _, x := range append(g.own(n), v.moment.lost(n)...) {
			k = max(k, v.moment.stateOf(x), v.moment.lone[endOf(x)])
		}
	}
	return k
}

// tile returns the tile of a group.
func (v *view) tile(g *group, p *painter) tile {
	t := tile{ID: g.id, Name: g.name, URL: v.with("open", g.id)}
	counts, counted := map[mark]int{}, map[*fabric.Port]bool{} // a link once
	highest, text := -1.0, ""
	per := 12
	for i, n := range g.switches {
		ports := g.own(n)
		class, state, rank := p.of(ports)
		if p.cells[n.GUID()] {
			class, state, rank = "plan", "changed", 1
		}
		if p.by == byState {
			k := v.moment.nodes[n.GUID()]
			for _, x := range v.moment.lost(n) {
				k = max(k, v.moment.lone[endOf(x)])
			}
			if k > isFine && (class == "ok" || float64(k) > rank) {
				class = k.Class()
			}
		}
		if i < maxTile {
			t.Cells = append(t.Cells, cell{X: i % per * 8, Y: i / per * 8, W: 7, H: 7, Class: class})
		}
		if rank > highest {
			highest, text = rank, state
		}
		for _, x := range ports {
			if q := x.Peer(); !counted[x] && (q == nil || !counted[q]) {
				counted[x] = true
				counts[v.moment.stateOf(x)]++
			}
		}
		if k := v.moment.nodes[n.GUID()]; k > isFine {
			counts[k]++
		}
		for _, x := range v.moment.lost(n) {
			counts[v.moment.lone[endOf(x)]]++
		}
	}
	missing := g.missing()
	t.W, t.H = per*8, (min(len(g.switches), maxTile)+per-1)/per*8
	switch {
	case p.by != byState:
		t.State = text
		if highest > 0 && p.by != byChanges {
			t.State = "max " + text
		}
	case counts[isDown] > 0 && missing > 0:
		t.Mark, t.State = isDown, fmt.Sprintf("%d missing, %s", missing, plural.Count(counts[isDown], "error", "errors"))
	case counts[isDown] > 0:
		t.Mark, t.State = isDown, plural.Count(counts[isDown], "error", "errors")
	case missing > 0:
		t.Mark, t.State = isDown, fmt.Sprintf("%d missing", missing)
	case counts[isSlow] > 0:
		t.Mark, t.State = isSlow, fmt.Sprintf("%d slow or warned", counts[isSlow])
	case counts[isNone] > 0:
		t.Mark, t.State = isNone, fmt.Sprintf("%d not known", counts[isNone])
	case counts[isSeen] > 0:
		t.Mark, t.State = isSeen, fmt.Sprintf("%d known", counts[isSeen])
	default:
		t.State = "as expected"
	}
	if p.by != byState && highest > 0 {
		t.Mark = isFine
	}
	return t
}

// opened returns the matrices of a group.
func (v *view) opened(g *group, p *painter) *opened {
	o := &opened{Name: g.name, Fold: v.with("open", "none")}
	found := v.query.Get("q")
	if m := g.matrix; m != nil {
		f := figure{Title: fmt.Sprintf("%s – %s", picture.TierName(m.Tiers[0]), picture.TierName(m.Tiers[1])), Note: "rows and columns are switches; a cell is the links between two"}
		rows, cols := min(len(m.Rows), maxMatrix), min(len(m.Columns), maxMatrix)
		if rows < len(m.Rows) || cols < len(m.Columns) {
			f.Note = fmt.Sprintf("the first %d of %d rows and %d of %d columns", rows, len(m.Rows), cols, len(m.Columns))
		}
		f.frame(v, m.Rows[:rows], m.Columns[:cols], found)
		links := 0
		for r := range rows {
			for c := range cols {
				ports := m.Links[r][c]
				links += len(ports)
				short := 0
				if m.Tiers[0] != m.Tiers[1] {
					short = m.Missing(r, c)
				}
				if len(ports) == 0 && short == 0 {
					continue
				}
				class, text, _ := "down", "no link; others have "+strconv.Itoa(m.Expected), 0.0
				x := linkCell{cell: cell{X: f.Left + c*cellSize, Y: f.Top + r*cellSize, W: cellSize - 1, H: cellSize - 1}}
				if len(ports) > 0 {
					class, text, _ = p.of(ports)
					x.URL = v.linkURL(worstOf(v.moment, ports))
					if short > 0 && p.by == byState {
						class, text = "down", fmt.Sprintf("%d missing of %d", short, m.Expected)
					}
				}
				x.Class, x.Cross = class, class == "down"
				x.Title = nodeName(m.Rows[r]) + " – " + nodeName(m.Columns[c]) + ": " + text
				f.add(x)
			}
		}
		o.Summary = plural.Count(links, "link", "links") + " between switches"
		if n := g.missing(); n > 0 {
			o.Summary += fmt.Sprintf(", %d missing", n)
		}
		o.Figures = append(o.Figures, f)
	}
	if len(g.leaves) > 0 {
		f := figure{Title: "Leaf – hosts", Note: "rows: switches, columns: their ports to hosts, in order"}
		rows := g.leaves[:min(len(g.leaves), maxMatrix)]
		f.frame(v, rows, nil, found)
		hosts, most := 0, 0
		for r, n := range rows {
			for c, port := range hostPorts(n) {
				if c == maxMatrix {
					break
				}
				hosts++
				most = max(most, c+1)
				class, text, _ := p.of([]*fabric.Port{port})
				x := linkCell{cell: cell{X: f.Left + c*cellSize, Y: f.Top + r*cellSize, W: cellSize - 1, H: cellSize - 1, Class: class}, URL: v.linkURL(port), Cross: class == "down"}
				other := "unknown"
				if q := port.Peer(); q != nil {
					other = nodeName(q.Node())
					x.Found = found != "" && q.Node().Name() == found
				}
				x.Title = nodeName(n) + "/" + strconv.Itoa(port.Num()) + " – " + other + ": " + text
				f.add(x)
			}
		}
		f.W = f.Left + most*cellSize + 4
		f.scale()
		o.Figures = append(o.Figures, f)
		if o.Summary != "" {
			o.Summary += ", "
		}
		o.Summary += plural.Count(hosts, "link", "links") + " to hosts"
	}
	if g.matrix == nil && len(g.leaves) < len(g.switches) {
		o.Lines, o.More = v.linesOf(g)
		if o.Summary == "" {
			o.Summary = plural.Count(len(g.switches), "node", "nodes")
		}
	}
	var lost []item
	for _, n := range g.switches {
		for _, x := range v.moment.lost(n) {
			if len(lost) < maxMarked {
				lost = append(lost, item{Mark: v.moment.lone[endOf(x)], Text: nodeName(n) + "/" + strconv.Itoa(x.Num()) + ": no link, and a finding", URL: v.linkURL(x)})
			}
		}
	}
	o.Lines = append(lost, o.Lines...)
	return o
}

// top is the room for the labels of columns.
const top = 74

// frame sets the labels and the size of a figure.
func (f *figure) frame(v *view, rows, columns []*fabric.Node, found string) {
	longest := 4
	for _, n := range rows {
		longest = max(longest, len([]rune(short(n))))
	}
	f.Left = 7*longest + 6
	f.Top = 4
	if len(columns) > 0 {
		f.Top = top
	}
	f.W, f.H = f.Left+len(columns)*cellSize+4, f.Top+len(rows)*cellSize+2
	f.scale()
	for i, n := range rows {
		f.Rows = append(f.Rows, label{f.Left - 5, f.Top + i*cellSize + 11, short(n), v.nodeURL(n)})
	}
	for i, n := range columns {
		f.Columns = append(f.Columns, label{f.Left + i*cellSize + 11, top - 5, short(n), v.nodeURL(n)})
	}
}

// scale sets the size in which a figure is drawn: a small one is drawn larger.
func (f *figure) scale() {
	f.Wide, f.High = f.W, f.H
	if f.W <= 24*cellSize && f.H <= 30*cellSize {
		f.Wide, f.High = f.W*3/2, f.H*3/2
	}
}

// short returns the name of a node in a picture.
func short(n *fabric.Node) string {
	return strings.Trim(picture.NodeName(n, 14), "\u2068\u2069")
}

// add adds a cell, and if it is bad, a line that states so.
func (f *figure) add(x linkCell) {
	f.Cells = append(f.Cells, x)
	if (x.Class == "down" || x.Class == "slow") && len(f.Table) < maxMarked {
		f.Table = append(f.Table, item{Mark: mark(slices.Index(markClasses, x.Class)), Text: x.Title, URL: x.URL})
	}
}

// worstOf returns the port whose link is in the worst state.
func worstOf(m *moment, ports []*fabric.Port) *fabric.Port {
	return slices.MaxFunc(ports, func(a, b *fabric.Port) int { return int(m.stateOf(a)) - int(m.stateOf(b)) })
}
