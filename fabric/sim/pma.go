package sim

import (
	"sync"

	"fabsh/mad"
)

// perfHandlers are the attributes of performance management (IBA 16.1.3). All
// attributes with counters have one handler: their declarations in package mad
// say which counters they show.
var perfHandlers = []handler{
	{attr: mad.AttrPerfClassPortInfo, get: (*request).getPerfClassPortInfo},
	{attr: mad.AttrPortSamplesControl, get: (*request).getSamplesControl, set: (*request).setSamplesControl},
	{attr: mad.AttrPortSamplesResult, get: (*request).getSamplesResult},
	{on: hasCounters, get: (*request).getCounters, set: (*request).setCounters},
}

// counters are the counters of a port. PortCounters and PortCountersExtended
// show the same ones; those of the former stop at their largest value.
type counters map[counterKey]uint64

type counterKey struct {
	name    string // of the field
	element int
}

// counterViews are the counters of each attribute.
var counterViews = sync.OnceValue(func() map[*mad.Attribute][]mad.Counter {
	views := map[*mad.Attribute][]mad.Counter{}
	for _, a := range mad.Attributes() {
		if list := a.Counters(); len(list) > 0 {
			views[a] = list
		}
	}
	return views
})

func hasCounters(r *request) bool { return counterViews()[r.attr] != nil }

func (r *request) getPerfClassPortInfo() mad.Status {
	clear(r.data)
	info := mad.ClassPortInfo{
		BaseVersion: 1, ClassVersion: 1, RespTimeValue: lifeTime,
		CapabilityMask: uint16(mad.PerfCapabilityMaskAllPortSelect | mad.PerfCapabilityMaskIsExtendedWidthSupported |
			mad.PerfCapabilityMaskPortCountersXmitWaitSupported | mad.PerfCapabilityMaskIsQP1DroppedSupported),
	}
	if !r.cut { // else ibqueryerrors finds errors in what is its own memory
		info.CapabilityMask2 = uint32(mad.PerfCapabilityMask2IsAdditionalPortCountersExtendedSupported)
	}
	info.Encode(r.data)
	return r.modifierIs0()
}

// getCounters reads counters; of all ports, their sums. Those of one operation
// code are the same for all codes.
func (r *request) getCounters() mad.Status {
	ports := r.selectedPorts()
	if len(ports) == 0 || r.Modifier != 0 {
		return mad.StatusBadValue
	}
	r.startTraffic()
	now := r.now()
	for _, c := range counterViews()[r.attr] {
		for e := range c.Count {
			key := counterKey{c.Name, e}
			sum := uint64(0)
			for i := range ports {
				v := ports[i].value(key, now)
				if sum += v; sum < v || sum > c.Max() {
					sum = c.Max()
					break
				}
			}
			c.SetUintAt(r.data, e, sum)
		}
	}
	return mad.StatusOK
}

// setCounters sets the counters that CounterSelect selects, and reads all.
func (r *request) setCounters() mad.Status {
	ports := r.selectedPorts()
	if len(ports) == 0 || r.Modifier != 0 {
		return mad.StatusBadValue
	}
	r.startTraffic()
	for i := range ports {
		ports[i].settle(r.now())
	}
	for _, c := range counterViews()[r.attr] {
		for e := range c.Count {
			if c.Select.Uint(r.data)>>(c.Bit+e)&1 != 0 {
				for i := range ports {
					ports[i].setCounter(counterKey{c.Name, e}, c.UintAt(r.data, e))
				}
			}
		}
	}
	return r.getCounters()
}

func (p *port) setCounter(key counterKey, v uint64) {
	if p.counters == nil {
		p.counters = counters{}
	}
	p.counters[key] = v
}

// selectedPorts are the ports that PortSelect means; none if there is no such port.
func (r *request) selectedPorts() []port {
	ports, num := r.perfNode.ports, int(r.attr.Field("port_select").Uint(r.data))
	switch {
	case num == mad.AllPorts:
		return ports[1:]
	case num >= len(ports), num == 0 && !r.perfNode.isSwitch:
		return nil
	}
	return ports[num : num+1]
}
