package change

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	r, in, s, err := p.prove(ctx, t)
	if err != nil {
		return err
	}
	p.Report, p.Recorded, p.Certificate = r, nil, nil
	if s == nil || !r.OK {
		return nil
	}
	c, err := p.certificate(in, s)
	if err != nil {
		return err
	}
	err = certificate.Make(ctx, p.subnet(t.Live, t.Adaptive, in.Old.SL2VL, func(from int, to mad.LID) uint16 {
		return in.SLs | 1<<in.Old.SL.Of(from, to) | 1<<in.New.SL.Of(from, to)
	}), c)
	var failed *certificate.FailureError
	if errors.As(err, &failed) {
		r.OK, r.Reason = false, "order of writes found, but no certificate: "+failed.Reason
		return nil
	}
	if err == nil {
		p.Certificate = c
	}
	return err
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
	return certificate.Check(ctx, p.subnet(&live, t.Adaptive, live.SL2VL, func(from int, to mad.LID) uint16 {
		if live.SL == nil {
			return allSLs
		}
		return 1 << live.SL.Of(from, to)
	}), c)
}

// certificate returns the certificate of a schedule, without the proof.
func (p *Plan) certificate(in *order.Input, s *order.Schedule) (*certificate.Certificate, error) {
	g := in.Old.Graph()
	changes := p.Changes()
	at, left := map[Place]int{}, map[int]bool{}
	for i := range changes {
		if changes[i].Attr == mad.AttrLinearForwardingTable {
			at[changes[i].Place()], left[i] = i, true
		}
	}
	c := &certificate.Certificate{Lanes: 1, AcceptCreditLoops: s.Figures.Cycle != nil}
	if in.Old.SL2VL != nil || in.New.SL2VL != nil {
		c.Lanes = mad.DropVL
	}
	for r := range s.Rounds {
		round := &s.Rounds[r]
		drain := (round.Drain + time.Millisecond - 1).Truncate(time.Millisecond) // as files have it
		writes := map[int]certificate.Block{}
		for i := range round.Blocks {
			b := &round.Blocks[i]
			n := g.Switches()[b.Switch]
			number, ok := at[placeOf(mad.AttrLinearForwardingTable, uint32(b.Number), n.GUID(), 0)]
			if !ok {
				return nil, fmt.Errorf("the order writes block %d of %s, which the plan does not contain", b.Number, n.Label())
			}
			write := certificate.Block{Change: number}
			if string(b.Entries[:]) != string(changes[number].New) {
				write.Entries = b.Entries[:]
			}
			writes[number] = write
			delete(left, number)
		}
		c.Rounds = append(c.Rounds, certificate.Round{Lanes: round.Lanes, Blocks: sortedBlocks(writes), Drain: drain})
	}
	if len(left) > 0 { // blocks that no path uses are not ordered
		writes := map[int]certificate.Block{}
		for i := range left {
			writes[i] = certificate.Block{Change: i}
		}
		c.Rounds = append(c.Rounds, certificate.Round{Blocks: sortedBlocks(writes)})
	}
	return c, nil
}

func sortedBlocks(writes map[int]certificate.Block) []certificate.Block {
	list := make([]certificate.Block, 0, len(writes))
	for _, number := range slices.Sorted(maps.Keys(writes)) {
		list = append(list, writes[number])
	}
	return list
}

// subnet returns the subnet against which a certificate of p is made or checked.
func (p *Plan) subnet(live *routes.Routes, adaptivity []*adaptive.Switch, lanes *routes.SL2VL, levels func(from int, to mad.LID) uint16) *certificate.Subnet {
	g := live.Graph()
	sub := &certificate.Subnet{
		Fabric:  g.Fabric(),
		Choices: choicesOf(g, adaptivity),
		Table:   func(sw *fabric.Node) []uint8 { return live.Row(g.SwitchOf(sw)) },
		VL:      func(sw *fabric.Node, in, out, sl uint8) uint8 { return lanes.VL(g.SwitchOf(sw), in, out, sl) },
		Levels:  func(from *fabric.Port, to mad.LID) uint16 { return levels(g.TerminalOf(from), to) },
	}
	for _, c := range p.Changes() {
		sub.Changes = append(sub.Changes, certificate.Change{Attr: c.Attr, Modifier: c.Modifier, Node: c.Target.GUID, Old: c.Set.Old, New: c.New})
	}
	return sub
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
