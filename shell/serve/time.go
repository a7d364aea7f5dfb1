package serve

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/diff"
	"fabsh/fabric/history"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// timeData is what the page Time shows.
type timeData struct {
	Empty      string
	From, To   time.Time
	Facts      []string
	T1, T2     string // as the fields have them
	Span       []choiceOf
	Line       *timeline
	Shown      string // the time of the page, in words
	Moments    []choice
	Diff       []item
	DiffHead   string
	DiffMore   int
	Maps       []mapView
	Incomplete []string
	Pages      []choice
	Hours      int // of the slider
	HoursBack  int
}

// fieldTime is how a field of a form has a time, UTC.
const fieldTime = "2006-01-02T15:04"

func (s *Site) timePage(v *view) error {
	v.Template, v.Tab, v.Title = "time", "time", "Time"
	d := &timeData{}
	v.Data = d
	h, err := s.historyStore(v.ctx)
	if err != nil {
		d.Empty = noHistory(err, "No history is kept: only the last reading can be shown. fabsh serve keeps a history unless --no-history is given; fabsh history import SNAPSHOT begins with older snapshots.")
		return nil
	}
	o, err := h.Overview(v.ctx)
	if err != nil {
		return err
	}
	if o.Cycles == 0 {
		d.Empty = "The history has no reading yet. Reload after the next cycle."
		return nil
	}
	d.From, d.To = o.From, o.To
	d.Facts = []string{"from " + when(o.From), "to " + when(o.To), plural.Count(o.Cycles, "reading", "readings"), plural.Count(o.Events, "event", "events"), fmt.Sprintf("%.1f MB", float64(o.Bytes)/1e6)}
	if o.Incomplete > 0 {
		d.Facts = append(d.Facts, plural.Count(o.Incomplete, "reading was", "readings were")+" not complete")
	}
	for _, g := range o.LongestGaps[:min(3, len(o.LongestGaps))] {
		d.Incomplete = append(d.Incomplete, "No reading from "+when(g.From)+" to "+when(g.To)+": events of that time are not known.")
	}
	span, err := v.one("span", "7d", "24h", "90d", "1y")
	if err != nil {
		return err
	}
	length := 7 * day
	for _, x := range spans[:4] {
		d.Span = append(d.Span, choiceOf{x.text, x.name == span, v.with("span", x.name)})
		if x.name == span {
			length = x.length
		}
	}
	d.Hours = int(length.Hours())
	d.HoursBack = d.Hours - min(d.Hours, max(0, int(o.To.Sub(v.moment.time).Hours())))
	d.Line, _ = s.line(v, o.To.Add(-length), o.To)
	d.Shown = when(v.moment.time)
	d.T1, d.T2 = v.moment.time.UTC().Format(fieldTime), o.To.UTC().Format(fieldTime)
	for _, p := range []string{"now", "map", "paths", "changes"} {
		d.Pages = append(d.Pages, choice{Text: strings.ToUpper(p[:1]) + p[1:], URL: v.to(p)})
	}
	// Moments just before what happened: the picture of then.
	if d.Line != nil {
		for _, x := range d.Line.Items {
			if x.Mark >= isSlow && len(d.Moments) < 20 {
				t := x.Time.Add(-time.Second)
				d.Moments = append(d.Moments, choice{Text: x.Text, Note: when(x.Time), URL: template.URL("/now?at=" + template.URLQueryEscaper(t.UTC().Format(time.RFC3339)))})
			}
		}
	}
	t1, t2 := v.query.Get("t1"), v.query.Get("t2")
	if t1 == "" {
		return nil
	}
	return s.compare(v, d, h, t1, t2)
}

