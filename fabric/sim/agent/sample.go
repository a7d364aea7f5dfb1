package agent

import (
	"math"
	"time"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

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
