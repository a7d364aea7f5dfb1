package picture

import (
	"cmp"
	"fmt"
	"slices"

	"fabsh/fabric"
)

// Matrix is the links between switches, or any nodes: a cell is all links between two of them.
type Matrix struct {
	Tiers    [2]int         // of rows, and of columns, which are as high or higher
	Rows     []*fabric.Node // by name
	Columns  []*fabric.Node
	Links    [][][]*fabric.Port // by row, then column: the ports of the row
	Expected int                // how many links most cells have
}

// newMatrix returns the matrix of the links between two lists of nodes, in their order. A node
// may be in both.
//
// Time: O(P + C) for P ports of the rows and C cells.
func newMatrix(rows, columns []*fabric.Node) *Matrix {
	m := &Matrix{Rows: rows, Columns: columns, Links: make([][][]*fabric.Port, len(rows))}
	at := make(map[*fabric.Node]int, len(columns))
	for c, n := range columns {
		at[n] = c
	}
	count := map[int]int{}
	for r, n := range rows {
		line := make([][]*fabric.Port, len(columns))
		for p := range n.Ports() {
			if q := p.Peer(); q != nil && q.Node() != n {
				if c, ok := at[q.Node()]; ok {
					line[c] = append(line[c], p)
				}
			}
		}
		for _, links := range line {
			count[len(links)]++
		}
		m.Links[r] = line
	}
	for n, times := range count {
		if most := count[m.Expected]; times > most || times == most && n > m.Expected {
			m.Expected = n
		}
	}
	return m
}

// States returns the links of a cell by state.
func (m *Matrix) States(r, c int) (s States) {
	for _, p := range m.Links[r][c] {
		s[StateOf(p)]++
	}
	return s
}

// Missing returns how many links a cell has less than most cells.
func (m *Matrix) Missing(r, c int) int {
	if m.Rows[r] == m.Columns[c] {
		return 0
	}
	return max(0, m.Expected-len(m.Links[r][c]))
}

// Parts returns the links between rows and columns as matrices, one for each part that
// these links join, in the order of their first rows. alone is the number of nodes without
// such a link: they are in no matrix.
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
		list = append(list, newMatrix(s.rows, s.columns))
	}
	return list, alone, nil
}

const (
	maxSide  = 512     // rows, or columns, of a matrix
	maxCells = 400_000 // of all matrices
)

// matrices returns the links between switches as matrices: between two tiers one for each part
// that these links join, the lowest first, and one within a tier. notes name the matrices that
// are left out for their size.
//
// Time: O(L log L + C) for L links and C cells.
func (l *Ladder) matrices() (list []*Matrix, notes []string) {
	type part struct{ low, high, first int }
	type sides struct{ rows, columns []*fabric.Node }
	joined := newPairs(len(l.tier))
	var between []link
	for _, k := range l.links {
		if !k.a.IsSwitch() || !k.b.IsSwitch() || k.a == k.b {
			continue
		}
		if l.tier[k.a.ID()] > l.tier[k.b.ID()] {
			k.a, k.b = k.b, k.a
		}
		between = append(between, k)
		if l.tier[k.a.ID()] != l.tier[k.b.ID()] {
			joined.join(k.a.ID(), k.b.ID())
		}
	}
	parts := map[part]*sides{}
	for _, k := range between {
		p := part{l.tier[k.a.ID()], l.tier[k.b.ID()], 0}
		if p.low != p.high {
			p.first = joined.lower(k.a.ID())
		}
		s := parts[p]
		if s == nil {
			s = &sides{}
			parts[p] = s
		}
		s.rows, s.columns = append(s.rows, k.a), append(s.columns, k.b)
		if p.low == p.high { // it is listed from both ends
			s.rows, s.columns = append(s.rows, k.b), append(s.columns, k.a)
		}
	}
	type sized struct {
		part
		sides
	}
	var all []sized
	for p, s := range parts {
		all = append(all, sized{p, sides{distinct(s.rows), distinct(s.columns)}})
	}
	slices.SortFunc(all, func(x, y sized) int {
		return cmp.Or(x.low-y.low, x.high-y.high, byName(x.rows[0], y.rows[0]))
	})
	cells := 0
	for _, s := range all {
		n := len(s.rows) * len(s.columns)
		if len(s.rows) > maxSide || len(s.columns) > maxSide || cells+n > maxCells {
			notes = append(notes, fmt.Sprintf("the matrix of %d x %d switches (%s, %s) is too large to draw; name nodes to see theirs", len(s.rows), len(s.columns), TierName(s.low), TierName(s.high)))
			continue
		}
		cells += n
		m := newMatrix(s.rows, s.columns)
		m.Tiers = [2]int{s.low, s.high}
		list = append(list, m)
	}
	return list, notes
}

// distinct sorts nodes by name, and removes repeated ones.
func distinct(nodes []*fabric.Node) []*fabric.Node {
	slices.SortFunc(nodes, byName)
	return slices.Compact(nodes)
}
