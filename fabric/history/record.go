package history

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// Cycle is one sweep.
type Cycle struct {
	Time   time.Time
	Every  time.Duration // until the next one; 0: not known, as with cron
	Source string        // the program and the port: "fabsh history record, mlx5_0/1"
	Fabric *fabric.Fabric
}

// Summary is what a cycle added.
type Summary struct {
	Time     time.Time // of the cycle, which is after the last one even if the clock was set back
	Events   []Event
	Keyframe bool
	Bytes    int // of the keyframe or the delta
}

// Kinds of events.
const (
	NodeNew   = "node.new"
	NodeBack  = "node.back"
	NodeGone  = "node.gone"
	NodeName  = "node.name"
	NodeLID   = "node.lid"
	LinkNew   = "link.new"
	LinkUp    = "link.up"
	LinkDown  = "link.down" // both nodes are there
	LinkGone  = "link.gone" // with a node
	LinkWidth = "link.width"
	LinkSpeed = "link.speed"
	SMMoved   = "sm.moved"
	ClockBack = "clock.back"
)

// keyframeAge is how old the snapshot may be that deltas refer to, and keyframeShare how large deltas
// may be, as a share of it: then a new one is kept.
const (
	keyframeAge   = 7 * 24 * time.Hour
	keyframeShare = 4 // a quarter
)

// Record adds a cycle. It is whole or not there at all.
func (r *Recorder) Record(ctx context.Context, c Cycle) (*Summary, error) {
	// What the snapshot does not keep must not be an event: compare what both keep.
	var now bytes.Buffer
	if err := format.WriteSnapshot(&now, c.Fabric.Bare()); err != nil {
		return nil, err
	}
	kept, err := format.ReadSnapshot(bytes.NewReader(now.Bytes()), "the sweep")
	if err != nil {
		return nil, err
	}
	w := &writer{Recorder: r, ctx: ctx, t: c.Time.Unix(), nodes: map[mad.GUID]int64{}, ports: map[portKey]int64{}}
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, r.failed(err)
	}
	defer tx.Rollback()
	w.tx = tx
	if clock := w.t; r.last != nil && clock <= r.lastT {
		w.t = r.lastT + 1
		if clock < r.lastT-1 && !w.isSetBack() { // not only cycles within a second
			w.event(Event{Kind: ClockBack, Was: timeText(r.lastT), Now: timeText(clock)})
		}
	}
	w.compare(r.last, kept)
	data, keyframe, err := w.fabric(kept, now.Bytes())
	if err != nil {
		return nil, err
	}
	w.exec("insert into cycle values(?, ?, ?, ?, ?, ?)", w.t, int64(c.Every/time.Second), c.Source, kept.Missing(), w.keyTime, 0)
	if w.err == nil {
		var sum int64
		if sum, w.err = sumOf(ctx, tx, w.t); w.err == nil {
			w.exec("update cycle set sum = ? where t = ?", sum, w.t)
		}
	}
	if w.err != nil {
		return nil, r.failed(w.err)
	}
	if err := tx.Commit(); err != nil {
		return nil, r.failed(err)
	}
	if r.last, r.lastT = kept, w.t; keyframe {
		r.key, r.keyTime, r.keySize = kept, w.t, len(data)
	}
	return &Summary{time.Unix(w.t, 0).UTC(), w.events, keyframe, len(data)}, nil
}

// writer writes a cycle. It keeps the first error.
type writer struct {
	*Recorder
	ctx     context.Context
	tx      *sql.Tx
	t       int64
	keyTime int64
	events  []Event
	nodes   map[mad.GUID]int64 // ids
	ports   map[portKey]int64
	err     error
}

type portKey struct {
	node mad.GUID
	num  int
}

func keyOf(p *fabric.Port) portKey { return portKey{p.Node().GUID(), p.Num()} }

// isSetBack reports whether the clock was set back before and has not caught up: since then each cycle is
// a second after the one before.
func (w *writer) isSetBack() bool {
	var since, later int64
	w.err = w.tx.QueryRowContext(w.ctx, "select coalesce(max(t), -1) from event where kind = ?", ClockBack).Scan(&since)
	if w.err == nil {
		w.err = w.tx.QueryRowContext(w.ctx, "select count(*) from cycle where t > ?", since).Scan(&later)
	}
	return since >= 0 && later == w.lastT-since
}

func (w *writer) exec(statement string, args ...any) {
	if w.err == nil {
		_, w.err = w.tx.ExecContext(w.ctx, statement, args...)
	}
}

// fabric keeps the fabric: nothing if it is that of the last cycle, a delta, or a keyframe.
func (w *writer) fabric(now *fabric.Fabric, snapshot []byte) (data []byte, keyframe bool, err error) {
	if w.keyTime = w.Recorder.keyTime; w.key != nil && time.Duration(w.t-w.keyTime)*time.Second < keyframeAge {
		var delta bytes.Buffer
		if err := format.WriteDelta(&delta, w.key, now); err != nil {
			return nil, false, err
		}
		if delta.Len() < max(w.keySize/keyframeShare, 1<<12) {
			w.exec("insert into delta values(?, ?)", w.t, delta.Bytes())
			return delta.Bytes(), false, nil
		}
	}
	w.keyTime = w.t
	w.exec("insert into keyframe values(?, ?)", w.t, snapshot)
	return snapshot, true, nil
}

