package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/change/order"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
)

// ChangeOptions control how the change of a plan is applied.
type ChangeOptions struct {
	// Plan names the plan in messages, and Summary describes the change, for people.
	Plan, Summary string
	// Within is how long the change may wait to be confirmed; 0: defaultWithin plus
	// defaultDrains times the time that its rounds wait for packets under way.
	Within time.Duration
	// Stage is the file of tables that OpenSM reads, and Reload its process ID, or a file
	// that contains it; both "": fabsh sends Sets.
	Stage, Reload string
	// Levels is a file with the service levels in use; "": those of path records.
	Levels string
	// AcceptCreditLoops applies the change even if packets may deadlock meanwhile.
	AcceptCreditLoops bool
}

// Make applies the change of a plan to f, which was just swept, and waits until it is
// confirmed or reverted. Before anything is sent, it refuses, in this order: an
// incomplete sweep; a subnet manager that would not know of the change; a damaged journal
// of the previous change; a stale plan; content that no plan may write; and ports that
// must not go down; and switches whose adaptive routing is on, if the plan does not disable
// it. Nothing has been sent then.
func (h *Host) Make(ctx context.Context, f *fabric.Fabric, p *change.Plan, o *ChangeOptions) (Outcome, error) {
	how := alone
	switch {
	case o.Stage != "":
		how = staged
	case p.OnlyLinks():
		how = ofLinks
	}
	manager, err := h.manager(ctx, f, how)
	if err != nil {
		return Unresolved, err
	}
	linkByLink := how == ofLinks && manager != nil && h.OverrideSM
	r, err := h.runOf(f)
	if err == nil {
		err = r.checkJournals(ctx)
	}
	if err != nil {
		return Unresolved, err
	}
	if err := checkFingerprint(p, f, manager, o.Plan); err != nil {
		return Unresolved, err
	}
	cells, err := Planned(p, f)
	if err != nil {
		return Unresolved, fmt.Errorf("change apply: %w", err)
	}
	static, err := h.static(ctx, p, f, o)
	if err != nil {
		return Unresolved, err
	}
	cells = slices.DeleteFunc(cells, func(c *Cell) bool { return c.rewrites() && !slices.Contains(static, c.Node) })
	if len(cells) == 0 {
		return Nothing, nil
	}
	if o.Stage != "" || p.NeedsTables(f) || p.Certificate != nil || linkByLink {
		if r.Live, err = readTables(ctx, h.Engine, f); err != nil {
			return Unresolved, err
		}
	}
	b, err := h.prepare(ctx, p, f, r.Live, manager, cells, linkByLink, o)
	if err != nil {
		return Unresolved, fmt.Errorf("change apply: %w", err)
	}
	b.Static = static
	if p.Certificate != nil {
		r.certify = func(ctx context.Context) error { return h.checkCertificate(ctx, p, r.Live, b) }
	}
	return r.Apply(ctx, f, manager, b)
}

// prepare returns the head of the journal of a change that may be applied. live are the
// tables of f; nil: p changes no tables.
func (h *Host) prepare(ctx context.Context, p *change.Plan, f *fabric.Fabric, live *routes.Routes, manager *sa.SM, cells []*Cell, linkByLink bool, o *ChangeOptions) (*Begin, error) {
	port, err := h.Engine.Port()
	if err != nil {
		return nil, err
	}
	b, err := h.begin(&port, manager, cells, o)
	if err != nil {
		return nil, err
	}
	b.LinkByLink = linkByLink
	if err := h.provePorts(ctx, p, f, live, &port, b); err != nil {
		return nil, err
	}
	if o.Stage != "" {
		b.Staged, err = newStaged(o.Stage, o.Reload, live, cells)
	}
	return b, err
}

// checkCertificate checks the certificate of a plan, in addition to the proof of the
// order in which the change is applied.
func (h *Host) checkCertificate(ctx context.Context, p *change.Plan, live *routes.Routes, b *Begin) error {
	t := &change.Tables{Live: live}
	h.levels(b.Levels).InForce(t, h.Engine)
	if _, err := readAdaptivity(ctx, h.Engine, t); err != nil {
		return err
	}
	_, err := p.CheckCertificate(ctx, t)
	if failed := new(certificate.FailureError); errors.As(err, &failed) {
		return &order.Refusal{Round: -1, Reason: failed.Error()}
	}
	return err
}
