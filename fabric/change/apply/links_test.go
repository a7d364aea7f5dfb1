package apply_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/change/order"
	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	madengine "fabsh/mad/engine"
)

// besideRig is a change of links beside the simulated subnet manager, as if it were OpenSM on
// a real fabric.
type besideRig struct {
	*rig
	state string
	host  *apply.Host
	log   bytes.Buffer
	sets  atomic.Int64    // that were sent
	after func(set int64) // is called after each
	dies  chan struct{}   // closed: the process is killed
}

// observed has after called for each Set of PortInfo, and sends nothing once the process is
// killed.
type observed struct {
	madengine.Transport
	r *besideRig
}

func (o observed) Send(d *madengine.Datagram) error {
	select {
	case <-o.r.dies:
		return nil
	default:
	}
	err := o.Transport.Send(d)
	if h := mad.Method(d.MAD[mad.MethodOffset]); h == mad.MethodSet && mad.Class(d.MAD[mad.ClassOffset]).Family() == mad.ClassSubn {
		n := o.r.sets.Add(1)
		if o.r.after != nil {
			o.r.after(n)
		}
	}
	return err
}

func (observed) TrySend(*madengine.Datagram) (bool, error) { return false, nil }
func (observed) BeforeWait(func() bool) bool               { return false }

func newBeside(t *testing.T, spec string) *besideRig {
	t.Helper()
	r := &besideRig{rig: newRig(t, spec), state: t.TempDir(), dies: make(chan struct{})}
	r.leaveManager()
	conn, err := r.subnet.Attach(r.node, 1)
	if err != nil {
		t.Fatal(err)
	}
	e := madengine.New(foreign{observed{conn, r}}, madengine.Options{Write: true})
	r.host = &apply.Host{Engine: e, SA: &sa.Client{Engine: e}, Clock: clock{}, Log: &r.log, State: r.state, OverrideSM: true}
	r.host.Manager = func(engine string, _, _ mad.LID) (m change.ManagerRouting, err error) {
		m.Engines, err = change.ParseManagerEngine(engine)
		return m, err
	}
	r.host.StartGuard = func(ctx context.Context, journal string) (apply.Guard, error) {
		return r.guard(filepath.Dir(journal))(ctx, journal)
	}
	return r
}

// engineBeside is an engine of another process, as if the fabric were real.
func (r *besideRig) engineBeside() *madengine.Engine {
	conn, err := r.subnet.Attach(r.node, 1)
	if err != nil {
		r.t.Fatal(err)
	}
	return madengine.New(foreign{conn}, madengine.Options{Write: true})
}

// end ends what the rig has started.
func (r *besideRig) end() {
	r.host.Engine.Close()
	r.guards.Wait()
}

// port is a port by its name in the latest sweep of the rig.
func (r *besideRig) port(name string) *fabric.Port {
	r.t.Helper()
	for i := range r.f.Ports() {
		if p := &r.f.Ports()[i]; p.Name() == name {
			return p
		}
	}
	r.t.Fatalf("no port %s", name)
	return nil
}

// plan is a plan that sets the physical states of ports.
func (r *besideRig) plan(to mad.PortPhysicalState, names ...string) *change.Plan {
	r.t.Helper()
	var err error
	if r.f, err = discover.Sweep(r.t.Context(), r.host.Engine, discover.Options{}); err != nil {
		r.t.Fatal(err)
	}
	sm, err := r.host.SA.FindSM(r.t.Context(), r.f)
	if err != nil {
		r.t.Fatal(err)
	}
	var sets []certificate.Change
	for _, name := range names {
		p := r.port(name)
		sets = append(sets, certificate.Change{Attr: mad.AttrPortInfo, Modifier: uint32(p.Num()), Node: p.Node().GUID()}.With("port_physical_state", uint64(p.Info().PortPhysicalState), uint64(to)))
	}
	made, err := change.NewPlan("a test", sets, r.f, sm)
	if err != nil {
		r.t.Fatal(err)
	}
	return made
}

