package sim

import (
	"math"
	"time"

	"fabsh/mad"
)

// samples is a measurement of counters of one port (IBA 16.1.3.2). Each node can do
// one at a time. Its times are past or to come: what the counters were then is found
// out before something changes their growth, or when somebody asks.
type samples struct {
	port       *port
	control    mad.PortSamplesControl
	begin, end time.Time
	at         [2][sampleCounters]uint64 // the counters at the begin and the end
	taken      int                       // how many of the two
}

const (
	// sampleTick is PortSamplesControl.Tick: 4 ns times 2 to the 8th.
	sampleTick     = 8
	sampleTickTime = 4 * time.Nanosecond << sampleTick
	// sampleCounters is how many counters there are, each of 32 bits (CounterWidth 4):
	// as linux drivers/infiniband/hw/qib/qib_mad.c pma_get_portsamplescontrol.
	sampleCounters = 5
	sampleWidth    = 4
)

// sampleKeys are the counters that can be measured.
var sampleKeys = map[mad.SampleSelect]counterKey{
	mad.SampleSelectPortXmitData: {"PortXmitData", 0},
	mad.SampleSelectPortRcvData:  {"PortRcvData", 0},
	mad.SampleSelectPortXmitPkts: {"PortXmitPkts", 0},
	mad.SampleSelectPortRcvPkts:  {"PortRcvPkts", 0},
	mad.SampleSelectPortXmitWait: {"PortXmitWait", 0},
}

// getSamplesControl reads the measurement of a port; of another one, while that runs.
func (r *request) getSamplesControl() mad.Status {
	ports := r.selectedPorts()
	if len(ports) != 1 || r.Modifier != 0 {
		return mad.StatusBadValue
	}
	c := mad.PortSamplesControl{PortSelect: ports[0].num}
	if m := r.perfNode.samples; m != nil && (m.port == &ports[0] || m.status(r.now()) != mad.SampleStatusDone) {
		c = m.control
		c.SampleStatus = m.status(r.now())
	}
	// A mask of 1: the counter is there (qib_mad.c COUNTER_MASK).
	c.Tick, c.CounterWidth, c.CounterMask0 = sampleTick, sampleWidth, 1
	for i := 1; i < sampleCounters; i++ {
		c.CounterMasks1to9 |= 1 << (3 * (9 - i))
	}
	clear(r.data)
	c.Encode(r.data)
	return mad.StatusOK
}

// setSamplesControl begins a measurement, unless one runs; the answer tells.
func (r *request) setSamplesControl() mad.Status {
	ports := r.selectedPorts()
	if len(ports) != 1 || r.Modifier != 0 {
		return mad.StatusBadValue
	}
	now := r.now()
	if m := r.perfNode.samples; m == nil || m.status(now) == mad.SampleStatusDone {
		r.startTraffic()
		m = &samples{port: &ports[0]}
		var asked mad.PortSamplesControl
		asked.Decode(r.data)
		m.control = mad.PortSamplesControl{
			PortSelect: ports[0].num, SampleStart: asked.SampleStart, SampleInterval: asked.SampleInterval, Tag: asked.Tag,
		}
		copy(m.control.CounterSelect[:sampleCounters], asked.CounterSelect[:])
		m.begin = now.Add(time.Duration(asked.SampleStart) * sampleTickTime)
		m.end = m.begin.Add(time.Duration(asked.SampleInterval) * sampleTickTime)
		r.perfNode.samples = m
	}
	return r.getSamplesControl()
}

// getSamplesResult reads what was measured; zeros until it is complete, as qib_mad.c
// pma_get_portsamplesresult.
func (r *request) getSamplesResult() mad.Status {
	clear(r.data)
	if r.Modifier != 0 {
		return mad.StatusBadValue
	}
	m := r.perfNode.samples
	if m == nil {
		return mad.StatusOK
	}
	r.startTraffic()
	now := r.now()
	result := mad.PortSamplesResult{Tag: m.control.Tag, SampleStatus: m.status(now)}
	if result.SampleStatus == mad.SampleStatusDone {
		ends := *m // Gets change nothing
		ends.take(now)
		for i := range sampleCounters {
			if a, b := ends.at[0][i], ends.at[1][i]; b > a { // it may have been cleared
				result.Counter[i] = uint32(min(b-a, math.MaxUint32))
			}
		}
	}
	result.Encode(r.data)
	return mad.StatusOK
}

// status is where the measurement is.
func (m *samples) status(now time.Time) mad.SampleStatus {
	switch {
	case now.Before(m.begin):
		return mad.SampleStatusNotBegun
	case now.Before(m.end):
		return mad.SampleStatusRunning
	}
	return mad.SampleStatusDone
}

// take reads the counters at those of the two times that are over.
func (m *samples) take(now time.Time) {
	for _, t := range []time.Time{m.begin, m.end}[m.taken:] {
		if now.Before(t) {
			return
		}
		for i, s := range m.control.CounterSelect[:sampleCounters] {
			if key, ok := sampleKeys[s]; ok {
				m.at[m.taken][i] = m.port.value(key, t)
			}
		}
		m.taken++
	}
}
