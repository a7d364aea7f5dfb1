package routing

import (
	"context"

	"fabsh/mad"
)

// States of a switch in a walk; from 0 up: switches on the way after it.
const (
	unknown = -1 - iota
	looping // packets go round in circles
	astray  // packets end up in the wrong place
	underWay
)

// walk follows the packets to one LID from many switches: each switch is
// visited once, for its table sends all packets of a LID the same way. Those
// that get there make a tree.
type walk struct {
	g     *Graph
	rows  []uint8  // entries of a block of LIDs, by LID, then switch
	state []int32  // by switch
	via   []int32  // by switch: the channel its packets take; noTarget: none
	order []int32  // switches whose state is known; the next on the way before those it is next for
	flow  []uint32 // for who counts packets
	stack []int32
}

func newWalk(g *Graph) *walk {
	n := len(g.switches)
	return &walk{g: g, rows: make([]uint8, block*n), state: make([]int32, n), via: make([]int32, n), flow: make([]uint32, n)}
}

// eachDest calls do for each LID that is wanted (nil: all), with a walk that has
// begun. LIDs are handed out block by block, which is how they share cache
// lines; each worker gets them in rising order.
func (r *Routes) eachDest(ctx context.Context, wanted []bool, do func(worker int, w *walk, lid mad.LID)) error {
	g := r.graph
	walks := make([]*walk, g.workers)
	return g.each(ctx, (int(g.Top())+block)/block, func(worker, b int) {
		first := b * block
		any := false
		for lid := first; lid < min(first+block, len(g.byLID)); lid++ {
			any = any || g.byLID[lid] >= 0 && (wanted == nil || wanted[lid])
		}
		if !any {
			return
		}
		if walks[worker] == nil {
			walks[worker] = newWalk(g)
		}
		w := walks[worker]
		n := len(g.switches)
		for s := range n {
			for i, port := range r.block(s, b) {
				w.rows[i*n+s] = port
			}
		}
		for i := range block {
			lid := first + i
			if lid < len(g.byLID) && g.byLID[lid] >= 0 && (wanted == nil || wanted[lid]) {
				w.begin()
				do(worker, w, mad.LID(lid))
			}
		}
	})
}

// begin forgets what is known of the last LID.
func (w *walk) begin() {
	for s := range w.state {
		w.state[s] = unknown
	}
	w.order = w.order[:0]
}

// column are the ports of all switches for lid, which is in the block at hand.
func (w *walk) column(lid mad.LID) []uint8 {
	n := len(w.state)
	return w.rows[int(lid)%block*n:][:n]
}

// from follows packets to terminal t, by ports, from switch s; what it finds is
// in state, via and order.
func (w *walk) from(s int32, ports []uint8, t int32) {
	g := w.g
	at := s
	for w.state[at] == unknown {
		target := int32(noTarget)
		if i := g.portBase[at] + int32(ports[at]); i < g.portBase[at+1] {
			target = g.targets[i]
		}
		w.via[at] = target
		if target >= 0 {
			w.state[at] = underWay
			w.stack = append(w.stack, at)
			at = g.chanTo[target]
			continue
		}
		w.via[at] = noTarget
		w.state[at] = astray
		if target == -2-t {
			w.state[at] = 0
		}
		w.order = append(w.order, at)
	}
	state := w.state[at]
	if state == underWay {
		state = looping
	}
	for i := len(w.stack) - 1; i >= 0; i-- {
		if state >= 0 {
			state++
		}
		w.state[w.stack[i]] = state
		w.order = append(w.order, w.stack[i])
	}
	w.stack = w.stack[:0]
}
