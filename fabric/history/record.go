package history

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// Cycle is one sweep.
type Cycle struct {
	Time     time.Time
	Every    time.Duration // until the next one; 0: not known, as with cron
	Source   string        // the program and the port: "fabsh history record, mlx5_0/1"
	Fabric   *fabric.Fabric
	Counters *audit.Read    // nil: not read
	Traffic  bool           // keep the traffic of ports by hour
	Modules  []Module       // nil: not read
	Rates    []BER          // bit error rates of ports; nil: not read
	Routes   *fabric.Fabric // whose forwarding tables are kept; nil: not read
}

// Summary is what a cycle added.
type Summary struct {
	Time     time.Time // of the cycle, which is after the last one even if the clock was set back
	Events   []Event
	Keyframe bool
	Bytes    int      // of the keyframe or the delta
	Grown    int      // error counters that grew
	Wide     []string // counters that grew at so many ports that they are kept by hour
	Notes    []string // what was not kept, and why
}

// Kinds of events.
const (
	NodeNew        = "node.new"
	NodeBack       = "node.back"
	NodeGone       = "node.gone"
	NodeName       = "node.name"
	NodeLID        = "node.lid"
	LinkNew        = "link.new"
	LinkUp         = "link.up"
	LinkDown       = "link.down"    // both nodes are there
	LinkGone       = "link.gone"    // with a node
	LinkFlap       = "link.flap"    // it went down and up between two sweeps; Now: how often, as its ports counted
	LinkRestart    = "link.restart" // so it did, and a node at an end restarted
	LinkWidth      = "link.width"
	LinkSpeed      = "link.speed"
	CableNew       = "cable.new"   // a module or cable, by serial number
	CableMoved     = "cable.moved" // from another port
	CableGone      = "cable.gone"
	CounterCleared = "counter.cleared" // of a port; of a node, all of them: it restarted, or they were cleared
	SMMoved        = "sm.moved"
	ClockBack      = "clock.back"
)

// keyframeAge is how old the snapshot may be that deltas refer to, and keyframeShare how large deltas
// may be, as a share of it: then a new one is kept.
const (
	keyframeAge   = 7 * 24 * time.Hour
	keyframeShare = 4 // a quarter
)

// Record adds a cycle. It is whole or not there at all.
func (r *Recorder) Record(ctx context.Context, c Cycle) (*Summary, error) {
	sweep := c.Fabric.Bare()
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, r.failed(err)
	}
	defer tx.Rollback()
	r.loadedHours = false
	done := false
	defer func() {
		if !done && r.loadedHours { // they are still pending
			r.hours = nil
		}
	}()
	w := &writer{Recorder: r, sweep: sweep, batch: newBatch(ctx, tx), t: c.Time.Unix(), added: map[portKey]int64{}, addedWords: map[wordKey]int64{}}
	if clock := w.t; r.last != nil && clock <= r.lastT {
		w.t = r.lastT + 1
		if clock < r.lastT-1 && !w.isSetBack() { // not only cycles within a second
			w.event(Event{Kind: ClockBack, Was: timeText(r.lastT), Now: timeText(clock)})
		}
	}
	w.prepared = map[string]*sql.Stmt{}
	if r.guard != nil {
		w.full = r.guard(r.path)
	}
	w.loadIDs(c.Counters != nil || c.Modules != nil || c.Rates != nil)
	match := w.compare(r.last, sweep)
	w.counters(c, match, sweep)
	w.modules(c.Modules)
	w.errorRates(c.Rates)
	data, keyframe, err := w.fabric(sweep)
	if err != nil {
		return nil, err
	}
	if c.Routes != nil {
		if err := w.tables(c.Routes); err != nil {
			return nil, err
		}
	}
	row := []any{w.t, int64(c.Every / time.Second), c.Source, sweep.Missing(), w.keyTime, int64(0)}
	row[5] = int64(w.cycle + tableCycle.hash(row[:5]))
	w.insert(tableCycle, row...)
	if err := w.write(); err != nil {
		return nil, r.failed(err)
	}
	if err := tx.Commit(); err != nil {
		return nil, r.failed(err)
	}
	done = true
	for _, f := range w.after {
		f()
	}
	if r.rowsSince == 0 {
		r.rowsSince = w.t
	}
	for k, id := range w.added {
		r.ids[k] = id
	}
	for k, id := range w.addedWords {
		r.words[k] = id
	}
	if r.last, r.lastT = sweep, w.t; keyframe {
		// A copy: what others derive from the sweep must not stay for a week.
		r.key, r.keyTime, r.keySize = sweep.With(fabric.Reading{}), w.t, len(data)
	}
	s := &Summary{Time: time.Unix(w.t, 0).UTC(), Events: w.events, Keyframe: keyframe, Bytes: len(data), Grown: w.grown, Wide: w.wide, Notes: w.notes}
	if w.full != "" {
		s.Notes = append(s.Notes, w.full+": traffic and errors by 5 minutes are not kept")
	}
	if err := r.purgeDaily(ctx, w.t); err != nil {
		s.Notes = append(s.Notes, "old rows were not removed: "+err.Error())
	}
	return s, nil
}

