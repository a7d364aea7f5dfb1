package sim

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// CounterEditor changes the counters of a subnet's ports.
type CounterEditor struct {
	subnet  *state.Subnet
	traffic *state.Traffic
	notices *state.Notices
}

// newCounterEditor returns the Counters of a subnet.
func newCounterEditor(s *state.Subnet, t *state.Traffic, n *state.Notices) *CounterEditor {
	return &CounterEditor{subnet: s, traffic: t, notices: n}
}

// Set sets counters of a port, by the script names of their fields. Values too large for
// an attribute show as its largest value.
func (c *CounterEditor) Set(node mad.GUID, num int, values map[string]uint64) error {
	return eachCounter(c, node, num, values, func(p *state.Port, key state.CounterKey, v uint64) {
		c.putCounter(p, key, v)
	})
}

// SetRates makes counters of a port grow by a number a second; 0 ends it.
func (c *CounterEditor) SetRates(node mad.GUID, num int, rates map[string]float64) error {
	return eachCounter(c, node, num, rates, func(p *state.Port, key state.CounterKey, rate float64) {
		p.Settle(c.subnet.Now())
		p.Counters.Stop(key)
		if rate > 0 {
			p.Grow(key, rate, false, c.subnet.Now())
			c.notices.ThresholdTrap(p, key)
		}
	})
}

// eachCounter applies a function to all named counters of a port or, if one is invalid,
// to none. (A method has no type parameters.)
func eachCounter[T uint64 | float64](c *CounterEditor, node mad.GUID, num int, values map[string]T, do func(p *state.Port, key state.CounterKey, v T)) error {
	c.subnet.Lock()
	defer c.subnet.Unlock()
	c.traffic.Update()
	p, err := c.subnet.PortByGUID(node, num)
	if err != nil {
		return err
	}
	switch {
	case num == 0 && !p.Node.IsSwitch:
		return fmt.Errorf("port 0 of %s has no counters; ports begin with 1", p.Node.Label)
	case len(values) == 0:
		return errors.New("no counter is named")
	}
	names := slices.Sorted(maps.Keys(values)) // traps of several go out in one order
	keys := make([]state.CounterKey, len(names))
	for i, name := range names {
		if keys[i], err = state.CounterByName(name); err != nil {
			return err
		}
	}
	for i, name := range names {
		do(p, keys[i], values[name])
	}
	return nil
}

// Add adds to a counter of a port, by the name of its field: "PortRcvErrors". If a field
// holds several, it is the first. Counters stop at their largest value.
func (c *CounterEditor) Add(node mad.GUID, num int, name string, by uint64) error {
	for _, list := range state.CounterViews() {
		for _, known := range list {
			if known.Name != name {
				continue
			}
			key := state.CounterKey{Name: name, Element: 0}
			return c.traffic.ChangePort(node, num, func(p *state.Port) {
				v := p.Counters.Value(key, c.subnet.Now())
				c.putCounter(p, key, v+min(by, math.MaxUint64-v))
			})
		}
	}
	return fmt.Errorf("no attribute has a counter %q", name)
}

// Reset sets all counters of a port to 0, as a reboot of its node does.
func (c *CounterEditor) Reset(node mad.GUID, num int) error {
	return c.traffic.ChangePort(node, num, func(p *state.Port) {
		p.Settle(c.subnet.Now())
		p.Counters.Reset()
	})
}

// putCounter sets a counter of a port. If that increases the counter, the port has
// exceeded a threshold.
func (c *CounterEditor) putCounter(p *state.Port, key state.CounterKey, v uint64) {
	before := p.Counters.Value(key, c.subnet.Now())
	p.Settle(c.subnet.Now())
	p.Counters.Set(key, v)
	if v > before {
		c.notices.ThresholdTrap(p, key)
	}
}

// SetByName sets a counter of a port, at most to its largest value, and returns
// that. Attribute and field are named as in the specification, an element of an
// array by a number behind the field's name.
func (c *CounterEditor) SetByName(at state.End, attr, field string, value uint64) (set uint64, err error) {
	err = c.traffic.Change(func() (*state.Port, error) { return c.subnet.PortByIndex(at, 0) }, func(p *state.Port) error {
		var names []string
		for a, list := range state.CounterViews() {
			names = append(names, a.Name)
			if !strings.EqualFold(a.Name, attr) {
				continue
			}
			for _, known := range list {
				for e := range known.Count {
					name := known.Name
					if known.Count > 1 {
						name = fmt.Sprintf("%s%d", known.Name, e)
					}
					if strings.EqualFold(name, field) {
						set = min(value, known.Max())
						c.putCounter(p, state.CounterKey{Name: known.Name, Element: e}, set)
						return nil
					}
				}
			}
			return fmt.Errorf("field %s cannot be found in attribute %s", field, attr)
		}
		return fmt.Errorf("attribute %s not found%s", attr, fabric.DidYouMean(attr, names))
	})
	return set, err
}
