package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change/order"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

// Report is the result of the proof when a plan was made. It is for people: whoever
// applies the plan computes order and proof again.
type Report struct {
	OK     bool
	Reason string // the reason if not OK; the condition if OK; "": none
	// Rounds are those of the forwarding tables.
	Rounds []Round
	// Pairs take other links at the end, Lost no longer have a path, Gained had no
	// path.
	Pairs, Lost, Gained int64
	// LoadBefore and LoadAfter are the highest number of pairs on a link; 0 where Pairs
	// is.
	LoadBefore, LoadAfter int64
	// CreditLoop describes the credit loop that may arise during the change, and was
	// accepted; "": none.
	CreditLoop string
	// Effect is that of the links that go down; nil: none do.
	Effect    *Effect
	NotJudged []string
}

// Round is a round of writes: in any order, all of them read back before the next.
type Round struct {
	Blocks, Switches int
	Lanes            bool          // of SL2VL
	Drain            time.Duration // how long to wait after it
}

// Prove finds an order for p on the fabric whose tables are t's, and reports the
// result. The error is the end of ctx, or that p and t are of different fabrics.
func (p *Plan) Prove(ctx context.Context, t *Tables) (*Report, error) {
	r, _, _, err := p.prove(ctx, t)
	return r, err
}

// prove also returns the order, if there is one that is safe, and its input.
func (p *Plan) prove(ctx context.Context, t *Tables) (*Report, *order.Input, *order.Schedule, error) {
	r := &Report{OK: true}
	if reason := p.checkPorts(t.Live.Graph().Fabric()); reason != "" {
		r.OK, r.Reason = false, reason
	}
	r.NotJudged = append(p.notJudged(t.Live.Graph()), t.Notes...)
	in, s, err := t.Order(ctx, p.Writes())
	var refused *order.Refusal
	if err != nil && !errors.As(err, &refused) {
		return nil, nil, nil, err
	}
	if err := p.predict(ctx, r, t, in.New); err != nil {
		return nil, nil, nil, err
	}
	if in.New == nil {
		return r, nil, nil, nil
	}
	paths, err := traffic.CountRerouted(ctx, in.New, in.Old, func(p *fabric.Port) *fabric.Port { return p })
	if err != nil {
		return nil, nil, nil, err
	}
	r.Pairs, r.LoadBefore, r.LoadAfter = paths.Pairs, paths.Before, paths.After
	const longest = 8192 // bytes
	if refused != nil {
		r.OK = false
		r.Reason = strings.TrimPrefix(r.Reason+"; "+refused.Error(), "; ")
		r.Reason = r.Reason[:min(len(r.Reason), longest)]
		return r, nil, nil, nil
	}
	r.Pairs, r.Lost, r.Gained = s.Figures.Pairs, s.Figures.Lost, s.Figures.Gained
	r.NotJudged = append(r.NotJudged, s.Figures.Unjudged...)
	r.NotJudged = append(r.NotJudged, t.adaptiveNotes(&in)...)
	r.NotJudged = append(r.NotJudged, inactive(t.Live.Graph())...)
	if in.Old.SL2VL != nil || t.Target != nil {
		r.NotJudged = append(r.NotJudged, t.basis()...)
	}
	if t.OnTarget {
		r.Reason = "where paths have the service levels of " + t.target()
	}
	if loop := s.Figures.Cycle; loop != nil {
		r.CreditLoop = fmt.Sprintf("during the change packets may deadlock in a credit loop of %d links, such as %v, which was accepted", len(loop), loop[0])
	}
	for _, round := range s.Rounds {
		switches := map[int]bool{}
		for _, b := range round.Blocks {
			switches[b.Switch] = true
		}
		r.Rounds = append(r.Rounds, Round{Blocks: len(round.Blocks), Switches: len(switches), Lanes: round.Lanes, Drain: round.Drain})
	}
	return r, &in, s, nil
}

// inactive returns ports of switches with a link that does not forward yet.
func inactive(g *graph.Graph) []string {
	n, first := 0, ""
	for _, sw := range g.Switches() {
		for p := range sw.Ports() {
			if p.Peer() == nil || p.Info() == nil || p.Info().PortState == mad.PortStateActive {
				continue
			}
			if n++; n == 1 {
				first = fmt.Sprintf("%s (%v)", p.Name(), p.Info().PortState)
			}
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("links that are up but not active, assumed to be active: %s of switches, such as %s", plural.Count(n, "port", "ports"), first)}
}

// basis describes how the service levels of packets are known.
func (t *Tables) basis() (notes []string) {
	switch {
	case t.OnTarget:
		notes = append(notes, fmt.Sprintf("service levels: assumes only those of %s, because with others packets may deadlock: before the change is applied, the subnet administrator must assign them, and hosts must query their paths again (change plan --sl-out FILE writes them, change apply --sl FILE uses them)", t.target()))
	case t.Basis != "":
		notes = append(notes, "service levels: "+t.Basis)
	}
	switch {
	case t.Target == nil:
		return notes
	case !t.OnTarget && (t.Live.SL.Any() || t.Target.SL.Any()):
		notes = append(notes, fmt.Sprintf("service levels: also assumes those of %s, which paths have after the change: the subnet administrator must assign them (change plan --sl-out FILE writes them)", t.target()))
	}
	return append(notes, "VL arbitration: the share of each virtual lane of the links")
}

// target describes the source of the target tables, and the service levels of its
// paths.
func (t *Tables) target() string {
	var list []string
	used := t.Target.SL.Used()
	for sl := range mad.ServiceLevels {
		if used>>sl&1 != 0 {
			list = append(list, fmt.Sprint(sl))
		}
	}
	return fmt.Sprintf("%s (%s)", cmp.Or(t.Target.Engine, "the new tables"), strings.Join(list, ", "))
}

// notJudged lists what no proof covers, besides the list of order.Plan.
func (p *Plan) notJudged(g *graph.Graph) []string {
	var notes []string
	kinds := map[string]bool{}
	changes := p.Changes()
	judged := []*mad.Attribute{mad.AttrLinearForwardingTable, mad.AttrSwitchInfo}
	if ofSwitches(changes, g) {
		judged = append(judged, mad.AttrSLtoVLMappingTable)
	}
	for _, c := range changes {
		if !slices.Contains(judged, c.Attr) {
			kinds[c.Attr.Name] = true
		}
	}
	for name := range kinds {
		notes = append(notes, "the effect of "+name+" on its users")
	}
	slices.Sort(notes)
	return notes
}
