package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/order"
	"fabsh/fabric/routing"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Proven orders the cells of a change of f: forwarding tables as order.Plan does, and
// proves. live are the tables of f, if they are known; nil: they are read. With back
// it accepts what is no worse than to stay.
func Proven(e *engine.Engine, f *fabric.Fabric, live *routing.Routes, cells []*Cell, back bool) func(context.Context, [][]byte, [][]byte) ([]Round, error) {
	return Ordered(cells, func(ctx context.Context, now, want [][]byte) ([]Round, error) {
		if live == nil {
			read, failed, err := change.ReadRoutes(ctx, e, f)
			if err != nil {
				return nil, err
			}
			if len(failed) > 0 {
				return nil, fmt.Errorf("the forwarding table of %s cannot be read, so nothing is proven: %w", failed[0].Switch.Label(), failed[0].Err)
			}
			live = read
		}
		t := &tables{engine: e, f: f, cells: cells, at: map[place]int{}}
		in, err := t.input(live, now, want, back)
		if err != nil {
			return nil, err
		}
		s, err := order.Plan(ctx, in)
		var refusal *order.Refusal
		if back && errors.As(err, &refusal) {
			// The tables of before are known to be good, those of now are not.
			return InOneRound(ctx, now, want)
		}
		if err != nil {
			return nil, err
		}
		return t.rounds(s, now, want)
	})
}

// tables matches cells with the blocks of routing.Routes.
type tables struct {
	engine *engine.Engine
	f      *fabric.Fabric
	cells  []*Cell
	graph  *routing.Graph
	at     map[place]int // the cell of a block
	lanes  []int         // the cells of SL2VL that change
}

// place is a block of a switch's forwarding table.
type place struct{ sw, block int }

// input is what order.Plan is asked.
func (t *tables) input(live *routing.Routes, now, want [][]byte, back bool) (in order.Input, err error) {
	t.graph = live.Graph()
	top := live.Top()
	for i, c := range t.cells {
		switch c.Attr {
		case mad.AttrSLtoVLMappingTable:
			if !bytes.Equal(now[i], want[i]) {
				t.lanes = append(t.lanes, i)
			}
		case mad.AttrLinearForwardingTable:
			for at := range want[i] {
				if lid := mad.LID(int(c.Modifier)*mad.LFTBlock + at); lid > top && want[i][at] != mad.NoPort {
					top = lid
				}
			}
		}
	}
	in.Old, in.New = live.UpTo(top), live.UpTo(top)
	for i, c := range t.cells {
		if c.Attr != mad.AttrLinearForwardingTable {
			continue
		}
		s := t.graph.SwitchByGUID(c.Node)
		if s < 0 {
			return in, fmt.Errorf("%s: the switch is not in the fabric as it was swept", c.Name)
		}
		t.at[place{s, int(c.Modifier)}] = i
		first := int(c.Modifier) * mad.LFTBlock
		if row := in.Old.Row(s); first < len(row) {
			copy(row[first:], now[i])
			copy(in.New.Row(s)[first:], want[i])
		}
	}
	in.AcceptCreditLoops, in.AcceptLost = back, back
	in.Drain = order.Drains(t.graph)
	local, err := t.engine.Port()
	for _, lid := range []mad.LID{local.SMLID, local.LID} {
		if lid != 0 {
			in.Last = append(in.Last, lid)
		}
	}
	return in, err
}

// rounds are the rounds of s, in cells.
func (t *tables) rounds(s *order.Schedule, now, want [][]byte) (rounds []Round, err error) {
	lanes := Round{}
	for _, i := range t.lanes {
		lanes.Steps = append(lanes.Steps, Step{i, want[i]})
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
			i, ok := t.at[place{b.Switch, b.Number}]
			if !ok {
				return nil, fmt.Errorf("the order writes block %d of %s, which is not in the change", b.Number, t.graph.Switches()[b.Switch].Label())
			}
			round.Steps = append(round.Steps, Step{i, bytes.Clone(b.Entries[:])})
		}
		rounds = append(rounds, round)
	}
	if lanes.Steps != nil { // no path uses them
		rounds = append([]Round{lanes}, rounds...)
	}
	// What no path uses, as the entries of LIDs that no port has, is not ordered.
	last := Round{}
	is := bytesOf(now)
	for _, r := range rounds {
		for _, s := range r.Steps {
			is[s.Cell] = s.Data
		}
	}
	for i, c := range t.cells {
		if c.Attr == mad.AttrLinearForwardingTable && !bytes.Equal(is[i], want[i]) {
			last.Steps = append(last.Steps, Step{i, want[i]})
		}
	}
	if last.Steps != nil {
		rounds = append(rounds, last)
	}
	return rounds, nil
}

func bytesOf(list [][]byte) [][]byte { return append([][]byte(nil), list...) }