// event adds an event.
func (w *writer) event(e Event) {
	e.Time = time.Unix(w.t, 0).UTC()
	w.exec("insert into event values(?, ?, ?, ?, ?, ?, ?, ?, ?)", w.t, len(w.events), e.Kind, w.optionalNode(e.Node), w.optionalPort(e.Node, e.Port), w.optionalPort(e.PeerNode, e.PeerPort), e.Subject, e.Was, e.Now)
	w.events = append(w.events, e)
}

func (w *writer) optionalNode(g mad.GUID) any {
	if g == 0 {
		return nil
	}
	return w.node(g, 0)
}

func (w *writer) optionalPort(g mad.GUID, num int) any {
	if g == 0 || num < 0 {
		return nil
	}
	return w.port(portKey{g, num}, 0)
}

// node returns the id of a node, which it adds if it is new.
func (w *writer) node(g mad.GUID, t mad.NodeType) int64 {
	id, ok := w.nodes[g]
	if ok || w.err != nil {
		return id
	}
	switch w.err = w.tx.QueryRowContext(w.ctx, "select id from node where guid = ?", g.String()).Scan(&id); {
	case errors.Is(w.err, sql.ErrNoRows):
		if w.err = w.tx.QueryRowContext(w.ctx, "select coalesce(max(id), 0) + 1 from node").Scan(&id); w.err == nil {
			w.exec("insert into node values(?, ?, ?, ?)", id, g.String(), int64(t), w.t)
		}
	}
	w.nodes[g] = id
	return id
}

// port returns the id of a port, which it adds if it is new.
func (w *writer) port(k portKey, t mad.NodeType) int64 {
	id, ok := w.ports[k]
	if ok || w.err != nil {
		return id
	}
	n := w.node(k.node, t)
	if w.err != nil {
		return 0
	}
	switch w.err = w.tx.QueryRowContext(w.ctx, "select id from port where node = ? and num = ?", n, k.num).Scan(&id); {
	case errors.Is(w.err, sql.ErrNoRows):
		if w.err = w.tx.QueryRowContext(w.ctx, "select coalesce(max(id), 0) + 1 from port").Scan(&id); w.err == nil {
			w.exec("insert into port values(?, ?, ?, ?)", id, n, k.num, w.t)
		}
	}
	w.ports[k] = id
	return id
}

// compare adds the events between two sweeps. was is nil at the first one, which has no events.
func (w *writer) compare(was, now *fabric.Fabric) {
	before, after := cables(was), cables(now)
	if was != nil {
		w.compareNodes(was, now)
	}
	for _, c := range inOrder(before) {
		if d, ok := after[c.key()]; ok {
			if c.a.Width() != d.a.Width() {
				w.link(LinkWidth, d, c.a.Width(), d.a.Width())
			}
			if c.a.Speed() != d.a.Speed() {
				w.link(LinkSpeed, d, c.a.Speed(), d.a.Speed())
			}
			continue
		}
		w.down(c, now)
	}
	for _, c := range inOrder(after) {
		if _, ok := before[c.key()]; ok {
			continue
		}
		a, b := w.port(keyOf(c.a), c.a.Node().Type()), w.port(keyOf(c.b), c.b.Node().Type())
		kind := LinkNew
		if w.err == nil && was != nil {
			var one int
			err := w.tx.QueryRowContext(w.ctx, "select 1 from link where a = ? and b = ? limit 1", a, b).Scan(&one)
			if err == nil {
				kind = LinkUp
			} else if !errors.Is(err, sql.ErrNoRows) {
				w.err = err
			}
		}
		w.exec("insert into link values(?, ?, ?, null)", a, b, w.t)
		if was != nil {
			w.link(kind, c, "", c.a.Width()+" "+c.a.Speed())
		}
	}
}

// down ends a link that is gone.
func (w *writer) down(c cable, now *fabric.Fabric) {
	kind, state := LinkDown, ""
	for _, p := range []*fabric.Port{c.a, c.b} {
		nodes := now.NodeByGUID(p.Node().GUID())
		switch {
		case len(nodes) == 0:
			kind, state = LinkGone, "with "+nodeLabel(p.Node())
		case kind == LinkDown:
			if q := nodes[0].Port(p.Num()); q != nil && q.Info() != nil && (state == "" || q.PhysicalState() == mad.PortPhysicalStateDisabled) {
				state = q.PhysicalState().String()
			}
		}
	}
	a, b := w.port(keyOf(c.a), 0), w.port(keyOf(c.b), 0)
	w.exec("update link set till = ? where a = ? and b = ? and till is null", w.t, a, b)
	w.link(kind, c, c.a.Width()+" "+c.a.Speed(), state)
}