// make applies a plan, and confirms it as soon as it waits for that.
func (r *besideRig) make(p *change.Plan, engine string) (apply.Outcome, error) {
	ended, confirmed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(confirmed)
		for {
			select {
			case <-ended:
				return
			case <-time.After(time.Second):
			}
			if dir := r.dir(); dir != "" {
				run, end := r.run(dir)
				run.Confirm(r.t.Context(), false)
				end()
			}
		}
	}()
	defer func() { close(ended); <-confirmed }()
	return r.host.Make(r.t.Context(), r.f, p, &apply.ChangeOptions{Plan: "x.plan", Summary: "a test", ManagerEngine: engine})
}

// dir is the directory of the journal; "": there is none.
func (r *besideRig) dir() string {
	paths, _ := filepath.Glob(filepath.Join(r.state, "*", "change.journal"))
	if len(paths) == 0 {
		return ""
	}
	return filepath.Dir(paths[0])
}

// states are the physical states of ports, as just read.
func (r *besideRig) states(names ...string) string {
	r.t.Helper()
	e := r.engine(-1, nil)
	defer e.Close()
	f, err := discover.Sweep(context.Background(), e, discover.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	var states []string
	for _, name := range names {
		was := r.port(name)
		p := f.NodeByGUID(was.Node().GUID())[0].Port(was.Num())
		states = append(states, fmt.Sprintf("%v %v", p.Info().PortPhysicalState, p.Info().PortState))
	}
	return strings.Join(states, ", ")
}

// drop removes the routes to a LID from all switches: the fault of a subnet manager.
func (r *besideRig) drop(lid mad.LID) {
	for _, n := range r.f.OfType(mad.NodeTypeSwitch) {
		if err := r.subnet.Edit.LFT(n.GUID(), lid, mad.NoPort); err != nil {
			r.t.Error(err)
		}
	}
}

// stick undoes what the subnet manager has done: its tables are as at the rig's sweep, and it
// has not seen the change of two ports.
func (r *besideRig) stick(tables map[mad.GUID][]byte, p *fabric.Port) {
	for guid, row := range tables {
		for lid, port := range row {
			if err := r.subnet.Edit.LFT(guid, mad.LID(lid), port); err != nil {
				r.t.Error(err)
			}
		}
	}
	for _, end := range []*fabric.Port{p, p.Peer()} {
		if err := r.subnet.Edit.Node(end.Node().GUID(), func(_ *string, _ *mad.NodeInfo, sw *mad.SwitchInfo) { sw.PortStateChange = true }); err != nil {
			r.t.Error(err)
		}
	}
}

// tables are the forwarding tables, as just read.
func (r *besideRig) tables() map[mad.GUID][]byte {
	live, _, err := device.ReadRoutes(r.t.Context(), r.host.Engine, r.f)
	if err != nil {
		r.t.Fatal(err)
	}
	rows := map[mad.GUID][]byte{}
	for s, n := range live.Graph().Switches() {
		rows[n.GUID()] = bytes.Clone(live.Row(s))
	}
	return rows
}

// write returns what writes the tables of an engine for the network without a link, if any:
// the fault of a subnet manager, where these have a credit loop.
func (r *besideRig) write(name string, without *fabric.Port) func() {
	g, err := graph.New(r.f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return without != nil && (p == without || p == without.Peer()) }})
	if err != nil {
		r.t.Fatal(err)
	}
	tables, err := engines.Compute(r.t.Context(), g, name, engines.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	return func() {
		for s, n := range g.Switches() {
			for lid, port := range tables.Row(s) {
				if err := r.subnet.Edit.LFT(n.GUID(), mad.LID(lid), port); err != nil {
					r.t.Error(err)
				}
			}
		}
	}
}

// at calls do after one Set.
func at(set int64, do func()) func(int64) {
	return func(n int64) {
		if n == set {
			do()
		}
	}
}

