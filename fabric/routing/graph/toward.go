package graph

// Toward are the paths that distances allow to one switch: all switches that have one, nearest
// first, and the channels of their next hops. It belongs to one goroutine.
//
// Time: O(S + C) for each switch.
type Toward struct {
	Steps []Step
	Next  []int32 // channels, by step
	To    []int32 // the switches that these lead to

	hops       *Hops
	key        []uint16 // by channel: its weight, and towardUp
	column     []uint8  // of Hops: from all switches
	byDistance [MaxDistance + 1][]int32
}

// Step is a switch, whose next hops are by the channels Next[First:Last].
type Step struct{ Switch, First, Last int32 }

// towardUp is set in the key of a channel that goes up.
const towardUp = 0x200

// Load finds them for switch d. Where trunk is not nil, only channels that stand for themselves
// in it are next hops (see FirstParallel).
func (x *Toward) Load(h *Hops, d int, trunk []int32) {
	g := h.graph
	if x.hops != h {
		x.begin(h)
	}
	for i := range x.byDistance {
		x.byDistance[i] = x.byDistance[i][:0]
	}
	x.column = x.column[:0]
	for s := range g.switches {
		own := h.d[s*h.stride+d]
		x.column = append(x.column, own)
		if far := own &^ viaUp; far > 0 && far != noPath {
			x.byDistance[far] = append(x.byDistance[far], int32(s))
		}
	}
	x.Steps = x.Steps[:0]
	n := int32(0)
	for far, list := range x.byDistance {
		for _, s := range list {
			// Of up*/down*: up where the path begins so; else down, to where no path goes up.
			mask, want := uint16(0xff), uint16(far)
			switch {
			case h.rank == nil:
				mask = ^uint16(viaUp)
			case x.column[s]&viaUp != 0:
				mask, want = ^uint16(viaUp), want+towardUp
			}
			first, at := n, g.chanBase[s]
			for i, to := range g.chanTo[at:g.chanBase[s+1]] {
				c := at + int32(i)
				x.Next[n], x.To[n] = c, to
				if uint16(x.column[to])&mask+x.key[c] == want && (trunk == nil || trunk[c] == c) {
					n++
				}
			}
			x.Steps = append(x.Steps, Step{s, first, n})
		}
	}
}

// begin prepares for distances h.
func (x *Toward) begin(h *Hops) {
	g := h.graph
	x.hops = h
	x.key = make([]uint16, len(g.channels))
	x.Next, x.To = make([]int32, len(g.channels)+1), make([]int32, len(g.channels)+1)
	for c := range g.channels {
		ch := &g.channels[c]
		if x.key[c] = uint16(ch.Weight); h.rank != nil && h.rank.Up(int(ch.From), int(ch.To)) {
			x.key[c] += towardUp
		}
	}
}