// writer writes a cycle. It keeps the first error.
type writer struct {
	*Recorder
	batch
	t          int64
	keyTime    int64
	full       string // why only events are kept; "": all is
	events     []Event
	added      map[portKey]int64 // ids of the cycle, of nodes and ports
	addedWords map[wordKey]int64
	after      []func() // what the recorder keeps once the cycle is there
	sweep      *fabric.Fabric
	grown      int
	wide       []string
	notes      []string
}

// portKey identifies a port, or with num noNum a node.
type portKey struct {
	node mad.GUID
	num  int
}

const noNum = -1

// wordKey identifies a word.
type wordKey struct{ kind, name string }

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

// fabric keeps the fabric: nothing if it is that of the last cycle, a delta, or a keyframe.
func (w *writer) fabric(now *fabric.Fabric) (data []byte, keyframe bool, err error) {
	if w.keyTime = w.Recorder.keyTime; w.key != nil && time.Duration(w.t-w.keyTime)*time.Second < keyframeAge {
		var delta bytes.Buffer
		if err := format.WriteDelta(&delta, w.key, now); err != nil {
			return nil, false, err
		}
		if delta.Len() < max(w.keySize/keyframeShare, 1<<12) {
			w.insert(tableDelta, w.t, delta.Bytes())
			return delta.Bytes(), false, nil
		}
	}
	var snapshot bytes.Buffer
	if err := format.WriteSnapshot(&snapshot, now); err != nil {
		return nil, false, err
	}
	w.keyTime = w.t
	w.insert(tableKeyframe, w.t, snapshot.Bytes())
	return snapshot.Bytes(), true, nil
}

