package serve

import (
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// nowData is what the page Now shows.
type nowData struct {
	Class    string // of the verdict
	Verdict  string
	Rest     string // what is as it should be, or not known
	Facts    []string
	Causes   []causeView
	More     int
	Acked    []causeView
	Gone     []item // findings that ended in the last day
	Unjudged []string
	Line     *timeline
	NoLine   string
	Proved   []item
	Empty    string
	Repeat   *offendersData
}

// causeView is a cause on a page.
type causeView struct {
	*cause
	URL, Explain, Acknowledge template.URL
	Now                       time.Time
}

// item is a line of a list.
type item struct {
	Time  time.Time
	Key   string // instead of the time
	Mark  mark
	Text  string
	URL   template.URL
	Small string
}

const maxCauses = 100

// day is how far back Now looks.
const day = 24 * time.Hour

func (s *Site) now(v *view) error {
	m := v.moment
	v.Template, v.Tab, v.Title = "now", "now", "Now"
	if v.data = v.address("api/audit_report"); m.isPast {
		v.data = v.address("api/findings")
	}
	m.read()
	d := &nowData{Unjudged: m.incomplete()}
	v.Data = d
	end := m.time
	if m.fabric == nil {
		d.Class, d.Verdict = "none", "The fabric was not read."
		return nil
	}
	d.Line, d.NoLine = s.line(v, end.Add(-day), end)
	downs, gone := m.losses(d.Line)
	d.verdict(m, v, downs, gone)
	for i, c := range m.causes {
		if i == maxCauses {
			d.More = len(m.causes) - i
			break
		}
		d.Causes = append(d.Causes, v.cause(c))
	}
	for _, c := range m.acked[:min(len(m.acked), maxCauses)] {
		d.Acked = append(d.Acked, v.cause(c))
	}
	d.Repeat = s.offendersData(v, offendersWait)
	d.Repeat.All = v.to("offenders")
	return nil
}

// losses counts the links that are down and the nodes that are gone: by the events of a time line, which may be
// missing, and by the findings, which also know what is older. After the clock was set back events are later than the page.
func (m *moment) losses(t *timeline) (downs, gone int) {
	var all, older [2]int
	for _, c := range m.causes {
		i := slices.Index([]string{"link.down", "node.gone"}, c.Check)
		if i < 0 {
			continue
		}
		if all[i]++; t == nil || c.Since.Before(t.From) {
			older[i]++
		}
	}
	if t == nil {
		return all[0], all[1]
	}
	return max(all[0], t.down+older[0]), max(all[1], t.gone+older[1])
}

// subject returns what a cause is about: of a node that is gone its name, too.
func (v *view) subject(c *cause) string {
	if len(c.Ends) == 1 && c.Subject == c.Ends[0].Node.String() {
		if g := v.goneNode(c.Ends[0].Node); g != nil {
			return clean(g.Subject)
		}
	}
	return c.Subject
}

func (v *view) cause(c *cause) causeView {
	x := causeView{cause: c, URL: v.where(c), Explain: v.to("help", "check", c.Check), Now: v.moment.time}
	c2 := *c
	c2.Subject = v.subject(c)
	if a, ok := v.given[c.ID]; ok && c.Ack == nil {
		c2.Ack = &audit.Ack{By: a.By, Reason: a.Reason, Until: a.Until}
	}
	c2.New = !c.Since.IsZero() && v.moment.time.Sub(c.Since) < day
	x.cause = &c2
	if v.Acks && !v.moment.isPast && c2.Ack == nil {
		x.Acknowledge = template.URL("/ack?id=" + template.URLQueryEscaper(c.ID))
	}
	return x
}

// verdict sets the sentence: what is wrong, whether hosts feel it, and what is not known.
func (d *nowData) verdict(m *moment, v *view, downs, gone int) {
	hosts, switches, links := m.counts()
	slow, errors, warnings, fresh := 0, 0, 0, 0
	slow = m.slow
	for _, c := range m.causes {
		switch c.Mark() {
		case isDown:
			errors++
		case isSlow:
			warnings++
		}
		if !c.Since.IsZero() && m.time.Sub(c.Since) < day {
			fresh++
		}
	}
	var bad []string
	if gone > 0 {
		bad = append(bad, plural.Count(gone, "node is", "nodes are")+" gone")
	}
	if downs > 0 {
		bad = append(bad, plural.Count(downs, "link is", "links are")+" down")
	}
	if slow > 0 {
		bad = append(bad, plural.Count(slow, "link is", "links are")+" slow")
	}
	if len(bad) == 0 && errors+warnings > 0 {
		bad = append(bad, plural.Count(errors+warnings, "cause needs", "causes need")+" work")
	}
	parts := m.fabric.Parts()
	switch {
	case len(parts) > 1:
		bad = append(bad, fmt.Sprintf("the fabric has %d parts that are not connected", len(parts)))
	case v.Stale != "":
		d.Rest = v.Stale
	case !m.fabric.Complete():
		d.Rest = "A part of the fabric was not read, so its state is not known."
	case hosts > 0 && gone > 0:
		d.Rest = fmt.Sprintf("All %s hosts that answer are connected by links.", number(hosts))
	case hosts > 0:
		d.Rest = fmt.Sprintf("All %s hosts are connected by links.", number(hosts))
	}
	if len(bad) > 0 {
		d.Verdict = strings.Join(bad, ", ") + "."
		d.Verdict = strings.ToUpper(d.Verdict[:1]) + d.Verdict[1:]
	}
	switch {
	case downs > 0 || gone > 0 || errors > 0 || len(parts) > 1:
		d.Class = "down"
	case slow > 0 || warnings > 0:
		d.Class = "slow"
	case v.Stale != "" || !m.fabric.Complete() || len(d.Unjudged) > 0 || m.report == nil:
		d.Class = "none"
		d.Verdict = "No findings in what was judged."
		if m.isPast {
			d.Verdict = "No findings were open then."
		}
		if m.report != nil && len(d.Unjudged) > 0 && m.fabric.Complete() {
			d.Rest += " Some checks were not done."
		}
	default:
		d.Verdict = "No findings."
	}
	if len(m.causes) > 0 {
		d.Facts = append(d.Facts, plural.Count(fresh, "cause is", "causes are")+" new since yesterday")
	}
	if n := len(m.acked); n > 0 {
		d.Facts = append(d.Facts, plural.Count(n, "finding is", "findings are")+" acknowledged")
	}
	if n := len(d.Unjudged); n > 0 {
		d.Facts = append(d.Facts, plural.Count(n, "thing is", "things are")+" not judged")
	}
	d.Facts = append(d.Facts, fmt.Sprintf("%s hosts, %s switches, %s links", number(hosts), number(switches), number(links)))
	if m.report != nil {
		d.Empty = fmt.Sprintf("No findings. The audits %s judged %s on %s.", strings.Join(m.report.Audits, ", "), plural.Count(len(m.report.Judged), "check", "checks"), m.report.Coverage.Share())
	} else {
		d.Empty = "No findings were open at that time, as far as audits had run."
	}
	d.Proved = []item{{Key: "Reach", Mark: isNone, Text: "Forwarding tables are not judged here: links show that hosts are connected, not that packets arrive. Run fabsh verify."}}
	if m.report != nil && slices.Contains(m.report.Audits, "routing") {
		d.Proved = nil
	}
}

// timeline is the events of a time in lanes.
type timeline struct {
	From, To time.Time
	Lanes    []lane
	Ticks    []tick
	Items    []item // the same in words, the last first
	More     int
	down     int // links that are down at the end, though both nodes are there
	gone     int // nodes that went, and are not there at the end
}

type lane struct {
	Name  string
	Marks []spot
	Spans []spot
}

type spot struct {
	X, Width string // in percent
	Class    string
	Title    string
	URL      template.URL
}

type tick struct {
	X, Text, Anchor string
	Minor           bool
}

const maxItems = 200

// line returns the time line from since to until, or why it is missing.
func (s *Site) line(v *view, since, until time.Time) (*timeline, string) {
	h, err := s.historyStore(v.ctx)
	if err != nil {
		return nil, noHistory(err, "No history is kept, so it is not known what changed and since when. fabsh serve keeps one unless --no-history is given.")
	}
	events, err := h.Changes(v.ctx, since, until.Add(time.Second))
	if err != nil {
		return nil, noHistory(err, "")
	}
	gaps, err := h.Gaps(v.ctx, since, until)
	if err != nil {
		return nil, noHistory(err, "")
	}
	t := &timeline{From: since, To: until}
	share := func(x time.Time) float64 {
		return 100 * min(1, max(0, x.Sub(since).Seconds()/until.Sub(since).Seconds()))
	}
	lanes := map[string]*lane{}
	for _, name := range []string{"Down", "Slow", "Nodes", "Manager", "Changes"} {
		lanes[name] = &lane{Name: name}
	}
	open := map[history.End]history.Event{} // links that are down
	gone := map[mad.GUID]bool{}
	last := map[string]float64{}
	for _, e := range events {
		name, k := laneOf(e.Kind)
		end := history.End{Node: e.Node, Port: e.Port}
		switch e.Kind {
		case history.NodeGone:
			gone[e.Node] = true
		case history.LinkDown:
			open[end] = e
		case history.LinkUp, history.LinkNew, history.LinkGone, history.LinkRestart:
			if was, ok := open[end]; ok && e.Kind != history.LinkRestart {
				delete(open, end)
				lanes["Down"].Spans = append(lanes["Down"].Spans, spot{X: percent(share(was.Time)), Width: percent(max(.3, share(e.Time)-share(was.Time))), Class: "down", Title: clean(e.Subject)})
			}
		}
		if x := share(e.Time); name != "" && (len(lanes[name].Marks) == 0 || x-last[name] >= 1.2) {
			last[name] = x
			lanes[name].Marks = append(lanes[name].Marks, spot{X: percent(x), Class: k.Class(), Title: clean(eventText(&e)) + ", " + when(e.Time), URL: v.eventURL(&e)})
		}
	}
	for node := range gone {
		if f := v.moment.fabric; f == nil || len(f.NodeByGUID(node)) == 0 {
			t.gone++
		}
	}
	for end, e := range open {
		if f := v.moment.fabric; f != nil {
			if nodes := f.NodeByGUID(end.Node); len(nodes) > 0 && nodes[0].Port(end.Port) != nil && nodes[0].Port(end.Port).Peer() != nil {
				continue
			}
		}
		t.down++
		lanes["Down"].Spans = append(lanes["Down"].Spans, spot{X: percent(share(e.Time)), Width: percent(max(.3, 100-share(e.Time))), Class: "down", Title: clean(e.Subject)})
	}
	slices.SortFunc(lanes["Down"].Spans, func(a, b spot) int { return strings.Compare(a.X+a.Title, b.X+b.Title) })
	for _, name := range []string{"Down", "Slow", "Nodes", "Manager", "Changes"} {
		t.Lanes = append(t.Lanes, *lanes[name])
	}
	reading := lane{Name: "Reading", Spans: []spot{{X: "0%", Width: "100%", Class: "read", Title: "read"}}}
	for _, g := range gaps {
		reading.Spans = append(reading.Spans, spot{X: percent(share(g.From)), Width: percent(max(.3, share(g.To)-share(g.From))), Class: "gap", Title: fmt.Sprintf("no reading from %s to %s", when(g.From), when(g.To))})
		t.Items = append(t.Items, item{Time: g.From, Mark: isNone, Text: "No reading until " + when(g.To) + ": events of that time are not known"})
	}
	t.Lanes = append(t.Lanes, reading)
	t.Ticks = ticksOf(since, until)
	shown := events[max(0, len(events)-maxItems):]
	for _, e := range shown {
		_, k := laneOf(e.Kind)
		t.Items = append(t.Items, item{Time: e.Time, Mark: k, Text: clean(eventText(&e)), URL: v.eventURL(&e)})
	}
	slices.SortStableFunc(t.Items, func(a, b item) int { return b.Time.Compare(a.Time) })
	t.More = len(events) - len(shown)
	return t, ""
}

// noHistory returns why nothing is shown of a history: none if it is missing.
func noHistory(err error, none string) string {
	if errors.Is(err, history.ErrNone) {
		return none
	}
	return "The history cannot be read: " + clean(err.Error())
}

func percent(x float64) string { return fmt.Sprintf("%.2f%%", x) }

// laneOf returns the lane of a kind of event, and how bad it is.
func laneOf(kind string) (string, mark) {
	switch kind {
	case history.LinkDown, history.LinkFlap:
		return "Down", isDown
	case history.LinkGone:
		return "Down", isNone
	case history.LinkWidth, history.LinkSpeed:
		return "Slow", isSlow
	case history.NodeGone:
		return "Nodes", isSlow
	case history.SMMoved, history.ClockBack:
		return "Manager", isSlow
	}
	switch what, _, _ := strings.Cut(kind, "."); what {
	case "node":
		return "Nodes", isSeen
	case "change":
		return "Changes", isFine
	case "cable", "ack":
		return "Changes", isSeen
	case "sm":
		return "Manager", isSeen
	}
	return "", isFine
}

// eventWords are kinds of events in words.
var eventWords = map[string]string{
	history.NodeNew: "new node", history.NodeBack: "node is back", history.NodeGone: "node is gone", history.NodeName: "name changed", history.NodeLID: "LID changed",
	history.LinkNew: "new link", history.LinkUp: "link is up", history.LinkDown: "link went down", history.LinkGone: "link is gone with its node", history.LinkFlap: "link went down and up",
	history.LinkRestart: "link went down with a restart", history.LinkWidth: "width changed", history.LinkSpeed: "speed changed",
	history.CableNew: "new cable", history.CableMoved: "cable moved", history.CableGone: "cable is gone", history.CounterCleared: "counters were cleared",
	history.AckBegin: "acknowledged", history.AckEnd: "no longer acknowledged",
	history.SMMoved: "another subnet manager is master", history.ClockBack: "the clock was set back",
}

// eventText returns an event in words.
func eventText(e *history.Event) string {
	text, ok := eventWords[e.Kind]
	if !ok {
		text = strings.TrimPrefix(e.Kind, "change.")
	}
	if e.Subject != "" {
		text = e.Subject + ": " + text
	}
	switch {
	case e.Kind == history.LinkGone && e.Was != "":
		text += " (" + e.Was + ")"
	case strings.HasPrefix(e.Kind, "ack.") && (e.Was != "" || e.Now != ""):
		text += " " + strings.TrimSpace(e.Was)
		if e.Now != "" {
			text += ": " + e.Now
		}
	case strings.HasPrefix(e.Kind, "change."):
		text += " " + e.Was + ": " + e.Now
	case e.Was != "" && e.Now != "":
		text += " from " + e.Was + " to " + e.Now
	case e.Now != "":
		text += ": " + e.Now
	}
	return text
}

func (v *view) eventURL(e *history.Event) template.URL {
	if e.Node == 0 {
		if _, ends := parseKey(e.Subject); len(ends) > 0 { // of an acknowledgement
			return v.endURL(ends[0])
		}
		return ""
	}
	return v.endURL(history.End{Node: e.Node, Port: e.Port})
}

// ticksOf returns about eight round times of a time line.
func ticksOf(from, to time.Time) (list []tick) {
	span := to.Sub(from)
	step := 90 * day
	for _, d := range []time.Duration{10 * time.Minute, time.Hour, 3 * time.Hour, 12 * time.Hour, day, 7 * day, 14 * day, 30 * day} {
		if span/d <= 9 {
			step = d
			break
		}
	}
	format := "15:04"
	if step >= day {
		format = "2 Jan"
	}
	from = from.Local()
	midnight := time.Date(from.Year(), from.Month(), from.Day(), 0, 0, 0, 0, from.Location())
	for t := midnight; t.Before(to); t = t.Add(step) {
		x := 100 * t.Sub(from).Seconds() / span.Seconds()
		if x < 15 || x > 93 { // the first one has a date
			continue
		}
		text := t.Format(format)
		if text == "00:00" {
			text = t.Format("Mon 2")
		}
		list = append(list, tick{X: percent(x), Text: text, Anchor: "middle", Minor: len(list)%2 == 1 || x < 50 || x > 82}) // a plot on a phone has room for three
	}
	first := tick{X: "0%", Text: from.Format("Mon 2 Jan 15:04"), Anchor: "start"}
	if span > 300*day {
		first.Text = from.Format("2 Jan 2006")
	}
	return append(append([]tick{first}, list...), tick{X: "100%", Text: to.Local().Format("15:04"), Anchor: "end"})
}
