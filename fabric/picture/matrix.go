package picture

import (
	"cmp"
	"fmt"
	"slices"

	"fabsh/fabric"
)

// Matrix are the links between switches of two tiers that are connected, or within a
// tier.
type Matrix struct {
	Tiers    [2]int         // of rows, and of columns, which are as high or higher
	Rows     []*fabric.Node // by name
	Columns  []*fabric.Node
	Links    [][]int // by row, then column
	Slow     [][]int // of these, those that are slower than they could be
	Expected int     // what most cells have
}

const (
	maxSide  = 512     // rows, or columns, of a matrix
	maxCells = 400_000 // of all matrices
)

// Matrices are the links between switches as matrices: of tiers that are next to each
// other one for each part that these links join, the lowest first, and within a tier one.
// notes say what is left out for its size.
// Of a neighbourhood they would not be whole.
//
// Time: O(L log L + C) for L links and C cells.
func (l *Ladder) Matrices() (list []*Matrix, notes []string) {
	type part struct{ low, high, first int }
	type member struct {
		part
		column bool
	}
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
	partOf := func(low, high *fabric.Node) part {
		p := part{l.tier[low.ID()], l.tier[high.ID()], 0}
		if p.low != p.high {
			p.first = joined.lower(low.ID())
		}
		return p
	}
	nodes := map[member][]*fabric.Node{}
	links := map[part][]link{}
	for _, k := range between {
		p := partOf(k.a, k.b)
		links[p] = append(links[p], k)
		nodes[member{p, false}] = append(nodes[member{p, false}], k.a)
		nodes[member{p, true}] = append(nodes[member{p, true}], k.b)
		if p.low == p.high {
			nodes[member{p, false}] = append(nodes[member{p, false}], k.b)
			nodes[member{p, true}] = append(nodes[member{p, true}], k.a)
		}
	}
	for p := range links {
		m := &Matrix{Tiers: [2]int{p.low, p.high}, Rows: distinct(nodes[member{p, false}]), Columns: distinct(nodes[member{p, true}])}
		list = append(list, m)
	}
	slices.SortFunc(list, func(x, y *Matrix) int {
		return cmp.Or(x.Tiers[0]-y.Tiers[0], x.Tiers[1]-y.Tiers[1], byName(x.Rows[0], y.Rows[0]))
	})
	cells := 0
	list = slices.DeleteFunc(list, func(m *Matrix) bool {
		n := len(m.Rows) * len(m.Columns)
		if len(m.Rows) <= maxSide && len(m.Columns) <= maxSide && cells+n <= maxCells {
			cells += n
			return false
		}
		notes = append(notes, fmt.Sprintf("the matrix of %d x %d switches (%s, %s) is too large to draw: name nodes to see theirs", len(m.Rows), len(m.Columns), tierName(m.Tiers[0]), tierName(m.Tiers[1])))
		return true
	})
	row, column := make([]int, len(l.tier)), make([]int, len(l.tier))
	for _, m := range list {
		for i, n := range m.Rows {
			row[n.ID()] = i
		}
		for i, n := range m.Columns {
			column[n.ID()] = i
		}
		m.fill(links[partOf(m.Rows[0], m.Columns[0])], row, column)
	}
	return list, notes
}

// fill counts links. row and column are where nodes are, by node id.
func (m *Matrix) fill(links []link, row, column []int) {
	m.Links, m.Slow = make([][]int, len(m.Rows)), make([][]int, len(m.Rows))
	for i := range m.Rows {
		m.Links[i], m.Slow[i] = make([]int, len(m.Columns)), make([]int, len(m.Columns))
	}
	for _, k := range links {
		ends := [][2]int{{row[k.a.ID()], column[k.b.ID()]}}
		if m.Tiers[0] == m.Tiers[1] { // it is told from both ends
			ends = append(ends, [2]int{row[k.b.ID()], column[k.a.ID()]})
		}
		for _, e := range ends {
			m.Links[e[0]][e[1]]++
			if k.slow {
				m.Slow[e[0]][e[1]]++
			}
		}
	}
	count := map[int]int{}
	for _, line := range m.Links {
		for _, n := range line {
			count[n]++
		}
	}
	for n, times := range count {
		if most := count[m.Expected]; times > most || times == most && n > m.Expected {
			m.Expected = n
		}
	}
}

// distinct sorts nodes by name, each once.
func distinct(nodes []*fabric.Node) []*fabric.Node {
	slices.SortFunc(nodes, byName)
	return slices.Compact(nodes)
}
