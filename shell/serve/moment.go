package serve

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// moment is the fabric at a time: of the last cycle, or of the past.
type moment struct {
	fabric  *fabric.Fabric // nil: not read
	time    time.Time      // when it was read
	asked   time.Time      // of the past: the time that was asked for
	isPast  bool
	report  *audit.Report   // nil: of the past
	found   []history.Found // of the past
	figures []figures       // by port ID; none: not read

	once   sync.Once // makes the fields below
	causes []*cause
	acked  []*cause
	marks  map[history.End]mark // the worst finding at ports
	lone   map[history.End]mark // of these, findings whose other end is not known
	nodes  map[mad.GUID]mark    // and of nodes
	slow   int                  // links that are slower than both ends could be

	tablesLock sync.Mutex // guards the next two, of the past or of a file
	tables     *Tables
	noTables   error

	withLock sync.Mutex     // guards the next two
	with     *fabric.Fabric // with the tables withOf; nil: not made yet
	withOf   *Tables

	drawn   sync.Once // makes ladder
	ladder  *picture.Ladder
	drawErr error
}

// figures are what a port has sent and counted since the last cycle.
type figures struct {
	load   float32 // share of the rate of the link; NaN: not known
	errors float32 // in the window; NaN: not known
	window time.Duration
}

// figuresOf returns the figures of all ports.
func figuresOf(r *audit.Report) []figures {
	if r.Model == nil || len(r.Rates) == 0 {
		return nil
	}
	list := make([]figures, len(r.Model.Ports()))
	nan := float32(math.NaN())
	for i := range list {
		list[i] = figures{load: nan, errors: nan}
	}
	for i := range r.Rates {
		x := &r.Rates[i]
		if x.Port == nil || x.Port.ID() >= len(list) || x.Port.Node().Fabric() != r.Model {
			continue
		}
		w := x.Newest()
		f := &list[x.Port.ID()]
		f.window, _ = w.Length()
		if share, known := w.Use(audit.LinkBits(x.Port.Width(), x.Port.Speed())); known {
			f.load = float32(share)
		}
		if rates, known := w.ErrorRates(); known && f.window > 0 { // not the first reading
			sum := 0.0
			for _, rate := range rates {
				sum += float64(rate.Count)
			}
			f.errors = float32(sum)
		}
	}
	return list
}

// mark is a state in a class of the style sheet, the worst last.
type mark int

const (
	isFine mark = iota
	isSeen      // acknowledged
	isNone      // not known
	isSlow      // or another warning
	isDown      // or another error
)

var markClasses = []string{"", "seen", "none", "slow", "down"}

// Class returns the class of the style sheet.
func (m mark) Class() string { return markClasses[m] }

// cause is a finding, and those that follow from it.
type cause struct {
	ID       string
	Check    string
	Subject  string
	Message  string
	Severity audit.Severity
	Since    time.Time
	Ends     []history.End // the port -1: of the node
	Kind     audit.SubjectKind
	Effects  []string // in words
	More     int      // effects that are left out
	Ack      *audit.Ack
	URL      template.URL // without the time
	New      bool
}

// Mark returns the state of a cause.
func (c *cause) Mark() mark {
	switch {
	case c.Ack != nil:
		return isSeen
	case c.Severity >= audit.Error:
		return isDown
	case c.Severity == audit.Warning:
		return isSlow
	}
	return isNone
}

// Follow returns how many findings follow from a cause, in words.
func (c *cause) Follow() string {
	text := plural.Count(len(c.Effects)+c.More, "finding follows", "findings follow") + " from it"
	if c.More > 0 {
		text += fmt.Sprintf(", %d of them are shown", len(c.Effects))
	}
	return text
}

const maxEffects = 20

