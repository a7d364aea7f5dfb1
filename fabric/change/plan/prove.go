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
	NotJudged             []string
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
	r := &Report{OK: true}
	if reason := p.checkPorts(t.Live.Graph().Fabric()); reason != "" {
		r.OK, r.Reason = false, reason
	}
	r.NotJudged = p.notJudged(t.Live.Graph())
	in, s, err := t.Order(ctx, p.Writes())
	var refused *order.Refusal
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	if err := p.throughDown(ctx, r, t.Live, in.New); err != nil {
		return nil, err
	}
	if in.New == nil {
		return r, nil
	}
	paths, err := traffic.CountRerouted(ctx, in.New, in.Old, func(p *fabric.Port) *fabric.Port { return p })
	if err != nil {
		return nil, err
	}
	r.Pairs, r.LoadBefore, r.LoadAfter = paths.Pairs, paths.Before, paths.After
	const longest = 8192 // bytes
	if refused != nil {
		r.OK = false
		r.Reason = strings.TrimPrefix(r.Reason+"; "+refused.Error(), "; ")
		r.Reason = r.Reason[:min(len(r.Reason), longest)]
		return r, nil
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
	for _, round := range s.Rounds {
		switches := map[int]bool{}
		for _, b := range round.Blocks {
			switches[b.Switch] = true
		}
		r.Rounds = append(r.Rounds, Round{Blocks: len(round.Blocks), Switches: len(switches), Lanes: round.Lanes, Drain: round.Drain})
	}
	return r, nil
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

// Line is the verdict in one line: what is written, in which order, what it does.
func (p *Plan) Line(r *Report) string {
	if !r.OK {
		return "not ok: " + r.Reason
	}
	changes := p.Changes()
	if len(changes) == 0 {
		return "ok: nothing to change"
	}
	blocks, waits := 0, time.Duration(0)
	switches := map[mad.GUID]bool{}
	for _, c := range changes {
		if c.Attr == mad.AttrLinearForwardingTable {
			switches[c.Target.GUID] = true
		}
	}
	for _, round := range r.Rounds {
		blocks += round.Blocks
		waits += round.Drain
	}
	var parts []string
	if len(r.Rounds) > 0 {
		wait := "no waits"
		if waits > 0 {
			wait = fmt.Sprintf("%v of waits", waits.Round(time.Millisecond))
		}
		what := fmt.Sprintf("%s on %s", plural.Count(blocks, "block", "blocks"), plural.Count(len(switches), "switch", "switches"))
		if blocks == 0 {
			what = "virtual lanes"
		}
		parts = append(parts, fmt.Sprintf("%s in %s, %s", what, plural.Count(len(r.Rounds), "round", "rounds"), wait))
	}
	others, nodes := 0, map[mad.GUID]bool{}
	for _, c := range changes {
		if c.Attr != mad.AttrLinearForwardingTable {
			others++
			nodes[c.Target.GUID] = true
		}
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%s on %s", plural.Count(others, "other Set", "other Sets"), plural.Count(len(nodes), "node", "nodes")))
		if len(r.Rounds) == 0 {
			parts[0] = strings.Replace(parts[0], "other ", "", 1)
		}
	}
	if len(r.Rounds) > 0 {
		parts = append(parts, plural.Count(int(r.Pairs), "pair", "pairs")+" rerouted", "loop-free and credit-loop-free at every step, whatever the order within a round")
	} else {
		parts = append(parts, "no forwarding table changes")
	}
	if r.Reason != "" {
		parts = append(parts, r.Reason)
	}
	return "ok: " + strings.Join(parts, "; ")
}
