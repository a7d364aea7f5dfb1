package state

import (
	"math"
)

// A receiver that takes no packets returns no credits: packets for it fill the buffers of
// their lane on the whole way, and what is behind them in these buffers, for whichever
// receiver, waits until HOQLife discards them. So the flows of a lane before such a receiver
// keep the proportions in which the ports before it send them, and those that wait fill the
// buffers on their own ways.

// member is a flow in the queue of a lane.
type member struct{ way, hop int }

// credits finds the flows that wait for credits.
type credits struct {
	ways    []way
	rates   []float64 // of each flow: demanded, or what credits allow; bytes per second
	waits   []int     // the hop where a flow waits for credits; -1: nowhere
	members map[lane][]member
}

// maxCredits bounds how often a queue is computed again: where queues wait for each other,
// rates decrease without end.
const maxCredits = 64

// byCredits returns the rates of flows that credits allow, and for each the hop where it
// waits for them; -1: none.
func byCredits(demands []float64, ways []way) (rates []float64, waits []int) {
	c := &credits{ways: ways, rates: append([]float64(nil), demands...), waits: make([]int, len(ways))}
	var open []lane         // whose members have changed
	gone := map[*Port]int{} // flows to each receiver
	for i := range ways {
		c.waits[i] = -1
		if w := &ways[i]; w.gone {
			gone[w.last().out]++
		}
	}
	if len(gone) == 0 {
		return c.rates, c.waits
	}
	c.members = map[lane][]member{}
	for i := range ways {
		for n := range ways[i].hops {
			q := ways[i].hops[n].lane()
			c.members[q] = append(c.members[q], member{i, n})
		}
	}
	for i := range ways { // those to one receiver share what it discards
		if w := &ways[i]; w.gone {
			if rate := w.last().capacity / float64(gone[w.last().out]); rate < c.rates[i] {
				open = append(open, c.hold(i, rate, len(w.hops)-1)...)
			}
		}
	}
	count := map[lane]int{}
	for len(open) > 0 {
		q := open[0]
		open = open[1:]
		if count[q]++; count[q] <= maxCredits {
			open = append(open, c.wait(q)...)
		}
	}
	return c.rates, c.waits
}

// hold limits a flow that waits at a hop, and returns the queues before it, which it fills.
func (c *credits) hold(way int, rate float64, hop int) (filled []lane) {
	c.rates[way], c.waits[way] = rate, hop
	for i := range c.ways[way].hops[:hop] {
		filled = append(filled, c.ways[way].hops[i].lane())
	}
	return filled
}

// wait limits the flows of a queue to what passes between those that fill it: a sender sends
// its flows in turn, and a switch what comes from its input ports. It returns the queues
// that have changed by that.
func (c *credits) wait(q lane) (changed []lane) {
	inputs := map[lane][]member{} // by the queue before
	var order []lane
	for _, m := range c.members[q] {
		var from lane // none: the sender
		if m.hop > 0 {
			from = c.ways[m.way].hops[m.hop-1].lane()
		}
		if inputs[from] == nil {
			order = append(order, from)
		}
		inputs[from] = append(inputs[from], m)
	}
	least := math.Inf(1) // of the inputs that fill it
	total := map[lane]float64{}
	for _, from := range order {
		level, fills := math.Inf(1), false
		for _, m := range inputs[from] {
			if c.waits[m.way] > m.hop {
				level, fills = min(level, c.rates[m.way]), true
			}
		}
		for _, m := range inputs[from] {
			if from.out == nil {
				changed = append(changed, c.limit(m, level)...)
			}
			total[from] += c.rates[m.way]
		}
		if fills {
			least = min(least, total[from])
		}
	}
	for _, from := range order {
		if total[from] > least*(1+tolerance) {
			for _, m := range inputs[from] {
				changed = append(changed, c.limit(m, c.rates[m.way]*least/total[from])...)
			}
		}
	}
	return changed
}

// limit limits a flow to what passes its queue.
func (c *credits) limit(m member, rate float64) []lane {
	if rate >= c.rates[m.way]*(1-tolerance) {
		return nil
	}
	return c.hold(m.way, rate, m.hop)
}
