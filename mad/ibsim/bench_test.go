package ibsim_test

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// BenchmarkRate asks 20,000 questions of ibsim through the engine, and in a
// loop that does nothing but send and receive, with as many on their way. They
// take turns.
func BenchmarkRate(b *testing.B) {
	const window, questions, nodes = 32, 20000, 10
	f := ibsimtest.Start(b, ibsimtest.FatTree(1, nodes, 1), ibsimtest.FixtureOptions{})
	put := func(c *engine.Call, i int) {
		c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
		c.SetRoute(mad.DirectedRoute{0, 1, byte(2 + i%(nodes-1))})
	}

	bare := attach(b, ibsim.Options{Socket: f.Name})
	defer bare.Close()
	var request engine.Call
	d := engine.Datagram{MAD: make([]byte, mad.Size)}
	ask := func(i int) {
		put(&request, i)
		binary.BigEndian.PutUint64(request.MAD[8:], uint64(i))
		d = engine.Datagram{Address: request.To, Timeout: time.Second, MAD: append(d.MAD[:0], request.MAD[:]...)}
		if err := bare.Send(&d); err != nil {
			b.Fatal(err)
		}
	}
	loop := func() {
		for i := range window {
			ask(i)
		}
		for i := range questions {
			if err := bare.Recv(&d); err != nil || d.Undelivered {
				b.Fatal(err, d.Undelivered)
			}
			if i+window < questions {
				ask(i + window)
			}
		}
	}

	e := connect(b, ibsim.Options{Socket: f.Name}, engine.Options{Window: window})
	through := func() {
		r := &rate{e: e, left: questions, put: put, done: make(chan error, window)}
		for range window {
			c := new(engine.Call)
			c.Notify = r
			r.Complete(c)
		}
		for range window {
			if err := <-r.done; err != nil {
				b.Fatal(err)
			}
		}
	}
	through() // the window opens

	var theirs, ours time.Duration
	for b.Loop() {
		start := time.Now()
		loop()
		between := time.Now()
		through()
		theirs += between.Sub(start)
		ours += time.Since(between)
	}
	b.ReportMetric(questions*float64(b.N)/ours.Seconds(), "engine-MADs/s")
	b.ReportMetric(questions*float64(b.N)/theirs.Seconds(), "bare-loop-MADs/s")
	b.ReportMetric(100*theirs.Seconds()/ours.Seconds(), "%of-bare-loop")
	b.ReportMetric(0, "ns/op") // of both: of no use
}

// rate asks again, when its question is answered. The first calls are of another
// goroutine than the rest.
type rate struct {
	e    *engine.Engine
	mu   sync.Mutex
	left int
	put  func(*engine.Call, int)
	done chan error
}

func (r *rate) Complete(c *engine.Call) {
	r.mu.Lock()
	r.left--
	left := r.left
	r.mu.Unlock()
	if c.Err != nil || left < 0 {
		r.done <- c.Err
		return
	}
	r.put(c, left)
	r.e.Start(c)
}
