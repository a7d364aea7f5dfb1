package change

import (
	"fmt"
	"strings"
	"time"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

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

// NotCovered lists what the certificate does not cover, after its check with t.
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
