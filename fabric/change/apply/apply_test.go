package apply_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/discover"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// rig is a simulated subnet, and a change of its tables.
type rig struct {
	t       testing.TB
	subnet  *sim.Subnet
	f       *fabric.Fabric
	node    int
	cells   []*apply.Cell
	path    string
	retries int // 0: the usual
	guards  sync.WaitGroup
	clock   apply.Clock
}

// mortal is a transport of a process that is killed when it has sent so many
// datagrams.
type mortal struct {
	engine.Transport
	left *atomic.Int64
	die  func()
}

func (m mortal) Send(d *engine.Datagram) error {
	switch n := m.left.Add(-1); {
	case n == -1:
		m.die()
		return nil
	case n < 0:
		return nil
	}
	return m.Transport.Send(d)
}

func (m mortal) TrySend(*engine.Datagram) (bool, error) { return false, nil }
func (m mortal) BeforeWait(func() bool) bool            { return false }

func newRig(t testing.TB, spec string) *rig {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, subnet: sim.New(f, o), node: f.OfType(mad.NodeTypeCA)[0].ID(), clock: clock{}, path: filepath.Join(t.TempDir(), "journal")}
	e := r.engine(-1, nil)
	defer e.Close()
	if r.f, err = discover.Sweep(t.Context(), e, discover.Options{}); err != nil {
		t.Fatal(err)
	}
	r.cells = r.swap(e)
	return r
}

// engine is one of a process that dies after so many datagrams; negative: it lives.
func (r *rig) engine(dies int64, die func()) *engine.Engine {
	r.t.Helper()
	conn, err := r.subnet.Attach(r.node, 1)
	if err != nil {
		r.t.Fatal(err)
	}
	var left atomic.Int64
	if left.Store(dies); dies < 0 {
		left.Store(1 << 60)
	}
	return engine.New(mortal{conn, &left, die}, engine.Options{Write: true, Retries: r.retries})
}

// swap are cells of a change that has every switch swap two of its ports in the
// first block of its table.
func (r *rig) swap(e *engine.Engine) (cells []*apply.Cell) {
	ways := apply.NewRoutes(r.f)
	for i := range r.f.Nodes() {
		n := &r.f.Nodes()[i]
		if !n.IsSwitch() {
			continue
		}
		call := fabric.Dest{Route: n.Route()}.Put(new(engine.Call), mad.MethodGet, mad.AttrLinearForwardingTable, 0, nil)
		if err := e.Do(r.t.Context(), call); err != nil || call.Err != nil {
			r.t.Fatal(err, call.Err)
		}
		old := slices.Clone(call.Data()[:64])
		changed := slices.Clone(old)
		for at, p := range old {
			switch p {
			case 1:
				changed[at] = 2
			case 2:
				changed[at] = 1
			}
		}
		if !slices.Equal(old, changed) {
			cells = append(cells, &apply.Cell{Node: n.GUID(), Name: n.Label(), Routes: ways.To(n), Attr: mad.AttrLinearForwardingTable, Old: old, New: changed})
		}
	}
	return cells
}

// tables are the first blocks as the switches have them.
func (r *rig) tables() (all [][]byte) {
	e := r.engine(-1, nil)
	defer e.Close()
	for _, c := range r.cells {
		call := fabric.Dest{Route: c.Routes[0]}.Put(new(engine.Call), mad.MethodGet, mad.AttrLinearForwardingTable, c.Modifier, nil)
		if err := e.Do(context.Background(), call); err != nil || call.Err != nil {
			r.t.Fatal(err, call.Err)
		}
		all = append(all, slices.Clone(call.Data()[:64]))
	}
	return all
}

// are says whether the switches have what of makes of each cell.
func (r *rig) are(of func(*apply.Cell) []byte) bool {
	for i, data := range r.tables() {
		if !slices.Equal(data, of(r.cells[i])) {
			return false
		}
	}
	return true
}

func before(c *apply.Cell) []byte { return c.Old }
func after(c *apply.Cell) []byte  { return c.New }

func (r *rig) change(e *engine.Engine, j *apply.Journal) *apply.Change {
	return &apply.Change{Engine: e, Journal: j, Order: byTwos, Sleep: func(context.Context, time.Duration) error { return nil }}
}

// byTwos is an order of small rounds, with blocks that are written twice.
func byTwos(_ context.Context, now, want [][]byte) (rounds []apply.Round, err error) {
	var all []apply.Step
	for i := range now {
		if !bytes.Equal(now[i], want[i]) {
			all = append(all, apply.Step{Cell: i, Data: want[i]})
		}
	}
	for steps := range slices.Chunk(all, 2) {
		half := slices.Clone(steps)
		for i, s := range half {
			half[i].Data = slices.Concat(s.Data[:5], now[s.Cell][5:])
		}
		rounds = append(rounds, apply.Round{Steps: half}, apply.Round{Steps: steps})
	}
	return rounds, nil
}

