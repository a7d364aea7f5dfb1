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
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	route "fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
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
	cells   []*certificate.Change
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
func (r *rig) swap(e *engine.Engine) (cells []*certificate.Change) {
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
			cells = append(cells, &certificate.Change{Node: n.GUID(), Name: n.Label(), Routes: ways.To(n), Attr: mad.AttrLinearForwardingTable, Old: old, New: changed})
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
func (r *rig) are(of func(*certificate.Change) []byte) bool {
	for i, data := range r.tables() {
		if !slices.Equal(data, of(r.cells[i])) {
			return false
		}
	}
	return true
}

func before(c *certificate.Change) []byte { return c.Old }
func after(c *certificate.Change) []byte  { return c.New }

func (r *rig) change(e *engine.Engine, j *apply.Journal) *apply.Writer {
	return &apply.Writer{Engine: e, Journal: j, Prove: byTwos, Sleep: func(context.Context, time.Duration) error { return nil }}
}

// byTwos is an order of small rounds, with blocks that are written twice.
func byTwos(_ context.Context, now, want [][]byte) (*apply.Proven, error) {
	var rounds []certificate.Round
	var all []certificate.Write
	for i := range now {
		if !bytes.Equal(now[i], want[i]) {
			all = append(all, certificate.Write{Change: i, Data: want[i]})
		}
	}
	for steps := range slices.Chunk(all, 2) {
		half := slices.Clone(steps)
		for i, s := range half {
			half[i].Data = slices.Concat(s.Data[:5], now[s.Change][5:])
		}
		rounds = append(rounds, certificate.Round{Writes: half}, certificate.Round{Writes: steps})
	}
	return apply.Unproven(rounds), nil
}

// TestMakeAndTakeBack: a change is made, and taken back from its journal.
func TestMakeAndTakeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		e := r.engine(-1, nil)
		defer e.Close()
		j, err := apply.NewJournal(r.path, &apply.Begin{Cells: r.cells}, clock{})
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
		if j, err = apply.OpenJournal(r.path, clock{}); err != nil {
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
				done := r.killed(at, func(c *apply.Writer, ctx context.Context) error { return c.Make(ctx) }, true)
				if done {
					break
				}
				kills++
				// A second process is killed too, and a third one ends it.
				r.killed(at/2, func(c *apply.Writer, ctx context.Context) error { return c.Revert(ctx, "killed") }, false)
				if at%2 == 0 {
					r.finish(func(c *apply.Writer, ctx context.Context) error { return c.Resume(ctx) }, after)
				}
				r.finish(func(c *apply.Writer, ctx context.Context) error { return c.Revert(ctx, "killed") }, before)
			}
			r.finish(func(c *apply.Writer, ctx context.Context) error { return c.Revert(ctx, "end") }, before)
			if kills < 20 {
				t.Errorf("%d kills", kills)
			}
			t.Log(spec, kills, "kills")
		})
	}
}