func TestBesideManager(t *testing.T) {
	const rails = "fattree:k=4,rails=2" // leaf-1/2 and leaf-2/2 are of node-0002
	const linkUp, down, enabled = "link_up active", "disabled down", "polling down"
	for _, x := range []struct {
		name, net string
		engine    string                // of the subnet manager, as the user states it
		to        mad.PortPhysicalState // 0: disabled
		ports     []string
		before    func(r *besideRig)
		after     func(r *besideRig) func(set int64)
		outcome   apply.Outcome
		err       string // "": none
		refused   bool
		states    string // of the ports
		least     time.Duration
	}{
		{name: "a link", ports: []string{"leaf-1/3"}, outcome: apply.Confirmed, states: down},
		{name: "two links", net: "fattree:k=8", ports: []string{"leaf-1/5", "leaf-2/6"}, outcome: apply.Confirmed, states: down + ", " + down},
		{
			name: "a link is restored", ports: []string{"leaf-1/3"}, to: mad.PortPhysicalStatePolling, outcome: apply.Confirmed, states: linkUp,
			before: func(r *besideRig) { r.make(r.plan(disabledPort, "leaf-1/3"), "") },
		},
		{
			name: "a link without a cable is restored", ports: []string{"leaf-1/3"}, to: mad.PortPhysicalStatePolling, outcome: apply.Failed, states: down, least: 10 * time.Second,
			before: func(r *besideRig) {
				r.make(r.plan(disabledPort, "leaf-1/3"), "")
				if err := r.subnet.Cables.Unlink(r.port("leaf-1/3").Node().GUID(), 3); err != nil {
					r.t.Error(err)
				}
			},
			err: "leaf-1/3: the link at leaf-1/3 is not up: down, polling, after 10s; this link was restored; no other link was changed",
		},
		{name: "the link of a host trains again", ports: []string{"leaf-1/2"}, to: mad.PortPhysicalStatePolling, outcome: apply.Confirmed, states: linkUp},
		{
			outcome: apply.Unresolved, name: "the link of the subnet manager trains again", ports: []string{"leaf-1/1"}, to: mad.PortPhysicalStatePolling, states: linkUp,
			err: "the subnet manager or this host needs node-0001 HCA-1/1", refused: true,
		},
		{outcome: apply.Unresolved, name: "the link of a host", ports: []string{"leaf-1/2"}, err: `"leaf-1" (0x0002c90300100000) and "node-0002 HCA-1" (0x0002c90310000010) would lose the last path between them`, refused: true, states: linkUp},
		{name: "the link of a host that keeps another", net: rails, ports: []string{"leaf-1/2"}, outcome: apply.Confirmed, states: down},
		{
			name: "links of two hosts", net: rails, ports: []string{"leaf-1/2", "leaf-2/1"}, outcome: apply.Confirmed, states: down + ", " + down,
		},
		{
			outcome: apply.Unresolved, name: "both links of a host", net: rails, ports: []string{"leaf-1/2", "leaf-2/2"}, err: `"leaf-1" (0x0002c90300100000) and "node-0002 HCA-1" (0x0002c90310000020) would lose the last path between them; no other port of the host keeps its paths: node-0002 HCA-2/1 goes down too; node-0002 HCA-1/1 goes down too`, refused: true, states: linkUp + ", " + linkUp,
		},
		{
			outcome: apply.Unresolved, name: "the link that a host keeps", net: rails, ports: []string{"leaf-2/2"}, err: `"leaf-1" (0x0002c90300100000) and "node-0002 HCA-2" (0x0002c90310000030) would lose the last path between them`, refused: true, states: linkUp,
			before: func(r *besideRig) { r.make(r.plan(disabledPort, "leaf-1/2"), "") },
		},
		{
			name: "the link of a host is restored", net: rails, ports: []string{"leaf-1/2"}, to: mad.PortPhysicalStatePolling, outcome: apply.Confirmed, states: linkUp,
			before: func(r *besideRig) { r.make(r.plan(disabledPort, "leaf-1/2"), "") },
		},
		{
			outcome: apply.Unresolved, name: "a host that keeps a limited member", net: rails, ports: []string{"leaf-1/2"}, err: `"leaf-1" (0x0002c90300100000) and "node-0002 HCA-1" (0x0002c90310000020) would lose the last path between them; no other port of the host keeps its paths: node-0002 HCA-2/1 is only a limited member of 0x7fff`, refused: true, states: linkUp,
			before: func(r *besideRig) {
				if err := r.subnet.Edit.PKeys(r.port("leaf-2/2").Peer().Node().GUID(), 1, 0x7fff); err != nil {
					r.t.Error(err)
				}
			},
		},
		{
			name: "what a host keeps fails", net: rails, ports: []string{"leaf-1/2"}, outcome: apply.Failed, states: linkUp, least: 10 * time.Second, err: `leaf-1/2: by the tables of the subnet manager 6 pairs are lost, such as node-0001 HCA-1/1 to LID 10: "leaf-1" (0x0002c90300100000) drops LID 10; this link was restored; no other link was changed`,
			after: func(r *besideRig) func(int64) { return at(1, func() { r.drop(r.port("leaf-2/2").Peer().LID()) }) },
		},
		{outcome: apply.Unresolved, name: "a split", ports: []string{"leaf-1/3", "leaf-1/4"}, err: `"leaf-1" (0x0002c90300100000) and "leaf-2" (0x0002c90300100010) would lose the last path between them`, refused: true, states: linkUp + ", " + linkUp},
		{name: "a credit loop that exists", net: "torus:dims=4/4,hosts=1", ports: []string{"switch-1-1/2"}, before: func(r *besideRig) { r.write("dor", nil)() }, outcome: apply.Confirmed, states: down},
		{outcome: apply.Unresolved, name: "without the option", ports: []string{"leaf-1/3"}, before: func(r *besideRig) { r.host.OverrideSM = false }, err: "a subnet manager with GUID 0x0002c90310000001 at LID 7, priority 14, state master is active; nothing was sent: the change is one of links only, which it handles like that of a cable; --override-sm applies it link by link, and checks its new tables", states: linkUp},
		{
			name: "lost pairs", ports: []string{"leaf-1/3"}, outcome: apply.Failed, states: linkUp, least: 10 * time.Second, err: `leaf-1/3: by the tables of the subnet manager 7 pairs are lost, such as node-0001 HCA-1/1 to LID 9: "leaf-1" (0x0002c90300100000) drops LID 9; this link was restored; no other link was changed`,
			after: func(r *besideRig) func(int64) { return at(1, func() { r.drop(r.port("leaf-2/1").Peer().LID()) }) },
		},
		{
			name: "lost pairs at the second link", net: "fattree:k=8", ports: []string{"leaf-1/5", "leaf-2/6", "leaf-3/7"}, outcome: apply.Confirmed, states: linkUp + ", " + linkUp + ", " + down, err: `leaf-1/5: by the tables of the subnet manager 31 pairs are lost, such as node-0001 HCA-1/1 to LID 17: "leaf-1" (0x0002c90300100000) drops LID 17; this link was restored; done: leaf-3/7; not done: leaf-1/5, leaf-2/6; what is done is confirmed`,
			after: func(r *besideRig) func(int64) { return at(2, func() { r.drop(r.port("leaf-2/1").Peer().LID()) }) },
		},
		{
			name: "a credit loop", net: "torus:dims=4/4,hosts=1", engine: "nue", ports: []string{"switch-1-1/2"}, outcome: apply.Failed, states: linkUp, err: "switch-1-1/2: the tables of the subnet manager have a credit loop of 4 links, such as switch-1-2/2 -> switch-2-2/3; this link was restored; no other link was changed",
			before: func(r *besideRig) { r.write("updn", nil)() },
			after:  func(r *besideRig) func(int64) { return at(1, r.write("dor", r.port("switch-1-1/2"))) },
		},
		{
			name: "the subnet manager does nothing", ports: []string{"leaf-1/3"}, outcome: apply.Failed, states: linkUp, least: time.Minute, err: "leaf-1/3: the subnet manager has not handled it within 1m0s: it has not seen the change of spine-1/1 (PortStateChange is set), and the tables are as before; this link was restored; no other link was changed",
			after: func(r *besideRig) func(int64) {
				tables := r.tables()
				return at(1, func() { r.stick(tables, r.port("leaf-1/3")) })
			},
		},
		{
			name: "the subnet manager dies", ports: []string{"leaf-1/3"}, outcome: apply.Unresolved, states: "link_up initialize", least: 10 * time.Second, err: "leaf-1/3: the subnet manager no longer answers; this link was restored, but: the subnet manager no longer answers; no other link was changed" +
				"; the change is reverted, but the fabric is not as before it: 2 ports were active before, and not now: leaf-1/3 is initialize; spine-1/1 is initialize; the subnet manager with port GUID 0x0002c90310000001, which was in charge before the change, does not answer as MASTER: start it; it activates links and writes tables",
			after: func(r *besideRig) func(int64) {
				return at(1, func() {
					if err := silenceManager(r.rig); err != nil {
						r.t.Error(err)
					}
				})
			},
		},
		{
			name: "the link does not come back", ports: []string{"leaf-1/3"}, outcome: apply.Unresolved, states: enabled, err: `leaf-1/3: by the tables of the subnet manager 7 pairs are lost, such as node-0001 HCA-1/1 to LID 9: "leaf-1" (0x0002c90300100000) drops LID 9; this link was restored, but: the link at leaf-1/3 is not up: down, polling, after 10s; no other link was changed` +
				"; the change is reverted, but the fabric is not as before it: 2 ports were active before, and not now: leaf-1/3 is down; spine-1/1 is down",
			after: func(r *besideRig) func(int64) {
				p := r.port("leaf-1/3").Peer()
				return func(n int64) {
					switch n {
					case 1:
						r.drop(r.port("leaf-2/1").Peer().LID())
					case 2:
						if err := r.subnet.Cables.Unlink(p.Node().GUID(), p.Num()); err != nil {
							r.t.Error(err)
						}
					}
				}
			},
		},
		{
			name: "the link comes back slower", ports: []string{"leaf-1/3"}, outcome: apply.Unresolved, states: linkUp, err: `leaf-1/3: by the tables of the subnet manager 7 pairs are lost, such as node-0001 HCA-1/1 to LID 9: "leaf-1" (0x0002c90300100000) drops LID 9; this link was restored; no other link was changed` +
				"; the change is reverted, but the fabric is not as before it: 2 ports are slower: leaf-1/3 is 4x edr, was 4x hdr; spine-1/1 is 4x edr, was 4x hdr; port_reset(PORT) makes the link train again",
			after: func(r *besideRig) func(int64) {
				return at(1, func() {
					if err := r.subnet.Cables.SetLink(r.port("leaf-1/3").Node().GUID(), 3, state.Limit{Speed: "edr"}); err != nil {
						r.t.Error(err)
					}
					r.drop(r.port("leaf-2/1").Peer().LID())
				})
			},
		},
		{
			name: "another link fails", net: "fattree:k=8", ports: []string{"leaf-1/5"}, outcome: apply.Unresolved, states: linkUp, err: "leaf-1/5: 1 block could not be read or written: SubnGet(NodeInfo) to route 0,1,6,1: timed out after 6 attempts in 3s; this link was restored; no other link was changed" +
				"; the change is reverted, but the fabric is not as before it: 1 port was active before, and not now: leaf-1/6 is down",
			after: func(r *besideRig) func(int64) {
				return at(1, func() {
					if err := r.subnet.Cables.Unlink(r.port("leaf-1/6").Node().GUID(), 6); err != nil {
						r.t.Error(err)
					}
				})
			},
		},
		{name: "a management key", net: "fattree:k=4,mkey=0x1234", ports: []string{"leaf-1/3"}, outcome: apply.Failed, states: linkUp, err: `leaf-1/3: 1 block could not be read or written: "leaf-1" (0x0002c90300100000) PortInfo port 3 extended_speeds 0: SubnSet(PortInfo 3) to route 0,1,4,1: timed out after 3 attempts in 3s; this link was not changed; no other link was changed`},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if x.net == "" {
					x.net = "fattree:k=4"
				}
				if x.to == 0 {
					x.to = disabledPort
				}
				r := newBeside(t, x.net)
				defer r.end()
				if x.before != nil {
					x.before(r)
				}
				p := r.plan(x.to, x.ports...)
				r.sets.Store(0)
				if x.after != nil {
					r.after = x.after(r)
				}
				start := time.Now()
				outcome, err := r.make(p, x.engine)
				text := ""
				if err != nil {
					text = err.Error()
				}
				if outcome != x.outcome || text != x.err {
					t.Errorf("%v: %s\nwant %v: %s", outcome, text, x.outcome, x.err)
				}
				if got := errors.As(err, new(*order.Refusal)); got != x.refused {
					t.Errorf("refused %t", got)
				}
				if got := r.states(x.ports...); got != x.states {
					t.Errorf("ports: %s, want %s", got, x.states)
				}
				if took := time.Since(start); took < x.least || took > 5*time.Minute {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// TestBesideManagerSpeed: a link gets another speed, by both its ends and a reset; and its
// former speed, where the tables are bad then.
func TestBesideManagerSpeed(t *testing.T) {
	t.Run("sound", func(t *testing.T) { testSpeed(t, nil, apply.Confirmed, mad.LinkSpeedExtEDR) })
	t.Run("lost pairs", func(t *testing.T) {
		testSpeed(t, func(r *besideRig) { r.drop(r.port("leaf-2/1").Peer().LID()) }, apply.Failed, mad.LinkSpeedExtHDR)
	})
}

func testSpeed(t *testing.T, fault func(r *besideRig), want apply.Outcome, speed mad.LinkSpeedExt) {
	synctest.Test(t, func(t *testing.T) {
		r := newBeside(t, "fattree:k=4")
		defer r.end()
		p := r.plan(mad.PortPhysicalStatePolling, "leaf-1/3", r.port("leaf-1/3").Peer().Name())
		for i := range p.Sets {
			set := &p.Sets[i]
			if i == 0 { // the other end has the link train
				set.Fields = nil
			}
			*set = set.With("link_speed_ext_enabled", uint64(r.port("leaf-1/3").Info().LinkSpeedExtEnabled), uint64(mad.LinkSpeedExtEDR))
		}
		if fault != nil {
			r.after = at(2, func() { fault(r) })
		}
		outcome, err := r.make(p, "")
		if outcome != want || (err == nil) != (fault == nil) {
			t.Fatal(outcome, err)
		}
		r.f = r.sweep(&apply.Run{Host: r.host})
		if info := r.port("leaf-1/3").Info(); info.LinkSpeedExtActive != speed || info.PortState != mad.PortStateActive {
			t.Errorf("%v, %v", info.LinkSpeedExtActive, info.PortState)
		}
		if n := strings.Count(r.log.String(), "round 2 of 2: 1 block read back"); fault == nil && n != 1 {
			t.Errorf("log:\n%s", r.log.String())
		}
	})
}

// TestBesideManagerKilled: the process that applies a change is killed after the first Set of
// the second link. The guard process reverts both links; where that was killed too, change
// revert does, beside the subnet manager and without the option.
func TestBesideManagerKilled(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		t.Run(fmt.Sprintf("guarded %t", guarded), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newBeside(t, "fattree:k=8")
				defer r.end()
				ports := []string{"leaf-1/5", "leaf-2/6"}
				p := r.plan(disabledPort, ports...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				killed := make(chan struct{})
				gone := &fakeGuard{done: make(chan struct{}), gone: make(chan struct{})}
				start := r.host.StartGuard
				r.host.StartGuard = func(ctx context.Context, journal string) (apply.Guard, error) {
					if !guarded {
						return gone, nil
					}
					g, err := start(ctx, journal)
					if err == nil {
						gone = g.(*fakeGuard)
					}
					return g, err
				}
				r.after = at(2, func() {
					close(r.dies)
					close(killed)
				})
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					r.host.Make(ctx, r.f, p, &apply.ChangeOptions{Plan: "x.plan", Summary: "a test"})
				}()
				<-killed
				if got := r.states(ports...); got != "disabled down, disabled down" {
					t.Errorf("when it is killed: %s", got)
				}
				if guarded {
					gone.Release()
					<-gone.done
					<-ended
				} else {
					time.Sleep(time.Minute) // until the process, which cannot be killed here, lets go of the lock
					run, end := r.run(r.dir())
					defer end()
					run.Host.Engine = r.engineBeside()
					defer run.Host.Engine.Close()
					run.Host.SA = &sa.Client{Engine: run.Host.Engine}
					outcome, err := run.Revert(t.Context(), r.sweep(run))
					if outcome != apply.RevertedOnRequest || err != nil {
						t.Error(outcome, err)
					}
					close(gone.done)
					<-ended
				}
				if got := r.states(ports...); got != "link_up active, link_up active" {
					t.Errorf("after the reversal: %s", got)
				}
				if j, err := apply.ReadJournal(apply.JournalIn(r.dir())); err != nil || j.Open() {
					t.Errorf("journal: %v, %v", j, err)
				}
			})
		})
	}
}

