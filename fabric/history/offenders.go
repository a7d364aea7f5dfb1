package history

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/mad"
)

// OffenderKinds are what Offenders adds up faults of: links, cables by serial number, hosts and switches.
var OffenderKinds = []string{"link", "cable", "host", "switch"}

// OffenderOrders are what Offenders sorts by.
var OffenderOrders = []string{"days", "flaps", "errors"}

// OffenderQuery is which offenders are wanted.
type OffenderQuery struct {
	Of           string // one of OffenderKinds; "": link
	By           string // one of OffenderOrders; "": days
	Since, Until time.Time
}

// Offender is a link, a cable, a host or a switch that had faults.
type Offender struct {
	Key         string // of links "GUID/PORT - GUID/PORT", of cables the serial number, of nodes the GUID
	IsCable     bool   // or a module
	Ends        []End  // of links and cables, the last ones; of nodes, the node, with port -1
	Days        int    // with errors or involuntary link-downs
	Flaps       int    // involuntary link-downs
	Errors      uint64 // of all kinds that grew, besides link-downs
	Links       int    // in which it was, of cables: more than one shows that the fault moved with it
	First, Last time.Time
}

// Offenders returns what had errors or involuntary link-downs in a time, the worst first. The errors are
// those of whole days, UTC. A fault is of the cable that was at the port then, by the hour; errors of ports
// whose cable or link is not known are not in it.
func (s *Store) Offenders(ctx context.Context, q OffenderQuery) ([]Offender, error) {
	q.Of, q.By = cmp.Or(q.Of, "link"), cmp.Or(q.By, "days")
	if !slices.Contains(OffenderKinds, q.Of) {
		return nil, fmt.Errorf("offenders of %q: want %s", q.Of, strings.Join(OffenderKinds, ", "))
	}
	if !slices.Contains(OffenderOrders, q.By) {
		return nil, fmt.Errorf("offenders by %q: want %s", q.By, strings.Join(OffenderOrders, ", "))
	}
	c := &count{Store: s, ctx: ctx, of: q.Of, groups: map[string]*offender{}, spans: map[int64][]*portSpan{}, ends: map[int64]portEnd{}}
	faults, err := c.faults(q.Since, q.Until)
	if err != nil {
		return nil, err
	}
	if err := c.load(faults); err != nil {
		return nil, err
	}
	for _, f := range faults {
		if err := c.add(f); err != nil {
			return nil, err
		}
	}
	var list []Offender
	for _, o := range c.groups {
		o.Days, o.Links, o.IsCable = len(o.days), len(o.links), q.Of == "cable"
		o.First, o.Last = at(o.first), at(o.last)
		list = append(list, o.Offender)
	}
	slices.SortFunc(list, func(a, b Offender) int { return CompareOffenders(q.By, &a, &b) })
	return list, nil
}

// CompareOffenders compares by one of OffenderOrders, the worst first.
func CompareOffenders(by string, a, b *Offender) int {
	days, flaps, errors := cmp.Compare(b.Days, a.Days), cmp.Compare(b.Flaps, a.Flaps), cmp.Compare(b.Errors, a.Errors)
	key := strings.Compare(a.Key, b.Key)
	switch by {
	case "flaps":
		return cmp.Or(flaps, days, errors, key)
	case "errors":
		return cmp.Or(errors, days, flaps, key)
	}
	return cmp.Or(days, flaps, errors, key)
}

// fault is the errors of a port on a day, or a link that went down.
type fault struct {
	port, peer int64 // peer: of link-downs, the other port
	t          int64 // of errors, the begin of the day
	errors     uint64
	flaps      int
}

// portSpan is a time in which a port had a link or a cable.
type portSpan struct {
	t, till int64
	a, b    int64 // b 0: not known
	serial  string
	ends    []End
	groups  []*offender // that have its faults; nil: not known
}

type portEnd struct {
	End
	node int64
	kind mad.NodeType
}

type offender struct {
	Offender
	days        map[int64]bool
	links       map[[2]int64]bool
	first, last int64
	day         int64     // that was added last
	span        *portSpan // that was added last
}

