package sim

import "fabsh/mad"

// allPorts, as a PortSelect, means all ports (IBA 16.1.3.1, AllPortSelect).
const allPorts = 255

// counters are a port's, by the names of their fields. PortCounters and
// PortCountersExtended show the same ones; the former stop at what fits.
type counters map[string]uint64

// shown is a counter in an attribute, and which bit of which field chooses it
// in a Set.
type shown struct {
	*mad.Field
	selector *mad.Field
	bit      uint64
}

// portCounters: from bit 0, CounterSelect chooses all but two counters in
// their order on the wire, CounterSelect2 those two (IBA 16.1.3.5).
var portCounters = view(mad.AttrPortCounters, 16, "port_xmit_wait", "qp1_dropped")

// portCountersExtended: CounterSelect chooses the first 8, CounterSelect2 the
// others (IBA 16.1.4.11).
var portCountersExtended = view(mad.AttrPortCountersExtended, 8)

// view lists the counters of a. CounterSelect chooses the first n of those
// that are not among last, CounterSelect2 the rest, last at the end.
func view(a *mad.Attribute, n int, last ...string) (list []shown) {
	selectors := [2]*mad.Field{a.Field("counter_select"), a.Field("counter_select2")}
	special := map[string]bool{"port_select": true, "counter_select": true, "counter_select2": true}
	for _, name := range last {
		special[name] = true
	}
	for i := range a.Fields {
		if f := &a.Fields[i]; !special[f.Script] {
			list = append(list, shown{Field: f})
		}
	}
	for _, name := range last {
		list = append(list, shown{Field: a.Field(name)})
	}
	for i := range list {
		list[i].selector, list[i].bit = selectors[0], 1<<i
		if i >= n {
			list[i].selector, list[i].bit = selectors[1], 1<<(i-n)
		}
	}
	return list
}

// perf executes a performance management request.
func (r *request) perf() mad.Status {
	if r.Method != mad.MethodGet && r.Method != mad.MethodSet {
		return mad.StatusBadMethod
	}
	a := mad.Lookup(mad.ClassPerf, r.Attribute)
	if !allows(a, r.Method) {
		return mad.StatusBadMethodAttribute
	}
	switch a {
	case mad.AttrPerfClassPortInfo:
		if r.Method == mad.MethodGet {
			return r.perfClassPortInfo()
		}
	case mad.AttrPortCounters:
		return r.count(a, portCounters)
	case mad.AttrPortCountersExtended:
		return r.count(a, portCountersExtended)
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

// count sets the counters that a Set chooses, and shows all.
func (r *request) count(a *mad.Attribute, view []shown) mad.Status {
	ports := r.selected(int(a.Field("port_select").Uint(r.data)))
	if len(ports) == 0 || r.Modifier != 0 {
		return mad.StatusBadValue
	}
	if r.Method == mad.MethodSet {
		for i := range ports {
			if ports[i].counters == nil {
				ports[i].counters = counters{}
			}
			for _, c := range view {
				if c.selector.Uint(r.data)&c.bit != 0 {
					ports[i].counters[c.Name] = c.Uint(r.data)
				}
			}
		}
	}
	for _, c := range view {
		sum := uint64(0)
		for i := range ports {
			v := ports[i].counters[c.Name]
			if sum += v; sum < v || sum > c.Max() {
				sum = c.Max()
				break
			}
		}
		c.SetUint(r.data, sum)
	}
	return 0
}

// selected are the ports that a PortSelect means.
func (r *request) selected(num int) []port {
	ports := r.about.ports
	switch {
	case num == allPorts:
		return ports[1:]
	case num >= len(ports), num == 0 && !r.about.isSwitch:
		return nil
	}
	return ports[num : num+1]
}
