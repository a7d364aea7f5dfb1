package history

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// End is an end of a link: a port of a node. Node 0: not known.
type End struct {
	Node mad.GUID
	Port int
}

func (e End) String() string {
	if e.Node == 0 {
		return ""
	}
	return fmt.Sprintf("%s/%d", e.Node, e.Port)
}

// Cable is a time in which a cable or module was between two ports.
type Cable struct {
	Serial     string
	Part       string // its part number; "": not known
	A, B       End
	From, Till time.Time // Till is zero: it is there
}

// Found is a time in which a finding of audits was open.
type Found struct {
	Key      string // "bit-errors:0x.../7"
	Job      string // of the audit; "": without one
	Severity audit.Severity
	Subject  string
	Message  string
	Checked  time.Time // when an audit judged it last
	From     time.Time
	Till     time.Time // zero: it is open
}

// Acked is an acknowledgement of findings.
type Acked struct {
	Pattern string
	Who     string
	Reason  string
	Until   time.Time // it expires; zero: never
	From    time.Time
	Till    time.Time // it was removed; zero: it was not
}

// Action is a plan or remedy, or its outcome.
type Action struct {
	Time    time.Time
	Action  string // plan, apply, confirm, revert, remedy, restore, log
	Subject string
	Who     string
	Outcome string
	End     End // Port -1: of the node; Node 0: of the subnet
}

// PortLife is what happened to a port and the links that it had.
type PortLife struct {
	End
	Since, Until time.Time // of Errors
	Events       []Event
	Links        []Life
	Cables       []Cable
	Errors       []Errors // by days
	BER          []PortBER
	Findings     []Found
	Acks         []Acked
	Actions      []Action
	Gaps         []Gap
}

// LifeOf returns what happened to a port and the links that it had: all of it, and its errors by days
// from since to until.
func (s *Store) LifeOf(ctx context.Context, node mad.GUID, num int, since, until time.Time) (l *PortLife, err error) {
	l = &PortLife{End: End{node, num}, Since: since, Until: until}
	if l.Events, err = s.EventsOf(ctx, node, num); err != nil {
		return nil, err
	}
	if l.Links, err = s.Lives(ctx, node, num); err != nil {
		return nil, err
	}
	if l.Gaps, err = s.Gaps(ctx, since, until); err != nil {
		return nil, err
	}
	id, err := s.portID(ctx, node, num)
	if err != nil || id == 0 {
		return l, err
	}
	if l.Cables, err = s.cables(ctx, "(c.a = ? or c.b = ?)", id, id); err != nil {
		return nil, err
	}
	if l.Errors, err = s.Errors(ctx, node, num, since, until, 24*time.Hour); err != nil {
		return nil, err
	}
	if l.BER, err = s.berOf(ctx, id); err != nil {
		return nil, err
	}
	if l.Findings, err = s.findings(ctx, "port = ?", id); err != nil {
		return nil, err
	}
	if l.Acks, err = s.acks(ctx, l.Findings); err != nil {
		return nil, err
	}
	l.Actions, err = s.actions(ctx, "c.port = ?", id)
	return l, err
}

// NodeLife is what happened to a node.
type NodeLife struct {
	Node         mad.GUID
	Type         mad.NodeType
	First        time.Time // when it was first found
	Since, Until time.Time // of Errors
	Events       []Event
	Errors       map[int]uint64 // errors of all kinds by port, without link-downs
	Findings     []Found
	Acks         []Acked
	Actions      []Action
	Gaps         []Gap
}

