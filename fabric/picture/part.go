package picture

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric"
)

// TierWords are tiers in a word, from the hosts up; there may be more tiers.
var TierWords = []string{"host", "leaf", "spine", "core"}

// Tiers are the nodes of f by their distance from the hosts, which are tier 0, each by
// name. Nodes without a path to a host are in none.
func Tiers(ctx context.Context, f *fabric.Fabric) ([][]*fabric.Node, error) {
	l, err := New(ctx, f, LadderOptions{})
	if err != nil {
		return nil, err
	}
	var tiers [][]*fabric.Node
	for _, t := range l.Tiers {
		for t.Num >= len(tiers) {
			tiers = append(tiers, nil)
		}
		if t.Num < 0 {
			continue
		}
		for _, g := range t.Groups {
			tiers[t.Num] = append(tiers[t.Num], g.Nodes...)
		}
	}
	for _, nodes := range tiers {
		slices.SortFunc(nodes, byName)
	}
	return tiers, nil
}

// Parts are the links between rows and columns as matrices, one for each part that
// these links join, in the order of their first rows. alone are how many nodes have no
// such link: they are in none.
//
// Time: O(P + C) for P ports of the rows and C cells of all matrices.
func Parts(f *fabric.Fabric, rows, columns []*fabric.Node) (list []*Matrix, alone int, err error) {
	const column = 2 // a node may be a row, a column, or both
	side := make([]uint8, len(f.Nodes()))
	for _, n := range rows {
		side[n.ID()] |= 1
	}
	for _, n := range columns {
		side[n.ID()] |= column
	}
	joined := newPairs(len(side))
	for id, s := range side {
		if s == 1|column {
			joined.join(id, id)
		}
	}
	has := make([]uint8, len(side)) // links as a row, as a column
	for _, n := range rows {
		for p := range n.Ports() {
			if q := p.Peer(); q != nil && q.Node() != n && side[q.Node().ID()]&column != 0 {
				joined.join(n.ID(), q.Node().ID())
				has[n.ID()] |= 1
				has[q.Node().ID()] |= column
			}
		}
	}
	type sides struct{ rows, columns []*fabric.Node }
	parts := map[int]*sides{}
	var order []*sides
	for _, n := range rows {
		if has[n.ID()]&1 == 0 {
			alone++
			continue
		}
		s := parts[joined.lower(n.ID())]
		if s == nil {
			s = new(sides)
			parts[joined.lower(n.ID())] = s
			order = append(order, s)
		}
		s.rows = append(s.rows, n)
	}
	for _, n := range columns {
		if has[n.ID()]&column == 0 {
			alone++
			continue
		}
		s := parts[joined.upper(n.ID())]
		s.columns = append(s.columns, n)
	}
	cells := 0
	for _, s := range order {
		if cells += len(s.rows) * len(s.columns); cells > maxCells {
			return nil, alone, fmt.Errorf("more than %d cells; choose fewer nodes", maxCells)
		}
	}
	for _, s := range order {
		list = append(list, Between(s.rows, s.columns))
	}
	return list, alone, nil
}
