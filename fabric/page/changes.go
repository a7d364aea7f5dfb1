package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/diff"
	"fabsh/fabric/picture"
	"fabsh/mad"
)

// changesView is the view of the differences from the baseline.
type changesView struct {
	Baseline string // in one line
	Why      string // the reason why it is unknown
	Rows     []changeRow
	More     int
	Unknown  []string // what was not compared
	Grids    []changeGrid
	Keys     []shade // of these
	Notes    []string
}

type changeRow struct {
	Depth                                int
	Kind, Subject, Before, After, Effect string
}

// changeGrid is the view of the switches, or hosts, of two tiers whose links differ.
type changeGrid struct {
	Title string
	Grid  *grid
}

// maxChanges limits the changes of the page.
const maxChanges = 1000

func (p *Page) changes() *changesView {
	if p.Baseline == nil || p.Report.Model == nil {
		return nil
	}
	v := &changesView{Baseline: clean(p.Baseline.String())}
	v.Keys = []shade{{"missing", "fewer than before"}, {"up", "more"}, {"slow", "at other ports"}, {"same", "as before"}, {"unknown", "unknown"}}
	if p.Diff == nil {
		v.Why = clean(cmp.Or(p.NoDiff, "they were not compared"))
		return v
	}
	for _, c := range p.Diff.Changes {
		v.add(c, 0)
	}
	unknown := slices.Concat(p.Diff.NotCompared, p.Diff.Unread)
	for _, text := range unknown[:min(len(unknown), maxNotes)] {
		v.Unknown = append(v.Unknown, clean(text))
	}
	v.grids(p.Baseline, p.Report.Model)
	return v
}

func (v *changesView) add(c *diff.Change, depth int) {
	if len(v.Rows) == maxChanges {
		v.More++
	} else {
		v.Rows = append(v.Rows, changeRow{min(depth, maxDepth), c.Kind, clean(c.Subject), clean(c.Before), clean(c.After), clean(c.Effect)})
	}
	for _, e := range c.Effects {
		v.add(e, depth+1)
	}
}

// nodePair is two nodes of any fabric, the lower tier first.
type nodePair struct{ low, high mad.GUID }

// pairLinks is the links between two nodes, before and after, as their ports.
type pairLinks [2][]string

// grids adds the links that differ, by tiers: only nodes with such links. Cables that
// are exchanged appear as a permutation.
func (v *changesView) grids(old, new *fabric.Fabric) {
	type placed struct {
		node *fabric.Node
		tier int
	}
	nodes := map[mad.GUID]placed{}
	for _, f := range []*fabric.Fabric{old, new} { // the newer one decides, unless the node lost its place there
		tiers := f.Tiers()
		for i := range f.Nodes() {
			n := &f.Nodes()[i]
			tier := tiers[n.ID()]
			if was, ok := nodes[n.GUID()]; ok && tier < 0 {
				tier = was.tier
			}
			nodes[n.GUID()] = placed{n, tier}
		}
	}
	compare := func(a, b mad.GUID) int {
		x, y := nodes[a], nodes[b]
		return cmp.Or(cmp.Compare(x.tier, y.tier), fabric.CompareNames(x.node.Name(), y.node.Name()), cmp.Compare(a, b))
	}
	links := map[nodePair]*pairLinks{}
	for side, f := range []*fabric.Fabric{old, new} {
		for i := range f.Ports() {
			p := &f.Ports()[i]
			q := p.Peer()
			if q == nil || q.ID() < p.ID() {
				continue
			}
			if compare(p.Node().GUID(), q.Node().GUID()) > 0 {
				p, q = q, p
			}
			at := nodePair{p.Node().GUID(), q.Node().GUID()}
			if links[at] == nil {
				links[at] = &pairLinks{}
			}
			links[at][side] = append(links[at][side], fmt.Sprint(p.Num(), " ", q.Num()))
		}
	}
	class := map[nodePair]string{}
	byTiers := map[[2]int][]nodePair{}
	for at, w := range links {
		if c := w.class(old, new); c != "" {
			class[at] = c
			tiers := [2]int{nodes[at.low].tier, nodes[at.high].tier}
			byTiers[tiers] = append(byTiers[tiers], at)
		}
	}
	for _, tiers := range slices.SortedFunc(maps.Keys(byTiers), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		var rows, columns []mad.GUID
		for _, at := range byTiers[tiers] {
			rows, columns = append(rows, at.low), append(columns, at.high)
		}
		title := fmt.Sprintf("%s x %s", picture.TierName(tiers[0]), picture.TierName(tiers[1]))
		rows, columns = distinct(rows, compare), distinct(columns, compare)
		if len(rows) > maxMatrixRows || len(columns) > maxMatrixRows {
			v.Notes = append(v.Notes, fmt.Sprintf("%s: %d × %d nodes are too many for a picture.", title, len(rows), len(columns)))
			continue
		}
		drawn := sheet{wide: cellSize, high: cellSize, gap: 1}
		for y, low := range rows {
			for x, high := range columns {
				at := nodePair{low, high}
				if class[at] != "" {
					drawn.add(class[at], x, y)
				} else if links[at] != nil {
					drawn.add("same", x, y)
				}
			}
		}
		named := func(list []mad.GUID) (of []*fabric.Node) {
			for _, g := range list {
				of = append(of, nodes[g].node)
			}
			return of
		}
		v.Grids = append(v.Grids, changeGrid{title, newGrid(&drawn, named(rows), named(columns), len(columns))})
	}
}

// class returns how links differ, as a style sheet class; "": they do not. What one side may not
// have read is unknown.
func (w *pairLinks) class(old, new *fabric.Fabric) string {
	for side := range w {
		slices.Sort(w[side])
	}
	before, after := len(w[0]), len(w[1])
	switch {
	case slices.Equal(w[0], w[1]):
		return ""
	case before > after && !new.Complete(), before < after && !old.Complete():
		return "unknown"
	case before > after:
		return "missing"
	case before < after:
		return "up"
	}
	return "slow"
}

func distinct(list []mad.GUID, compare func(a, b mad.GUID) int) []mad.GUID {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}