// compare shows how the fabric differs between two times.
func (s *Site) compare(v *view, d *timeData, h *history.Store, t1, t2 string) error {
	var list []*moment
	for _, text := range []string{t1, t2} {
		if text == "" {
			text = "now"
		}
		t, err := history.ParseTime(text, s.Now())
		if err != nil {
			return badRequest("time %q: %v", fabric.Clip(text), err)
		}
		if t.Before(d.From) {
			d.Incomplete = append(d.Incomplete, "The history begins at "+when(d.From)+": compared from then, not from "+when(t)+".")
			t = d.From
		}
		m, err := s.momentAt(v.ctx, h, t)
		if err != nil {
			return notFound("%v", err)
		}
		list = append(list, m)
	}
	if list[1].time.Before(list[0].time) {
		slices.Reverse(list)
	}
	d.T1, d.T2 = list[0].time.UTC().Format(fieldTime), list[1].time.UTC().Format(fieldTime)
	for _, m := range list {
		for _, text := range m.incomplete() {
			d.Incomplete = append(d.Incomplete, when(m.time)+": "+text)
		}
	}
	events, err := h.Changes(v.ctx, list[0].time.Add(time.Second), list[1].time.Add(time.Second))
	if err != nil {
		return err
	}
	r, err := diff.Compare(v.ctx, list[0].fabric, list[1].fabric)
	if err != nil {
		d.DiffHead = "The two fabrics cannot be compared: " + clean(err.Error())
		return nil
	}
	var changes []item
	for _, c := range r.Changes {
		x := item{Key: clean(c.Kind), Mark: isSeen, Text: clean(c.Subject), Small: clean(c.Effect)}
		switch c.Kind {
		case diff.NodeGone, diff.LinkGone:
			x.Mark = isDown
		case diff.LinkWidth, diff.LinkSpeed, diff.LinkMoved, diff.LinkSwapped:
			x.Mark = isSlow
		}
		if c.Before != "" || c.After != "" {
			x.Text += ": " + clean(cmp.Or(c.Before, "nothing")) + " → " + clean(cmp.Or(c.After, "nothing"))
		}
		if c.GUID != 0 {
			x.URL = v.endURL(history.End{Node: c.GUID, Port: c.Port})
		}
		changes = append(changes, x)
	}
	differs := differing(r, list)
	for _, m := range list {
		x, err := v.mapOf(m, differs)
		if err != nil {
			d.Incomplete = append(d.Incomplete, "The map of "+when(m.time)+" is not drawn: "+clean(err.Error()))
			continue
		}
		d.Maps = append(d.Maps, x)
	}
	for _, text := range append(slices.Clone(r.NotCompared), r.Unread...) {
		d.Incomplete = append(d.Incomplete, "Not compared: "+clean(text))
	}
	d.DiffHead = fmt.Sprintf("%s between %s and %s; %s in between", plural.Count(len(changes), "difference", "differences"), when(list[0].time), when(list[1].time), plural.Count(len(events), "event", "events"))
	d.Diff, d.DiffMore = changes[:min(len(changes), maxItems)], max(0, len(changes)-maxItems)
	return nil
}

// mapView is the folded map of a time, with what differs from the other.
type mapView struct {
	Time time.Time
	Rows []tileRow
	URL  template.URL
}

// differing returns the nodes at which two fabrics differ: those of changes, and at the other end of links.
func differing(r *diff.Report, list []*moment) map[mad.GUID]bool {
	nodes := map[mad.GUID]bool{}
	for _, c := range r.Changes {
		if c.GUID == 0 {
			continue
		}
		nodes[c.GUID] = true
		for _, m := range list {
			for _, n := range m.fabric.NodeByGUID(c.GUID) {
				if p := n.Port(c.Port); c.Port > 0 && p != nil && p.Peer() != nil {
					nodes[p.Peer().Node().GUID()] = true
				}
			}
		}
	}
	return nodes
}

