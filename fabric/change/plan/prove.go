package plan

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

// Report is what was found out about a plan when it was made. It is for people:
// whoever carries the plan out finds out anew.
type Report struct {
	OK     bool
	Reason string // why not; if OK, on what condition; "": on none
	// Rounds are those of the forwarding tables.
	Rounds []Round
	// Pairs take other links in the end, Lost have no path any more, Gained have one
	// that had none.
	Pairs, Lost, Gained int64
	// LoadBefore and LoadAfter are how many pairs share the link that most do; 0 where
	// Pairs is.
	LoadBefore, LoadAfter int64
	// CreditLoop says which credit loop may arise on the way, and was accepted; "": none.
	CreditLoop string
	NotJudged  []string
}

// Round is a round of writes: in any order, all of them read back before the next.
type Round struct {
	Blocks, Switches int
	Lanes            bool          // of SL2VL
	Drain            time.Duration // what is waited after it
}

// Prove finds an order for p on the fabric whose tables are t's, and says what was found
// out. The error is the end of ctx, or that p and t are of different fabrics.
func (p *Plan) Prove(ctx context.Context, t *Tables) (*Report, error) {
	r, _, _, err := p.prove(ctx, t)
	return r, err
}

// prove returns the order too, if there is one that is safe, and what it was found for.
func (p *Plan) prove(ctx context.Context, t *Tables) (*Report, *order.Input, *order.Schedule, error) {
	r := &Report{OK: true}
	if reason := p.checkPorts(t.Live.Graph().Fabric()); reason != "" {
		r.OK, r.Reason = false, reason
	}
	r.NotJudged = p.notJudged(t.Live.Graph())
	in, s, err := t.Order(ctx, p.Writes())
	var refused *order.Refusal
	if err != nil && !errors.As(err, &refused) {
		return nil, nil, nil, err
	}
	if err := p.throughDown(ctx, r, t.Live, in.New); err != nil {
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
	r.NotJudged = append(r.NotJudged, inactive(t.Live.Graph())...)
	if in.Old.SL2VL != nil || t.Target != nil {
		r.NotJudged = append(r.NotJudged, t.basis()...)
	}
	if t.OnTarget {
		r.Reason = "where paths have the service levels of " + t.target()
	}
	if loop := s.Figures.Cycle; loop != nil {
		r.CreditLoop = fmt.Sprintf("packets may deadlock in a credit loop of %d links on the way, as in %v, which was accepted", len(loop), loop[0])
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

// inactive are ports of switches with a link that forwards nothing yet.
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
	return []string{fmt.Sprintf("links that are up and not active, which count as if they were: %s of switches, as %s", plural.Count(n, "port", "ports"), first)}
}

// basis is by what packets have lanes, in words.
func (t *Tables) basis() (notes []string) {
	switch {
	case t.OnTarget:
		notes = append(notes, fmt.Sprintf("service levels: those of %s alone are taken to be in use, for with others packets may deadlock: the subnet administrator must give them out, and hosts must have asked for their paths again, before the change is made (change plan --sl-out FILE writes them, and change apply --sl FILE takes them to be in use)", t.target()))
	case t.Basis != "":
		notes = append(notes, "service levels: "+t.Basis)
	}
	switch {
	case t.Target == nil:
		return notes
	case !t.OnTarget && (t.Live.SL.Any() || t.Target.SL.Any()):
		notes = append(notes, fmt.Sprintf("service levels: those of %s are taken to be in use too, which paths are to have: the subnet administrator must give them out (change plan --sl-out FILE writes them)", t.target()))
	}
	return append(notes, "VL arbitration: whether each virtual lane has its share of the links")
}

// target is what made the target, and the service levels that its paths have.
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

// notJudged is what no proof covers, besides what order.Plan tells.
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
		notes = append(notes, "what "+name+" does to those who use it")
	}
	slices.Sort(notes)
	return notes
}