const disabledPort = mad.PortPhysicalStateDisabled

// TestWatch: a change that waits to be confirmed is reverted when a port goes down, or the
// subnet administrator falls silent.
func TestWatch(t *testing.T) {
	for _, x := range []struct {
		what string
		fail func(r *rig) error
		want string // "": it stays until its time is over
		left string // what the fabric lacks after the reversal
	}{
		{"nothing", func(*rig) error { return nil }, "", ""},
		{"a link of the change", linkDown, "is now down; it was up", "1 port was active before, and not now: "},
		{"the subnet manager", silenceManager, "the subnet administrator answered before, and does not answer now", "the subnet manager with port GUID 0x0002c90310000001, which was in charge before the change, does not answer as MASTER"},
	} {
		t.Run(x.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "fattree:k=4")
				r.leaveManager()
				r.uplinks()
				dir := filepath.Join(t.TempDir(), "x")
				run, end := r.run(dir)
				defer end()
				run.Host.StartGuard = r.guard(dir)
				defer r.guards.Wait()
				start := time.Now()
				go func() {
					time.Sleep(20 * time.Second)
					if err := x.fail(r); err != nil {
						t.Error(err)
					}
				}()
				f := r.sweep(run)
				sm, err := run.Host.SA.FindSM(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				outcome, err := run.Apply(t.Context(), f, sm, begin(r, sm))
				took := time.Since(start)
				if x.want == "" {
					if outcome != apply.Expired || err != nil || took < time.Hour || !r.are(before) {
						t.Errorf("%v, %v after %v", outcome, err, took)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), x.want) || took > time.Minute {
					t.Errorf("%v, %v after %v", outcome, err, took)
				}
				if !r.are(before) || outcome != apply.Unresolved || !strings.Contains(err.Error(), "; the change is reverted, but the fabric is not as before it: "+x.left) {
					t.Errorf("%v, %v, and reverted %t", outcome, err, r.are(before))
				}
			})
		})
	}
}

