package history

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// Event is what happened to a node or a link.
type Event struct {
	Time     time.Time // of the cycle that found it: it happened since the one before
	Kind     string
	Node     mad.GUID // 0: none
	Port     int      // of links, the end with the lower GUID; -1: none
	PeerNode mad.GUID
	PeerPort int
	Subject  string // "leaf-3/7 - node-0012 HCA-1/1", as it was called then
	Was, Now string
}

// Gap is a time in which nothing was recorded.
type Gap struct{ From, To time.Time }

// Life is a time in which a link was there.
type Life struct {
	A, B       mad.GUID
	APort      int
	BPort      int
	From, Till time.Time // Till is zero: it is there
}

// Overview is what a history has.
type Overview struct {
	Subnet      string
	From, To    time.Time // of the first and last cycle; zero: none
	Cycles      int
	Incomplete  int // cycles whose sweep was not complete
	Events      int
	Nodes       int
	Links       int // that are there now
	Keyframes   int
	Deltas      int
	Bytes       int64
	Every       time.Duration // median time between cycles
	LongestGaps []Gap         // at most 10
}

// Overview returns what the history has.
func (s *Store) Overview(ctx context.Context) (*Overview, error) {
	o := &Overview{}
	var err error
	if o.Subnet, err = s.meta(ctx, "subnet"); err != nil {
		return nil, err
	}
	var from, to sql.NullInt64
	for query, dest := range map[string][]any{
		"select min(t), max(t), count(*), count(case when missing <> '' then 1 end) from cycle": {&from, &to, &o.Cycles, &o.Incomplete},
		"select count(*) from event":                   {&o.Events},
		"select count(*) from node":                    {&o.Nodes},
		"select count(*) from link where till is null": {&o.Links},
		"select count(*) from keyframe":                {&o.Keyframes},
		"select count(*) from delta":                   {&o.Deltas},
	} {
		if err := s.db.QueryRowContext(ctx, query).Scan(dest...); err != nil {
			return nil, s.failed(err)
		}
	}
	if from.Valid {
		o.From, o.To = at(from.Int64), at(to.Int64)
	}
	if s.isServer() {
		if err := s.db.QueryRowContext(ctx, "select coalesce(sum(pg_total_relation_size(c.oid)), 0) from pg_class c where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace").Scan(&o.Bytes); err != nil {
			return nil, s.failed(err)
		}
	}
	for _, end := range []string{"", "-wal"} {
		if st, err := os.Stat(s.path + end); err == nil {
			o.Bytes += st.Size()
		}
	}
	gaps, every, err := s.knownGaps(ctx, time.Time{}, time.Time{})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(gaps, func(a, b Gap) int { return int(b.To.Sub(b.From)/time.Second) - int(a.To.Sub(a.From)/time.Second) })
	o.Every, o.LongestGaps = every, gaps[:min(len(gaps), 10)]
	return o, nil
}

func at(t int64) time.Time { return time.Unix(t, 0).UTC() }

// shortestGap is how long nothing must have been recorded for a gap, however often it usually is.
const shortestGap = time.Minute

// Gaps returns the times between since and until in which nothing was recorded: longer than two and a
// half of the usual times between cycles, and than a minute. A zero time is the first or last cycle.
func (s *Store) Gaps(ctx context.Context, since, until time.Time) ([]Gap, error) {
	gaps, _, err := s.knownGaps(ctx, since, until)
	return gaps, err
}

// knownGaps is gaps with the answers since the last cycle: those of one time are requested again and again,
// by several at a time, and a year has 105,000 cycles.
func (s *Store) knownGaps(ctx context.Context, since, until time.Time) ([]Gap, time.Duration, error) {
	last, err := s.lastCycle(ctx)
	if err != nil {
		return nil, 0, err
	}
	key := gapKey{since.Unix(), until.Unix()}
	m := s.gapsOf
	m.mu.Lock()
	known, ok := m.byKey[key]
	ok = ok && m.last.Equal(last)
	m.mu.Unlock()
	if ok {
		return slices.Clone(known.gaps), known.usual, nil
	}
	gaps, usual, err := s.gaps(ctx, since, until)
	if err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.last.Equal(last) || len(m.byKey) >= maxKnownGaps {
		m.last, m.byKey = last, map[gapKey]knownGaps{}
	}
	m.byKey[key] = knownGaps{gaps, usual}
	return slices.Clone(gaps), usual, nil
}

// gapMemo has the answers of Gaps since the cycle last.
type gapMemo struct {
	mu    sync.Mutex
	last  time.Time
	byKey map[gapKey]knownGaps
}

type knownGaps struct {
	gaps  []Gap
	usual time.Duration
}

const maxKnownGaps = 64

type gapKey struct{ since, until int64 }