// link adds an event of a cable.
func (w *writer) link(kind string, c cable, was, now string) {
	a, b := keyOf(c.a), keyOf(c.b)
	w.event(Event{Kind: kind, Node: a.node, Port: a.num, PeerNode: b.node, PeerPort: b.num, Subject: c.a.Name() + " - " + c.b.Name(), Was: was, Now: now})
}

// compareNodes adds the events of nodes and of the subnet manager.
func (w *writer) compareNodes(was, now *fabric.Fabric) {
	for i := range was.Nodes() {
		n := &was.Nodes()[i]
		found := now.NodeByGUID(n.GUID())
		e := Event{Node: n.GUID(), Port: -1, PeerPort: -1, Subject: nodeLabel(n)}
		if len(found) == 0 {
			if e.Kind = NodeGone; !now.Complete() {
				e.Now = "not found, but the sweep is not complete"
			}
			w.event(e)
			continue
		}
		if m := found[0]; m.Name() != n.Name() {
			e.Kind, e.Was, e.Now = NodeName, n.Name(), m.Name()
			w.event(e)
		}
		if m := found[0]; m.LID() != n.LID() {
			e.Kind, e.Was, e.Now = NodeLID, strconv.Itoa(int(n.LID())), strconv.Itoa(int(m.LID()))
			w.event(e)
		}
	}
	for i := range now.Nodes() {
		n := &now.Nodes()[i]
		if len(was.NodeByGUID(n.GUID())) > 0 {
			continue
		}
		kind := NodeNew
		var one int
		switch err := w.tx.QueryRowContext(w.ctx, "select 1 from node where guid = ?", n.GUID().String()).Scan(&one); {
		case err == nil:
			kind = NodeBack
		case !errors.Is(err, sql.ErrNoRows):
			w.err = cmp.Or(w.err, err)
		}
		w.node(n.GUID(), n.Type())
		w.event(Event{Kind: kind, Node: n.GUID(), Port: -1, PeerPort: -1, Subject: nodeLabel(n)})
	}
	if a, b := fabric.SubnetOf(was, "").SM, fabric.SubnetOf(now, "").SM; a != b && a != 0 && b != 0 {
		w.event(Event{Kind: SMMoved, Port: -1, PeerPort: -1, Subject: "subnet manager", Was: a.String(), Now: b.String()})
	}
}

func nodeLabel(n *fabric.Node) string { return fabric.NodeLabel(n.Name(), n.GUID()) }

// cable is a link, of which a is the end with the lower GUID and number.
type cable struct{ a, b *fabric.Port }

func (c cable) key() [2]portKey { return [2]portKey{keyOf(c.a), keyOf(c.b)} }

// cables returns the links of a fabric whose ends can be distinguished from others.
func cables(f *fabric.Fabric) map[[2]portKey]cable {
	list := map[[2]portKey]cable{}
	if f == nil {
		return list
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() {
			continue
		}
		c := cable{p, q}
		if comparePorts(keyOf(p), keyOf(q)) > 0 {
			c = cable{q, p}
		}
		list[c.key()] = c
	}
	return list
}

func comparePorts(a, b portKey) int {
	return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.num, b.num))
}

func inOrder(list map[[2]portKey]cable) []cable {
	sorted := make([]cable, 0, len(list))
	for _, c := range list {
		sorted = append(sorted, c)
	}
	slices.SortFunc(sorted, func(x, y cable) int {
		return cmp.Or(comparePorts(keyOf(x.a), keyOf(y.a)), comparePorts(keyOf(x.b), keyOf(y.b)))
	})
	return sorted
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// summed are the rows of a cycle that answers use.
var summed = []string{
	"select id, guid, type, t from node where t = ? order by id",
	"select id, node, num, t from port where t = ? order by id",
	"select t, n, kind, node, port, peer, subject, was, now from event where t = ? order by n",
	"select a, b, t from link where t = ? order by a",
	"select a, b, t, till from link where till = ? order by a, t",
	"select t, every, source, missing, keyframe from cycle where t = ?",
	"select t, length(data) from delta where t = ?",
	"select t, length(data) from keyframe where t = ?",
}

// sumOf returns the sum of the rows of cycle t: FNV-1a of their values.
func sumOf(ctx context.Context, q querier, t int64) (int64, error) {
	sum := fnv.New64a()
	for _, query := range summed {
		if err := sumRows(ctx, q, sum.Write, query, t); err != nil {
			return 0, err
		}
	}
	return int64(sum.Sum64()), nil
}

func sumRows(ctx context.Context, q querier, write func([]byte) (int, error), query string, t int64) error {
	rows, err := q.QueryContext(ctx, query, t)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		for _, v := range values {
			text := fmt.Sprint(v)
			write(binary.AppendUvarint(nil, uint64(len(text))))
			write([]byte(text))
		}
		write([]byte{0xff})
	}
	return rows.Err()
}

func timeText(t int64) string { return time.Unix(t, 0).UTC().Format(time.RFC3339) }
