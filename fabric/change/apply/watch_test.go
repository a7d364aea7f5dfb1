package apply_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric/change/apply"
	"fabsh/fabric/sa"
	"fabsh/mad"
)

// TestWatch: a change that waits to be confirmed is reverted when a port goes down, or the
// subnet administrator falls silent.
func TestWatch(t *testing.T) {
	for _, x := range []struct {
		what string
		fail func(r *rig) error
		want string // "": it stays until its time is over
	}{
		{"nothing", func(*rig) error { return nil }, ""},
		{"a link of the change", linkDown, "is now down; it was up"},
		{"the subnet manager", silenceManager, "the subnet administrator answered before, and does not answer now"},
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
				if err == nil || !strings.Contains(err.Error(), x.want) || took > 40*time.Second {
					t.Errorf("%v, %v after %v", outcome, err, took)
				}
				if is := r.are(before); is != (outcome == apply.Failed) {
					t.Errorf("%v, and reverted %t", outcome, is)
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
