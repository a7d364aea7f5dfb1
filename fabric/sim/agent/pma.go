// Package pma is the agent of performance management of a simulated node.
//
//	pma.go       Request, and the attributes that the agent has; counters
//	sample.go    measurements of counters for a while
//	redirect.go  agents that are on another node

package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// pmaRequest is a Get or Set at an agent, and what the agent may read and change.
type pmaRequest struct {
	Subnet   *state.Subnet
	Traffic  *state.Traffic
	Node     *state.Node // the node that the request is about
	Attr     *mad.Attribute
	Modifier uint32
	Data     []byte // the attribute; afterwards that of the answer
	Cut      bool   // the requester receives only the beginning of the answer
}

// pmaHandlers are the attributes of performance management (IBA 16.1.3). All attributes with
// counters have one handler: their declarations in package mad list the counters that
// they show.
var pmaHandlers = handlerTable[*pmaRequest]{
	{Attr: mad.AttrPerfClassPortInfo, Get: (*pmaRequest).getPerfClassPortInfo},
	{Attr: mad.AttrPortSamplesControl, Get: (*pmaRequest).getSamplesControl, Set: (*pmaRequest).setSamplesControl},
	{Attr: mad.AttrPortSamplesResult, Get: (*pmaRequest).getSamplesResult},
	{On: hasCounters, Get: (*pmaRequest).getCounters, Set: (*pmaRequest).setCounters},
}

// PortCounters returns an attribute of the performance management of a port; nil: its agent
// does not have it. The caller holds the lock of the subnet.
func (a *Agents) PortCounters(p *state.Port, attr *mad.Attribute) []byte {
	data := make([]byte, mad.Size)[:attr.Size]
	data[1] = p.Num // PortSelect
	r := pmaRequest{Subnet: a.Subnet, Traffic: a.Traffic, Node: p.Node, Attr: attr, Data: data}
	if pmaHandlers.Run(&r, attr, false) != mad.StatusOK {
		return nil
	}
	return data
}

func hasCounters(r *pmaRequest) bool { return state.CounterViews()[r.Attr] != nil }

func (r *pmaRequest) getPerfClassPortInfo() mad.Status {
	info := mad.ClassPortInfo{
		BaseVersion: 1, ClassVersion: 1, RespTimeValue: state.LifeTime,
		CapabilityMask: uint16(mad.PerfCapabilityMaskAllPortSelect | mad.PerfCapabilityMaskIsExtendedWidthSupported |
			mad.PerfCapabilityMaskPortCountersXmitWaitSupported | mad.PerfCapabilityMaskIsQP1DroppedSupported),
	}
	if !r.Cut { // otherwise ibqueryerrors would read errors from its own memory
		info.CapabilityMask2 = uint32(mad.PerfCapabilityMask2IsAdditionalPortCountersExtendedSupported)
	}
	return encodeAnswer(r.Data, &info, r.Modifier)
}

// getCounters reads counters; for all ports, their sums. Counters of one operation code
// are the same for all codes.
func (r *pmaRequest) getCounters() mad.Status {
	ports := r.selectedPorts()
	if len(ports) == 0 || r.Modifier != 0 {
		return mad.StatusBadValue
	}
	r.Traffic.Update()
	now := r.Subnet.Now()
	for _, c := range state.CounterViews()[r.Attr] {
		for e := range c.Count {
			key := state.CounterKey{Name: c.Name, Element: e}
			sum := uint64(0)
			for i := range ports {
				v := ports[i].Counters.Value(key, now)
				if sum += v; sum < v || sum > c.Max() {
					sum = c.Max()
					break
				}
			}
			c.SetUintAt(r.Data, e, sum)
		}
	}
	return mad.StatusOK
}

// setCounters sets the counters that CounterSelect selects, and reads all.
func (r *pmaRequest) setCounters() mad.Status {
	ports := r.selectedPorts()
	if len(ports) == 0 || r.Modifier != 0 {
		return mad.StatusBadValue
	}
	r.Traffic.Update()
	for i := range ports {
		ports[i].Settle(r.Subnet.Now())
	}
	for _, c := range state.CounterViews()[r.Attr] {
		for e := range c.Count {
			if c.Select.Uint(r.Data)>>(c.Bit+e)&1 != 0 {
				for i := range ports {
					ports[i].Counters.Set(state.CounterKey{Name: c.Name, Element: e}, c.UintAt(r.Data, e))
				}
			}
		}
	}
	return r.getCounters()
}

// selectedPorts returns the ports that PortSelect selects; empty if the port does not
// exist.
func (r *pmaRequest) selectedPorts() []state.Port {
	ports, num := r.Node.Ports, int(r.Attr.Field("port_select").Uint(r.Data))
	switch {
	case num == mad.AllPorts:
		return ports[1:]
	case num >= len(ports), num == 0 && !r.Node.IsSwitch:
		return nil
	}
	return ports[num : num+1]
}
