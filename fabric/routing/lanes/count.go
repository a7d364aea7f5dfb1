package lanes

import (
	"context"
	"slices"
)

// block is the number of destinations that are followed together, whose entries
// share cache lines.
const block = 64

// countAll counts the paths of the first layer.
func (l *Layering) countAll(ctx context.Context) error {
	t := newTree(l.Net.Switches())
	for first := 0; first < len(l.Dests); first += block {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		dests := l.Dests[first:min(first+block, len(l.Dests))]
		if l.Shift == nil {
			for i := range dests {
				t.follow(l, &dests[i])
				t.count(l)
			}
			continue
		}
		for _, s := range l.Sources {
			for i := range dests {
				if l.follow(s, &dests[i]) {
					l.addTrail(1)
				}
			}
		}
	}
	return nil
}

// tree has the paths from all sources to a destination, each switch once: for a table sends all
// packets of a LID to the same port.
type tree struct {
	state []uint8 // by switch
	via   []int32 // by switch: the channel of its path; negative at the end
	flow  []int32 // by switch: paths that pass through
	order []int32 // switches, each after the next on its path
	stack []int32
}

// States of a switch in a tree.
const (
	unmet    = iota
	onPath   // that is followed now
	astray   // paths do not arrive
	arriving // paths arrive
)

func newTree(switches int) *tree {
	return &tree{state: make([]uint8, switches), via: make([]int32, switches), flow: make([]int32, switches)}
}

// follow finds the paths to d.
func (t *tree) follow(l *Layering, d *Dest) {
	clear(t.state)
	clear(t.flow)
	t.order = t.order[:0]
	for _, s := range l.Sources {
		t.flow[s] = 1
		for t.state[s] == unmet {
			t.state[s] = onPath
			t.stack = append(t.stack, s)
			if t.via[s] = l.next(s, d); t.via[s] < 0 {
				if t.state[s] = astray; t.via[s] == d.End {
					t.state[s] = arriving
				}
				break
			}
			s = l.Net.To[t.via[s]]
		}
		end := t.state[s]
		if end == onPath { // a loop
			end = astray
		}
		for _, s := range slices.Backward(t.stack) {
			t.state[s] = end
			t.order = append(t.order, s)
		}
		t.stack = t.stack[:0]
	}
}

// count adds the paths that arrive to the counts of their edges.
//
// Time: O(S) for S switches, whatever the length of paths.
func (t *tree) count(l *Layering) {
	for _, s := range slices.Backward(t.order) {
		c := t.via[s]
		if c < 0 || t.state[s] != arriving {
			continue
		}
		to := l.Net.To[c]
		t.flow[to] += t.flow[s]
		if next := t.via[to]; next >= 0 {
			l.count[l.edge(c, 0, next)] += t.flow[s]
		}
	}
}
