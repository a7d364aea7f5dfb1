package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// TestSamples: a measurement counts what grows between its begin and its end, whatever
// happens to the counters before and after, and only one runs at a time.
func TestSamples(t *testing.T) {
	r := newRig(t, small)
	now := time.Unix(1000, 0)
	r.SetClock(func() time.Time { return now })
	leaf := r.named("leaf-1").GUID()
	const tick = 1024 * time.Nanosecond
	second := uint32(time.Second / tick)
	grow := func(rate float64) {
		if err := r.Counters.SetRates(leaf, 2, map[string]float64{"port_xmit_pkts": rate, "port_rcv_data": 1e10}); err != nil {
			t.Fatal(err)
		}
	}
	control := func(m mad.Method, port uint8, tag uint16) (c mad.PortSamplesControl) {
		asked := mad.PortSamplesControl{PortSelect: port, SampleStart: 2 * second, SampleInterval: 4 * second, Tag: tag}
		copy(asked.CounterSelect[:], []mad.SampleSelect{mad.SampleSelectPortXmitPkts, 77, mad.SampleSelectPortRcvData, mad.SampleSelectPortXmitWait})
		status, data := r.perf(m, mad.AttrPortSamplesControl, 0, "leaf-1", &asked)
		if status != 0 {
			t.Fatal(status)
		}
		c.Decode(data)
		return c
	}
	result := func() (s mad.PortSamplesResult) {
		status, data := r.perf(mad.MethodGet, mad.AttrPortSamplesResult, 0, "leaf-1", &s)
		if status != 0 {
			t.Fatal(status)
		}
		s.Decode(data)
		return s
	}
	idle := control(mad.MethodGet, 2, 0)
	if want := (mad.PortSamplesControl{PortSelect: 2, Tick: 8, CounterWidth: 4, CounterMask0: 1, CounterMasks1to9: 0o111100000}); idle != want {
		t.Errorf("before: (-want +got)\n%s", cmp.Diff(want, idle))
	}
	grow(1000)
	c := control(mad.MethodSet, 2, 0xbeef)
	if c.SampleStatus != mad.SampleStatusNotBegun || c.Tag != 0xbeef || c.CounterSelect[0] != mad.SampleSelectPortXmitPkts {
		t.Errorf("set: %+v", c)
	}
	now = now.Add(3 * time.Second)
	if c := control(mad.MethodSet, 1, 1); c.PortSelect != 2 || c.SampleStatus != mad.SampleStatusRunning {
		t.Errorf("another, while it runs: %+v", c)
	}
	if s := result(); s != (mad.PortSamplesResult{Tag: 0xbeef, SampleStatus: mad.SampleStatusRunning}) {
		t.Errorf("while it runs: %+v", s)
	}
	grow(500) // for the last 3 seconds of 4
	now = now.Add(10 * time.Second)
	want := mad.PortSamplesResult{Tag: 0xbeef}
	want.Counter[0], want.Counter[2] = 2500, 0xffffffff
	got := result()
	if got.Counter[0] == 2499 { // ticks are no whole part of a second
		got.Counter[0]++
	}
	if got != want {
		t.Errorf("afterwards: (-want +got)\n%s", cmp.Diff(want, got))
	}
	r.Counters.Set(leaf, 2, map[string]uint64{"port_xmit_pkts": 0})
	if again := result(); again.Counter[0]/10 != want.Counter[0]/10 && again.Counter[0] != 2499 {
		t.Errorf("after the counter was set: %d", again.Counter[0])
	}
	if c := control(mad.MethodSet, 1, 2); c.PortSelect != 1 || c.Tag != 2 {
		t.Errorf("the next one: %+v", c)
	}
	for name, bad := range map[string]struct {
		attr     *mad.Attribute
		modifier uint32
		port     uint8
	}{"all ports": {mad.AttrPortSamplesControl, 0, 255}, "no port": {mad.AttrPortSamplesControl, 0, 9}, "mechanism 1": {mad.AttrPortSamplesControl, 1, 1}, "result of mechanism 1": {mad.AttrPortSamplesResult, 1, 0}} {
		if status, _ := r.perf(mad.MethodGet, bad.attr, bad.modifier, "leaf-1", &mad.PortSamplesControl{PortSelect: bad.port}); status != mad.StatusBadValue {
			t.Errorf("%s: %v", name, status)
		}
	}
}
