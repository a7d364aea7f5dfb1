package state

import (
	"time"

	"fabsh/mad"
)

// Measurement is a measurement of counters of one port (IBA 16.1.3.2). Each node can run
// one at a time. Its two times are in the past or the future: the counters at these times
// are computed before a change of their growth, or when they are read.
type Measurement struct {
	Of         *Counters
	Control    mad.PortSamplesControl
	Begin, End time.Time
	Values     [2][MeasuredCounters]uint64 // the counters at the begin and the end
	taken      int                         // how many of the two
}

const (
	// CounterTick is PortSamplesControl.Tick: 4 ns times 2 to the 8th.
	CounterTick = 8
	TickTime    = 4 * time.Nanosecond << CounterTick
	// MeasuredCounters is how many counters there are, each of 32 bits (CounterWidth 4):
	// as linux drivers/infiniband/hw/qib/qib_mad.c pma_get_portsamplescontrol.
	MeasuredCounters = 5
	CounterWidth     = 4
)

// sampleKeys are the counters that can be measured.
var sampleKeys = map[mad.SampleSelect]CounterKey{
	mad.SampleSelectPortXmitData: {"PortXmitData", 0},
	mad.SampleSelectPortRcvData:  {"PortRcvData", 0},
	mad.SampleSelectPortXmitPkts: {"PortXmitPkts", 0},
	mad.SampleSelectPortRcvPkts:  {"PortRcvPkts", 0},
	mad.SampleSelectPortXmitWait: {"PortXmitWait", 0},
}

// Status returns the phase of the measurement.
func (m *Measurement) Status(now time.Time) mad.SampleStatus {
	switch {
	case now.Before(m.Begin):
		return mad.SampleStatusNotBegun
	case now.Before(m.End):
		return mad.SampleStatusRunning
	}
	return mad.SampleStatusDone
}

// Record reads the counters at those of the two times that are over.
func (m *Measurement) Record(now time.Time) {
	for _, t := range []time.Time{m.Begin, m.End}[m.taken:] {
		if now.Before(t) {
			return
		}
		for i, s := range m.Control.CounterSelect[:MeasuredCounters] {
			if key, ok := sampleKeys[s]; ok {
				m.Values[m.taken][i] = m.Of.Value(key, t)
			}
		}
		m.taken++
	}
}
