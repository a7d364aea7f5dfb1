// Package counter holds the counters of a port of a simulated subnet.
//
//	counter.go      Counters: their values, and how they grow with time
//	name.go         the counters of attributes, and their names
//	measurement.go  Measurement: counters measured for a while

package state

import (
	"math"
	"slices"
	"time"
)

// Counters are the counters of a port. PortCounters and PortCountersExtended
// show the same ones; those of the former stop at their largest value.
type Counters struct {
	values map[CounterKey]uint64 // nil: all 0
	growth *growth               // nil: they do not grow
}

type CounterKey struct {
	Name    string // of the field
	Element int
}

// Value returns the current value of a counter.
func (c *Counters) Value(key CounterKey, now time.Time) uint64 {
	v := c.values[key]
	if c.growth == nil {
		return v
	}
	for i := range c.growth.rates {
		if g := &c.growth.rates[i]; g.key == key {
			v = saturated(v, g.grown(now.Sub(c.growth.since)))
		}
	}
	return v
}

// growth is how counters of a port grow with time. A counter's value is what was counted
// until since, plus the rate times the time from then on.
type growth struct {
	since time.Time
	rates []growingCounter // by key
}

// growingCounter is a counter that grows.
type growingCounter struct {
	key     CounterKey
	rate    float64 // a second
	rest    float64 // of what was counted until since, the part below 1
	traffic bool    // it follows from Traffic
}

func (g *growingCounter) grown(d time.Duration) float64 {
	return g.rest + g.rate*max(0, d.Seconds())
}

// saturated is v+more, which stops at the largest value.
func saturated(v uint64, more float64) uint64 {
	if more >= math.MaxUint64 || v+uint64(more) < v {
		return math.MaxUint64
	}
	return v + uint64(more)
}

// Settle counts what has grown until now.
func (c *Counters) Settle(now time.Time) {
	if c.growth == nil {
		return
	}
	d := now.Sub(c.growth.since)
	for i := range c.growth.rates {
		g := &c.growth.rates[i]
		grown := g.grown(d)
		whole := math.Floor(grown)
		c.Set(g.key, saturated(c.values[g.key], whole))
		g.rest = grown - whole
	}
	c.growth.since = now
}

// Grow adds to the rate of a counter, from now on.
func (c *Counters) Grow(key CounterKey, rate float64, traffic bool, now time.Time) {
	if c.growth == nil {
		c.growth = &growth{since: now}
	} else if c.growth.since.Before(now) {
		c.Settle(now)
	}
	for i := range c.growth.rates {
		if g := &c.growth.rates[i]; g.key == key && g.traffic == traffic {
			g.rate += rate
			return
		}
	}
	c.growth.rates = append(c.growth.rates, growingCounter{key: key, rate: rate, traffic: traffic})
}

// Grows reports whether a counter grows.
func (c *Counters) Grows() bool { return c.growth != nil }

// Stop ends the growth of a counter, except that caused by traffic. The counters have
// settled.
func (c *Counters) Stop(key CounterKey) {
	c.stopGrowing(func(g *growingCounter) bool { return g.key == key && !g.traffic })
}

// StopTraffic ends the growth by traffic. The counters have settled.
func (c *Counters) StopTraffic() {
	c.stopGrowing(func(g *growingCounter) bool { return g.traffic })
}

// Reset sets all counters to 0; they grow on.
func (c *Counters) Reset() { c.values = nil }

func (c *Counters) stopGrowing(stop func(*growingCounter) bool) {
	if c.growth == nil {
		return
	}
	c.growth.rates = slices.DeleteFunc(c.growth.rates, func(g growingCounter) bool { return stop(&g) })
	if len(c.growth.rates) == 0 {
		c.growth = nil
	}
}

func (c *Counters) Set(key CounterKey, v uint64) {
	if c.values == nil {
		c.values = map[CounterKey]uint64{}
	}
	c.values[key] = v
}
