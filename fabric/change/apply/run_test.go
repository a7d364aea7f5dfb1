package apply_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/discover"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// served is a transport to a subnet that outlives this process, as that of ibsim.
type served struct{ engine.Transport }

func (s served) Traits() engine.Traits {
	t := s.Transport.Traits()
	t.Name = "ibsim"
	return t
}

func (served) TrySend(*engine.Datagram) (bool, error) { return false, nil }
func (served) BeforeWait(func() bool) bool            { return false }

// uplinks makes r.cells those of a change that has each leaf switch swap its two uplinks,
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
		r.cells = append(r.cells, &apply.Cell{Node: n.GUID(), Name: n.Label() + " LinearForwardingTable block 0", Routes: ways.To(n), PortGUID: n.Info().PortGUID, Attr: mad.AttrLinearForwardingTable, Old: old, New: changed})
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
	j, err := apply.NewJournal(apply.JournalIn(dir), begin)
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
