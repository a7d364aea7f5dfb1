package change

import (
	"context"
	"errors"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/change/order"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Certify proves p as Prove does, and keeps the report and the certificate in p.
func (p *Plan) Certify(ctx context.Context, t *Tables) error {
	r, in, c, err := p.prove(ctx, t)
	if err != nil {
		return err
	}
	p.Report, p.Recorded, p.Certificate = r, nil, nil
	if c == nil || !r.OK {
		return nil
	}
	result, err := t.Certify(ctx, in, p.Changes(), c)
	var failed *certificate.FailureError
	if errors.As(err, &failed) {
		r.OK, r.Reason = false, "order of writes found, but no certificate: "+failed.Reason
		return nil
	}
	if err != nil {
		return err
	}
	if p.Certificate = c; result.OldLoop {
		r.OldLoop = OldLoopEnd(result.OldLoopUntil)
	}
	return nil
}

// Certify makes the proof of c, whose rounds are of an order that Order found for in, and
// checks it. The error is a *certificate.FailureError if there is no such proof.
func (t *Tables) Certify(ctx context.Context, in *order.Input, changes []certificate.Change, c *certificate.Certificate) (*certificate.Result, error) {
	sub := t.subnet(in.Old, in.Old.SL2VL, changes, func(from int, to mad.LID) uint16 {
		return in.SLs | 1<<in.Old.SL.Of(from, to) | 1<<in.New.SL.Of(from, to)
	})
	if err := certificate.Make(ctx, sub, c); err != nil {
		return nil, err
	}
	return certificate.Check(ctx, sub, c)
}

// ErrNoCertificate reports that a plan has no certificate: it was made by an older
// version.
var ErrNoCertificate = errors.New("the plan has no certificate: it was made by an older version, or no safe order was found; make the plan again")

// CheckCertificate checks the certificate of p against the fabric and the tables that t
// has. The error is a *certificate.FailureError if it does not hold, ErrNoCertificate, or
// why lanes or service levels, which it needs, cannot be read. A plan that changes neither
// forwarding tables nor SL2VL needs no certificate: the result is nil.
func (p *Plan) CheckCertificate(ctx context.Context, t *Tables) (*certificate.Result, error) {
	c := p.Certificate
	switch changes := p.ChangesTables(t.Live.Graph().Fabric()); {
	case c == nil && changes:
		return nil, ErrNoCertificate
	case c == nil:
		return nil, nil
	case !changes:
		return nil, &certificate.FailureError{Reason: "the plan changes no tables"}
	}
	return t.Check(ctx, p.Changes(), c)
}

// Check checks a certificate of changes against the fabric and the tables that t has. The
// error is a *certificate.FailureError if it does not hold, or why lanes or service levels,
// which it needs, cannot be read.
func (t *Tables) Check(ctx context.Context, changes []certificate.Change, c *certificate.Certificate) (*certificate.Result, error) {
	if c.EndOnly || c.AcceptLost {
		return nil, &certificate.FailureError{Reason: "it accepts lost packets, which only a reversal may"}
	}
	if err := t.unknownChoices(); err != nil {
		return nil, &certificate.FailureError{Reason: err.Error()}
	}
	live := *t.Live // lanes that only the certificate needs
	if c.Lanes == mad.DropVL {
		if t.Lanes == nil {
			return nil, errors.New("the certificate distinguishes virtual lanes, but the lanes of the switches are unknown")
		}
		if err := t.Lanes(ctx, &live); err != nil {
			return nil, err
		}
		if t.Levels != nil {
			var err error
			if live.SL, t.Basis, err = t.Levels(ctx, &live); err != nil {
				return nil, err
			}
		}
	}
	return certificate.Check(ctx, t.subnet(&live, live.SL2VL, changes, func(from int, to mad.LID) uint16 {
		if live.SL == nil {
			return allSLs
		}
		return 1 << live.SL.Of(from, to)
	}), c)
}

// Uncertified returns the rounds of an order that was found for in, as a certificate without
// the proof.
func Uncertified(in *order.Input, s *order.Schedule) *certificate.Certificate {
	c := &certificate.Certificate{Lanes: 1, Rounds: s.Rounds, AcceptCreditLoops: s.Figures.Cycle != nil, AcceptLost: in.AcceptLost}
	if in.Old.SL2VL != nil || in.New.SL2VL != nil {
		c.Lanes = mad.DropVL
	}
	for r := range c.Rounds {
		c.Rounds[r].Drain = (c.Rounds[r].Drain + time.Millisecond - 1).Truncate(time.Millisecond) // as files have it
	}
	return c
}

// subnet returns the subnet against which a certificate of changes is made or checked.
func (t *Tables) subnet(live *routes.Routes, lanes *routes.SL2VL, changes []certificate.Change, levels func(from int, to mad.LID) uint16) *certificate.Subnet {
	g := live.Graph()
	return &certificate.Subnet{
		Fabric:  g.Fabric(),
		Choices: choicesOf(g, t.Adaptive),
		Table:   func(sw *fabric.Node) []uint8 { return live.Row(g.SwitchOf(sw)) },
		VL:      func(sw *fabric.Node, in, out, sl uint8) uint8 { return lanes.VL(g.SwitchOf(sw), in, out, sl) },
		Levels:  func(from *fabric.Port, to mad.LID) uint16 { return levels(g.TerminalOf(from), to) },
		Changes: changes,
	}
}

// choicesOf returns the choices of switches where adaptive routing is on; nil: it is not
// known to be on.
func choicesOf(g *graph.Graph, list []*adaptive.Switch) func(sw *fabric.Node) func(to mad.LID) []uint8 {
	if list == nil {
		return nil
	}
	return func(sw *fabric.Node) func(to mad.LID) []uint8 {
		s := g.SwitchOf(sw)
		if s < 0 || !list[s].Active() {
			return nil
		}
		a, down := list[s], routes.Down(g, s)
		return func(to mad.LID) []uint8 { return slices.Collect(a.Every(to, down).All()) }
	}
}
