package audit

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"fabsh/mad"
)

// TestCounts: values of ports, many of them 0, of more than 64 counters, and replaced.
func TestCounts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const ports = 500
	want, c := make([][]uint64, ports), newCounts(ports)
	for range 3 * ports {
		port := random.IntN(ports)
		want[port] = make([]uint64, 1+random.IntN(200))
		if random.IntN(3) > 0 {
			for range random.IntN(len(want[port])) {
				want[port][random.IntN(len(want[port]))] = random.Uint64()
			}
		}
		c.put(port, want[port])
	}
	for port, values := range want {
		for i, v := range values {
			if got := c.at(port, len(values), i); got != v {
				t.Fatalf("port %d, value %d of %d: %d, want %d", port, i, len(values), got, v)
			}
		}
	}
}

// TestReadsMemory: reads of half a day take little memory, as a process that stays keeps them.
func TestReadsMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	const ports = 1500
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	data := make([]byte, mad.ClassPerf.DataSize())
	for _, name := range []string{"port_xmit_data", "port_rcv_data", "port_xmit_pkts", "port_rcv_pkts", "port_unicast_xmit_pkts", "port_unicast_rcv_pkts", "port_xmit_wait"} {
		CounterAttributes[1].Field(name).SetUint(data, 1<<40)
	}
	st, before := new(State), inUse()
	for run := range 12 * 60 {
		a := NewAnswers(noon.Add(time.Duration(run)*time.Minute), ports)
		for port := range ports {
			a.Answered(a.AddPort(PortKey{mad.GUID(1 + port), 1}, mad.GUID(1+port), 0), 1, full, nil, data, noon.Add(time.Duration(run)*time.Minute+time.Second))
		}
		_, read := a.Read()
		st.Add(read)
	}
	if perPort := (inUse() - before) / ports; perPort > 400 {
		t.Errorf("%d reads take %d bytes by port", len(st.reads), perPort)
	}
	runtime.KeepAlive(st)
}
