package sim

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// growth is how counters of a port grow with time. A counter's value is what was
// counted until since, and the rate times the time from then on.
type growth struct {
	since time.Time
	rates []growingCounter // by key
}

// growingCounter is a counter that grows.
type growingCounter struct {
	key     counterKey
	rate    float64 // a second
	rest    float64 // of what was counted until since, the part below 1
	traffic bool    // it follows from Traffic
}

// value is a counter's value now.
func (p *port) value(key counterKey, now time.Time) uint64 {
	v := p.counters[key]
	if p.growth == nil {
		return v
	}
	for i := range p.growth.rates {
		if g := &p.growth.rates[i]; g.key == key {
			v = saturated(v, g.grown(now.Sub(p.growth.since)))
		}
	}
	return v
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

// settle counts what has grown until now.
func (p *port) settle(now time.Time) {
	if m := p.node.samples; m != nil && m.port == p {
		m.take(now)
	}
	if p.growth == nil {
		return
	}
	d := now.Sub(p.growth.since)
	for i := range p.growth.rates {
		g := &p.growth.rates[i]
		grown := g.grown(d)
		whole := math.Floor(grown)
		p.setCounter(g.key, saturated(p.counters[g.key], whole))
		g.rest = grown - whole
	}
	p.growth.since = now
}

// grow adds to the rate of a counter, from now on.
func (p *port) grow(key counterKey, rate float64, traffic bool, now time.Time) {
	if p.growth == nil {
		p.growth = &growth{since: now}
	} else if p.growth.since.Before(now) {
		p.settle(now)
	}
	for i := range p.growth.rates {
		if g := &p.growth.rates[i]; g.key == key && g.traffic == traffic {
			g.rate += rate
			return
		}
	}
	p.growth.rates = append(p.growth.rates, growingCounter{key: key, rate: rate, traffic: traffic})
}

// stopGrowing ends the growth of the counters for which stop holds. The port has
// settled.
func (p *port) stopGrowing(stop func(*growingCounter) bool) {
	if p.growth == nil {
		return
	}
	p.growth.rates = slices.DeleteFunc(p.growth.rates, func(g growingCounter) bool { return stop(&g) })
	if len(p.growth.rates) == 0 {
		p.growth = nil
	}
}

// counterNames are the counters by the script names of their fields.
var counterNames = sync.OnceValue(func() map[string]mad.Counter {
	names := map[string]mad.Counter{}
	for _, list := range counterViews() {
		for _, c := range list {
			if known, ok := names[c.Script]; !ok || known.Bits < c.Bits {
				names[c.Script] = c
			}
		}
	}
	return names
})

// counterKeyOf finds a counter by its script name, such as symbol_error_counter;
// that of an array by the number of the element behind it: port_xmit_data_sl3.
func counterKeyOf(name string) (counterKey, error) {
	if c, ok := counterNames()[name]; ok && c.Count == 1 {
		return counterKey{c.Name, 0}, nil
	}
	for digits := 1; digits <= 2 && digits < len(name); digits++ {
		c, ok := counterNames()[name[:len(name)-digits]]
		var e int
		if _, err := fmt.Sscanf(name[len(name)-digits:], "%d", &e); ok && err == nil && e < c.Count {
			return counterKey{c.Name, e}, nil
		}
	}
	known := slices.Sorted(maps.Keys(counterNames()))
	return counterKey{}, fmt.Errorf("there is no counter %q%s", name, fabric.DidYouMean(name, known))
}

// SetCounters sets counters of a port, by the script names of their fields.
// What an attribute has no room for shows as its largest value.
func (s *Subnet) SetCounters(node mad.GUID, num int, values map[string]uint64) error {
	return eachCounter(s, node, num, values, func(p *port, key counterKey, v uint64) {
		s.putCounter(p, key, v)
	})
}

// SetErrors makes counters of a port grow by a number a second; 0 ends it.
func (s *Subnet) SetErrors(node mad.GUID, num int, rates map[string]float64) error {
	return eachCounter(s, node, num, rates, func(p *port, key counterKey, rate float64) {
		p.settle(s.now())
		p.stopGrowing(func(g *growingCounter) bool { return g.key == key && !g.traffic })
		if rate > 0 {
			p.grow(key, rate, false, s.now())
			s.thresholdTrap(p, key)
		}
	})
}

// eachCounter does something to counters of a port: to all that are named, or to
// none. (A method has no type parameters.)
func eachCounter[T uint64 | float64](s *Subnet, node mad.GUID, num int, values map[string]T, do func(p *port, key counterKey, v T)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startTraffic()
	p, err := s.portAt(node, num)
	if err != nil {
		return err
	}
	switch {
	case num == 0 && !p.node.isSwitch:
		return fmt.Errorf("%s has ports from 1 on, and no counters of a port 0", p.node.label)
	case len(values) == 0:
		return errors.New("which counters? none is named")
	}
	names := slices.Sorted(maps.Keys(values)) // traps of several go out in one order
	keys := make([]counterKey, len(names))
	for i, name := range names {
		if keys[i], err = counterKeyOf(name); err != nil {
			return err
		}
	}
	for i, name := range names {
		do(p, keys[i], values[name])
	}
	return nil
}

// Count adds to a counter of a port, by the name of its field: "PortRcvErrors". Of
// several in a field it is the first. Nothing passes the largest value.
func (s *Subnet) Count(node mad.GUID, num int, counter string, by uint64) error {
	for _, list := range counterViews() {
		for _, c := range list {
			if c.Name != counter {
				continue
			}
			key := counterKey{counter, 0}
			return s.edit(node, num, func(p *port) {
				v := p.value(key, s.now())
				s.putCounter(p, key, v+min(by, math.MaxUint64-v))
			})
		}
	}
	return fmt.Errorf("no attribute has a counter %q", counter)
}

// ResetCounters sets all counters of a port to 0, as a reboot of its node does.
func (s *Subnet) ResetCounters(node mad.GUID, num int) error {
	return s.edit(node, num, func(p *port) {
		p.settle(s.now())
		p.counters = nil
	})
}
