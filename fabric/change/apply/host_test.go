package apply_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// foreign hides that a transport is simulated in this process.
type foreign struct{ engine.Transport }

func (f foreign) Traits() engine.Traits {
	t := f.Transport.Traits()
	t.Name, t.Simulated = "umad", false
	return t
}

func (foreign) TrySend(*engine.Datagram) (bool, error) { return false, nil }
func (foreign) BeforeWait(func() bool) bool            { return false }

// setsOf counts the Sets that are sent.
type setsOf struct {
	engine.Transport
	n *int
}

func (s setsOf) Send(d *engine.Datagram) error {
	if mad.Method(d.MAD[3]) == mad.MethodSet {
		*s.n++
	}
	return s.Transport.Send(d)
}

func (setsOf) TrySend(*engine.Datagram) (bool, error) { return false, nil }
func (setsOf) BeforeWait(func() bool) bool            { return false }

// TestMakeRefuses: nothing is sent where a change must not be made, and the error says why.
func TestMakeRefuses(t *testing.T) {
	for _, test := range []struct {
		name     string
		override bool
		foreign  bool // the subnet is not one in this process: its subnet manager would not know
		edit     func(p *change.Plan)
		o        apply.ChangeOptions
		want     string
		fabric   bool // it is not the plan that is wrong
	}{
		{name: "stale", edit: func(p *change.Plan) { p.Base.Nodes[0].Name = "another\nname" }, o: apply.ChangeOptions{Plan: "x.plan"}, want: "x.plan is stale: the fabric has changed since it was made: another\nname"},
		{name: "a subnet manager", foreign: true, want: "is active; nothing was sent: OpenSM neither detects nor repairs writes of others"},
		{name: "tables, and --override-sm", foreign: true, override: true, want: "nothing was sent: --override-sm applies only changes of port states and link speeds. Let it write the tables"},
		{name: "no OpenSM to stage for", foreign: true, o: apply.ChangeOptions{Stage: "lfts", Reload: "4194305"}, want: "--reload 4194305: process 4194305 does not exist", fabric: true},
		{name: "a node that is gone", edit: func(p *change.Plan) { p.Sets[0].Node = 0x42 }, want: "the fabric has 0 nodes with GUID"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "fattree:k=4")
				conn, err := r.subnet.Attach(r.node, 1)
				if err != nil {
					t.Fatal(err)
				}
				sent := 0
				var transport engine.Transport = setsOf{conn, &sent}
				if test.foreign {
					transport = foreign{transport}
				}
				e := engine.New(transport, engine.Options{Write: true})
				defer e.Close()
				h := &apply.Host{Engine: e, SA: &sa.Client{Engine: e}, Clock: clock{}, State: t.TempDir(), OverrideSM: test.override}
				sm, err := h.SA.FindSM(t.Context(), r.f)
				if err != nil {
					t.Fatal(err)
				}
				p := swapPlan(t, r, sm)
				if test.edit != nil {
					test.edit(p)
				}
				outcome, err := h.Make(t.Context(), r.f, p, &test.o)
				if outcome != apply.Unresolved || err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, %v, want %q", outcome, err, test.want)
				}
				if got := errors.As(err, new(*apply.FabricError)); got != test.fabric {
					t.Errorf("the fabric is to blame: %t, want %t", got, test.fabric)
				}
				if sent > 0 {
					t.Errorf("%d Sets were sent", sent)
				}
			})
		})
	}
}

// swapPlan is the plan of the rig's change.
func swapPlan(t *testing.T, r *rig, sm *sa.SM) *change.Plan {
	t.Helper()
	var sets []certificate.Change
	for _, c := range r.cells {
		sets = append(sets, certificate.Change{Attr: c.Attr, Modifier: c.Modifier, Node: c.Node, Old: c.Old, New: c.New})
	}
	p, err := change.NewPlan("a test", sets, r.f, sm)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
