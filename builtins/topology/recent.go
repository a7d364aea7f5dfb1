package topology

import (
	"slices"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// RecentReads are what sessions have read of one fabric: tables by their kinds, and the latest
// counters of ports. They are not older than its sweep. Sessions use them one at a time, each after
// Begin. It is safe for concurrent use by the fibers of a session.
type RecentReads struct {
	mu       sync.Mutex
	of       *fabric.Fabric
	tables   map[string]any
	counters map[countersOf]*keptCounters
	session  int       // counts the calls of Begin
	oldest   time.Time // when the oldest counters that the session took from here were read; zero: none
	compared bool
}

// countersOf identifies the counters of a port, or what the agent at a LID reports of itself.
type countersOf struct {
	node *fabric.Node
	attr *mad.Attribute
	lid  mad.LID
	port uint8
}

// keptCounters are the data of an answer.
type keptCounters struct {
	data    []byte
	at      time.Time // before the request was sent
	session int       // the latest session that has read or reused them
	reused  bool      // by that session, which has not read them
}

// maxCounters limits how many answers are kept: three of each port of a fabric of 11,664 hosts and more,
// in at most about 85 MB.
const maxCounters = 1 << 18

// sampling are attributes of which each read is another step of a measurement.
var sampling = []*mad.Attribute{mad.AttrPortSamplesControl, mad.AttrPortSamplesResult, mad.AttrPortSamplesResultExtended}

// Begin begins a session.
func (r *RecentReads) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session++
	r.oldest, r.compared = time.Time{}, false
}

// Forget drops all. r may be nil.
func (r *RecentReads) Forget() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of, r.tables, r.counters = nil, nil, nil
}

// ForgetCounters drops the counters.
func (r *RecentReads) ForgetCounters() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.counters)
}

// Oldest returns when the oldest of the counters that the session took from earlier ones were read;
// zero: it took none.
func (r *RecentReads) Oldest() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.oldest
}

// Compared reports whether the session has read counters after it took the same ones from an earlier
// session. Their growth would be over another time than the session states, so its result is invalid.
func (r *RecentReads) Compared() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.compared
}

// keepOf drops what was read of another fabric than f. r.mu is locked.
func (r *RecentReads) keepOf(f *fabric.Fabric) {
	if r.of != f {
		r.of, r.tables, r.counters = f, map[string]any{}, map[countersOf]*keptCounters{}
	}
}

// RecentTable returns the tables of a kind that an earlier session has read of f; nil: they are to
// be read, as for the second time in a session, which may compare them. They must not be changed.
func (e *Env) RecentTable(f *fabric.Fabric, kind string) any {
	r := e.RecentReads
	if r == nil || e.read[kind] {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of != f {
		return nil
	}
	v := r.tables[kind]
	if v != nil {
		e.wasRead(kind)
	}
	return v
}

// KeepTable keeps tables that were read of f for later sessions. They must not be changed.
func (e *Env) KeepTable(f *fabric.Fabric, kind string, v any) {
	r := e.RecentReads
	if r == nil {
		return
	}
	e.wasRead(kind)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepOf(f)
	r.tables[kind] = v
}

func (e *Env) wasRead(kind string) {
	if e.read == nil {
		e.read = map[string]bool{}
	}
	e.read[kind] = true
}

// RecentCounters returns the data of an attribute of performance management that an earlier session
// has read of a port of the latest fabric; nil: it is to be read. They must not be changed. again
// reports that this session took them before, and would compare them; see Compared.
func (e *Env) RecentCounters(t *Target, attr *mad.Attribute, port int) (data []byte, again bool) {
	r := e.RecentReads
	if r == nil || t.Node == nil || t.Node.Fabric() != e.Fabric() {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of != t.Node.Fabric() {
		return nil, false
	}
	k := r.counters[countersOf{t.Node, attr, t.LID, uint8(port)}]
	switch {
	case k == nil:
		return nil, false
	case k.session == r.session:
		if k.reused && attr != mad.AttrPerfClassPortInfo { // which does not grow
			r.compared = true
			return nil, true
		}
		return nil, false
	}
	k.session, k.reused = r.session, true
	if r.oldest.IsZero() || k.at.Before(r.oldest) {
		r.oldest = k.at
	}
	return k.data, false
}

// Keeping returns the latest fabric, if counters of its ports are kept: it was swept as a whole. Else nil.
func (e *Env) Keeping() *fabric.Fabric {
	if f := e.Fabric(); e.RecentReads != nil && e.swept && f != nil && f.Scope() == "" {
		return f
	}
	return nil
}

// KeepCounters keeps a copy of an answer to a request that was sent after at for later sessions, if t is
// of f, the result of Env.Keeping. r may be nil if f is.
func (r *RecentReads) KeepCounters(f *fabric.Fabric, t *Target, attr *mad.Attribute, port int, data []byte, at time.Time) {
	if f == nil || t.Node == nil || t.Node.Fabric() != f || slices.Contains(sampling, attr) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepOf(f)
	of := countersOf{t.Node, attr, t.LID, uint8(port)}
	k := r.counters[of]
	switch {
	case k == nil && len(r.counters) >= maxCounters:
		return
	case k != nil && k.session == r.session && k.reused && attr != mad.AttrPerfClassPortInfo:
		r.compared = true
	}
	r.counters[of] = &keptCounters{data: slices.Clone(data), at: at, session: r.session}
}