// killed runs fn in a process that dies after so many datagrams; true: it did not.
func (r *rig) killed(at int64, fn func(*apply.Writer, context.Context) error, fresh bool) bool {
	r.t.Helper()
	ctx, die := context.WithCancel(context.Background())
	defer die()
	e := r.engine(at, die)
	defer e.Close()
	var j *apply.Journal
	var err error
	if fresh {
		j, err = apply.NewJournal(r.path, &apply.Begin{Cells: r.cells}, clock{})
	} else {
		j, err = apply.OpenJournal(r.path, clock{})
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
func (r *rig) finish(fn func(*apply.Writer, context.Context) error, of func(*certificate.Change) []byte) {
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
		j, err := apply.NewJournal("", &apply.Begin{Cells: r.cells}, clock{})
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

// TestMovedBack: a block that another writer has written back is not stated to be neither as before
// nor as after the change.
func TestMovedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		e := r.engine(-1, nil)
		defer e.Close()
		j, err := apply.NewJournal("", &apply.Begin{Cells: r.cells}, clock{})
		if err != nil {
			t.Fatal(err)
		}
		first := r.cells[0]
		c := r.change(e, j)
		c.Log = func(string) {
			for lid, port := range first.Old {
				if port != first.New[lid] {
					if err := r.subnet.Edit.LFT(first.Node, mad.LID(lid), port); err != nil {
						t.Error(err)
					}
				}
			}
		}
		want := "1 block is not as the change wrote or found it; blocks of another writer are not overwritten: " + first.Name + ": old"
		if err := c.Make(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
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
			j, err := apply.NewJournal(r.path, &apply.Begin{Cells: r.cells}, clock{})
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

// served is a transport to a subnet that outlives this process, like the transport of ibsim.
type served struct{ engine.Transport }

func (s served) Traits() engine.Traits {
	t := s.Transport.Traits()
	t.Name = "ibsim"
	return t
}

func (served) TrySend(*engine.Datagram) (bool, error) { return false, nil }
func (served) BeforeWait(func() bool) bool            { return false }

// uplinks sets r.cells for a change in which each leaf switch swaps its two uplinks,
// of which each order is safe.
func (r *rig) uplinks() {
	e := r.engine(-1, nil)
	defer e.Close()
	r.cells = nil
	ways := apply.NewRoutes(r.f)
	for i := range r.f.Nodes() {
		n := &r.f.Nodes()[i]
		var up []byte
		for p := range n.Ports() {
			if peer := p.Peer(); peer != nil && peer.Node().IsSwitch() {
				up = append(up, byte(p.Num()))
			}
		}
		if !n.IsSwitch() || len(up) != 2 {
			continue
		}
		call := fabric.Dest{Route: n.Route()}.Put(new(engine.Call), mad.MethodGet, mad.AttrLinearForwardingTable, 0, nil)
		if err := e.Do(r.t.Context(), call); err != nil || call.Err != nil {
			r.t.Fatal(err, call.Err)
		}
		old := slices.Clone(call.Data()[:64])
		changed := slices.Clone(old)
		for at, p := range old {
			to := r.f.PortByLID(mad.LID(at))
			switch {
			case to == nil || to.Node().IsSwitch():
			case p == up[0]:
				changed[at] = up[1]
			case p == up[1]:
				changed[at] = up[0]
			}
		}
		r.cells = append(r.cells, &certificate.Change{Node: n.GUID(), Name: n.Label() + " LinearForwardingTable block 0", Routes: ways.To(n), PortGUID: n.Info().PortGUID, Attr: mad.AttrLinearForwardingTable, Old: old, New: changed})
	}
	if len(r.cells) != 4 {
		r.t.Fatal(len(r.cells), "leaf switches")
	}
}

// run is a Run on the rig's subnet with a journal in dir. close ends its engine.
func (r *rig) run(dir string) (run *apply.Run, close func()) {
	r.t.Helper()
	conn, err := r.subnet.Attach(r.node, 1)
	if err != nil {
		r.t.Fatal(err)
	}
	e := engine.New(served{conn}, engine.Options{Write: true})
	host := &apply.Host{Engine: e, SA: &sa.Client{Engine: e}, Clock: r.clock, State: filepath.Dir(dir)}
	return &apply.Run{Host: host, Dir: dir}, func() { e.Close() }
}

// confirmed makes the rig's change, and confirms it. It returns the journal's text.
func (r *rig) confirmed(dir string, begin *apply.Begin) []byte {
	r.t.Helper()
	e := r.engine(-1, nil)
	defer e.Close()
	begin.Cells = r.cells
	if sm, err := (&sa.Client{Engine: e}).FindSM(r.t.Context(), r.f); err == nil && sm != nil {
		begin.Manager = sm.Info.GUID
	}
	os.MkdirAll(dir, 0o700)
	j, err := apply.NewJournal(apply.JournalIn(dir), begin, clock{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer j.Close()
	if err := r.change(e, j).Make(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if err := j.Append(apply.Record{Kind: apply.KindConfirmed}); err != nil {
		r.t.Fatal(err)
	}
	text, err := os.ReadFile(apply.JournalIn(dir))
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

// sweep is the rig's fabric as it is now.
func (r *rig) sweep(run *apply.Run) *fabric.Fabric {
	r.t.Helper()
	f, err := discover.Sweep(context.Background(), run.Host.Engine, discover.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

// fakeGuard is a guard process: a goroutine.
type fakeGuard struct {
	done, gone chan struct{}
	released   bool
	err        error // of Keep
}

func (g *fakeGuard) Done() <-chan struct{} { return g.done }
func (g *fakeGuard) Release() {
	if !g.released {
		g.released = true
		close(g.gone)
	}
}

// guard starts guard processes of the change in dir: goroutines.
func (r *rig) guard(dir string) apply.StartGuard {
	return func(context.Context, string) (apply.Guard, error) {
		g := &fakeGuard{done: make(chan struct{}), gone: make(chan struct{})}
		of, end := r.run(dir)
		k, err := apply.NewKeeper(context.Background(), of)
		if err != nil {
			return nil, err
		}
		r.guards.Add(1)
		go func() {
			defer r.guards.Done()
			defer close(g.done)
			defer end()
			g.err = k.Keep(context.Background(), g.gone)
		}()
		return g, nil
	}
}

// BenchmarkApply makes the change that takes one of 34,992 links out of the tables, on a
// simulated subnet of 11,664 hosts in this process, and takes it back: order and proof
// anew, all reads before, between and after the rounds. Sweep and tables are known.
func BenchmarkApply(b *testing.B) {
	f, o, err := sim.Parse("pgft:m=18/18/36,w=1/18/18,p=1/1/1")
	if err != nil {
		b.Fatal(err)
	}
	subnet := sim.New(f, o)
	conn, err := subnet.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		b.Fatal(err)
	}
	e := engine.New(conn, engine.Options{Write: true})
	defer e.Close()
	ctx := b.Context()
	if f, err = discover.Sweep(ctx, e, discover.Options{}); err != nil {
		b.Fatal(err)
	}
	live, failed, err := device.ReadRoutes(ctx, e, f)
	if err != nil || len(failed) > 0 {
		b.Fatal(err, failed)
	}
	lost := live.Graph().ChannelPort(1811)
	less, err := graph.New(f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == lost }})
	if err != nil {
		b.Fatal(err)
	}
	target, err := route.Compute(ctx, less, "ftree", route.Options{Keep: live})
	if err != nil {
		b.Fatal(err)
	}
	target = target.On(live.Graph())
	ways := apply.NewRoutes(f)
	var cells, back []*certificate.Change
	for _, sd := range target.Diff(live).Switches {
		n := live.Graph().Switches()[sd.Switch]
		way := ways.To(n)
		block := func(r *routes.Routes, number int) []byte {
			data := bytes.Repeat([]byte{mad.NoPort}, mad.LFTBlock)
			copy(data, r.Row(sd.Switch)[number*mad.LFTBlock:])
			return data
		}
		for _, number := range sd.Blocks {
			c := certificate.Change{Node: n.GUID(), Name: n.Label(), Routes: way, Attr: mad.AttrLinearForwardingTable, Modifier: uint32(number), Old: block(live, number), New: block(target, number)}
			d := c
			d.Old, d.New = c.New, c.Old
			cells, back = append(cells, &c), append(back, &d)
		}
	}
	client := &sa.Client{Engine: e}
	manager, err := client.FindSM(ctx, f)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r := apply.Run{Host: &apply.Host{Engine: e, SA: client, Clock: hasty{}}, Live: live}
		if outcome, err := r.Apply(ctx, f, manager, &apply.Begin{Cells: cells}); outcome != apply.Confirmed {
			b.Fatal(outcome, err)
		}
		b.StopTimer()
		r.Live = target
		if outcome, err := r.Apply(ctx, f, manager, &apply.Begin{Cells: back}); outcome != apply.Confirmed {
			b.Fatal(outcome, err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(len(cells)), "blocks")
}

// hasty is a clock that does not wait.
type hasty struct{ clock }

func (hasty) Sleep(context.Context, time.Duration) error { return nil }

// clock is the time of a test.
type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) Sleep(_ context.Context, d time.Duration) error {
	time.Sleep(d) // in a synctest bubble, where it takes no time
	return nil
}