// NodeLife returns what happened to a node: all of it, and the errors of its ports from since to until.
func (s *Store) NodeLife(ctx context.Context, node mad.GUID, since, until time.Time) (l *NodeLife, err error) {
	l = &NodeLife{Node: node, Since: since, Until: until, Errors: map[int]uint64{}}
	var id, kind, first int64
	err = s.db.QueryRowContext(ctx, "select id, type, t from node where guid = ?", node.String()).Scan(&id, &kind, &first)
	if err == sql.ErrNoRows {
		return nil, fmt.Errorf("%s: the history does not have node %s", s.path, node)
	}
	if err != nil {
		return nil, s.failed(err)
	}
	l.Type, l.First = mad.NodeType(kind), at(first)
	if l.Events, err = s.EventsOf(ctx, node, -1); err != nil {
		return nil, err
	}
	if l.Gaps, err = s.Gaps(ctx, since, until); err != nil {
		return nil, err
	}
	down, _, err := s.wordID(ctx, "counter", linkDowned)
	if err != nil {
		return nil, err
	}
	from, to := span(since, until)
	err = s.each(ctx, "select p.num, sum(e.n) from port p join err60 e on e.port = p.id where p.node = ? and e.t >= ? and e.t < ? and e.counter <> ? group by p.num", []any{id, from - from%hourSeconds, to, down}, func(scan func(...any) error) error {
		var num int
		var n int64
		err := scan(&num, &n)
		l.Errors[num] = uint64(max(0, n))
		return err
	})
	if err != nil {
		return nil, err
	}
	if l.Findings, err = s.findings(ctx, "node = ? or port in (select id from port where node = ?)", id, id); err != nil {
		return nil, err
	}
	if l.Acks, err = s.acks(ctx, l.Findings); err != nil {
		return nil, err
	}
	l.Actions, err = s.actions(ctx, "c.node = ? or p.node = ?", id, id)
	return l, err
}

// CableLife is what happened to a cable or module, wherever it was.
type CableLife struct {
	Serial string
	Spans  []CableSpan // by time
	Gaps   []Gap
}

// CableSpan is what happened while a cable was between two ports.
type CableSpan struct {
	Cable
	Downs  int      // involuntary link-downs
	Errors []Errors // by days, of both ends
	Events []Event
}

// CableLife returns what happened to the cables or modules of a serial number.
func (s *Store) CableLife(ctx context.Context, serial string) (*CableLife, error) {
	l := &CableLife{Serial: serial}
	list, err := s.cables(ctx, "c.serial = ?", serial)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: the history does not have a cable of serial number %q", s.path, serial)
	}
	words, err := s.words(ctx, "counter")
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		x := CableSpan{Cable: c}
		for _, e := range []End{c.A, c.B} {
			if e.Node == 0 {
				continue
			}
			id, err := s.portID(ctx, e.Node, e.Port)
			if err != nil {
				return nil, err
			}
			errs, err := s.errorsOf(ctx, id, c.From, c.Till, time.Hour, words)
			if err != nil {
				return nil, err
			}
			x.Errors = byDay(x.Errors, errs)
		}
		events, err := s.EventsOf(ctx, c.A.Node, c.A.Port)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if e.Time.Before(c.From) || !c.Till.IsZero() && e.Time.After(c.Till) {
				continue
			}
			x.Events = append(x.Events, e)
			x.Downs += downsOf(&e)
		}
		l.Spans = append(l.Spans, x)
	}
	last := list[len(list)-1].Till
	if last.IsZero() {
		if last, err = s.lastCycle(ctx); err != nil {
			return nil, err
		}
	}
	l.Gaps, err = s.Gaps(ctx, list[0].From, last)
	return l, err
}

// byDay adds hours of errors to days.
func byDay(days, hours []Errors) []Errors {
	for _, h := range hours {
		day := h.Time.Truncate(24 * time.Hour)
		i := slices.IndexFunc(days, func(d Errors) bool { return d.Time.Equal(day) && d.Counter == h.Counter })
		if i < 0 {
			i = len(days)
			days = append(days, Errors{Time: day, Width: 24 * time.Hour, Counter: h.Counter})
		}
		days[i].Count += h.Count
		days[i].Hours++
	}
	slices.SortStableFunc(days, func(a, b Errors) int {
		if c := a.Time.Compare(b.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Counter, b.Counter)
	})
	return days
}

// lastCycle returns the time of the last cycle; zero: the history has no cycle.
func (s *Store) lastCycle(ctx context.Context) (time.Time, error) {
	var t sql.NullInt64
	if err := s.db.QueryRowContext(ctx, "select max(t) from cycle").Scan(&t); err != nil || !t.Valid {
		return time.Time{}, s.failed(err)
	}
	return at(t.Int64), nil
}

