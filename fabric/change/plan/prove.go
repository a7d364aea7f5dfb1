package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change/order"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

// Report is what was found out about a plan when it was made. It is for people:
// whoever carries the plan out finds out anew.
type Report struct {
	OK     bool
	Reason string // why not; "" if OK
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
	paths, err := in.New.Rerouted(ctx, in.Old, func(p *fabric.Port) *fabric.Port { return p })
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
	for _, round := range s.Rounds {
		switches := map[int]bool{}
		for _, b := range round.Blocks {
			switches[b.Switch] = true
		}
		r.Rounds = append(r.Rounds, Round{Blocks: len(round.Blocks), Switches: len(switches), Lanes: round.Lanes, Drain: round.Drain})
	}
	return r, nil
}

// notJudged is what no proof covers, besides what order.Plan tells.
func (p *Plan) notJudged(g *routing.Graph) []string {
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
		parts = append(parts, fmt.Sprintf("%s on %s in %s, %s", fabric.Plural(blocks, "block", "blocks"), fabric.Plural(len(switches), "switch", "switches"), fabric.Plural(len(r.Rounds), "round", "rounds"), wait))
	}
	others, nodes := 0, map[mad.GUID]bool{}
	for _, c := range changes {
		if c.Attr != mad.AttrLinearForwardingTable {
			others++
			nodes[c.Target.GUID] = true
		}
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%s on %s", fabric.Plural(others, "other Set", "other Sets"), fabric.Plural(len(nodes), "node", "nodes")))
		if len(r.Rounds) == 0 {
			parts[0] = strings.Replace(parts[0], "other ", "", 1)
		}
	}
	if len(r.Rounds) > 0 {
		parts = append(parts, fabric.Plural(int(r.Pairs), "pair", "pairs")+" rerouted", "loop-free and credit-loop-free at every step, whatever the order within a round")
	} else {
		parts = append(parts, "no forwarding table changes")
	}
	return "ok: " + strings.Join(parts, "; ")
}