// TestMakeAndTakeBack: a change is made, and taken back from its journal.
func TestMakeAndTakeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		e := r.engine(-1, nil)
		defer e.Close()
		j, err := apply.NewJournal(r.path, &apply.Begin{Cells: r.cells})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.change(e, j).Make(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !r.are(after) {
			t.Error("the change is not made")
		}
		j.Close()
		if j, err = apply.OpenJournal(r.path); err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if !j.Open() || j.Last(apply.KindApplied) == nil {
			t.Error("the journal does not say that it is made")
		}
		if err := r.change(e, j).Revert(t.Context(), "test"); err != nil {
			t.Fatal(err)
		}
		if !r.are(before) || j.Open() {
			t.Error("the change is not taken back")
		}
		st, err := os.Stat(r.path)
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", st.Mode(), err)
		}
	})
}

// TestKilled: whoever makes a change, or takes it back, is killed at any datagram.
// The next one, from the journal, comes to exactly what was before, or after. With
// FABSH_SOAK it is at each, else at some.
func TestKilled(t *testing.T) {
	step, specs := int64(3), []string{"fattree:k=4", "fattree:k=4,loss=5%,dup=5%,jitter=2ms,seed=7"}
	if os.Getenv("FABSH_SOAK") != "" {
		step = 1
		for seed := range 14 {
			specs = append(specs, fmt.Sprintf("fattree:k=4,loss=5%%,dup=5%%,jitter=2ms,seed=%d", 10+seed))
		}
	}
	for _, spec := range specs {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, spec)
			kills := 0
			for at := int64(0); ; at += step {
				done := r.killed(at, func(c *apply.Change, ctx context.Context) error { return c.Make(ctx) }, true)
				if done {
					break
				}
				kills++
				// A second process is killed too, and a third one ends it.
				r.killed(at/2, func(c *apply.Change, ctx context.Context) error { return c.Revert(ctx, "killed") }, false)
				if at%2 == 0 {
					r.finish(func(c *apply.Change, ctx context.Context) error { return c.Resume(ctx) }, after)
				}
				r.finish(func(c *apply.Change, ctx context.Context) error { return c.Revert(ctx, "killed") }, before)
			}
			r.finish(func(c *apply.Change, ctx context.Context) error { return c.Revert(ctx, "end") }, before)
			if kills < 20 {
				t.Errorf("%d kills", kills)
			}
			t.Log(spec, kills, "kills")
		})
	}
}

// killed runs fn in a process that dies after so many datagrams; true: it did not.
func (r *rig) killed(at int64, fn func(*apply.Change, context.Context) error, fresh bool) bool {
	r.t.Helper()
	ctx, die := context.WithCancel(context.Background())
	defer die()
	e := r.engine(at, die)
	defer e.Close()
	var j *apply.Journal
	var err error
	if fresh {
		j, err = apply.NewJournal(r.path, &apply.Begin{Cells: r.cells})
	} else {
		j, err = apply.OpenJournal(r.path)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	defer j.Close()
	err = fn(r.change(e, j), ctx)
	if err != nil && ctx.Err() == nil {
		r.t.Fatal(err)
	}
	return err == nil
}

// finish runs fn in a process that lives: the switches are then as of says.
func (r *rig) finish(fn func(*apply.Change, context.Context) error, of func(*apply.Cell) []byte) {
	r.t.Helper()
	if !r.killed(-1, fn, false) {
		r.t.Fatal("killed")
	}
	if !r.are(of) {
		r.t.Fatal("the tables are neither")
	}
}

// TestForeign: what somebody else wrote is seen before the round, and stays.
func TestForeign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		e := r.engine(-1, nil)
		defer e.Close()
		j, err := apply.NewJournal("", &apply.Begin{Cells: r.cells})
		if err != nil {
			t.Fatal(err)
		}
		last := r.cells[len(r.cells)-1]
		c := r.change(e, j)
		rounds := 0
		c.Log = func(string) {
			if rounds++; rounds == 1 {
				if err := r.subnet.Edit.LFT(last.Node, 3, 4); err != nil {
					t.Fatal(err)
				}
			}
		}
		var foreign *apply.ForeignError
		if err := c.Make(t.Context()); !errors.As(err, &foreign) {
			t.Fatal(err)
		}
		t.Log(foreign)
		if err := c.Revert(t.Context(), "test"); !errors.As(err, &foreign) {
			t.Fatal(err)
		}
		if got := r.tables()[len(r.cells)-1][3]; got != 4 {
			t.Errorf("the foreign entry is %d now", got)
		}
		if err := r.subnet.Edit.LFT(last.Node, 3, last.Old[3]); err != nil {
			t.Fatal(err)
		}
		if err := c.Revert(t.Context(), "test"); err != nil || !r.are(before) {
			t.Error(err)
		}
	})
}

// TestDiskFull: without a journal nothing is sent; a disk that fills up on the way
// keeps nothing from being taken back.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		e := r.engine(-1, nil)
		defer e.Close()
		for writes := range 6 {
			j, err := apply.NewJournal(r.path, &apply.Begin{Cells: r.cells})
			if err != nil {
				t.Fatal(err)
			}
			j.FillAfter(writes)
			c := r.change(e, j)
			if err := c.Make(t.Context()); !errors.Is(err, apply.ErrJournal) {
				t.Fatalf("after %d records: %v", writes, err)
			}
			if writes == 0 && !r.are(before) {
				t.Error("Sets went out without a journal")
			}
			if err := c.Revert(t.Context(), "disk full"); !errors.Is(err, apply.ErrJournal) || !r.are(before) {
				t.Fatalf("after %d records: %v", writes, err)
			}
			j.Close()
		}
	})
}
