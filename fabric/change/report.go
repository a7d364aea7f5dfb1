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
// applies the plan relies on the certificate alone, which is checked again.
type Report struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason"` // the reason if not OK; the condition if OK; "": none
	// Rounds are the extents of the rounds of forwarding tables and SL2VL.
	Rounds []Extent `json:"rounds" max:"65536"`
	// Pairs take other links at the end, Lost no longer have a path, Gained had no
	// path.
	Pairs  int64 `json:"pairs"`
	Lost   int64 `json:"lost"`
	Gained int64 `json:"gained"`
	// LoadBefore and LoadAfter are the largest loads of links, in pairs, per capacity where rates differ; 0 if Pairs is 0.
	LoadBefore int64 `json:"load_before"`
	LoadAfter  int64 `json:"load_after"`
	// CreditLoop describes the credit loop that may arise during the change, and was
	// accepted; "": none.
	CreditLoop string `json:"credit_loop,omitempty" optional:"no credit loop was accepted"`
	// OldLoop is how long the credit loop of the tables in force remains: "until round 2";
	// "": they have none.
	OldLoop string `json:"old_credit_loop,omitempty" optional:"the tables in force have no credit loop"`
	// Effect is the effect of the links that go down; nil: no link does.
	Effect    *Effect  `json:"effect,omitempty" optional:"no link goes down"`
	NotJudged []string `json:"not_judged" max:"100"`
}

// Extent is how much a round writes.
type Extent struct {
	Blocks, Switches int           // of forwarding tables
	Lanes            bool          // it writes SL2VL
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
		switch {
		case r.CreditLoop != "":
			proven = "loop-free" + always + "; " + r.CreditLoop
		case r.OldLoop != "":
			proven = "loop-free" + always + "; " + BeyondOldLoop(r.OldLoop)
		}
		rerouted := plural.Count(int(r.Pairs), "pair", "pairs") + " rerouted"
		if r.Pairs == 0 && blocks > 0 && len(p.Disables) == 0 {
			rerouted += ": the entries that change lead to switches, or no packets between hosts take them"
		}
		parts = append(parts, rerouted, proven)
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
	parts := p.extent(changes, blocks, p.Extents())
	if text := p.Disabled(); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(append(parts, "not verified here"), "; ")
}

// Extents returns the extents of the rounds of the certificate; nil without one.
func (p *Plan) Extents() []Extent {
	if p.Certificate == nil {
		return nil
	}
	return extentsOf(p.Certificate.Rounds, p.Changes())
}

func extentsOf(rounds []certificate.Round, changes []certificate.Change) (list []Extent) {
	for _, r := range rounds {
		x, switches := Extent{Drain: r.Drain}, map[mad.GUID]bool{}
		for _, w := range r.Writes {
			switch c := &changes[w.Change]; c.Attr {
			case mad.AttrLinearForwardingTable:
				x.Blocks++
				switches[c.Node] = true
			case mad.AttrSLtoVLMappingTable:
				x.Lanes = true
			}
		}
		x.Switches = len(switches)
		list = append(list, x)
	}
	return list
}

// Verified describes in one line a plan whose certificate holds. r is what it proves;
// nil: p changes no tables.
func (p *Plan) Verified(r *certificate.Result) string {
	if r == nil {
		return "nothing to certify: no forwarding table changes"
	}
	rounds, blocks := p.Extents(), 0
	for _, round := range rounds {
		blocks += round.Blocks
	}
	const always = " at every step, whatever the order within a round"
	parts := append([]string{"ok: the certificate holds"}, p.extent(p.Changes(), blocks, rounds)...)
	if text := p.Disabled(); text != "" {
		parts = append(parts, text)
	}
	parts = append(parts, plural.Count(r.LIDs, "LID changes", "LIDs change"))
	if p.Certificate.AcceptCreditLoops {
		return strings.Join(append(parts, "no packet loops or is lost"+always, "credit loops were accepted: packets may deadlock"), "; ")
	}
	if r.OldLoop {
		return strings.Join(append(parts, "no packet loops or is lost"+always, BeyondOldLoop(OldLoopEnd(r.OldLoopUntil))), "; ")
	}
	return strings.Join(append(parts, "no packet loops or is lost, and no credit loop arises,"+always), "; ")
}

// OldLoopEnd describes how long the credit loop of the tables in force remains: until the
// end of a round, from 1, or with 0 also by the new tables.
func OldLoopEnd(round int) string {
	if round == 0 {
		return "after the change"
	}
	return fmt.Sprintf("until round %d", round)
}

// BeyondOldLoop describes a change of tables that have a credit loop, which remains as
// OldLoopEnd returns.
func BeyondOldLoop(end string) string {
	return "no credit loop beyond that of the tables in force, which remains " + end
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

// prove also returns the rounds, if there are any that are safe, and the input of their order.
func (p *Plan) prove(ctx context.Context, t *Tables) (*Report, *order.Input, *certificate.Certificate, error) {
	r := &Report{OK: true}
	reason, err := p.checkPorts(ctx, t.Live.Graph().Fabric(), t.PKeys)
	if err != nil {
		return nil, nil, nil, err
	}
	if reason != "" {
		r.OK, r.Reason = false, reason
	}
	r.NotJudged = append(p.notJudged(t.Live.Graph()), t.Notes...)
	changes := p.Changes()
	in, s, err := t.Order(ctx, changes)
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
	if s.Figures.OldCycle {
		r.OldLoop = OldLoopEnd(s.Figures.OldCycleUntil)
	}
	c := Uncertified(&in, s)
	r.Rounds = extentsOf(c.Rounds, changes)
	return r, &in, c, nil
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
func (p *Plan) extent(changes []certificate.Change, blocks int, rounds []Extent) (parts []string) {
	switches, others, nodes := map[mad.GUID]bool{}, 0, map[mad.GUID]bool{}
	for _, c := range changes {
		if c.Attr == mad.AttrLinearForwardingTable {
			switches[c.Node] = true
		} else {
			others++
			nodes[c.Node] = true
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