// event adds an event.
func (w *writer) event(e Event) {
	e.Time = time.Unix(w.t, 0).UTC()
	w.insert(tableEvent, w.t, int64(len(w.events)), e.Kind, w.optionalNode(e.Node), w.optionalPort(e.Node, e.Port), w.optionalPort(e.PeerNode, e.PeerPort), e.Subject, e.Was, e.Now)
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

// loadIDs reads the ids of nodes and, if all are needed, of ports.
func (w *writer) loadIDs(ports bool) {
	if w.ids == nil {
		w.Recorder.ids, w.guids = map[portKey]int64{}, map[int64]mad.GUID{}
		w.err = eachRow(w.ctx, w.tx, tableNode, "", nil, func(row []any) error {
			id, _ := row[0].(int64)
			text, _ := row[1].(string)
			g, err := w.guid(text)
			w.ids[portKey{g, noNum}], w.guids[id] = id, g
			w.lastNode = max(w.lastNode, id)
			return err
		})
	}
	if w.err == nil && w.lastPort == 0 {
		w.err = w.tx.QueryRowContext(w.ctx, "select coalesce(max(id), 0) from port").Scan(&w.lastPort)
	}
	if !ports || w.allPorts || w.err != nil {
		return
	}
	w.err = eachRow(w.ctx, w.tx, tablePort, "", nil, func(row []any) error {
		id, _ := row[0].(int64)
		node, _ := row[1].(int64)
		num, _ := row[2].(int64)
		w.ids[portKey{w.guids[node], int(num)}] = id
		return nil
	})
	w.allPorts = w.err == nil
}

// id returns the id of a node or a port that is known; 0: not known.
func (w *writer) id(k portKey) int64 {
	if id := w.added[k]; id != 0 {
		return id
	}
	return w.ids[k]
}

// node returns the id of a node, which it adds if it is new.
func (w *writer) node(g mad.GUID, t mad.NodeType) int64 {
	k := portKey{g, noNum}
	id := w.id(k)
	if id != 0 || w.err != nil {
		return id
	}
	w.lastNode++ // it is never used again, even if the cycle fails
	w.added[k] = w.lastNode
	w.insert(tableNode, w.lastNode, g.String(), int64(t), w.t)
	return w.lastNode
}

// port returns the id of a port, which it adds if it is new.
func (w *writer) port(k portKey, t mad.NodeType) int64 {
	id := w.id(k)
	if id != 0 || w.err != nil {
		return id
	}
	n := w.node(k.node, t)
	if !w.allPorts {
		err := w.tx.QueryRowContext(w.ctx, "select id from port where node = ? and num = ?", n, k.num).Scan(&id)
		if err == nil {
			w.added[k] = id
			return id
		}
		if !errors.Is(err, sql.ErrNoRows) {
			w.err = err
			return 0
		}
	}
	w.lastPort++
	w.added[k] = w.lastPort
	w.insert(tablePort, w.lastPort, n, int64(k.num), w.t)
	return w.lastPort
}

// word returns the id of a word, which it adds if it is new.
func (w *writer) word(kind, name string) int64 {
	k := wordKey{kind, name}
	if id := w.addedWords[k]; id != 0 {
		return id
	}
	if w.words == nil && w.err == nil {
		w.Recorder.words = map[wordKey]int64{}
		w.err = eachRow(w.ctx, w.tx, tableWord, "", nil, func(row []any) error {
			kind, _ := row[0].(string)
			id, _ := row[1].(int64)
			name, _ := row[2].(string)
			w.words[wordKey{kind, name}] = id
			return nil
		})
	}
	if id := w.words[k]; id != 0 || w.err != nil {
		return id
	}
	id := int64(1)
	for _, list := range []map[wordKey]int64{w.words, w.addedWords} {
		for k, used := range list {
			if k.kind == kind {
				id = max(id, used+1)
			}
		}
	}
	w.addedWords[k] = id
	w.insert(tableWord, kind, id, name)
	return id
}

// match has, by id of a node of the last sweep, the node of this one with its GUID, or nil.
type match []*fabric.Node

// compare adds the events between two sweeps. was is nil at the first one, which has no events.
func (w *writer) compare(was, now *fabric.Fabric) match {
	same, fresh := matchNodes(was, now)
	if was != nil {
		w.compareNodes(was, now, same, fresh)
	}
	for _, n := range fresh {
		w.node(n.GUID(), n.Type())
	}
	seen := map[[2]portKey]bool{} // of links that changed: a GUID may be there twice
	changed := func(c cable) bool {
		k := c.key()
		first := !seen[k]
		seen[k] = true
		return first
	}
	twice := duplicates(was, now)
	isTwice := func(c cable) bool {
		return len(twice) > 0 && (twice[c.a.Node().GUID()] || twice[c.b.Node().GUID()])
	}
	// Links at a GUID that is there twice are compared by name of their ends alone.
	before, after := map[[2]portKey]bool{}, map[[2]portKey]bool{}
	for i := 0; len(twice) > 0 && i < len(now.Ports()); i++ {
		if c, ok := cableAt(&now.Ports()[i]); ok && isTwice(c) {
			after[c.key()] = true
		}
	}
	kept := make([]bool, len(now.Ports())) // by id of the ends of a link that was there
	if was != nil {
		for i := range was.Ports() {
			c, ok := cableAt(&was.Ports()[i])
			if !ok {
				continue
			}
			if isTwice(c) {
				if before[c.key()] = true; !after[c.key()] && changed(c) {
					w.down(c, same)
				}
				continue
			}
			a, b := same.port(c.a), same.port(c.b)
			if a == nil || b == nil || a.Peer() != b {
				w.down(c, same)
				continue
			}
			kept[a.ID()], kept[b.ID()] = true, true
			if d := (cable{a, b}); c.a.Width() != a.Width() || c.a.Speed() != a.Speed() {
				if c.a.Width() != a.Width() {
					w.link(LinkWidth, d, c.a.Width(), a.Width())
				}
				if c.a.Speed() != a.Speed() {
					w.link(LinkSpeed, d, c.a.Speed(), a.Speed())
				}
			}
		}
	}
	clear(seen)
	for i := range now.Ports() {
		c, ok := cableAt(&now.Ports()[i])
		if !ok || kept[c.a.ID()] || isTwice(c) && (before[c.key()] || !changed(c)) {
			continue
		}
		a, b := w.port(keyOf(c.a), c.a.Node().Type()), w.port(keyOf(c.b), c.b.Node().Type())
		kind := LinkNew
		if was != nil && len(w.rows(tableLink, "a = ? and b = ? limit 1", a, b)) > 0 {
			kind = LinkUp
		}
		w.insert(tableLink, a, b, w.t, nil)
		if was != nil {
			w.link(kind, c, "", c.a.Width()+" "+c.a.Speed())
		}
	}
	return same
}

// duplicates returns the GUIDs that several nodes of a fabric have.
func duplicates(list ...*fabric.Fabric) map[mad.GUID]bool {
	twice := map[mad.GUID]bool{}
	for _, f := range list {
		if f == nil {
			continue
		}
		guids := make([]mad.GUID, len(f.Nodes()))
		for i := range guids {
			guids[i] = f.Nodes()[i].GUID()
		}
		slices.Sort(guids)
		for i := 1; i < len(guids); i++ {
			if guids[i] == guids[i-1] {
				twice[guids[i]] = true
			}
		}
	}
	return twice
}

// matchNodes returns the nodes of now by those of was, and the nodes of now that are not in was. Of
// several nodes with one GUID, the first is taken.
func matchNodes(was, now *fabric.Fabric) (same match, fresh []*fabric.Node) {
	var before []fabric.Node
	if was != nil {
		before = was.Nodes()
	}
	same = make(match, len(before))
	order := func(a, b *fabric.Node) int {
		return cmp.Or(fabric.CompareTypes(a.Type(), b.Type()), cmp.Compare(a.GUID(), b.GUID()))
	}
	after := now.Nodes()
	for i, j := 0, 0; i < len(before) || j < len(after); {
		switch {
		case i == len(before) || j < len(after) && order(&before[i], &after[j]) > 0:
			if j == 0 || order(&after[j-1], &after[j]) != 0 {
				fresh = append(fresh, &after[j])
			}
			j++
		case j == len(after) || order(&before[i], &after[j]) < 0:
			i++
		default:
			same[i] = &after[j]
			first := &before[i]
			for i++; i < len(before) && order(first, &before[i]) == 0; i++ {
				same[i] = &after[j]
			}
			first = &after[j]
			for j++; j < len(after) && order(first, &after[j]) == 0; j++ {
			}
		}
	}
	return same, fresh
}

// port returns the port of this sweep that p was in the last one; nil: it has none.
func (m match) port(p *fabric.Port) *fabric.Port {
	if n := m[p.Node().ID()]; n != nil {
		return n.Port(p.Num())
	}
	return nil
}

// down ends a link that is gone.
func (w *writer) down(c cable, same match) {
	kind, state := LinkDown, ""
	for _, p := range []*fabric.Port{c.a, c.b} {
		switch n := same[p.Node().ID()]; {
		case n == nil:
			kind, state = LinkGone, "with "+nodeLabel(p.Node())
		case kind == LinkDown:
			if q := n.Port(p.Num()); q != nil && q.Info() != nil && (state == "" || q.PhysicalState() == mad.PortPhysicalStateDisabled) {
				state = q.PhysicalState().String()
			}
		}
	}
	a, b := w.port(keyOf(c.a), 0), w.port(keyOf(c.b), 0)
	w.update(tableLink, func(row []any) { row[3] = w.t }, "a = ? and b = ? and till is null", a, b)
	w.link(kind, c, c.a.Width()+" "+c.a.Speed(), state)
}

// link adds an event of a cable.
func (w *writer) link(kind string, c cable, was, now string) {
	a, b := keyOf(c.a), keyOf(c.b)
	w.event(Event{Kind: kind, Node: a.node, Port: a.num, PeerNode: b.node, PeerPort: b.num, Subject: c.a.Name() + " - " + c.b.Name(), Was: was, Now: now})
}

// compareNodes adds the events of nodes and of the subnet manager.
func (w *writer) compareNodes(was, now *fabric.Fabric, same match, fresh []*fabric.Node) {
	for i := range was.Nodes() {
		n := &was.Nodes()[i]
		if i > 0 && was.Nodes()[i-1].GUID() == n.GUID() {
			continue
		}
		m := same[n.ID()]
		e := Event{Node: n.GUID(), Port: -1, PeerPort: -1, Subject: nodeLabel(n)}
		if m == nil {
			if e.Kind = NodeGone; !now.Complete() {
				e.Now = "not found, but the sweep is not complete"
			}
			w.event(e)
			continue
		}
		if m.Name() != n.Name() {
			e.Kind, e.Was, e.Now = NodeName, n.Name(), m.Name()
			w.event(e)
		}
		if m.LID() != n.LID() {
			e.Kind, e.Was, e.Now = NodeLID, strconv.Itoa(int(n.LID())), strconv.Itoa(int(m.LID()))
			w.event(e)
		}
	}
	for _, n := range fresh {
		kind := NodeNew
		if w.id(portKey{n.GUID(), noNum}) != 0 {
			kind = NodeBack
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

// cableAt returns the link of which p is the end with the lower id.
func cableAt(p *fabric.Port) (cable, bool) {
	q := p.Peer()
	if q == nil || q.ID() < p.ID() {
		return cable{}, false
	}
	if comparePorts(keyOf(p), keyOf(q)) > 0 {
		p, q = q, p
	}
	return cable{p, q}, true
}

func comparePorts(a, b portKey) int {
	return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.num, b.num))
}

func timeText(t int64) string { return time.Unix(t, 0).UTC().Format(time.RFC3339) }
