package sim

import (
	"fmt"
	"math"

	"fabsh/mad"
)

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
