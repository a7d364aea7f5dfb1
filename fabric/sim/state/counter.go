package state

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// Counters are the counters of a port. PortCounters and PortCountersExtended show them; the
// smaller fields of PortCounters stop at their largest value.
type Counters struct {
	values map[CounterKey]uint64 // nil: all 0
	growth *growth               // nil: they do not grow
}

// CounterKey names a counter.
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

// Set sets a counter.
func (c *Counters) Set(key CounterKey, v uint64) {
	if c.values == nil {
		c.values = map[CounterKey]uint64{}
	}
	c.values[key] = v
}

// CounterViews are the counters of each attribute.
var CounterViews = sync.OnceValue(func() map[*mad.Attribute][]mad.Counter {
	views := map[*mad.Attribute][]mad.Counter{}
	for _, a := range mad.Attributes() {
		if list := a.Counters(); len(list) > 0 {
			views[a] = list
		}
	}
	return views
})

// countersByName are the counters by the script names of their fields.
var countersByName = sync.OnceValue(func() map[string]mad.Counter {
	names := map[string]mad.Counter{}
	for _, list := range CounterViews() {
		for _, c := range list {
			if known, ok := names[c.Script]; !ok || known.Bits < c.Bits {
				names[c.Script] = c
			}
		}
	}
	return names
})

// CounterByName finds a counter by its script name, such as symbol_error_counter;
// an element of an array by its number behind the name: port_xmit_data_sl3.
func CounterByName(name string) (CounterKey, error) {
	if c, ok := countersByName()[name]; ok && c.Count == 1 {
		return CounterKey{Name: c.Name, Element: 0}, nil
	}
	for digits := 1; digits <= 2 && digits < len(name); digits++ {
		c, ok := countersByName()[name[:len(name)-digits]]
		var e int
		if _, err := fmt.Sscanf(name[len(name)-digits:], "%d", &e); ok && err == nil && e < c.Count {
			return CounterKey{Name: c.Name, Element: e}, nil
		}
	}
	known := slices.Sorted(maps.Keys(countersByName()))
	return CounterKey{}, fmt.Errorf("unknown counter %q%s", name, fabric.DidYouMean(name, known))
}

// Measurement is a measurement of counters of one port (IBA 16.1.3.2). Each node can run
// one at a time. Its two times are in the past or the future: the counters at these times
// are computed before a change of their growth, or when they are read.
type Measurement struct {
	Of         *Counters
	Control    mad.PortSamplesControl
	Begin, End time.Time
	Values     [2][MeasuredCounters]uint64 // the counters at the begin and the end
	taken      int                         // how many of the two
}

const (
	// CounterTick is PortSamplesControl.Tick: 4 ns times 2 to the 8th.
	CounterTick = 8
	TickTime    = 4 * time.Nanosecond << CounterTick
	// MeasuredCounters is how many counters there are, each of 32 bits (CounterWidth 4):
	// as linux drivers/infiniband/hw/qib/qib_mad.c pma_get_portsamplescontrol.
	MeasuredCounters = 5
	CounterWidth     = 4
)

// sampleKeys are the counters that can be measured.
var sampleKeys = map[mad.SampleSelect]CounterKey{
	mad.SampleSelectPortXmitData: {"PortXmitData", 0},
	mad.SampleSelectPortRcvData:  {"PortRcvData", 0},
	mad.SampleSelectPortXmitPkts: {"PortXmitPkts", 0},
	mad.SampleSelectPortRcvPkts:  {"PortRcvPkts", 0},
	mad.SampleSelectPortXmitWait: {"PortXmitWait", 0},
}

// Status returns the phase of the measurement.
func (m *Measurement) Status(now time.Time) mad.SampleStatus {
	switch {
	case now.Before(m.Begin):
		return mad.SampleStatusNotBegun
	case now.Before(m.End):
		return mad.SampleStatusRunning
	}
	return mad.SampleStatusDone
}

// Record reads the counters at the begin and the end, as far as these times are over.
func (m *Measurement) Record(now time.Time) {
	for _, t := range []time.Time{m.Begin, m.End}[m.taken:] {
		if now.Before(t) {
			return
		}
		for i, s := range m.Control.CounterSelect[:MeasuredCounters] {
			if key, ok := sampleKeys[s]; ok {
				m.Values[m.taken][i] = m.Of.Value(key, t)
			}
		}
		m.taken++
	}
}
