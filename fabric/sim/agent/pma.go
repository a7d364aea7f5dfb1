package agent

import (
	"math"
	"time"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// pmaRequest is a Get or Set at an agent of performance management, and what the agent may
// read and change.
type pmaRequest struct {
	Subnet   *state.Subnet
	Traffic  *state.Traffic
	Node     *state.Node // the node that the request is about
	Attr     *mad.Attribute
	Modifier uint32
	Data     []byte // the attribute; afterwards of the answer
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

// getCounters reads counters; for all ports, their sums. All operation codes share the
// counters of one.
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

// getSamplesControl reads the measurement of a port; while one of another port runs, that
// one.
func (r *pmaRequest) getSamplesControl() mad.Status {
	ports := r.selectedPorts()
	if len(ports) != 1 || r.Modifier != 0 {
		return mad.StatusBadValue
	}
	c := mad.PortSamplesControl{PortSelect: ports[0].Num}
	if m := r.Node.Measurement; m != nil && (m.Of == &ports[0].Counters || m.Status(r.Subnet.Now()) != mad.SampleStatusDone) {
		c = m.Control
		c.SampleStatus = m.Status(r.Subnet.Now())
	}
	// A mask of 1: the counter is there (qib_mad.c COUNTER_MASK).
	c.Tick, c.CounterWidth, c.CounterMask0 = state.CounterTick, state.CounterWidth, 1
	for i := 1; i < state.MeasuredCounters; i++ {
		c.CounterMasks1to9 |= 1 << (3 * (9 - i))
	}
	return encodeAnswer(r.Data, &c, 0)
}

// setSamplesControl begins a measurement, unless one is running; the answer shows the one
// that runs.
func (r *pmaRequest) setSamplesControl() mad.Status {
	ports := r.selectedPorts()
	if len(ports) != 1 || r.Modifier != 0 {
		return mad.StatusBadValue
	}
	now := r.Subnet.Now()
	if m := r.Node.Measurement; m == nil || m.Status(now) == mad.SampleStatusDone {
		r.Traffic.Update()
		m = &state.Measurement{Of: &ports[0].Counters}
		var asked mad.PortSamplesControl
		asked.Decode(r.Data)
		m.Control = mad.PortSamplesControl{
			PortSelect: ports[0].Num, SampleStart: asked.SampleStart, SampleInterval: asked.SampleInterval, Tag: asked.Tag,
		}
		copy(m.Control.CounterSelect[:state.MeasuredCounters], asked.CounterSelect[:])
		m.Begin = now.Add(time.Duration(asked.SampleStart) * state.TickTime)
		m.End = m.Begin.Add(time.Duration(asked.SampleInterval) * state.TickTime)
		r.Node.Measurement = m
	}
	return r.getSamplesControl()
}

// getSamplesResult reads the result of a measurement; zeros until it is complete, as
// qib_mad.c pma_get_portsamplesresult.
func (r *pmaRequest) getSamplesResult() mad.Status {
	clear(r.Data)
	if r.Modifier != 0 {
		return mad.StatusBadValue
	}
	m := r.Node.Measurement
	if m == nil {
		return mad.StatusOK
	}
	r.Traffic.Update()
	now := r.Subnet.Now()
	result := mad.PortSamplesResult{Tag: m.Control.Tag, SampleStatus: m.Status(now)}
	if result.SampleStatus == mad.SampleStatusDone {
		ends := *m // Gets change nothing
		ends.Record(now)
		for i := range state.MeasuredCounters {
			if a, b := ends.Values[0][i], ends.Values[1][i]; b > a { // it may have been cleared
				result.Counter[i] = uint32(min(b-a, math.MaxUint32))
			}
		}
	}
	return encodeAnswer(r.Data, &result, 0)
}

// The queue pair of a redirected agent of performance management, and its Q_Key.
// No other agent has them, so that a requester that does not
// use them gets no answer.
const (
	RedirectQP   = 0x42
	RedirectQKey = 0x11
)

// performanceAgentAt returns the node whose agent answers requests that come to node n at a queue
// pair, and the node that this agent redirects them to, if any; nil: no such agent.
func performanceAgentAt(n *state.Node, qp, qkey uint32) (about, redirectTo *state.Node) {
	switch {
	case qp == 1 && (qkey == 0 || qkey == mad.GeneralQKey):
		return n, n.RedirectTo
	case qp == RedirectQP && qkey == RedirectQKey:
		return n.RedirectedHere, nil
	}
	return nil, nil
}

// redirectPerformance answers with the address of the agent that node about is redirected to (IBA
// 13.4.7).
func redirectPerformance(about, to *state.Node, data []byte) mad.Status {
	info := mad.ClassPortInfo{BaseVersion: 1, ClassVersion: 1, RespTimeValue: state.LifeTime,
		RedirectPKey: mad.DefaultPKey, RedirectQP: RedirectQP, RedirectQKey: RedirectQKey}
	if to == about {
		info.RedirectQP, info.RedirectQKey = 1, mad.GeneralQKey
	}
	if ports := to.EndPorts(); len(ports) > 0 {
		info.RedirectLID, info.RedirectGID = ports[0].LID, mad.MakeGID(state.GIDPrefix, ports[0].GUID)
	}
	encodeAnswer(data, &info, 0)
	return mad.StatusRedirect
}