func optionalTime(t sql.NullInt64) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return at(t.Int64)
}

func (s *Store) cables(ctx context.Context, where string, args ...any) (list []Cable, err error) {
	err = s.each(ctx, `select c.serial, c.part, n.guid, p.num, coalesce(m.guid, ''), coalesce(q.num, -1), c.t, c.till from cable c
		join port p on p.id = c.a join node n on n.id = p.node left join port q on q.id = c.b left join node m on m.id = q.node
		where `+where+" order by c.t, c.serial limit ?", append(args, maxEvents), func(scan func(...any) error) error {
		var c Cable
		var a, b string
		var t int64
		var till sql.NullInt64
		if err := scan(&c.Serial, &c.Part, &a, &c.A.Port, &b, &c.B.Port, &t, &till); err != nil {
			return err
		}
		var err error
		if c.A.Node, err = s.guid(a); err != nil {
			return err
		}
		if c.B.Node, err = s.guid(b); err != nil {
			return err
		}
		c.From, c.Till = at(t), optionalTime(till)
		list = append(list, c)
		return nil
	})
	return list, err
}

func (s *Store) findings(ctx context.Context, where string, args ...any) (list []Found, err error) {
	err = s.each(ctx, "select key, job, severity, subject, message, checked, t, till from finding where "+where+" order by t, key limit ?", append(args, maxEvents), func(scan func(...any) error) error {
		var f Found
		var severity, checked, t int64
		var till sql.NullInt64
		if err := scan(&f.Key, &f.Job, &severity, &f.Subject, &f.Message, &checked, &t, &till); err != nil {
			return err
		}
		f.Severity, f.Checked, f.From, f.Till = audit.Severity(severity), at(checked), at(t), optionalTime(till)
		list = append(list, f)
		return nil
	})
	return list, err
}

// FoundAt returns the findings that were open at a time.
func (s *Store) FoundAt(ctx context.Context, t time.Time) ([]Found, error) {
	return s.findings(ctx, "t <= ? and (till is null or till > ?)", t.Unix(), t.Unix())
}

// acks returns the acknowledgements of findings.
func (s *Store) acks(ctx context.Context, found []Found) (list []Acked, err error) {
	if len(found) == 0 {
		return nil, nil
	}
	err = s.each(ctx, "select pattern, who, reason, until, t, till from ack order by t, pattern limit ?", []any{maxEvents}, func(scan func(...any) error) error {
		var a Acked
		var until, t int64
		var till sql.NullInt64
		if err := scan(&a.Pattern, &a.Who, &a.Reason, &until, &t, &till); err != nil {
			return err
		}
		if a.From, a.Till = at(t), optionalTime(till); until != 0 {
			a.Until = at(until)
		}
		names := audit.Ack{Pattern: a.Pattern}.Names
		if slices.ContainsFunc(found, func(f Found) bool { return names(f.Key) }) {
			list = append(list, a)
		}
		return nil
	})
	return list, err
}

func (s *Store) actions(ctx context.Context, where string, args ...any) (list []Action, err error) {
	err = s.each(ctx, `select c.t, c.action, c.subject, c.who, c.outcome, coalesce(coalesce(n.guid, m.guid), ''), coalesce(p.num, -1) from change c
		left join node n on n.id = c.node left join port p on p.id = c.port left join node m on m.id = p.node
		where `+where+" order by c.t, c.n limit ?", append(args, maxEvents), func(scan func(...any) error) error {
		var a Action
		var t int64
		var guid string
		if err := scan(&t, &a.Action, &a.Subject, &a.Who, &a.Outcome, &guid, &a.End.Port); err != nil {
			return err
		}
		var err error
		a.Time = at(t)
		a.End.Node, err = s.guid(guid)
		list = append(list, a)
		return err
	})
	return list, err
}

// Actions returns the plans and remedies from since on and before until, the oldest first.
func (s *Store) Actions(ctx context.Context, since, until time.Time) ([]Action, error) {
	from, to := span(since, until)
	return s.actions(ctx, "c.t >= ? and c.t < ?", from, to)
}

