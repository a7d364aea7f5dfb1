package serve

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/spf13/afero"

	"fabsh/builtins"
	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/remedies"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// Tables are the forwarding tables of all switches, with adaptive routing where it is on, of the fabric
// that they were read of.
type Tables struct {
	Routes *routes.Routes
	Time   time.Time // when they were read
}

// Fabric is the fabric that the tables were read of.
func (t *Tables) Fabric() *fabric.Fabric { return t.Routes.Graph().Fabric() }

// How often tables are read, in cycles: of an unchanged fabric, and at most.
const (
	tablesEvery = 30
	tablesApart = 5
)

// tablesTurn decides in which cycles tables are read.
type tablesTurn struct {
	known  bool   // tables were read
	shape  uint64 // of the fabric that they were read of
	cycles int    // since then
	again  bool   // it had just changed, so the subnet manager may have written tables since
}

// WantsTables reports whether the cycle that has swept f should read forwarding tables: the first one does,
// one that finds another fabric, the fifth one after that, because a subnet manager writes tables after a
// change, and every 30th one. Two readings are at least five cycles apart. It is called once in each cycle.
func (s *Site) WantsTables(f *fabric.Fabric) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &s.turn
	if !x.known {
		return true
	}
	x.cycles++
	if shapeOf(f) != x.shape {
		x.again = true
	}
	return x.again && x.cycles >= tablesApart || x.cycles >= tablesEvery
}

// SetTables sets the tables that a cycle has read.
func (s *Site) SetTables(t *Tables) {
	shape := shapeOf(t.Fabric())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = tablesTurn{known: true, shape: shape, again: s.turn.known && shape != s.turn.shape}
	s.tables = t
	s.work.forget()
}

// ForgetTables forgets the tables of another subnet: the next cycle reads.
func (s *Site) ForgetTables() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables, s.turn = nil, tablesTurn{}
	s.work.forget()
}

// shapeOf returns what differs if the nodes, links, LIDs or the subnet manager of a fabric do.
func shapeOf(f *fabric.Fabric) uint64 {
	h := fnv.New64a()
	var b [8]byte
	add := func(x uint64) {
		binary.LittleEndian.PutUint64(b[:], x)
		h.Write(b[:])
	}
	ports := f.Ports()
	for i := range ports {
		p := &ports[i]
		add(uint64(p.Node().GUID()))
		add(uint64(p.Num())<<32 | uint64(p.LID()))
		if q := p.Peer(); q != nil {
			add(uint64(q.ID()))
		}
		if info := p.Info(); info != nil {
			add(uint64(info.MasterSMLID))
		}
	}
	return h.Sum64()
}

// noTables is an error without tables, and says what to do.
type noTables struct{ text string }

func (e *noTables) Error() string { return e.text }

// tablesOf returns the tables at the time of a page, or noTables.
func (s *Site) tablesOf(v *view) (*Tables, error) {
	m := v.moment
	if !m.isPast && s.Every > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.tables == nil {
			return nil, &noTables{"Forwarding tables are not read yet. The first cycle reads them; reload this page in a few seconds."}
		}
		return s.tables, nil
	}
	m.tablesLock.Lock()
	defer m.tablesLock.Unlock()
	if m.tables == nil && m.noTables == nil {
		m.tables, m.noTables = s.storedTables(v.ctx, m)
	}
	return m.tables, m.noTables
}

// storedTables returns the tables that a file has, or a history of the time of m or before it.
func (s *Site) storedTables(ctx context.Context, m *moment) (*Tables, error) {
	f, read := m.fabric, m.time
	if f != nil && !f.HasLFTs() && m.isPast {
		if h, err := s.historyStore(ctx); err == nil {
			t, err := h.TablesTime(ctx, m.time)
			if err != nil {
				return nil, err
			}
			if !t.IsZero() {
				if f, read, err = h.At(ctx, t); err != nil {
					return nil, err
				}
			}
		}
	}
	switch {
	case f != nil && f.HasLFTs():
	case m.isPast:
		return nil, &noTables{"No forwarding tables were recorded at that time or before. fabsh serve --routes and fabsh history record --routes keep them."}
	default:
		return nil, &noTables{cmp.Or(s.NoTables, "The file has no forwarding tables. fabsh snapshot stores them.")}
	}
	r, err := routes.OfFabric(f)
	if err != nil {
		return nil, err
	}
	if err := s.storedLanes(ctx, r); err != nil {
		return nil, err
	}
	return &Tables{r, read}, nil
}

// maxTurns is of how many pairs of ports of switches lanes are taken from a file.
const maxTurns = 500_000

// storedLanes adds virtual lanes to the tables of a file, if it has all of them.
func (s *Site) storedLanes(ctx context.Context, r *routes.Routes) error {
	turns := 0
	for _, n := range r.Graph().Switches() {
		linked := len(portsOf(n))
		turns += linked * linked
	}
	f := r.Graph().Fabric()
	if len(f.Answers()) == 0 || turns > maxTurns {
		return nil
	}
	session, err := s.offline(f)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := audits.ReadLanes(ctx, session.Runtime, r); err != nil {
		r.SL2VL = nil // the file lacks some
	}
	return ctx.Err()
}

// offline opens a session on a fabric that was read: it reads no file and sends nothing.
func (s *Site) offline(f *fabric.Fabric) (*builtins.Session, error) {
	return builtins.NewSession(builtins.SessionOptions{Facts: topology.Facts{Loaded: f, ReadOnly: true, Confined: true, Version: s.Version}, Sealed: true, FS: afero.NewMemMapFs(), Format: lang.FormatJSON})
}

