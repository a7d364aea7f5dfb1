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
	c := &count{Store: s, ctx: ctx, of: q.Of, groups: map[string]*offender{}, spans: map[int64][]portSpan{}, ends: map[int64]portEnd{}}
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
}

type portEnd struct {
	End
	node int64
	kind mad.NodeType
}

type offender struct {
	Offender
	days  map[int64]bool
	links map[[2]int64]bool
}

// count adds up faults.
type count struct {
	*Store
	ctx    context.Context
	of     string
	groups map[string]*offender
	spans  map[int64][]portSpan
	ends   map[int64]portEnd
	down   int64 // the counter of link-downs
}

// faults returns the faults of a time.
func (c *count) faults(since, until time.Time) (list []fault, err error) {
	if c.down, _, err = c.wordID(c.ctx, "counter", linkDowned); err != nil {
		return nil, err
	}
	from, to := span(since, until)
	err = c.each(c.ctx, "select t, port, sum(n) from err_day where t >= ? and t < ? and counter <> ? group by t, port order by t, port", []any{from - from%daySeconds, to, c.down}, func(scan func(...any) error) error {
		var f fault
		var n float64
		if err := scan(&f.t, &f.port, &n); err != nil {
			return err
		}
		f.errors = uint64(max(0, n))
		list = append(list, f)
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
	others := map[int64]bool{}
	for _, some := range chunks(ids) {
		for _, column := range []string{"a", "b"} {
			err := c.each(c.ctx, fmt.Sprintf(query, column, some), nil, func(scan func(...any) error) error {
				x := portSpan{till: 1 << 62}
				var b, till sql.NullInt64
				if err := scan(&x.a, &b, &x.t, &till, &x.serial); err != nil {
					return err
				}
				if x.b = b.Int64; till.Valid {
					x.till = till.Int64
				}
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
		slices.SortFunc(list, func(a, b portSpan) int { return cmp.Or(cmp.Compare(a.t, b.t), strings.Compare(a.serial, b.serial)) })
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
	var found []portSpan
	for _, port := range []int64{f.port, f.peer} {
		for _, x := range c.spans[port] {
			if port == 0 || x.t > f.t+length || x.till < f.t || length > 0 && x.till == f.t {
				continue
			}
			if !slices.Contains(found, x) {
				found = append(found, x)
			}
		}
	}
	if f.flaps > 0 { // the link was there until then: not one that began then
		c.share(slices.DeleteFunc(found, func(x portSpan) bool { return x.t >= f.t }), f)
		return nil
	}
	cut := func(x portSpan) bool { return x.t > f.t || x.till < f.t+length }
	if !slices.ContainsFunc(found, cut) || !slices.ContainsFunc(found, func(x portSpan) bool { return c.key(x) != c.key(found[0]) }) {
		c.share(found, f)
		return nil
	}
	// The port had several on that day: by the hour.
	return c.each(c.ctx, "select t, sum(n) from err60 where port = ? and t >= ? and t < ? and counter <> ? group by t order by t", []any{f.port, f.t, f.t + daySeconds, c.down}, func(scan func(...any) error) error {
		hour := fault{port: f.port}
		var n float64
		if err := scan(&hour.t, &n); err != nil {
			return err
		}
		hour.errors = uint64(max(0, n))
		middle := hour.t + hourSeconds/2
		then := slices.DeleteFunc(slices.Clone(found), func(x portSpan) bool { return x.t > middle || x.till <= middle })
		if len(then) == 0 { // between two: of the one before
			for _, x := range found {
				if x.t <= middle {
					then = []portSpan{x}
				}
			}
		}
		c.share(then, hour)
		return nil
	})
}

// key is what of a span has the faults of links and cables.
func (c *count) key(x portSpan) string {
	if c.of == "cable" {
		return x.serial
	}
	return fmt.Sprint(x.a, " ", x.b)
}

// share adds a fault to each of the links or cables: that of a link may be in either of its modules.
func (c *count) share(list []portSpan, f fault) {
	for i, x := range list {
		if !slices.ContainsFunc(list[:i], func(y portSpan) bool { return c.key(y) == c.key(x) }) {
			c.fault(x, f.t, f.errors, f.flaps)
		}
	}
}

// fault adds a fault of a span.
func (c *count) fault(x portSpan, t int64, errors uint64, flaps int) {
	a, b := c.ends[x.a], c.ends[x.b]
	var keys []string
	ends := []End{a.End}
	if x.b != 0 {
		ends = append(ends, b.End)
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
			o = &offender{Offender: Offender{Key: key, First: at(t)}, days: map[int64]bool{}, links: map[[2]int64]bool{}}
			c.groups[key] = o
		}
		if o.Ends = ends; c.of == "host" || c.of == "switch" {
			g, _ := parseGUID(key)
			o.Ends = []End{{g, -1}}
		}
		o.days[t/daySeconds] = true
		o.links[[2]int64{x.a, x.b}] = true
		o.Flaps += flaps
		if o.Errors += errors; at(t).Before(o.First) {
			o.First = at(t)
		}
		if at(t).After(o.Last) {
			o.Last = at(t)
		}
	}
}
