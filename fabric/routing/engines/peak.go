package engines

import (
	"context"
	"slices"
)

const (
	// lowerPeak tries to lower the largest load by 1/peakStep, and where that is too much, by
	// 1/peakLastStep.
	peakStep     = 8
	peakLastStep = 32
	// peakCost is how much the sum of the squares of flows of shifts may grow for a lower peak.
	peakCost = 1.005
)

// lowerPeak gives switches other next hops in place of those over the busiest channels, as long as
// that lowers the largest load. Passes that give a LID all its paths at once cannot: where a
// leaf of a fat tree has eleven hosts and ten links up, they bring two of its LIDs down one link.
func (b *balancer) lowerPeak(ctx context.Context) error {
	x := newShifts(b)
	if err := x.countFlows(ctx); err != nil {
		return err
	}
	x.relieve = true
	limit := x.squares() * peakCost
	for step := int64(peakStep); ; {
		entries, load := b.r.Clone(), slices.Clone(b.load)
		peak := slices.Max(append(b.load, 0))
		x.most = peak - max(1, peak/step)
		if err := x.passes(ctx, shiftPasses); err != nil {
			return err
		}
		if slices.Max(append(b.load, 0)) <= x.most && x.squares() <= limit {
			continue
		}
		for s := range b.g.Switches() {
			copy(b.r.Row(s), entries.Row(s))
		}
		b.load = load
		if step == peakLastStep {
			return nil
		}
		step = peakLastStep
		if err := x.countFlows(ctx); err != nil {
			return err
		}
	}
}

// overloaded reports whether channel c has more routes than it may have.
func (x *shifts) overloaded(c int32) bool { return x.load[c] > x.most }
