package apply_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim/spec"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// stubborn is a transport to switches whose adaptive routing stays on, whatever is written.
type stubborn struct{ engine.Transport }

func (s stubborn) Recv(d *engine.Datagram) error {
	err := s.Transport.Recv(d)
	if err == nil && len(d.MAD) == mad.Size {
		if h := mad.ParseHeader(d.MAD); h.Attribute == mad.AttrAdaptiveRoutingInfo.ID && h.Class.Family() == mad.ClassSubn {
			mad.AttrAdaptiveRoutingInfo.Field("e").SetUint(d.MAD[h.Class.DataOffset():], 1)
		}
	}
	return err
}

func (stubborn) TrySend(*engine.Datagram) (bool, error) { return false, nil }
func (stubborn) BeforeWait(func() bool) bool            { return false }

// adapt switches adaptive routing on at all switches.
func (r *rig) adapt() {
	r.t.Helper()
	set, err := spec.ParseAdaptive("updn", "")
	if err != nil {
		r.t.Fatal(err)
	}
	r.subnet.Edit.Adaptive(set)
}

// TestAdaptiveSince: nothing is sent where adaptive routing is on and the plan does not
// disable it; a plan that does is applied, unless adaptive routing stays on.
func TestAdaptiveSince(t *testing.T) {
	for _, x := range []struct {
		what     string
		on       bool // since the plan was made
		disables bool
		stubborn bool
		want     string // of the error; "": the change is confirmed
		sent     bool
	}{
		{what: "off"},
		{what: "on since", on: true, want: "x.plan is stale: the fabric has changed since it was made: adaptive routing is on at "},
		{what: "disabled", on: true, disables: true},
		{what: "off since", disables: true},
		{what: "stays on", on: true, disables: true, stubborn: true, want: "is on although its forwarding table was written"},
	} {
		t.Run(x.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "fattree:k=4")
				r.uplinks()
				if x.on {
					r.adapt()
				}
				conn, err := r.subnet.Attach(r.node, 1)
				if err != nil {
					t.Fatal(err)
				}
				sent := 0
				var transport engine.Transport = setsOf{conn, &sent}
				if x.stubborn {
					transport = stubborn{transport}
				}
				e := engine.New(transport, engine.Options{Write: true})
				defer e.Close()
				h := &apply.Host{Engine: e, SA: &sa.Client{Engine: e}, Clock: clock{}}
				sm, err := h.SA.FindSM(t.Context(), r.f)
				if err != nil {
					t.Fatal(err)
				}
				p := swapPlan(t, r, sm)
				if p.Static = x.disables; x.disables {
					for _, c := range r.cells {
						p.Disables = append(p.Disables, change.Switch{GUID: c.Node})
					}
				}
				outcome, err := h.Make(t.Context(), r.f, p, &apply.ChangeOptions{Plan: "x.plan"})
				if x.want == "" {
					if outcome != apply.Confirmed || err != nil || !r.are(after) {
						t.Errorf("%v, %v", outcome, err)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), x.want) || !r.are(before) {
					t.Errorf("%v, %v, want %q", outcome, err, x.want)
				}
				if stale := errors.As(err, new(*apply.StaleError)); stale && sent > 0 {
					t.Errorf("%d Sets were sent", sent)
				}
			})
		})
	}
}

// TestAdaptiveRevert: a change is not reverted at switches whose adaptive routing was
// switched on again, and otherwise says that adaptive routing is not restored.
func TestAdaptiveRevert(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "fattree:k=4,ar=updn")
			r.uplinks()
			r.clock = clock{}
			dir := filepath.Join(t.TempDir(), "x")
			run, end := r.run(dir)
			defer end()
			run.Host.StartGuard = r.guard(dir)
			defer r.guards.Wait()
			other, endOther := r.run(dir)
			defer endOther()
			var confirmer sync.WaitGroup // it has the lock until after the end
			confirmer.Go(func() {
				time.Sleep(20 * time.Second)
				if outcome, err := other.Confirm(t.Context(), false); outcome != apply.Confirmed {
					t.Error(outcome, err)
				}
			})
			f := r.sweep(run)
			sm, err := run.Host.SA.FindSM(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			b := begin(r, sm)
			b.Within = time.Minute
			for _, c := range r.cells {
				b.Static = append(b.Static, c.Node)
			}
			if outcome, err := run.Apply(t.Context(), f, sm, b); outcome != apply.Confirmed || err != nil || !r.are(after) {
				t.Fatal(outcome, err)
			}
			confirmer.Wait()
			if again {
				conn, err := r.subnet.Attach(r.node, 1)
				if err != nil {
					t.Fatal(err)
				}
				e := engine.New(stubborn{served{conn}}, engine.Options{Write: true})
				defer e.Close()
				run.Host.Engine, run.Host.SA = e, &sa.Client{Engine: e}
			}
			_, err = run.Revert(t.Context(), r.sweep(run))
			switch {
			case again && (err == nil || !strings.Contains(err.Error(), "was switched on; its forwarding table is not written") || !r.are(after)):
				t.Error(err)
			case !again && (err != nil || !r.are(before)):
				t.Error(err)
			}
			j, err := run.Read()
			if err != nil || j.Begin().Unrestored() != "adaptive routing, which the change disables at 4 switches, is not restored" {
				t.Error(err, j.Begin().Unrestored())
			}
		})
	}
}
