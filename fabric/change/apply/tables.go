package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/order"
	"fabsh/fabric/device"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Prover orders the cells of a change, or of its reversal, and proves the order of
// forwarding tables and virtual lanes.
type Prover struct {
	Engine *engine.Engine
	Fabric *fabric.Fabric
	// Live are the forwarding tables of Fabric; nil: they are read.
	Live   *routes.Routes
	Levels change.Levels
	Cells  []*Cell
	// Static are the switches whose adaptive routing the change disables.
	Static []mad.GUID
	// Back is set when the change is reverted. To stop in between would not be better
	// than losing paths that the old tables do not have, or than a credit loop that
	// resolves without intervention.
	Back bool
	// AcceptCreditLoops continues even if packets may deadlock.
	AcceptCreditLoops bool
	Log               func(text string)
}

// Order plans rounds from the current states of the cells to the wanted ones.
func (p *Prover) Order(ctx context.Context, now, want [][]byte) ([]Round, error) {
	local, err := p.Engine.Port()
	if err != nil {
		return nil, err
	}
	return Ordered(p.Cells, p.tables, newCuts(p.Fabric, p.Live, local.LID, local.SMLID).rank)(ctx, now, want)
}

// tables orders the forwarding tables and virtual lanes among the cells.
func (p *Prover) tables(ctx context.Context, now, want [][]byte) ([]Round, error) {
	if p.Live == nil {
		read, failed, err := device.ReadRoutes(ctx, p.Engine, p.Fabric)
		if err != nil {
			return nil, err
		}
		if len(failed) > 0 {
			return nil, fmt.Errorf("forwarding table of %s: cannot be read; nothing is proven: %w", failed[0].Switch.Label(), failed[0].Err)
		}
		p.Live = read
	}
	local, err := p.Engine.Port()
	if err != nil {
		return nil, err
	}
	t := change.Tables{Live: p.Live, Last: lastCut(&local), AcceptLost: p.Back, AcceptCreditLoops: p.AcceptCreditLoops}
	p.Levels.InForce(&t, p.Engine)
	if p.Back {
		t.Levels = p.levelsBack
	}
	var writes []change.Write
	for i, c := range p.Cells {
		if !p.Back || !bytes.Equal(now[i], want[i]) {
			writes = append(writes, change.Write{Attr: c.Attr, Modifier: c.Modifier, Node: c.Node, Label: c.Name, Old: now[i], New: want[i]})
		}
	}
	a, err := readAdaptivity(ctx, p.Engine, &t)
	if err == nil {
		err = p.checkStatic(a, writes)
	}
	if err != nil {
		return nil, err
	}
	in, s, err := t.Order(ctx, writes)
	if t.Basis != "" && !p.Back {
		p.Log("service levels: " + t.Basis)
	}
	if p.Back && !p.AcceptCreditLoops && change.CreditLoop(err) {
		if slices.Contains(in.Drain, 0) {
			return nil, fmt.Errorf("%w\nnot reverted automatically, because a switch holds packets for ever (HOQLife); fabsh change revert --accept-credit-loop-risk reverts it nevertheless", err)
		}
		t.AcceptCreditLoops = true
		in, s, err = t.Order(ctx, writes)
	}
	var refusal *order.Refusal
	if p.Back && errors.As(err, &refusal) && p.isWhole(want) {
		p.Log(fmt.Sprintf("no order of the reversal is safe at each step, so the old tables are written in one round: %v", err))
		return p.inOneRound(now, want), nil
	}
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, nil
	case s.Figures.Cycle != nil:
		p.Log(fmt.Sprintf("during the change packets may deadlock in a credit loop of %d links, until HOQLife drops them: %v", len(s.Figures.Cycle), s.Figures.Cycle[0]))
	}
	return p.rounds(s, now, want)
}

// isWhole reports whether all cells are restored. Tables that are restored in part may
// loop, so then an order must be proven.
func (p *Prover) isWhole(want [][]byte) bool {
	for i, c := range p.Cells {
		if !c.same(want[i], c.Old) {
			return false
		}
	}
	return true
}

// levelsBack returns the service levels of packets for a reversal: a missing file of them
// must not leave the change half reverted.
func (p *Prover) levelsBack(ctx context.Context, live *routes.Routes) (*routes.SL, string, error) {
	levels, basis, err := p.Levels.Of(ctx, live)
	if err == nil || ctx.Err() != nil {
		return levels, basis, err
	}
	p.Log(fmt.Sprintf("the service levels of paths cannot be read, so any may be in use: %v", err))
	return nil, err.Error(), nil
}

// inOneRound returns all forwarding tables and virtual lanes as one round.
func (p *Prover) inOneRound(now, want [][]byte) []Round {
	var r Round
	for i, c := range p.Cells {
		if c.routed() && !bytes.Equal(now[i], want[i]) {
			r.Steps = append(r.Steps, Step{i, want[i]})
		}
	}
	return []Round{r}
}

// routed reports whether tables orders the cell.
func (c *Cell) routed() bool {
	return c.Attr == mad.AttrLinearForwardingTable || c.Attr == mad.AttrSLtoVLMappingTable
}

// place is a block of a switch's forwarding table.
type place struct {
	node  mad.GUID
	block int
}

// rounds returns the rounds of s, in cells.
func (p *Prover) rounds(s *order.Schedule, now, want [][]byte) (rounds []Round, err error) {
	g := p.Live.Graph()
	at := map[place]int{}
	lanes := Round{}
	for i, c := range p.Cells {
		switch {
		case c.Attr == mad.AttrLinearForwardingTable:
			at[place{c.Node, int(c.Modifier)}] = i
		case c.Attr == mad.AttrSLtoVLMappingTable && !bytes.Equal(now[i], want[i]):
			lanes.Steps = append(lanes.Steps, Step{i, want[i]})
		}
	}
	for _, r := range s.Rounds {
		if r.Lanes {
			lanes.Drain = r.Drain
			rounds = append(rounds, lanes)
			lanes = Round{}
			continue
		}
		round := Round{Drain: r.Drain}
		for _, b := range r.Blocks {
			n := g.Switches()[b.Switch]
			i, ok := at[place{n.GUID(), b.Number}]
			if !ok {
				return nil, fmt.Errorf("the order writes block %d of %s, which is not in the change", b.Number, n.Label())
			}
			round.Steps = append(round.Steps, Step{i, bytes.Clone(b.Entries[:])})
		}
		rounds = append(rounds, round)
	}
	if lanes.Steps != nil { // those of channel adapters
		rounds = append([]Round{lanes}, rounds...)
	}
	// Entries that no path uses, as those of LIDs that no port has, are not ordered.
	last := Round{}
	is := slices.Clone(now)
	for _, r := range rounds {
		for _, s := range r.Steps {
			is[s.Cell] = s.Data
		}
	}
	for i, c := range p.Cells {
		if c.Attr == mad.AttrLinearForwardingTable && !bytes.Equal(is[i], want[i]) {
			last.Steps = append(last.Steps, Step{i, want[i]})
		}
	}
	if last.Steps != nil {
		rounds = append(rounds, last)
	}
	return rounds, nil
}