// linkDown has an uplink of a switch of the change go down. The simulated subnet manager
// does not see it, and so does not repair the tables.
func linkDown(r *rig) error {
	node := r.cells[1].Node
	for p := range r.f.NodeByGUID(node)[0].Ports() {
		if p.Peer() != nil && p.Peer().Node().IsSwitch() {
			return r.subnet.Edit.Port(node, p.Num(), func(info *mad.PortInfo) { info.PortState = mad.PortStateDown })
		}
	}
	return errors.New("no uplink")
}

// silenceManager has the subnet manager's node answer nothing.
func silenceManager(r *rig) error {
	p := r.f.PortByLID(r.f.From().Info().MasterSMLID)
	return r.subnet.Cables.Silence(p.Node().GUID(), p.Num(), true)
}

// leaveManager attaches the rig to another node than the subnet manager's.
func (r *rig) leaveManager() {
	r.node = r.f.OfType(mad.NodeTypeCA)[5].ID()
	run, end := r.run("")
	defer end()
	r.f = r.sweep(run)
}

// begin is the change of a rig, beside a subnet manager, if there is one.
func begin(r *rig, sm *sa.SM) *apply.Begin {
	b := &apply.Begin{ID: "x", Cells: r.cells, Within: time.Hour}
	if sm != nil {
		b.Manager = sm.Info.GUID
	}
	return b
}

