package graph

import (
	"slices"
)

// Heavier is g with more weight on channels.
func (g *Graph) Heavier(more func(c int) uint8) *Graph {
	h := *g
	h.weighted = true
	h.channels = slices.Clone(g.channels)
	for c := range h.channels {
		h.channels[c].Weight = min(h.channels[c].Weight+more(c), MaxDistance)
	}
	h.neighbours, h.nbrTo, h.nbrBase, h.nbrBack = nil, nil, nil, nil
	h.addNeighbours()
	return &h
}

// FirstParallel has for each channel the first of those to the same switch.
func FirstParallel(g *Graph) []int32 {
	first := make([]int32, len(g.channels))
	to := make([]int32, len(g.switches))
	for s := range g.switches {
		for c := g.chanBase[s+1] - 1; c >= g.chanBase[s]; c-- {
			to[g.chanTo[c]] = c
		}
		for c := g.chanBase[s]; c < g.chanBase[s+1]; c++ {
			first[c] = to[g.chanTo[c]]
		}
	}
	return first
}
