package serve

import (
	"fmt"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/history"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// linkData is what the page of a link, or of a port without one, shows.
type linkData struct {
	Class, State string
	Facts        []string
	Ends         []endView
	Wire         mark
	Causes       []causeView
	Spans        []choiceOf
	Span         string
	Plots        []plot
	Line         *timeline
	Events       []item
	Cables       []cableView
	BER          []berRow
	Errors       []errorRow
	NoHistory    string
	Commands     []string
	Map          template.URL
	Use          *useView
}

// endView is an end of a link.
type endView struct {
	Node, Port, Label, Place, Device, GUID, LID string
	State                                       string
	Speeds                                      string
	Load, Errors                                string
	URL                                         template.URL
}

type cableView struct {
	From, Till time.Time
	Text       string
	Serial     string
	URL        template.URL
}

type berRow struct {
	Time                           time.Time
	Up                             string
	Raw, Effective, Symbol, Reason string
}

type errorRow struct {
	Day     time.Time
	Counter string
	Count   int
	Hours   int
}

// spans are the times that plots show.
var spans = []struct {
	name, text string
	length     time.Duration
}{{"24h", "24 h", day}, {"7d", "7 d", 7 * day}, {"90d", "90 d", 90 * day}, {"1y", "1 y", 365 * day}, {"6h", "6 h", 6 * time.Hour}}

// maxRows limits the rows of tables of a page.
const maxRows = 100

// findNode returns the node that an address names.
func (v *view) findNode(name string) (*fabric.Node, error) {
	f := v.moment.fabric
	if f == nil {
		return nil, notFound("the fabric was not read")
	}
	var list []*fabric.Node
	if guid, err := strconv.ParseUint(name, 0, 64); err == nil && strings.HasPrefix(name, "0x") {
		list = f.NodeByGUID(mad.GUID(guid))
	} else {
		list = f.NodeByName(name)
	}
	switch len(list) {
	case 1:
		return list[0], nil
	case 0:
		if g := v.goneName(name); g != nil {
			e := &pageError{status: http.StatusGone, text: fmt.Sprintf("%s is not in this fabric%s. It was read last before %s.", g.Subject, v.then(), when(g.Time))}
			e.near = append(e.near, v.before(g))
			return nil, e
		}
		e := notFound("no node %q in this fabric%s", fabric.Clip(name), v.then())
		if near := fabric.Nearest(name, v.names()); near != "" {
			e.near = append(e.near, choice{Text: clean(near), URL: v.to("node", near)})
		}
		return nil, e
	}
	e := notFound("%d nodes have the name %q", len(list), fabric.Clip(name))
	for _, n := range list[:min(len(list), maxRows)] {
		e.near = append(e.near, choice{Text: nodeName(n), Note: n.GUID().String(), URL: v.to("node", n.GUID().String())})
	}
	return nil, e
}

// goneNode returns the event of a node that went, and is not in the fabric that is shown; nil: none is known.
func (v *view) goneNode(g mad.GUID) *history.Event {
	h, err := v.site.historyStore(v.ctx)
	if err != nil {
		return nil
	}
	events, err := h.EventsOf(v.ctx, g, -1)
	if err != nil {
		return nil
	}
	for _, e := range slices.Backward(events) {
		if e.Kind == history.NodeGone && !e.Time.After(v.moment.time) {
			return &e
		}
	}
	return nil
}

// goneName is goneNode for a name or GUID, of nodes that went in the last 90 days.
func (v *view) goneName(name string) *history.Event {
	if guid, err := strconv.ParseUint(name, 0, 64); err == nil && strings.HasPrefix(name, "0x") {
		return v.goneNode(mad.GUID(guid))
	}
	h, err := v.site.historyStore(v.ctx)
	if err != nil {
		return nil
	}
	until := v.moment.time.Add(time.Second)
	events, err := h.Changes(v.ctx, until.Add(-90*day), until, history.NodeGone)
	if err != nil {
		return nil
	}
	for _, e := range slices.Backward(events) {
		if strings.HasPrefix(e.Subject, strconv.Quote(name)+" ") {
			return &e
		}
	}
	return nil
}

// before returns the page of a node at the last time at which it was there.
func (v *view) before(gone *history.Event) choice {
	t := gone.Time.Add(-time.Second).UTC().Format(time.RFC3339)
	return choice{Text: clean(gone.Subject), Note: "just before " + when(gone.Time), URL: template.URL("/node/" + gone.Node.String() + "?at=" + template.URLQueryEscaper(t))}
}

// then states the time of the past.
func (v *view) then() string {
	if v.AsOf == "" {
		return ""
	}
	return " as of " + v.AsOf
}

func (v *view) names() (list []string) {
	nodes := v.moment.fabric.Nodes()
	for i := range nodes[:min(len(nodes), 20000)] {
		list = append(list, nodes[i].Name())
	}
	return list
}

func (s *Site) link(v *view) error {
	v.Template, v.Tab = "link", "map"
	node, name := v.request.PathValue("node"), v.request.PathValue("port")
	num, err := strconv.Atoi(name)
	if err != nil || num < 0 || num > 255 {
		return badRequest("port %q: want a number from 0 to 255", fabric.Clip(name))
	}
	n, err := v.findNode(node)
	if err != nil {
		return err
	}
	p := n.Port(num)
	if p == nil {
		e := notFound("%s has no port %d", nodeName(n), num)
		e.near = []choice{{Text: nodeName(n), URL: v.nodeURL(n)}}
		return e
	}
	m := v.moment
	m.read()
	d := &linkData{Wire: m.stateOf(p)}
	v.Data = d
	q := p.Peer()
	v.Title = nodeName(n) + "/" + strconv.Itoa(num)
	d.Ends = append(d.Ends, v.end(p))
	ends := []history.End{endOf(p)}
	if q != nil {
		v.Title += " – " + nodeName(q.Node()) + "/" + strconv.Itoa(q.Num())
		d.Ends = append(d.Ends, v.end(q))
		ends = append(ends, endOf(q))
	}
	d.Class = d.Wire.Class()
	switch {
	case q == nil && p.PeerUnknown():
		d.State = "The other end was not read."
	case q == nil:
		d.Class, d.State = "none", "No link"+v.then()+"."
		if st := p.State(); st != 0 {
			d.State = "No link" + v.then() + ": the port is " + st.String() + "."
		}
	default:
		own := linkMark(p)
		d.State = map[mark]string{isFine: "up", isNone: "not known", isSlow: "slow", isDown: "not active"}[own]
		if d.Wire > own {
			d.State += map[mark]string{isSeen: ", with an acknowledged finding", isNone: ", with a remark", isSlow: ", with a warning", isDown: ", with an error"}[d.Wire]
		}
		d.Facts = append(d.Facts, fmt.Sprintf("%s %s", p.Width(), p.Speed()))
		if best := p.BestWidth() + " " + p.BestSpeed(); linkMark(p) == isSlow {
			d.Facts = append(d.Facts, "both ends can "+best)
		}
	}
	d.Use = s.use(v, p, n, d.Wire)
	d.Map = v.to("map")
	if q != nil {
		sep := "?"
		if strings.Contains(string(d.Map), "?") {
			sep = "&"
		}
		d.Map += template.URL(sep + "q=" + template.URLQueryEscaper(n.Name()))
	}
	for _, c := range append(slices.Clone(m.causes), m.acked...) {
		if slices.ContainsFunc(c.Ends, func(e history.End) bool {
			return slices.Contains(ends, e) || e.Port < 0 && slices.ContainsFunc(ends, func(x history.End) bool { return x.Node == e.Node })
		}) && len(d.Causes) < maxRows {
			d.Causes = append(d.Causes, v.cause(c))
		}
	}
	subject := p.Node().GUID().String() + "/" + strconv.Itoa(num)
	d.Commands = []string{"fabsh history port " + subject, "fabsh audit links counters", "fabsh evidence " + subject}
	err = s.linkHistory(v, d, ends)
	if _, ok := err.(*pageError); err != nil && !ok { // what is known without a history is shown
		d.NoHistory, err = noHistory(err, ""), nil
	}
	return err
}

// linkHistory adds what the history has of a link.
func (s *Site) linkHistory(v *view, d *linkData, ends []history.End) error {
	span, err := v.one("span", "24h", "7d", "90d", "1y", "6h")
	if err != nil {
		return err
	}
	d.Span = span
	length := day
	for _, x := range spans {
		if x.name == span {
			length = x.length
		}
	}
	for _, i := range []int{4, 0, 1, 2, 3} {
		d.Spans = append(d.Spans, choiceOf{spans[i].text, spans[i].name == span, v.with("span", spans[i].name)})
	}
	h, err := s.historyStore(v.ctx)
	if err != nil {
		d.NoHistory = noHistory(err, "No history is kept, so it is not known since when. fabsh serve keeps one unless --no-history is given; fabsh history import begins with snapshots.")
		return nil
	}
	until := v.moment.time.Add(time.Second)
	since := until.Add(-length)
	e := ends[0]
	if has, err := h.HasPort(v.ctx, e.Node, e.Port); err == nil && has {
		v.data = v.address("api/port", "node", e.Node.String(), "port", strconv.Itoa(e.Port), "span", strings.TrimPrefix(span, "6h"))
	}
	life, err := h.LifeOf(v.ctx, e.Node, e.Port, since, until)
	if err != nil {
		return err
	}
	for _, l := range slices.Backward(life.Links) {
		if l.From.After(until) {
			continue
		}
		if l.Till.IsZero() || l.Till.After(until) {
			d.Facts = append(d.Facts, "this link since "+when(l.From)+orEarlier(life.Events, l.From))
		} else if len(d.Ends) == 1 {
			d.Class, d.State = "down", "down since "+when(l.Till)
			other := history.End{Node: l.B, Port: l.BPort}
			if other == e {
				other = history.End{Node: l.A, Port: l.APort}
			}
			name := other.String()
			if f := v.moment.fabric; f != nil {
				if nodes := f.NodeByGUID(other.Node); len(nodes) > 0 {
					name = nodeName(nodes[0]) + "/" + strconv.Itoa(other.Port)
				}
			}
			d.Facts = append(d.Facts, "the link was to "+name+" from "+when(l.From)+" on")
		}
		break
	}
	downs := 0
	marks := []picture.ChartMark{}
	for _, x := range life.Events {
		if x.Time.After(until) {
			continue
		}
		_, k := laneOf(x.Kind)
		if x.Kind == history.LinkDown || x.Kind == history.LinkFlap {
			if until.Sub(x.Time) <= day {
				downs++
			}
		}
		if !x.Time.Before(since) {
			marks = append(marks, picture.ChartMark{Time: x.Time, Text: clean(eventText(&x))})
		}
		d.Events = append(d.Events, item{Time: x.Time, Mark: k, Text: clean(eventText(&x))})
	}
	slices.Reverse(d.Events)
	d.Events = d.Events[:min(len(d.Events), maxRows)]
	if downs > 0 {
		d.Facts = append(d.Facts, plural.Count(downs, "link-down", "link-downs")+" in 24 h")
	}
	for _, c := range life.Cables {
		d.Cables = append(d.Cables, v.cableView(&c))
	}
	slices.Reverse(d.Cables)
	for _, b := range slices.Backward(life.BER) {
		if len(d.BER) < 10 && !b.Time.After(until) {
			up := "not known"
			if b.Up >= 0 {
				up = words(b.Up)
			}
			d.BER = append(d.BER, berRow{Time: b.Time, Up: up, Raw: rate(b.Raw), Effective: rate(b.Effective), Symbol: rate(b.Symbol)})
		}
	}
	for _, x := range slices.Backward(life.Errors) {
		if len(d.Errors) < 20 {
			d.Errors = append(d.Errors, errorRow{x.Time, clean(x.Counter), int(min(x.Count, math.MaxInt64)), x.Hours})
		}
	}
	return s.plots(v, d, h, ends, since, until, marks)
}

// orEarlier states that a link was there when the history began, because no event says that it came then.
func orEarlier(events []history.Event, from time.Time) string {
	for _, e := range events {
		if e.Time.Equal(from) {
			return ""
		}
	}
	return " or earlier"
}

func rate(x float64) string {
	if x < 0 || math.IsNaN(x) {
		return "not known"
	}
	if x == 0 {
		return "0"
	}
	return fmt.Sprintf("%.0e", x)
}

func (v *view) cableView(c *history.Cable) cableView {
	return cableView{From: c.From, Till: c.Till, Serial: clean(c.Serial), Text: v.endText(c.A) + " – " + v.endText(c.B) + " " + clean(c.Part), URL: v.to("cable", c.Serial)}
}

// end returns an end of a link.
func (v *view) end(p *fabric.Port) endView {
	n := p.Node()
	e := endView{Node: nodeName(n), Port: strconv.Itoa(p.Num()), Label: clean(p.PanelLabel()), GUID: n.GUID().String(), URL: v.nodeURL(n)}
	if x, rail := v.site.placeOf(n); x != (fabric.Place{}) || rail != "" {
		var parts []string
		for _, y := range [][2]string{{"hall ", x.Hall}, {"row ", x.Row}, {"rack ", x.Rack}, {"unit ", x.Unit}, {"rail ", rail}} {
			if y[1] != "" {
				parts = append(parts, y[0]+y[1])
			}
		}
		e.Place = clean(strings.Join(parts, ", "))
	}
	e.Device = n.Type().String()
	if lid := p.LID(); lid != 0 {
		e.LID = fmt.Sprint(uint16(lid))
	}
	if p.Info() != nil {
		e.State = p.State().String() + ", " + p.PhysicalState().String()
	} else {
		e.State = "port not read"
	}
	e.Load, e.Errors = "not read", "not read"
	if f, ok := v.moment.figuresOf(p); ok {
		over := " in " + words(f.window)
		if !math.IsNaN(float64(f.load)) {
			e.Load = fmt.Sprintf("%.0f %% of the rate sent%s", 100*f.load, over)
		}
		if !math.IsNaN(float64(f.errors)) {
			e.Errors = number(int(f.errors)) + " errors" + over
		}
	}
	return e
}

// node shows a switch, a host's adapter or a router.
type nodeData struct {
	Class, State string
	End          endView
	Facts        []string
	Causes       []causeView
	Ports        []portRow
	More         int
	Events       []item
	NoHistory    string
	Others       []choice // adapters of the same host
	Use          *useView
	Map          template.URL
}

type portRow struct {
	Num, Rate, Peer, State, Load, Errors string
	Mark                                 mark
	URL, PeerURL                         template.URL
}

func (s *Site) node(v *view) error {
	v.Template, v.Tab = "node", "map"
	n, err := v.findNode(v.request.PathValue("node"))
	if err != nil {
		return err
	}
	v.data = v.address("api/links", "node", key(n))
	m := v.moment
	m.read()
	d := &nodeData{}
	v.Data, v.Title = d, nodeName(n)
	worst := m.nodes[n.GUID()]
	up := 0
	for p := range n.Ports() {
		if p.Num() == 0 {
			continue
		}
		if d.End.Node == "" {
			d.End = v.end(p)
		}
		row := portRow{Num: strconv.Itoa(p.Num()), URL: v.linkURL(p), State: "no link", Mark: isNone}
		if p.Info() != nil {
			row.State = p.State().String()
		}
		if q := p.Peer(); q != nil {
			up++
			row.Mark = m.stateOf(p)
			worst = max(worst, row.Mark)
			row.Peer, row.PeerURL = nodeName(q.Node())+"/"+strconv.Itoa(q.Num()), v.nodeURL(q.Node())
			row.Rate = p.Width() + " " + p.Speed()
		}
		if f, ok := m.figuresOf(p); ok {
			if !math.IsNaN(float64(f.load)) {
				row.Load = fmt.Sprintf("%.0f %%", 100*f.load)
			}
			if !math.IsNaN(float64(f.errors)) {
				row.Errors = number(int(f.errors))
			}
		}
		if len(d.Ports) < 300 {
			d.Ports = append(d.Ports, row)
		} else {
			d.More++
		}
	}
	if d.End.Node == "" {
		d.End = endView{Node: nodeName(n), GUID: n.GUID().String(), Device: n.Type().String()}
	}
	d.Class = worst.Class()
	d.State = map[mark]string{isFine: "as expected", isSeen: "as expected, with an acknowledged finding", isNone: "not all is known", isSlow: "with warnings", isDown: "with errors"}[worst]
	d.Facts = append(d.Facts, d.End.Device, fmt.Sprintf("%d of %s linked", up, plural.Count(n.NumPorts(), "port", "ports")), "GUID "+n.GUID().String())
	if lid := n.LID(); lid != 0 {
		d.Facts = append(d.Facts, fmt.Sprintf("LID %d", uint16(lid)))
	}
	d.Map = v.to("map") + template.URL(map[bool]string{true: "&", false: "?"}[v.query.Has("at")]+"q="+template.URLQueryEscaper(n.Name()))
	d.Use = s.use(v, nil, n, worst)
	if host, ok := fabric.HostName(n.Name()); ok && !n.IsSwitch() {
		nodes := m.fabric.Nodes()
		for i := range nodes {
			x := &nodes[i]
			if other, ok := fabric.HostName(x.Name()); ok && other == host && x != n && len(d.Others) < 20 {
				d.Others = append(d.Others, choice{Text: nodeName(x), URL: v.nodeURL(x)})
			}
		}
	}
	for _, c := range append(slices.Clone(m.causes), m.acked...) {
		if len(d.Causes) < maxRows && slices.ContainsFunc(c.Ends, func(e history.End) bool { return e.Node == n.GUID() }) {
			d.Causes = append(d.Causes, v.cause(c))
		}
	}
	h, err := s.historyStore(v.ctx)
	if err != nil {
		d.NoHistory = noHistory(err, "No history is kept, so it is not known what happened to this node.")
		return nil
	}
	events, err := h.EventsOf(v.ctx, n.GUID(), -1)
	if err != nil {
		d.NoHistory = noHistory(err, "")
		return nil
	}
	for _, e := range slices.Backward(events) {
		if _, k := laneOf(e.Kind); len(d.Events) < maxRows && !e.Time.After(m.time) {
			d.Events = append(d.Events, item{Time: e.Time, Mark: k, Text: clean(eventText(&e)), URL: v.eventURL(&e)})
		}
	}
	return nil
}

// cableData is what the page of a cable shows.
type cableData struct {
	Spans []cableSpan
	Gaps  int
}

type cableSpan struct {
	cableView
	Downs  int
	Errors int
	Ends   []choice
	Part   string
}

func (s *Site) cable(v *view) error {
	v.Template, v.Tab = "cable", "map"
	serial := v.request.PathValue("serial")
	v.Title = "Cable " + clean(serial)
	h, err := s.historyStore(v.ctx)
	if err != nil {
		return notFound("no history is kept, so the life of a cable is not known: %v", err)
	}
	life, err := h.CableLife(v.ctx, serial)
	if err != nil {
		return notFound("%v", err)
	}
	if len(life.Spans) == 0 {
		return notFound("no cable or module has the serial number %q; modules are read once a day", fabric.Clip(serial))
	}
	d := &cableData{Gaps: len(life.Gaps)}
	for _, x := range slices.Backward(life.Spans) {
		c := cableSpan{cableView: v.cableView(&x.Cable), Downs: x.Downs, Part: clean(x.Part)}
		for _, e := range x.Errors {
			c.Errors += int(min(e.Count, math.MaxInt32))
		}
		for _, e := range []history.End{x.A, x.B} {
			if e.Node != 0 {
				c.Ends = append(c.Ends, choice{Text: v.endText(e), URL: v.endURL(e)})
			}
		}
		d.Spans = append(d.Spans, c)
	}
	v.Data = d
	return nil
}

// plot is the course of values over a time, from 0 to 1000 and 0 to 100.
type plot struct {
	Title, Note string
	Top, Middle string // labels of y
	Bottom      string
	Limit       string // y of a limit; "": none
	Runs        []curve
	Dots        []curve
	Gaps        []spot
	Marks       []spot
	Ticks       []tick
	Values      []valueRow
	Unknown     string // why nothing is drawn
}

type curve struct {
	Points string
	Class  string
	X, Y   string
}

type valueRow struct {
	Time  time.Time
	Value string
}

// plots adds the courses of a link, all of one time.
func (s *Site) plots(v *view, d *linkData, h *history.Store, ends []history.End, since, until time.Time, marks []picture.ChartMark) error {
	ticks := ticksOf(since, until)
	for _, x := range []struct {
		title, what, note string
		least             float64 // of the highest value of y
	}{
		{"Errors", "", "of all counters, by hour", 10},
		{"Traffic", history.SampleMean, "sent, MB/s, mean of each hour", 1},
		{"Waiting for credits", history.SampleWait, "share, %, of each hour", 100},
		{"Temperature", history.SampleTemperature, "of the module, °C, the highest of each day", 100},
		{"Received light", history.SampleRxPower, "of the weakest lane, mW, the lowest of each day", 0},
	} {
		p := plot{Title: x.title, Note: x.note, Ticks: ticks}
		highest := x.least
		var list []*picture.Chart
		for _, e := range ends {
			has, err := h.HasPort(v.ctx, e.Node, e.Port)
			if err != nil {
				return err
			}
			if !has {
				list = append(list, nil)
				continue
			}
			var series *history.Series
			if x.what == "" {
				series, err = h.ErrorSeries(v.ctx, e.Node, e.Port, since, until)
			} else {
				series, err = h.Series(v.ctx, e.Node, e.Port, x.what, since, until)
			}
			if err != nil {
				return err
			}
			c := &picture.Chart{From: since, To: until, Marks: marks}
			for _, q := range series.Points {
				c.Points = append(c.Points, picture.ChartPoint{Time: q.Time, Width: q.Width, Value: q.Value})
				highest = max(highest, q.Value)
			}
			for _, g := range series.Gaps {
				c.Gaps = append(c.Gaps, [2]time.Time{g.From, g.To})
			}
			list = append(list, c)
		}
		points := 0
		for i, c := range list {
			if c == nil {
				continue
			}
			points += len(c.Points)
			own := 0.0
			for _, q := range c.Points {
				own = max(own, q.Value)
			}
			class := "curve"
			if i == 1 {
				class = "curve b"
			}
			for _, run := range c.Runs() {
				var b strings.Builder
				for _, q := range run {
					y := q[1]
					if highest > 0 {
						y = q[1] * scaleOf(c, own) / highest
					}
					fmt.Fprintf(&b, "%.1f,%.1f ", 1000*q[0], 98-96*y)
				}
				if len(run) == 1 {
					y := run[0][1] * scaleOf(c, own) / max(highest, 1e-9)
					p.Dots = append(p.Dots, curve{Class: class, X: percent(100 * run[0][0]), Y: percent(98 - 96*y)})
				} else {
					p.Runs = append(p.Runs, curve{Points: strings.TrimSpace(b.String()), Class: class})
				}
			}
			if i == 0 {
				for _, g := range c.Gaps {
					from, to := 100*c.Share(g[0]), 100*c.Share(g[1])
					p.Gaps = append(p.Gaps, spot{X: percent(from), Width: percent(max(.3, to-from)), Title: "no reading from " + when(g[0]) + " to " + when(g[1])})
				}
				for _, m := range marks[:min(len(marks), maxRows)] {
					p.Marks = append(p.Marks, spot{X: percent(100 * c.Share(m.Time)), Title: m.Text + ", " + when(m.Time)})
				}
				for _, q := range slices.Backward(c.Points) {
					if len(p.Values) < 24 && q.Value != 0 {
						p.Values = append(p.Values, valueRow{q.Time, value(q.Value)})
					}
				}
			}
		}
		p.Top, p.Middle, p.Bottom = value(highest), value(highest/2), "0"
		if points == 0 {
			if x.what == history.SampleTemperature || x.what == history.SampleRxPower {
				continue // no device shows its module
			}
			p.Unknown = "Nothing is recorded of this time."
		}
		d.Plots = append(d.Plots, p)
	}
	p, err := v.berPlot(h, ends, since, until)
	if err != nil || p == nil {
		return err
	}
	p.Ticks = ticks
	for _, m := range marks[:min(len(marks), maxRows)] {
		c := &picture.Chart{From: since, To: until}
		p.Marks = append(p.Marks, spot{X: percent(100 * c.Share(m.Time)), Title: m.Text + ", " + when(m.Time)})
	}
	d.Plots = slices.Insert(d.Plots, 1, *p)
	return nil
}

// The decades of a plot of bit error rates.
const leastBER, mostBER = -18, -4

// berPlot returns the course of effective bit error rates; nil: none was kept. They are read once an hour, and
// kept while one of the rates of the port is above its limit.
func (v *view) berPlot(h *history.Store, ends []history.End, since, until time.Time) (*plot, error) {
	y := func(rate float64) float64 {
		decade := float64(leastBER)
		if rate > 0 {
			decade = min(mostBER, max(leastBER, math.Log10(rate)))
		}
		return 98 - 96*(decade-leastBER)/(mostBER-leastBER)
	}
	p := &plot{Title: "Bit error rate", Note: "effective, after error correction, by hour while a rate is above its limit; no point: below the limits, or not read; dotted: 1e-14", Top: "1e-4", Middle: "1e-11", Bottom: "≤ 1e-18", Limit: percent(y(1e-14))}
	span := until.Sub(since)
	for i, e := range ends {
		class := []string{"curve", "curve b"}[min(i, 1)]
		if has, err := h.HasPort(v.ctx, e.Node, e.Port); err != nil || !has {
			if err != nil {
				return nil, err
			}
			continue
		}
		life, err := h.LifeOf(v.ctx, e.Node, e.Port, since, until)
		if err != nil {
			return nil, err
		}
		var last time.Time
		run := []string{}
		end := func() {
			if len(run) > 1 {
				p.Runs = append(p.Runs, curve{Points: strings.Join(run, " "), Class: class})
			}
			run = run[:0]
		}
		for _, b := range life.BER {
			if b.Effective < 0 || math.IsNaN(b.Effective) || b.Time.Before(since) || b.Time.After(until) {
				continue
			}
			if b.Time.Sub(last) > 3*time.Hour {
				end() // a gap is not drawn over
			}
			last = b.Time
			x := b.Time.Sub(since).Seconds() / span.Seconds()
			run = append(run, fmt.Sprintf("%.1f,%.1f", 1000*x, y(b.Effective)))
			p.Dots = append(p.Dots, curve{Class: class, X: percent(100 * x), Y: percent(y(b.Effective))})
			if i == 0 {
				p.Values = append(p.Values, valueRow{b.Time, rate(b.Effective)})
			}
		}
		end()
	}
	if len(p.Dots) == 0 {
		return nil, nil
	}
	slices.Reverse(p.Values)
	p.Values = p.Values[:min(len(p.Values), 24)]
	return p, nil
}

// scaleOf returns the value at which the runs of a chart have y 1.
func scaleOf(c *picture.Chart, highest float64) float64 {
	if highest <= 0 {
		return 1
	}
	return highest
}

// value returns a value with three digits.
func value(x float64) string {
	if x >= 1000 && x < 1e9 {
		return number(int(x))
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