func (s *Store) gaps(ctx context.Context, since, until time.Time) (gaps []Gap, usual time.Duration, err error) {
	var first, last, every sql.NullInt64
	if err := s.db.QueryRowContext(ctx, "select min(t), max(t) from cycle").Scan(&first, &last); err != nil || !first.Valid {
		return nil, 0, s.failed(err)
	}
	if err := s.db.QueryRowContext(ctx, "select every from cycle where t = ?", last.Int64).Scan(&every); err != nil {
		return nil, 0, s.failed(err)
	}
	if every.Int64 == 0 { // not known: the usual one of late
		var steps []int64
		if err := s.each(ctx, "select t - lag(t) over (order by t) from (select t from cycle order by t desc limit ?) as late", []any{usualCycles}, func(scan func(...any) error) error {
			var d sql.NullInt64
			err := scan(&d)
			if d.Valid {
				steps = append(steps, d.Int64)
			}
			return err
		}); err != nil {
			return nil, 0, s.failed(err)
		}
		if len(steps) == 0 {
			return nil, 0, nil
		}
		slices.Sort(steps)
		every.Int64 = steps[len(steps)/2]
	}
	usual = time.Duration(every.Int64) * time.Second
	longest := int64(max(usual*5/2, shortestGap) / time.Second)
	from, to := span(since, until)
	if from < first.Int64 && !since.IsZero() {
		gaps = append(gaps, Gap{since, at(first.Int64)})
	}
	// From the last cycle that is not after from, to the first one that is not before to.
	was := int64(-1)
	err = s.eachInts(ctx, "select t from cycle where t >= coalesce((select max(t) from cycle where t <= ?), 0) and t <= coalesce((select min(t) from cycle where t >= ?), ?) order by t", []any{from, to, last.Int64}, func(row []int64) error {
		t := row[0]
		if was >= 0 && t-was > longest {
			gaps = append(gaps, Gap{at(was), at(t)})
		}
		was = t
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if end := at(last.Int64); !until.IsZero() && until.Sub(end) > time.Duration(longest)*time.Second {
		gaps = append(gaps, Gap{end, until})
	}
	return gaps, usual, nil
}

// usualCycles is how many of the last cycles show what is usual.
const usualCycles = 1000

// maxEvents is how many events an answer has at most: a file of others may have any number.
const maxEvents = 1 << 20

const eventColumns = `select e.t, e.kind, coalesce(coalesce(n.guid, m.guid), ''), coalesce(p.num, -1), coalesce(o.guid, ''), coalesce(q.num, -1), e.subject, e.was, e.now
	from event e left join node n on n.id = e.node left join port p on p.id = e.port left join node m on m.id = p.node
	left join port q on q.id = e.peer left join node o on o.id = q.node `

// Changes returns the events from since on and before until, of the kinds that begin with one of the
// words ("link", "node.gone"; none: all), the oldest first. A zero time is no limit. What people and
// programs did is of the kinds change.apply, change.remedy, ack.begin and others; findings are left out unless
// kinds has them.
func (s *Store) Changes(ctx context.Context, since, until time.Time, kinds ...string) ([]Event, error) {
	where, args := []string{"1 = 1"}, []any{}
	if !since.IsZero() {
		where, args = append(where, "e.t >= ?"), append(args, since.Unix())
	}
	if !until.IsZero() {
		where, args = append(where, "e.t < ?"), append(args, until.Unix())
	}
	list, err := s.events(ctx, strings.Join(where, " and "), args...)
	if err != nil {
		return nil, err
	}
	more, err := s.contributed(ctx, since, until, kinds)
	if err != nil {
		return nil, err
	}
	if len(more) > 0 {
		list = append(list, more...)
		slices.SortStableFunc(list, func(x, y Event) int { return x.Time.Compare(y.Time) })
	}
	if len(kinds) == 0 {
		return list, nil
	}
	return slices.DeleteFunc(list, func(e Event) bool {
		return !slices.ContainsFunc(kinds, func(k string) bool { return e.Kind == k || strings.HasPrefix(e.Kind, k+".") })
	}), nil
}

// EventsOf returns the events of a node, or, where num is not negative, of one of its ports and the
// links that it had.
func (s *Store) EventsOf(ctx context.Context, node mad.GUID, num int) ([]Event, error) {
	if num >= 0 {
		port, err := s.portID(ctx, node, num)
		if err != nil || port == 0 {
			return nil, err
		}
		return s.events(ctx, "e.port = ? or e.peer = ?", port, port)
	}
	id, err := s.nodeID(ctx, node)
	if err != nil || id == 0 {
		return nil, err
	}
	const ports = "(select id from port where node = ?)"
	return s.events(ctx, "e.node = ? or e.port in "+ports+" or e.peer in "+ports, id, id, id)
}

func (s *Store) events(ctx context.Context, where string, args ...any) (list []Event, err error) {
	rows, err := s.db.QueryContext(ctx, eventColumns+"where "+where+" order by e.t, e.n limit ?", append(args, maxEvents+1)...)
	if err != nil {
		return nil, s.failed(err)
	}
	defer rows.Close()
	for rows.Next() {
		var e Event
		var t int64
		var node, peer string
		if err := rows.Scan(&t, &e.Kind, &node, &e.Port, &peer, &e.PeerPort, &e.Subject, &e.Was, &e.Now); err != nil {
			return nil, s.failed(err)
		}
		if len(list) == maxEvents {
			return nil, s.tooMany()
		}
		e.Time = at(t)
		if e.Node, err = s.guid(node); err != nil {
			return nil, err
		}
		if e.PeerNode, err = s.guid(peer); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, s.failed(rows.Err())
}

func (s *Store) guid(text string) (mad.GUID, error) {
	if text == "" {
		return 0, nil
	}
	g, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: the history is damaged: GUID %q", s.path, text)
	}
	return mad.GUID(g), nil
}

// Lives returns the links that a port had, the oldest first.
func (s *Store) Lives(ctx context.Context, node mad.GUID, num int) (list []Life, err error) {
	port, err := s.portID(ctx, node, num)
	if err != nil || port == 0 {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, `select n.guid, p.num, m.guid, q.num, l.t, l.till from link l
		join port p on p.id = l.a join node n on n.id = p.node join port q on q.id = l.b join node m on m.id = q.node
		where l.a = ? or l.b = ? order by l.t`, port, port)
	if err != nil {
		return nil, s.failed(err)
	}
	defer rows.Close()
	for rows.Next() {
		var l Life
		var a, b string
		var t int64
		var till sql.NullInt64
		if err := rows.Scan(&a, &l.APort, &b, &l.BPort, &t, &till); err != nil {
			return nil, s.failed(err)
		}
		if l.A, err = s.guid(a); err == nil {
			l.B, err = s.guid(b)
		}
		if err != nil {
			return nil, err
		}
		if l.From = at(t); till.Valid {
			l.Till = at(till.Int64)
		}
		list = append(list, l)
	}
	return list, s.failed(rows.Err())
}

// Flap is a link that went down several times.
type Flap struct {
	Subject     string
	Node        mad.GUID
	Port        int
	Downs       int
	First, Last time.Time
}

// Flaps returns the links that went down at least times times between since and until while both nodes
// remained and neither port was disabled, the most frequent first: as sweeps saw, and as counters counted
// between two sweeps that both found the link.
func (s *Store) Flaps(ctx context.Context, times int, since, until time.Time) ([]Flap, error) {
	from, to := span(since, until)
	type link struct{ port, peer int64 }
	index := map[link]int{}
	type found struct {
		Flap
		port int64
	}
	var links []found
	const query = "select t, kind, coalesce(port, 0), coalesce(peer, 0), subject, now from event where t >= ? and t < ? and kind in (?, ?) order by t, n limit ?"
	n := 0
	err := s.each(ctx, query, []any{from, to, LinkDown, LinkFlap, maxEvents + 1}, func(scan func(...any) error) error {
		var t int64
		var l link
		var e Event
		if err := scan(&t, &e.Kind, &l.port, &l.peer, &e.Subject, &e.Now); err != nil {
			return err
		}
		if n++; n > maxEvents {
			return s.tooMany()
		}
		downs := downsOf(&e)
		if downs == 0 {
			return nil
		}
		i, ok := index[l]
		if !ok {
			i = len(links)
			index[l] = i
			links = append(links, found{Flap{First: at(t)}, l.port})
		}
		f := &links[i]
		f.Downs += downs
		f.Subject, f.Last = e.Subject, at(t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var list []Flap
	for _, f := range links {
		if f.Downs < times {
			continue
		}
		e, err := s.endOf(ctx, f.port)
		if err != nil {
			return nil, err
		}
		f.Node, f.Port = e.Node, e.Port
		list = append(list, f.Flap)
	}
	slices.SortStableFunc(list, func(a, b Flap) int { return b.Downs - a.Downs })
	return list, nil
}

// endOf returns the port of an id; port -1: the history does not have it.
func (s *Store) endOf(ctx context.Context, port int64) (e End, err error) {
	var guid string
	err = s.db.QueryRowContext(ctx, "select n.guid, p.num from port p join node n on n.id = p.node where p.id = ?", port).Scan(&guid, &e.Port)
	if errors.Is(err, sql.ErrNoRows) {
		return End{Port: -1}, nil
	}
	if err != nil {
		return End{}, s.failed(err)
	}
	e.Node, err = s.guid(guid)
	return e, err
}

func (s *Store) tooMany() error {
	return fmt.Errorf("%s: more than %d events; ask for less time", s.path, maxEvents)
}

// At returns the fabric as the last cycle at or before t found it, and the time of that cycle. It has the
// forwarding tables if they were recorded then, and no counters. If nothing was recorded around t, that is a
// problem of the fabric, which is then not complete.
func (s *Store) At(ctx context.Context, t time.Time) (*fabric.Fabric, time.Time, error) {
	f, cycle, err := s.sweepAt(ctx, t)
	if err == nil {
		f, err = s.withTables(ctx, f, cycle.Unix())
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return f, cycle, nil
}

// sweepAt is At without tables.
func (s *Store) sweepAt(ctx context.Context, t time.Time) (*fabric.Fabric, time.Time, error) {
	var cycle, keyframe int64
	var latest int64
	err := s.db.QueryRowContext(ctx, "select t, keyframe, (select max(t) from cycle where t <= ?) from cycle where t <= ? and keyframe in (select t from keyframe) order by t desc limit 1", t.Unix(), t.Unix()).Scan(&cycle, &keyframe, &latest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, time.Time{}, fmt.Errorf("%s: nothing was recorded until %s", s.path, t.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return nil, time.Time{}, s.failed(err)
	}
	base, _, err := s.keyframe(ctx, keyframe)
	if err != nil {
		return nil, time.Time{}, err
	}
	f, err := s.since(ctx, base, keyframe, cycle)
	if err != nil {
		return nil, time.Time{}, err
	}
	if latest != cycle {
		if thinned, err := s.isThinnedCycle(ctx, latest); err != nil {
			return nil, time.Time{}, err
		} else if !thinned {
			return nil, time.Time{}, fmt.Errorf("%s: the history is damaged: no keyframe of %s", s.path, timeText(latest))
		}
		return f.With(fabric.Reading{Problems: []fabric.Problem{{Kind: fabric.ProblemUnrecorded, Text: fmt.Sprintf("as of %s: of a time so long ago, the fabric is kept for the first week of a month", timeText(cycle))}}}), at(cycle), nil
	}
	gaps, usual, err := s.gaps(ctx, at(cycle), t.Add(time.Second))
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, g := range gaps {
		if t.Sub(at(cycle)) > max(usual, shortestGap) {
			f = f.With(fabric.Reading{Problems: []fabric.Problem{{Kind: fabric.ProblemUnrecorded, Text: fmt.Sprintf("as of %s: nothing was recorded from then to %s", timeText(cycle), g.To.Format(time.RFC3339))}}})
			break
		}
	}
	return f, at(cycle), nil
}

// keyframe returns the snapshot of time t, and its size.
func (s *Store) keyframe(ctx context.Context, t int64) (*fabric.Fabric, int, error) {
	data, err := s.blob(ctx, "keyframe", t)
	if err != nil {
		return nil, 0, err
	}
	f, err := format.ReadSnapshot(bytes.NewReader(data), fmt.Sprintf("%s: keyframe of %s", s.path, timeText(t)))
	return f, len(data), err
}

// since returns the fabric of the cycle t, whose keyframe is base.
func (s *Store) since(ctx context.Context, base *fabric.Fabric, keyframe, t int64) (*fabric.Fabric, error) {
	if keyframe == t {
		return base, nil
	}
	data, err := s.blob(ctx, "delta", t)
	if err != nil {
		return nil, err
	}
	return format.ReadDelta(bytes.NewReader(data), fmt.Sprintf("%s: delta of %s", s.path, timeText(t)), base)
}

// maxBlob limits a keyframe and a delta, in bytes.
const maxBlob = 256 << 20

func (s *Store) blob(ctx context.Context, table string, t int64) (data []byte, err error) {
	err = s.db.QueryRowContext(ctx, "select data from "+table+" where t = ? and length(data) <= ?", t, maxBlob).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%s: the history is damaged: no %s of %s", s.path, table, timeText(t))
	}
	return data, s.failed(err)
}

// Copy writes a copy of the history to path, whole also while a recorder writes. The file must not exist.
// The path may be an address of PostgreSQL, whose schema of the subnet must not exist.
func (s *Store) Copy(ctx context.Context, path string) error {
	if IsServer(path) {
		return s.copyToServer(ctx, path)
	}
	if s.isServer() {
		return fmt.Errorf("%s: copy to a file: use pg_dump, or fabsh history export", s.path)
	}
	if exists(path) {
		return fmt.Errorf("%s: exists", path)
	}
	part := path + ".new"
	os.Remove(part)
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	defer os.Remove(part)
	// VACUUM counts as a write, which Open forbids.
	w, err := open(ctx, s.path, "mode=ro&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)")
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := w.db.ExecContext(ctx, "vacuum into ?", part); err != nil {
		return s.failed(err)
	}
	return os.Rename(part, path)
}