// read makes what pages show of the findings.
func (m *moment) read() {
	m.once.Do(func() {
		m.marks, m.lone, m.nodes = map[history.End]mark{}, map[history.End]mark{}, map[mad.GUID]mark{}
		if m.report != nil {
			for _, g := range audit.Fold(m.report.Findings) {
				c := m.causeOf(g.Finding)
				for _, x := range append(g.Finding.Merged, flatten(g.Effects)...) {
					if len(c.Effects) == maxEffects {
						c.More++
						continue
					}
					c.Effects = append(c.Effects, clean(x.Check+" "+x.Subject.Name()+": "+x.Message))
				}
				m.causes = append(m.causes, c)
			}
			for i := range m.report.Findings {
				m.mark(&m.report.Findings[i], nil)
			}
			for i := range m.report.Acked {
				a := &m.report.Acked[i]
				c := m.causeOf(&a.Finding)
				c.Ack = a.Ack
				m.acked = append(m.acked, c)
				m.mark(&a.Finding, a.Ack)
			}
		}
		if m.fabric != nil {
			ports := m.fabric.Ports()
			for i := range ports {
				if q := ports[i].Peer(); q != nil && i < q.ID() && picture.StateOf(&ports[i]) == picture.Slow {
					m.slow++
				}
			}
		}
		for _, f := range m.found {
			c := &cause{ID: f.Key, Subject: clean(f.Subject), Message: clean(f.Message), Severity: f.Severity, Since: f.From}
			c.Check, c.Ends = parseKey(f.Key)
			c.Check = clean(c.Check)
			m.causes = append(m.causes, c)
			for _, e := range c.Ends {
				m.worst(e, c.Mark())
			}
		}
		slices.SortStableFunc(m.causes, func(a, b *cause) int {
			return cmp.Or(cmp.Compare(b.Severity, a.Severity), b.Since.Compare(a.Since))
		})
	})
}

func flatten(list []*audit.Group) (all []audit.Finding) {
	for _, g := range list {
		all = append(append(all, *g.Finding), flatten(g.Effects)...)
	}
	return all
}

func (m *moment) causeOf(f *audit.Finding) *cause {
	c := &cause{ID: f.ID(), Check: clean(f.Check), Subject: clean(f.Subject.Name()), Message: clean(f.Message), Severity: f.Severity, Since: f.Since, Kind: f.Subject.Kind}
	c.Ends = endsOf(&f.Subject)
	return c
}

func endsOf(s *audit.Subject) (list []history.End) {
	for _, e := range s.Ends {
		num := e.Num
		if num == audit.NoPort {
			num = -1
		}
		list = append(list, history.End{Node: e.Node, Port: num})
	}
	return list
}

// mark marks the ports or nodes that a finding is about.
func (m *moment) mark(f *audit.Finding, ack *audit.Ack) {
	k := (&cause{Severity: f.Severity, Ack: ack}).Mark()
	for _, s := range append([]audit.Subject{f.Subject}, f.Members...) {
		ends := endsOf(&s)
		for _, e := range ends {
			m.worst(e, k)
		}
		if len(ends) == 1 && ends[0].Port >= 0 {
			m.lone[ends[0]] = max(m.lone[ends[0]], k)
		}
	}
}

// lost returns the ports of a node that have no link, but a finding: the other end is unknown or gone.
func (m *moment) lost(n *fabric.Node) (list []*fabric.Port) {
	for p := range n.Ports() {
		if p.Peer() == nil && !p.PeerUnknown() && m.lone[endOf(p)] > isFine {
			list = append(list, p)
		}
	}
	return list
}

func (m *moment) worst(e history.End, k mark) {
	if e.Port < 0 {
		m.nodes[e.Node] = max(m.nodes[e.Node], k)
	} else {
		m.marks[e] = max(m.marks[e], k)
	}
}

// parseKey returns the check and the end of the ID of a finding: "link.width:0x.../7".
func parseKey(key string) (check string, ends []history.End) {
	check, subject, _ := strings.Cut(key, ":")
	node, num, hasPort := strings.Cut(subject, "/")
	guid, err := strconv.ParseUint(node, 0, 64)
	if err != nil {
		return check, nil
	}
	e := history.End{Node: mad.GUID(guid), Port: -1}
	if n, err := strconv.Atoi(num); hasPort && err == nil {
		e.Port = n
	}
	return check, []history.End{e}
}

// stateOf returns the state of the link at a port: by the findings, and by the port itself.
func (m *moment) stateOf(p *fabric.Port) mark {
	m.read()
	k := max(m.marks[endOf(p)], linkMark(p))
	if q := p.Peer(); q != nil {
		k = max(k, m.marks[endOf(q)])
	}
	return k
}

func linkMark(p *fabric.Port) mark {
	if p.Peer() == nil {
		return isNone
	}
	switch picture.StateOf(p) {
	case picture.Slow:
		return isSlow
	case picture.Down:
		return isDown
	case picture.Unknown:
		return isNone
	}
	return isFine
}

func endOf(p *fabric.Port) history.End { return history.End{Node: p.Node().GUID(), Port: p.Num()} }

// figures returns the figures of a port.
func (m *moment) figuresOf(p *fabric.Port) (figures, bool) {
	if p.ID() >= len(m.figures) {
		return figures{}, false
	}
	return m.figures[p.ID()], true
}