// TestConfirmChecks: confirm reports a link of the change that is down, and refuses without
// force.
func TestConfirmChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		r.leaveManager()
		r.uplinks()
		dir := filepath.Join(t.TempDir(), "x")
		run, end := r.run(dir)
		defer end()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		run.Host.StartGuard = r.guard(dir)
		defer r.guards.Wait()
		other, endOther := r.run(dir)
		defer endOther()
		confirm := func(force bool, outcome apply.Outcome, want string) {
			t.Helper()
			got, err := other.Confirm(t.Context(), force)
			if text := ""; got != outcome || err != nil && !strings.Contains(err.Error(), want) || err == nil && want != text {
				t.Errorf("confirm: %v, %v, want %v, %q", got, err, outcome, want)
			}
		}
		go func() {
			time.Sleep(6*time.Second + 900*time.Millisecond) // between two checks of the process that made it
			if err := linkDown(r); err != nil {
				t.Error(err)
			}
			confirm(false, apply.Unresolved, "active before the change, and not now: ")
			confirm(true, apply.Confirmed, "")
		}()
		f := r.sweep(run)
		sm, err := run.Host.SA.FindSM(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := run.Apply(ctx, f, sm, begin(r, sm))
		if outcome != apply.Confirmed || err != nil || !r.are(after) {
			t.Error(outcome, err)
		}
	})
}
