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
	"fabsh/fabric/change/certificate"
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
	// Rounds are the rounds of writes of forwarding tables and SL2VL.
	Rounds []Round
	// Pairs take other links at the end, Lost no longer have a path, Gained had no
	// path.
	Pairs, Lost, Gained int64
	// LoadBefore and LoadAfter are the highest numbers of pairs on a link; 0 if Pairs is 0.
	LoadBefore, LoadAfter int64
	// CreditLoop describes the credit loop that may arise during the change, and was
	// accepted; "": none.
	CreditLoop string
	// Effect is the effect of the links that go down; nil: no link does.
	Effect    *Effect
	NotJudged []string
}

// Round is a round of writes: in any order, all of them read back before the next.
type Round struct {
	Blocks, Switches int
	Lanes            bool          // of SL2VL
	Drain            time.Duration // how long to wait after it
}

// Prove finds an order for p on the fabric of t, and reports the result. The error is the
// end of ctx, or that p and t are of different fabrics.
func (p *Plan) Prove(ctx context.Context, t *Tables) (*Report, error) {
	r, _, _, err := p.prove(ctx, t)
	return r, err
}

// Line returns the verdict in one line: what is written, in which order, and its
// effect.
func (p *Plan) Line(r *Report) string {
	if !r.OK {
		return "not ok: " + r.Reason
	}
	changes := p.Changes()
	if len(changes) == 0 {
		return "ok: nothing to change"
	}
	blocks := 0
	for _, round := range r.Rounds {
		blocks += round.Blocks
	}
	parts := p.extent(changes, blocks, r.Rounds)
	if len(r.Rounds) > 0 {
		always := " at every step, whatever the order within a round"
		if len(p.Disables) > 0 {
			always += " and the choices of adaptive routing"
		}
		proven := "loop-free and credit-loop-free" + always
		if r.CreditLoop != "" {
			proven = "loop-free" + always + "; " + r.CreditLoop
		}
		parts = append(parts, plural.Count(int(r.Pairs), "pair", "pairs")+" rerouted", proven)
	} else {
		parts = append(parts, "no forwarding table changes")
	}
	if text := p.Disabled(); text != "" {
		parts = append(parts, text)
	}
	if r.Reason != "" {
		parts = append(parts, r.Reason)
	}
	if p.Choice != nil {
		parts = append(parts, p.Choice.String())
	}
	return "ok: " + strings.Join(parts, "; ")
}

// Unverified describes in one line a plan that was read from a file: its writes, by its
// Sets, and the rounds of its certificate.
func (p *Plan) Unverified() string {
	changes, blocks := p.Changes(), 0
	for _, c := range changes {
		if c.Attr == mad.AttrLinearForwardingTable {
			blocks++
		}
	}
	if len(changes) == 0 {
		return "nothing to change"
	}
	parts := p.extent(changes, blocks, p.CertifiedRounds())
	if text := p.Disabled(); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(append(parts, "not verified here"), "; ")
}

// CertifiedRounds returns the rounds of the certificate; nil without one.
func (p *Plan) CertifiedRounds() (rounds []Round) {
	if p.Certificate == nil {
		return nil
	}
	changes := p.Changes()
	for _, r := range p.Certificate.Rounds {
		switches := map[mad.GUID]bool{}
		for _, b := range r.Blocks {
			if b.Change < len(changes) { // the file may have been edited
				switches[changes[b.Change].Target.GUID] = true
			}
		}
		rounds = append(rounds, Round{Blocks: len(r.Blocks), Switches: len(switches), Lanes: r.Lanes, Drain: r.Drain})
	}
	return rounds
}

// Verified describes in one line a plan whose certificate holds. r is what it proves;
// nil: p changes no tables.
func (p *Plan) Verified(r *certificate.Result) string {
	if r == nil {
		return "nothing to certify: no forwarding table changes"
	}
	blocks := 0
	for _, round := range p.Certificate.Rounds {
		blocks += len(round.Blocks)
	}
	const always = " at every step, whatever the order within a round"
	parts := append([]string{"ok: the certificate holds"}, p.extent(p.Changes(), blocks, p.CertifiedRounds())...)
	if text := p.Disabled(); text != "" {
		parts = append(parts, text)
	}
	parts = append(parts, plural.Count(r.LIDs, "LID changes", "LIDs change"))
	if p.Certificate.AcceptCreditLoops {
		return strings.Join(append(parts, "no packet loops or is lost"+always, "credit loops were accepted: packets may deadlock"), "; ")
	}
	return strings.Join(append(parts, "no packet loops or is lost, and no credit loop arises,"+always), "; ")
}

// NotCovered returns what the certificate does not cover, after its check with t.
func (p *Plan) NotCovered(t *Tables) (notes []string) {
	if p.Certificate == nil {
		return nil
	}
	if notes = append(p.notJudged(t.Live.Graph()), t.Notes...); t.Adaptive == nil {
		notes = append(notes, "adaptive routing: not determined; only the forwarding tables are judged")
	}
	if len(p.Disables) > 0 {
		notes = append(notes, disableNote)
	}
	notes = append(notes, "credit loops of management packets (GMPs) to and from switches")
	if t.Basis != "" {
		notes = append(notes, "service levels: "+t.Basis)
	}
	return notes
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
	r.NotJudged = append(r.NotJudged, inactiveLinks(t.Live.Graph())...)
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

// inactiveLinks returns ports of switches with a link that does not forward yet.
func inactiveLinks(g *graph.Graph) []string {
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

// notJudged returns what no proof covers, besides Figures.Unjudged of package order.
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

// extent describes how much is written: blocks of forwarding tables in rounds, and
// other Sets.
func (p *Plan) extent(changes []Change, blocks int, rounds []Round) (parts []string) {
	switches, others, nodes := map[mad.GUID]bool{}, 0, map[mad.GUID]bool{}
	for _, c := range changes {
		if c.Attr == mad.AttrLinearForwardingTable {
			switches[c.Target.GUID] = true
		} else {
			others++
			nodes[c.Target.GUID] = true
		}
	}
	written := "virtual lanes"
	if blocks > 0 {
		written = fmt.Sprintf("%s on %s", plural.Count(blocks, "block", "blocks"), plural.Count(len(switches), "switch", "switches"))
	}
	switch waits := time.Duration(0); {
	case len(rounds) > 0:
		for _, round := range rounds {
			waits += round.Drain
		}
		wait := "no waits"
		if waits > 0 {
			wait = fmt.Sprintf("%v of waits", waits.Round(time.Millisecond))
		}
		parts = append(parts, fmt.Sprintf("%s in %s, %s", written, plural.Count(len(rounds), "round", "rounds"), wait))
	case blocks > 0:
		parts = append(parts, written)
	}
	if others > 0 {
		set, sets := "other Set", "other Sets"
		if len(parts) == 0 {
			set, sets = "Set", "Sets"
		}
		parts = append(parts, fmt.Sprintf("%s on %s", plural.Count(others, set, sets), plural.Count(len(nodes), "node", "nodes")))
	}
	return parts
}
