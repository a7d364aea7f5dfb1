// Package walk follows packets through forwarding tables: to a LID from many switches at
// once. Engines, verification, repair and traffic count and judge the paths it finds.
//
//	walk.go      Walk: all paths to a LID
//	endpoints.go Endpoints: the ports between which packets go
//	paths.go     the routes over each channel, and the dependencies, of all paths
//	kind.go      Kind: packets that switches treat alike, where they route adaptively
//	choices.go   Choices: all paths to a LID that switches may choose
//	choiceclass.go LIDs for which the choices are equal
//	explain.go   why packets may not arrive
//	sibling.go   Siblings: the paths to the LIDs of one port (LMC)
//
// A Walk and Siblings belong to one goroutine; EachDest gives each worker its own.
// Endpoints are safe for concurrent reading. Tables must not change meanwhile.

package verify

import (
	"context"
	"encoding/binary"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// States of a switch in a walk. From 0 up: the path arrives, after so many links
// between switches.
const (
	Unknown   = -1 - iota
	Looping   // packets loop for ever
	misrouted // packets are dropped, or arrive at another terminal
	onStack   // on the path that is followed now
)

// atOnce is how many LIDs are followed together: the entries that share a block of a table.
const atOnce = mad.LFTBlock

// Walk follows the packets to one LID from many switches. As a table sends all
// packets of a LID to the same port, the paths that arrive are a tree, and each
// switch is visited once.
//
// Time: O(S) for each LID, whatever the number of sources.
type Walk struct {
	Graph *graph.Graph
	rows  []uint8  // entries of a block of LIDs, by LID, then switch
	State []int32  // by switch
	Via   []int32  // by switch: the channel its packets take; NoChannel: none
	Order []int32  // switches whose state is known, each after its next hop
	Flow  []uint32 // by switch, for callers that count packets
	stack []int32
}

func NewWalk(g *graph.Graph) *Walk {
	n := len(g.Switches())
	return &Walk{Graph: g, rows: make([]uint8, atOnce*n), State: make([]int32, n), Via: make([]int32, n), Flow: make([]uint32, n)}
}

// EachDest calls do for each LID that is wanted (nil: all), with a walk that has
// begun. Workers get blocks of LIDs, which share cache lines, in rising order.
func EachDest(ctx context.Context, r *routes.Routes, workers int, wanted []bool, do func(worker int, w *Walk, lid mad.LID)) error {
	g := r.Graph()
	walks := make([]*Walk, workers)
	return graph.Each(ctx, workers, (int(g.Top())+atOnce)/atOnce, func(worker, b int) {
		first := b * atOnce
		any := false
		for lid := first; lid < min(first+atOnce, int(g.Top())+1); lid++ {
			any = any || int32(g.TerminalByLID(mad.LID(lid))) >= 0 && (wanted == nil || wanted[lid])
		}
		if !any {
			return
		}
		if walks[worker] == nil {
			walks[worker] = NewWalk(g)
		}
		w := walks[worker]
		w.transpose(r, b)
		for i := range atOnce {
			lid := first + i
			if lid < int(g.Top())+1 && int32(g.TerminalByLID(mad.LID(lid))) >= 0 && (wanted == nil || wanted[lid]) {
				w.Begin()
				do(worker, w, mad.LID(lid))
			}
		}
	})
}

// transpose fills in the entries of block b, eight LIDs of eight switches at a time.
func (w *Walk) transpose(r *routes.Routes, b int) {
	const eight = 8
	n := len(w.State)
	for s := 0; s < n; s += eight {
		var rows [eight][]byte
		for i := range rows {
			rows[i] = r.Block(min(s+i, n-1), b)
		}
		for first := 0; first < atOnce; first += eight {
			var x [eight]uint64
			for i := range x {
				x[i] = binary.LittleEndian.Uint64(rows[i][first:])
			}
			transpose8(&x)
			for i := range x {
				to := w.rows[(first+i)*n+s:]
				if s+eight <= n {
					binary.LittleEndian.PutUint64(to, x[i])
					continue
				}
				for j := range n - s {
					to[j] = uint8(x[i] >> (8 * j))
				}
			}
		}
	}
}

// transpose8 exchanges rows and columns of 8 x 8 bytes, the first of a row being its
// lowest: halves, then quarters, then neighbours (Warren, "Hacker's Delight", 7-3).
func transpose8(x *[8]uint64) {
	for _, step := range [...]struct {
		rows int
		mask uint64
	}{{4, 0x00000000ffffffff}, {2, 0x0000ffff0000ffff}, {1, 0x00ff00ff00ff00ff}} {
		bits := 8 * step.rows
		for i := range x {
			if i&step.rows == 0 {
				t := (x[i]>>bits ^ x[i+step.rows]) & step.mask
				x[i+step.rows] ^= t
				x[i] ^= t << bits
			}
		}
	}
}

// Begin forgets the last LID.
func (w *Walk) Begin() {
	for s := range w.State {
		w.State[s] = Unknown
	}
	w.Order = w.Order[:0]
}

// Column are the entries of all switches for lid, which is in the present block.
func (w *Walk) Column(lid mad.LID) []uint8 {
	n := len(w.State)
	return w.rows[int(lid)%atOnce*n:][:n]
}

// From follows packets to terminal t from switch s, by the entries ports. The
// result is in state, via and order.
func (w *Walk) From(s int32, ports []uint8, t int32) {
	g := w.Graph
	at := s
	for w.State[at] == Unknown {
		target := g.Target(at, ports[at])
		if c := target.Channel(); c >= 0 {
			w.Via[at] = c
			w.State[at] = onStack
			w.stack = append(w.stack, at)
			at = g.ChannelTo(c)
			continue
		}
		w.Via[at] = graph.NoChannel
		w.State[at] = misrouted
		if target == graph.ToTerminal(t) {
			w.State[at] = 0
		}
		w.Order = append(w.Order, at)
	}
	state := w.State[at]
	if state == onStack {
		state = Looping
	}
	for i := len(w.stack) - 1; i >= 0; i-- {
		if state >= 0 {
			state++
		}
		w.State[w.stack[i]] = state
		w.Order = append(w.Order, w.stack[i])
	}
	w.stack = w.stack[:0]
}
