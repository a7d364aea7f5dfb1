package traffic

import (
	"context"

	"fabsh/fabric/routing/graph"
)

// sumBlocks is how many sums of loads are made at the same time. Each is of the same demands,
// in the same order, whatever the number of workers, so that rounding is the same too.
const sumBlocks = 32

// sums has the memory for sums of loads.
type sums struct {
	workers int
	blocks  [sumBlocks][]float64 // by channel
	totals  [sumBlocks]float64
}

// add sets load, by channel, to the sum of what put adds for each demand, and returns the sum
// of what it returns.
func (s *sums) add(ctx context.Context, list []*demand, load []float64, put func(worker int, d *demand, load []float64) float64) (total float64, err error) {
	err = graph.Each(ctx, s.workers, sumBlocks, func(worker, b int) {
		if s.blocks[b] == nil {
			s.blocks[b] = make([]float64, len(load))
		}
		clear(s.blocks[b])
		s.totals[b] = 0
		for i := b; i < len(list); i += sumBlocks {
			s.totals[b] += put(worker, list[i], s.blocks[b])
		}
	})
	clear(load)
	for b, part := range s.blocks {
		total += s.totals[b]
		for c, x := range part {
			load[c] += x
		}
	}
	return total, err
}

// largest is the largest of loads, and the first channel with it; -1: none has any.
func largest(loads []float64) (most float64, at int) {
	at = -1
	for c, x := range loads {
		if x > most {
			most, at = x, c
		}
	}
	return most, at
}
