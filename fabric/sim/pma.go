package sim

import (
	"sync"

	"fabsh/mad"
)

// counters are a port's. PortCounters and PortCountersExtended show the same
// ones; the former stop at what fits.
type counters map[counterKey]uint64

type counterKey struct {
	name    string // of the field
	element int
}

// counterViews are the counters that attributes show.
var counterViews = sync.OnceValue(func() map[*mad.Attribute][]mad.Counter {
	views := map[*mad.Attribute][]mad.Counter{}
	for _, a := range mad.Attributes() {
		if list := a.Counters(); len(list) > 0 {
			views[a] = list
		}
	}
	return views
})

// perf executes a performance management request.
func (r *request) perf() mad.Status {
	if r.Method != mad.MethodGet && r.Method != mad.MethodSet {
		return mad.StatusBadMethod
	}
	a := mad.Lookup(mad.ClassPerf, r.Attribute)
	if !allows(a, r.Method) {
		return mad.StatusBadMethodAttribute
	}
	if a == mad.AttrPerfClassPortInfo && r.Method == mad.MethodGet {
		return r.perfClassPortInfo()
	}
	if view := counterViews()[a]; view != nil {
		return r.count(a, view)
	}
	return mad.StatusBadMethodAttribute
}

func (r *request) perfClassPortInfo() mad.Status {
	clear(r.data)
	info := mad.ClassPortInfo{
		BaseVersion: 1, ClassVersion: 1, RespTimeValue: lifeTime,
		CapabilityMask: uint16(mad.PerfCapabilityMaskAllPortSelect | mad.PerfCapabilityMaskIsExtendedWidthSupported |
			mad.PerfCapabilityMaskPortCountersXmitWaitSupported | mad.PerfCapabilityMaskIsQP1DroppedSupported),
		CapabilityMask2: uint32(mad.PerfCapabilityMask2IsAdditionalPortCountersExtendedSupported),
	}
	info.Encode(r.data)
	return r.modifierIs0()
}

// count sets the counters that a Set chooses, and shows all. Those of one
// operation code are the same for all codes.
func (r *request) count(a *mad.Attribute, view []mad.Counter) mad.Status {
	ports := r.selectedPorts(int(a.Field("port_select").Uint(r.data)))
	if len(ports) == 0 || r.Modifier != 0 {
		return mad.StatusBadValue
	}
	for _, c := range view {
		for e := range c.Count {
			key := counterKey{c.Name, e}
			if r.Method == mad.MethodSet && c.Select.Uint(r.data)>>(c.Bit+e)&1 != 0 {
				for i := range ports {
					ports[i].setCounter(key, c.UintAt(r.data, e))
				}
			}
			sum := uint64(0)
			for i := range ports {
				v := ports[i].counters[key]
				if sum += v; sum < v || sum > c.Max() {
					sum = c.Max()
					break
				}
			}
			c.SetUintAt(r.data, e, sum)
		}
	}
	return 0
}

func (p *port) setCounter(key counterKey, v uint64) {
	if p.counters == nil {
		p.counters = counters{}
	}
	p.counters[key] = v
}

// selectedPorts are the ports that a PortSelect means.
func (r *request) selectedPorts(num int) []port {
	ports := r.perfNode.ports
	switch {
	case num == mad.AllPorts:
		return ports[1:]
	case num >= len(ports), num == 0 && !r.perfNode.isSwitch:
		return nil
	}
	return ports[num : num+1]
}