// count adds up faults.
type count struct {
	*Store
	ctx    context.Context
	of     string
	groups map[string]*offender
	spans  map[int64][]*portSpan
	ends   map[int64]portEnd
	down   int64       // the counter of link-downs
	found  []*portSpan // scratch space of add
}

// faults returns the faults of a time.
func (c *count) faults(since, until time.Time) (list []fault, err error) {
	if c.down, _, err = c.wordID(c.ctx, "counter", linkDowned); err != nil {
		return nil, err
	}
	from, to := span(since, until)
	err = c.eachInts(c.ctx, "select t, port, cast(sum(n) as bigint) from err_day where t >= ? and t < ? and counter <> ? group by t, port order by t, port", []any{from - from%daySeconds, to, c.down}, func(row []int64) error {
		list = append(list, fault{t: row[0], port: row[1], errors: uint64(max(0, row[2]))})
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = c.each(c.ctx, "select t, kind, port, peer, now from event where t >= ? and t < ? and kind in (?, ?) order by t, n", []any{from, to, LinkDown, LinkFlap}, func(scan func(...any) error) error {
		var f fault
		var e Event
		var port, peer sql.NullInt64
		if err := scan(&f.t, &e.Kind, &port, &peer, &e.Now); err != nil {
			return err
		}
		if f.port, f.peer, f.flaps = port.Int64, peer.Int64, downsOf(&e); f.flaps > 0 && port.Valid {
			list = append(list, f)
		}
		return nil
	})
	return list, err
}

// load reads the links or cables of the ports that have faults, and the nodes of these.
func (c *count) load(faults []fault) error {
	ids := map[int64]bool{}
	for _, f := range faults {
		ids[f.port] = true
		if f.peer != 0 {
			ids[f.peer] = true
		}
	}
	query := "select a, b, t, till, '' from link where %s in (%s)"
	if c.of == "cable" {
		query = "select a, b, t, till, serial from cable where %s in (%s)"
	}
	type spanKey struct {
		a, b, t int64
		serial  string
	}
	known := map[spanKey]*portSpan{} // both ports of a link may have faults
	others := map[int64]bool{}
	for _, some := range chunks(ids) {
		for _, column := range []string{"a", "b"} {
			err := c.each(c.ctx, fmt.Sprintf(query, column, some), nil, func(scan func(...any) error) error {
				x := &portSpan{till: 1 << 62}
				var b, till sql.NullInt64
				if err := scan(&x.a, &b, &x.t, &till, &x.serial); err != nil {
					return err
				}
				if x.b = b.Int64; till.Valid {
					x.till = till.Int64
				}
				k := spanKey{x.a, x.b, x.t, x.serial}
				if old := known[k]; old != nil {
					x = old
				}
				known[k] = x
				others[x.a] = true
				if x.b != 0 {
					others[x.b] = true
				}
				port := x.a
				if column == "b" {
					port = x.b
				}
				c.spans[port] = append(c.spans[port], x)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	for _, list := range c.spans {
		slices.SortFunc(list, func(a, b *portSpan) int { return cmp.Or(cmp.Compare(a.t, b.t), strings.Compare(a.serial, b.serial)) })
	}
	for _, some := range chunks(others) {
		err := c.each(c.ctx, "select p.id, p.node, n.guid, p.num, n.type from port p join node n on n.id = p.node where p.id in ("+some+")", nil, func(scan func(...any) error) error {
			var id, kind int64
			var e portEnd
			var guid string
			if err := scan(&id, &e.node, &guid, &e.Port, &kind); err != nil {
				return err
			}
			var err error
			e.kind = mad.NodeType(kind)
			e.Node, err = c.guid(guid)
			c.ends[id] = e
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// chunks returns ids as lists of SQL.
func chunks(ids map[int64]bool) (list []string) {
	var sorted []int64
	for id := range ids {
		sorted = append(sorted, id)
	}
	slices.Sort(sorted)
	for some := range slices.Chunk(sorted, 500) {
		words := make([]string, len(some))
		for i, id := range some {
			words[i] = strconv.FormatInt(id, 10)
		}
		list = append(list, strings.Join(words, ", "))
	}
	return list
}

// add adds a fault to what had it.
func (c *count) add(f fault) error {
	length := int64(0)
	if f.errors > 0 {
		length = daySeconds
	}
	found := c.found[:0]
	for _, port := range [2]int64{f.port, f.peer} {
		for _, x := range c.spans[port] {
			if port == 0 || x.t > f.t+length || x.till < f.t || length > 0 && x.till == f.t {
				continue
			}
			if !slices.Contains(found, x) {
				found = append(found, x)
			}
		}
	}
	c.found = found
	if f.flaps > 0 { // the link was there until then: not one that began then
		c.share(slices.DeleteFunc(found, func(x *portSpan) bool { return x.t >= f.t }), f)
		return nil
	}
	cut := func(x *portSpan) bool { return x.t > f.t || x.till < f.t+length }
	if !slices.ContainsFunc(found, cut) || !slices.ContainsFunc(found, func(x *portSpan) bool { return !c.isSame(x, found[0]) }) {
		c.share(found, f)
		return nil
	}
	// The port had several on that day: by the hour.
	return c.eachInts(c.ctx, "select t, cast(sum(n) as bigint) from err60 where port = ? and t >= ? and t < ? and counter <> ? group by t order by t", []any{f.port, f.t, f.t + daySeconds, c.down}, func(row []int64) error {
		hour := fault{port: f.port, t: row[0], errors: uint64(max(0, row[1]))}
		middle := hour.t + hourSeconds/2
		then := slices.DeleteFunc(slices.Clone(found), func(x *portSpan) bool { return x.t > middle || x.till <= middle })
		if len(then) == 0 { // between two: of the one before
			for _, x := range found {
				if x.t <= middle {
					then = []*portSpan{x}
				}
			}
		}
		c.share(then, hour)
		return nil
	})
}

// isSame reports whether the faults of two spans are of the same link or cable.
func (c *count) isSame(x, y *portSpan) bool {
	if c.of == "cable" {
		return x.serial == y.serial
	}
	return x.a == y.a && x.b == y.b
}

// share adds a fault to each of the links or cables: that of a link may be in either of its modules.
func (c *count) share(list []*portSpan, f fault) {
	for i, x := range list {
		if !slices.ContainsFunc(list[:i], func(y *portSpan) bool { return c.isSame(x, y) }) {
			c.fault(x, f)
		}
	}
}

// fault adds a fault of a span.
func (c *count) fault(x *portSpan, f fault) {
	if x.groups == nil {
		c.group(x, f.t)
	}
	for _, o := range x.groups {
		if c.of == "link" || c.of == "cable" {
			o.Ends = x.ends
		}
		if day := f.t / daySeconds; day != o.day || len(o.days) == 0 {
			o.days[day], o.day = true, day
		}
		if o.span != x {
			o.links[[2]int64{x.a, x.b}], o.span = true, x
		}
		o.Flaps += f.flaps
		o.Errors += f.errors
		o.first, o.last = min(o.first, f.t), max(o.last, f.t)
	}
}

// group finds what has the faults of a span, the first of which is of time t.
func (c *count) group(x *portSpan, t int64) {
	a, b := c.ends[x.a], c.ends[x.b]
	var keys []string
	x.groups, x.ends = []*offender{}, []End{a.End}
	if x.b != 0 {
		x.ends = append(x.ends, b.End)
	}
	switch c.of {
	case "link":
		keys = []string{a.String() + " - " + b.String()}
	case "cable":
		keys = []string{x.serial}
	default:
		for _, e := range []portEnd{a, b} {
			if e.Node != 0 && (e.kind == mad.NodeTypeSwitch) == (c.of == "switch") {
				keys = append(keys, e.Node.String())
			}
		}
		keys = slices.Compact(keys)
	}
	for _, key := range keys {
		o := c.groups[key]
		if o == nil {
			o = &offender{Offender: Offender{Key: key}, days: map[int64]bool{}, links: map[[2]int64]bool{}, first: t, last: t}
			c.groups[key] = o
			if g, ok := parseGUID(key); ok && c.of != "cable" {
				o.Ends = []End{{g, -1}}
			}
		}
		x.groups = append(x.groups, o)
	}
}
