package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/change/order"
	"fabsh/fabric/change/plan"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
)

// Options say how the change of a plan is made.
type Options struct {
	// Plan is what messages call the plan, and Summary the change, for people.
	Plan, Summary string
	// Within is how long the change may wait to be confirmed; 0: defaultWithin, besides
	// defaultDrains times the time that its rounds wait for packets under way.
	Within time.Duration
	// Stage is the file of tables that OpenSM reads, and Reload its process ID, or a file
	// that holds it; both "": fabsh sends Sets.
	Stage, Reload string
	// Levels is a file with the service levels in use; "": those of path records are.
	Levels string
	// AcceptCreditLoops makes the change though packets may deadlock on the way.
	AcceptCreditLoops bool
}

// Make makes the change of a plan on f, which was just swept, and waits until it is
// confirmed or reverted. In this order it refuses an incomplete sweep, a subnet manager
// that would not know of the change, a damaged journal of the change before, a stale plan, what no plan may write, and ports that
// must not go down. Nothing has been sent then.
func (h *Host) Make(ctx context.Context, f *fabric.Fabric, p *plan.Plan, o *Options) (Outcome, error) {
	manager, err := h.manager(ctx, f, o.Stage != "")
	if err != nil {
		return Stuck, err
	}
	r, err := h.runOf(f)
	if err == nil {
		err = r.checkJournals()
	}
	if err != nil {
		return Stuck, err
	}
	if err := checkFingerprint(p, f, manager, o.Plan); err != nil {
		return Stuck, err
	}
	cells, err := Planned(p, f)
	if err != nil {
		return Stuck, fmt.Errorf("change apply: %w", err)
	}
	if len(cells) == 0 {
		return Nothing, nil
	}
	if o.Stage != "" || p.NeedsTables(f) || p.Certificate != nil {
		if r.Live, err = readTables(ctx, h.Engine, f); err != nil {
			return Stuck, err
		}
	}
	b, err := h.prepare(ctx, p, f, r.Live, manager, cells, o)
	if err != nil {
		return Stuck, fmt.Errorf("change apply: %w", err)
	}
	if p.Certificate != nil {
		r.certify = func(ctx context.Context) error { return h.checkCertificate(ctx, p, r.Live, b) }
	}
	return r.Apply(ctx, f, manager, b)
}

// prepare returns the head of the journal of a change that may be made. live are the
// tables of f; nil: p changes none.
func (h *Host) prepare(ctx context.Context, p *plan.Plan, f *fabric.Fabric, live *routes.Routes, manager *sa.SM, cells []*Cell, o *Options) (*Begin, error) {
	port, err := h.Engine.Port()
	if err != nil {
		return nil, err
	}
	b, err := h.begin(&port, manager, cells, o)
	if err != nil {
		return nil, err
	}
	if err := h.provePorts(ctx, p, f, live, &port, b); err != nil {
		return nil, err
	}
	if o.Stage != "" {
		b.Staged, err = newStaged(o.Stage, o.Reload, live, cells)
	}
	return b, err
}

// checkCertificate checks the certificate of a plan, besides the proof of the order in
// which the change is made.
func (h *Host) checkCertificate(ctx context.Context, p *plan.Plan, live *routes.Routes, b *Begin) error {
	t := &plan.Tables{Live: live}
	h.levels(b.Levels).InForce(t, h.Engine)
	_, err := p.CheckCertificate(ctx, t)
	if failed := new(certificate.FailureError); errors.As(err, &failed) {
		return &order.Refusal{Round: -1, Reason: failed.Error()}
	}
	return err
}