// Limits of computations: one runs at a time, whoever asks, and pages wait for it only for a while.
const (
	maxWork     = 64 // results that are kept
	maxWorkOf   = 3  // fabrics that they are of
	maxPending  = 8  // computations that have not ended
	computeTime = 2 * time.Minute
	workWait    = 8 * time.Second
)

var (
	errPending = errors.New("the computation has not ended")
	errBusy    = &pageError{status: http.StatusServiceUnavailable, text: "Too many computations at once. Try again in a minute."}
)

// work is computations on tables, and their results. The zero value has none.
type work struct {
	mu    sync.Mutex
	of    map[workKey]*result
	order []workKey
	run   chan struct{}
}

// workKey names a result.
type workKey struct {
	of   any // what it is computed of
	what string
}

type result struct {
	done  chan struct{}
	value any
	err   error
}

// forget forgets results, but not computations that run.
func (w *work) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(func(workKey) bool { return true })
}

// trim forgets results of all but a few fabrics, those that were used last: fabrics are large.
func (w *work) trim() {
	var kept []any
	for _, k := range slices.Backward(w.order) {
		if !slices.Contains(kept, k.of) && len(kept) < maxWorkOf {
			kept = append(kept, k.of)
		}
	}
	w.remove(func(k workKey) bool { return !slices.Contains(kept, k.of) })
}

// remove removes results that have ended, for which f is true.
func (w *work) remove(f func(workKey) bool) {
	w.order = slices.DeleteFunc(w.order, func(k workKey) bool {
		if !f(k) || !w.of[k].ended() {
			return false
		}
		delete(w.of, k)
		return true
	})
}

func (r *result) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// compute returns the result of f, which is computed once for each key. It returns errPending if that takes
// longer than wait; the computation goes on.
func compute[T any](ctx context.Context, w *work, key workKey, wait time.Duration, f func(context.Context) (T, error)) (value T, err error) {
	r, err := w.start(key, func(ctx context.Context) (any, error) { return f(ctx) })
	if err != nil {
		return value, err
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-r.done:
		value, _ = r.value.(T)
		return value, r.err
	case <-t.C:
	case <-ctx.Done():
	}
	return value, errPending
}

// start starts a computation, unless it was.
func (w *work) start(key workKey, f func(context.Context) (any, error)) (*result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.of[key]; r != nil {
		i := slices.Index(w.order, key)
		w.order = append(slices.Delete(w.order, i, i+1), key)
		return r, nil
	}
	if w.of == nil {
		w.of, w.run = map[workKey]*result{}, make(chan struct{}, 1)
	}
	waiting := 0
	for _, r := range w.of {
		if !r.ended() {
			waiting++
		}
	}
	if waiting >= maxPending {
		return nil, errBusy
	}
	if len(w.order) >= maxWork {
		i := slices.IndexFunc(w.order, func(k workKey) bool { return w.of[k].ended() })
		delete(w.of, w.order[i])
		w.order = slices.Delete(w.order, i, i+1)
	}
	r := &result{done: make(chan struct{})}
	w.of[key], w.order = r, append(w.order, key)
	w.trim()
	go func() {
		defer close(r.done)
		w.run <- struct{}{}
		defer func() { <-w.run }()
		ctx, cancel := context.WithTimeout(context.Background(), computeTime)
		defer cancel()
		r.err = lang.Protect(key.what, func() (err error) {
			r.value, err = f(ctx)
			return err
		})
	}()
	return r, nil
}

// loads returns the number of routes over each channel of tables.
func (s *Site) loads(v *view, t *Tables) ([]int64, error) {
	return compute(v.ctx, &s.work, workKey{t, "loads"}, workWait, func(ctx context.Context) ([]int64, error) { return countRoutes(ctx, t) })
}

func countRoutes(ctx context.Context, t *Tables) ([]int64, error) {
	return verify.CountAllRoutes(ctx, t.Routes)
}

// impact returns what the fabric loses without targets.
func (s *Site) impact(v *view, t *Tables, targets []string) (*remedies.Impact, error) {
	key := workKey{t, "impact " + fmt.Sprintf("%q", targets)}
	return compute(v.ctx, &s.work, key, workWait, func(ctx context.Context) (*remedies.Impact, error) {
		x, err := s.impacts(ctx, t)
		if err != nil {
			return nil, err
		}
		return x.Without(ctx, targets...)
	})
}

// impacts returns the predictions on tables. Only computations call it, so one at a time.
func (s *Site) impacts(ctx context.Context, t *Tables) (*remedies.Impacts, error) {
	if s.predicts.tables == t {
		return s.predicts.impacts, nil
	}
	session, err := s.offline(t.Fabric())
	if err != nil {
		return nil, err
	}
	x, err := remedies.NewImpacts(ctx, session.Runtime, t.Routes)
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}
	if s.predicts.session != nil {
		err = s.predicts.session.Close()
	}
	s.predicts.tables, s.predicts.impacts, s.predicts.session = t, x, session
	return x, err
}

// predicts is the predictions on the tables that were used last.
type predicts struct {
	tables  *Tables
	impacts *remedies.Impacts
	session *builtins.Session
}

// ageOf states how old tables are, and whether the fabric has changed since.
func (v *view) ageOf(t *Tables) (text string, old bool) {
	m := v.moment
	text = "Forwarding tables of " + when(t.Time)
	if d := m.time.Sub(t.Time); d >= time.Second {
		text += ", " + words(d) + " before the reading that is shown"
	}
	if m.fabric != nil && m.fabric != t.Fabric() && shapeOf(m.fabric) != shapeOf(t.Fabric()) {
		return text + ". The fabric has changed since: links, nodes or LIDs differ, so packets may take other paths now.", true
	}
	return text + ".", false
}