// draw returns the tiers and matrices of the fabric.
func (m *moment) draw() (*picture.Ladder, error) {
	m.drawn.Do(func() {
		m.ladder, m.drawErr = picture.NewLadder(context.Background(), m.fabric, picture.LadderOptions{})
	})
	return m.ladder, m.drawErr
}

// counts returns how many hosts, switches and links the fabric has.
func (m *moment) counts() (hosts, switches, links int) {
	nodes := m.fabric.Nodes()
	for i := range nodes {
		if nodes[i].IsSwitch() {
			switches++
		} else if nodes[i].Type() == mad.NodeTypeCA {
			hosts++
		}
	}
	return hosts, switches, m.fabric.Links()
}

// incomplete returns what was not read or not judged, in words.
func (m *moment) incomplete() (list []string) {
	if m.fabric == nil {
		return []string{"The fabric was not read."}
	}
	if !m.fabric.Complete() {
		list = append(list, clean(cmp.Or(m.fabric.Missing(), m.fabric.FirstMissing(), "a part of the fabric was not read")))
	}
	for _, p := range m.fabric.Problems() {
		if len(list) == 20 {
			list = append(list, fmt.Sprintf("and %d more", len(m.fabric.Problems())))
			break
		}
		if p.Kind.Missing() || p.Kind == fabric.ProblemUnrecorded {
			list = append(list, clean(p.Text))
		}
	}
	if r := m.report; r != nil {
		for _, f := range r.Failures {
			list = append(list, clean("audit "+f.Audit+": "+f.Why()))
		}
		for _, i := range r.Idle {
			list = append(list, clean("audit "+i.Audit+": nothing was judged: "+i.Lacked))
		}
		if missing := r.Coverage.Missing(); len(missing) > 0 {
			var names []string
			for _, s := range missing[:min(len(missing), 3)] {
				names = append(names, s.Name())
			}
			if n := len(missing) - len(names); n > 0 {
				names = append(names, fmt.Sprintf("%d more", n))
			}
			list = append(list, clean(fmt.Sprintf("the audits had answers to %s; no answer from %s", r.Coverage.Share(), strings.Join(names, ", "))))
		}
		for _, u := range r.UnjudgedChecks() {
			list = append(list, clean(strings.Join(u.Checks, ", ")+": "+u.Lacked))
		}
	}
	return list
}

// Text is made printable here, once.
const longest = 4000

// clean returns untrusted text on one line. The element bdi isolates what is written from right to left.
func clean(text string) string {
	return strings.Trim(picture.Text(strings.NewReplacer("\n", " ", "\t", " ").Replace(text), longest), "\u2068\u2069")
}

// nodeName returns the name of a node.
func nodeName(n *fabric.Node) string {
	return strings.Trim(picture.NodeName(n, 80), "\u2068\u2069")
}

// key returns what names a node in addresses: its name if that is plain and its own, else its GUID.
func key(n *fabric.Node) string {
	name := n.Name()
	plain := name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-_. ", c))
	}) && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "0x")
	if plain && len(n.Fabric().NodeByName(name)) == 1 {
		return name
	}
	return n.GUID().String()
}

// linkURL returns the address of the page of a port's link.
func (v *view) linkURL(p *fabric.Port) template.URL {
	return v.to("link", key(p.Node()), strconv.Itoa(p.Num()))
}

func (v *view) nodeURL(n *fabric.Node) template.URL { return v.to("node", key(n)) }

// endURL returns the address of an end, which the fabric need not have.
func (v *view) endURL(e history.End) template.URL {
	name := e.Node.String()
	if f := v.moment.fabric; f != nil {
		if list := f.NodeByGUID(e.Node); len(list) > 0 {
			name = key(list[0])
		}
	}
	if e.Port < 0 {
		return v.to("node", name)
	}
	return v.to("link", name, strconv.Itoa(e.Port))
}

// where returns the address of the subject of a cause; "": the fabric.
func (v *view) where(c *cause) template.URL {
	if len(c.Ends) == 0 {
		return ""
	}
	return v.endURL(c.Ends[0])
}

// when returns a time as people write it, with its day.
func when(t time.Time) string {
	if t.IsZero() {
		return "not known"
	}
	return t.Local().Format("Mon 2 Jan 2006 15:04 MST")
}

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// ago returns how long before now a time was.
func ago(now, t time.Time) string { return words(now.Sub(t)) }

// words returns a duration with one unit.
func words(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return plural.Count(int(d.Hours()/24), "day", "days")
}

// number returns a count with separators of thousands.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
