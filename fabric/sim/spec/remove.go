package spec

import (
	"math/rand/v2"
	"slices"

	"fabsh/fabric"
)

// removeParts returns f without some switches and cables between switches, chosen by the seed,
// and without hosts that have no cable left. switches and cables return, for the number
// that exists, how many to remove, from 0 to all; cables is called with the number of
// cables between the remaining switches.
func removeParts(f *fabric.Fabric, seed int64, switches, cables func(all int) int) *fabric.Fabric {
	r := rand.New(rand.NewPCG(uint64(seed), 2))
	gone := map[*fabric.Node]bool{}
	var all []*fabric.Node
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; n.IsSwitch() {
			all = append(all, n)
		}
	}
	for _, n := range choose(r, all, switches(len(all))) {
		gone[n] = true
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if had, has := countCables(n, gone); !n.IsSwitch() && had > 0 && has == 0 {
			gone[n] = true
		}
	}
	var links []*fabric.Port
	for _, n := range all {
		for p := range n.Ports() {
			if q := p.Peer(); q != nil && q.ID() > p.ID() && q.Node().IsSwitch() && !gone[n] && !gone[q.Node()] {
				links = append(links, p)
			}
		}
	}
	cut := map[*fabric.Port]bool{}
	for _, p := range choose(r, links, cables(len(links))) {
		cut[p] = true
	}
	return without(f, gone, cut)
}

// countCables counts the cables of n, before and after the nodes are gone.
func countCables(n *fabric.Node, gone map[*fabric.Node]bool) (had, has int) {
	for p := range n.Ports() {
		if q := p.Peer(); q != nil {
			had++
			if !gone[q.Node()] {
				has++
			}
		}
	}
	return had, has
}

func choose[T any](r *rand.Rand, list []T, n int) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:n]
}

// without is f without some nodes and cables.
func without(f *fabric.Fabric, gone map[*fabric.Node]bool, cut map[*fabric.Port]bool) *fabric.Fabric {
	b := fabric.NewBuilder()
	handles := map[*fabric.Node]int{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if gone[n] {
			continue
		}
		h := b.AddNode(fabric.NodeSpec{Info: *n.Info(), Name: n.Name(), FileID: n.FileID(), Switch: n.SwitchInfo()})
		handles[n] = h
		for num := 0; num <= n.NumPorts(); num++ {
			p := n.Port(num)
			if p == nil {
				continue
			}
			if !n.IsSwitch() || num == 0 {
				b.SetPortGUID(h, num, p.GUID())
			}
			if p.Info() != nil {
				b.SetPort(h, num, p.Info())
			}
		}
		for _, a := range f.AnswersOf(i) {
			a.Node = int32(h)
			b.AddAnswer(a)
		}
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() || cut[p] || gone[p.Node()] || gone[q.Node()] {
			continue
		}
		// It cannot fail: f has the same link.
		_ = b.Link(handles[p.Node()], p.Num(), handles[q.Node()], q.Num())
	}
	for _, p := range f.Problems() {
		if p.Kind == fabric.ProblemAssignedLIDs { // Build finds the others again
			b.AddProblem(p)
		}
	}
	return b.Build()
}