// Named finds the nodes and ports of names in the last fabric of a history.
type Named struct {
	Fabric *fabric.Fabric // nil: the history has no cycle
}

// Names returns the names of the last cycle.
func (s *Store) Names(ctx context.Context) (*Named, error) {
	n := &Named{}
	last, err := s.lastCycle(ctx)
	if err != nil || last.IsZero() {
		return n, err
	}
	if n.Fabric, _, err = s.sweepAt(ctx, last); err != nil {
		return nil, err
	}
	return n, nil
}

// Of returns the name of a port, "leaf-3/7"; its GUID and number if the last fabric does not have it.
func (n *Named) Of(e End) string {
	if p := n.port(e); p != nil {
		return p.Name()
	}
	if e.Port >= 0 {
		return e.String()
	}
	if x := n.node(e.Node); x != nil {
		return x.Name()
	}
	return e.Node.String()
}

// node returns a node of the last fabric; nil: it does not have it.
func (n *Named) node(g mad.GUID) *fabric.Node {
	if n.Fabric == nil || g == 0 {
		return nil
	}
	if nodes := n.Fabric.NodeByGUID(g); len(nodes) > 0 {
		return nodes[0]
	}
	return nil
}

// port returns a port of the last fabric; nil: it does not have it.
func (n *Named) port(e End) *fabric.Port {
	x := n.node(e.Node)
	if x == nil || e.Port < 0 {
		return nil
	}
	return x.Port(e.Port)
}

// Link returns the name of a link.
func (n *Named) Link(a, b End) string {
	if b.Node == 0 {
		return n.Of(a)
	}
	return n.Of(a) + " - " + n.Of(b)
}

// Port returns the port of a name: "leaf-3/7", or a node GUID and a number. The node must not be in the
// last fabric if it is named by GUID. Two ports of one name are an error that lists them.
func (n *Named) Port(name string) (End, error) {
	if e, ok := parseEnd(name); ok {
		return e, nil
	}
	var found []End
	var near []string
	if n.Fabric != nil {
		for i := range n.Fabric.Ports() {
			p := &n.Fabric.Ports()[i]
			if p.Name() == name {
				found = append(found, End{p.Node().GUID(), p.Num()})
			} else if len(near) < maxNear {
				near = append(near, p.Name())
			}
		}
	}
	return one("port", name, found, near)
}

// Node returns the node of a name or GUID. Two nodes of one name are an error that lists them.
func (n *Named) Node(name string) (mad.GUID, error) {
	if g, ok := parseGUID(name); ok {
		return g, nil
	}
	var found []End
	var near []string
	if n.Fabric != nil {
		for i := range n.Fabric.Nodes() {
			x := &n.Fabric.Nodes()[i]
			if x.Name() == name {
				found = append(found, End{x.GUID(), -1})
			} else if len(near) < maxNear {
				near = append(near, x.Name())
			}
		}
	}
	e, err := one("node", name, found, near)
	return e.Node, err
}

// parseEnd reads "0x0002c90300001234/7".
func parseEnd(text string) (End, bool) {
	guid, num, ok := strings.Cut(text, "/")
	g, isGUID := parseGUID(guid)
	n, err := strconv.ParseUint(num, 10, 8)
	return End{g, int(n)}, ok && isGUID && err == nil
}

func parseGUID(text string) (mad.GUID, bool) {
	g, err := strconv.ParseUint(text, 0, 64)
	return mad.GUID(g), err == nil && strings.HasPrefix(text, "0x") && g != 0
}

// maxNear is how many names are compared for a hint.
const maxNear = 1 << 16

func one(what, name string, found []End, near []string) (End, error) {
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return End{}, fmt.Errorf("%q: no %s of that name in the last sweep of the history%s; name it by GUID if it is gone", name, what, fabric.DidYouMean(name, near))
	}
	var list []string
	for _, e := range found {
		if e.Port < 0 {
			list = append(list, e.Node.String())
		} else {
			list = append(list, e.String())
		}
	}
	return End{}, fmt.Errorf("%q: %d %ss have this name: %s; name one by GUID", name, len(found), what, strings.Join(list, ", "))
}