// mapOf returns the map of a fabric, with marks at the nodes that differ.
func (v *view) mapOf(m *moment, differs map[mad.GUID]bool) (x mapView, err error) {
	x.Time = m.time
	paint := &painter{m: m, by: byChanges, changed: map[history.End]bool{}, cells: differs}
	ladder, err := m.draw()
	if err != nil {
		return x, err
	}
	at := "at=" + template.URLQueryEscaper(m.time.UTC().Format(time.RFC3339))
	x.URL = template.URL("/map?" + at + "&by=changes")
	rows := map[string]int{}
	for _, g := range groups(ladder) {
		i, ok := rows[g.row]
		if !ok {
			i = len(x.Rows)
			rows[g.row] = i
			x.Rows = append(x.Rows, tileRow{Name: g.row})
		}
		t := (&view{site: v.site, request: v.request, ctx: v.ctx, query: v.query, moment: m}).tile(g, paint)
		if t.State == "changed" {
			t.State = "differs"
		}
		t.URL = template.URL("/map?" + at + "&open=" + g.id)
		x.Rows[i].Tiles = append(x.Rows[i].Tiles, t)
	}
	slices.Reverse(x.Rows)
	for i := range x.Rows {
		y := &x.Rows[i]
		y.Text = plural.Count(len(y.Tiles), "group", "groups")
		if all := len(y.Tiles); all > maxTiles/2 {
			y.Tiles = slices.DeleteFunc(y.Tiles, func(t tile) bool { return t.State != "differs" })
			y.Folded = fmt.Sprintf("%d of %d groups do not differ", all-len(y.Tiles), all)
			y.Tiles = y.Tiles[:min(len(y.Tiles), maxTiles)]
		}
		y.Columns = min(6, columns(len(y.Tiles)))
	}
	return x, nil
}

// changesData is what the page Changes shows.
type changesData struct {
	Kinds []choiceOf
	Spans []choiceOf
	Items []item
	More  int
	Empty string
	Acked []causeView
}

func (s *Site) changes(v *view) error {
	v.Template, v.Tab, v.Title = "changes", "changes", "Changes"
	d := &changesData{}
	v.Data = d
	kind, err := v.one("kind", "all", "link", "node", "cable", "sm", "change")
	if err != nil {
		return err
	}
	span, err := v.one("span", "24h", "7d", "90d", "1y")
	if err != nil {
		return err
	}
	for _, x := range [][2]string{{"all", "All"}, {"change", "Plans and remedies"}, {"link", "Links"}, {"node", "Nodes"}, {"cable", "Cables"}, {"sm", "Manager"}} {
		d.Kinds = append(d.Kinds, choiceOf{x[1], x[0] == kind, v.with("kind", x[0])})
	}
	length := day
	for _, x := range spans[:4] {
		d.Spans = append(d.Spans, choiceOf{x.text, x.name == span, v.with("span", x.name)})
		if x.name == span {
			length = x.length
		}
	}
	v.moment.read()
	for _, c := range v.moment.causes {
		if _, ok := v.given[c.ID]; ok && len(d.Acked) < maxRows {
			d.Acked = append(d.Acked, v.cause(c))
		}
	}
	for _, c := range v.moment.acked[:min(len(v.moment.acked), maxRows)] {
		d.Acked = append(d.Acked, v.cause(c))
	}
	h, err := s.historyStore(v.ctx)
	if err != nil {
		d.Empty = noHistory(err, "No history is kept, so changes are not known. fabsh serve keeps one unless --no-history is given.")
		return nil
	}
	v.data = v.address("api/events", "span", span)
	var kinds []string
	if kind != "all" {
		kinds = []string{kind}
		if kind == "change" {
			kinds = append(kinds, "ack") // people give both
		}
	}
	until := v.moment.time.Add(time.Second)
	events, err := h.Changes(v.ctx, until.Add(-length), until, kinds...)
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(events) {
		if len(d.Items) == 5*maxRows {
			d.More = len(events) - len(d.Items)
			break
		}
		_, k := laneOf(e.Kind)
		d.Items = append(d.Items, item{Time: e.Time, Mark: k, Text: clean(eventText(&e)), URL: v.eventURL(&e)})
	}
	gaps, err := h.Gaps(v.ctx, until.Add(-length), until)
	if err != nil {
		return err
	}
	for _, g := range gaps[:min(len(gaps), maxRows)] {
		d.Items = append(d.Items, item{Time: g.From, Mark: isNone, Text: "No reading until " + when(g.To) + ": changes of that time are not known"})
	}
	slices.SortStableFunc(d.Items, func(a, b item) int { return b.Time.Compare(a.Time) })
	if len(d.Items) == 0 {
		d.Empty = "Nothing of this kind changed in this time."
	}
	return nil
}
