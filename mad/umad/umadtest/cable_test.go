//go:build kernelibtest

package umadtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
)

// cable joins a virtual adapter to a node of ibsim.
type cable struct {
	hca  *HCA
	far  *ibsim.Transport
	done sync.WaitGroup
	stop chan struct{}
}

func plugIn(t *testing.T, o ibsim.Options) *cable {
	t.Helper()
	far, err := ibsim.Attach(o)
	if err != nil {
		t.Fatal(err)
	}
	port, err := far.Port()
	if err != nil {
		t.Fatal(err)
	}
	hca, err := NewHCA(port)
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{hca: hca, far: far, stop: make(chan struct{})}
	c.done.Go(c.out)
	c.done.Go(c.in)
	c.done.Go(func() { c.follow(port) })
	t.Cleanup(c.unplug)
	return c
}

// unplug takes the adapter out of the machine.
func (c *cable) unplug() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
		c.hca.Close()
		c.far.Close()
		c.done.Wait()
	}
}

// out carries what the kernel sends. The kernel has made the first hop of a
// directed route already; ibsim makes it itself.
func (c *cable) out() {
	var d engine.Datagram
	for c.hca.Recv(&d) == nil {
		if m := d.MAD; mad.Class(m[1]) == mad.ClassSubnDirected && m[6] == 1 && m[4]&0x80 == 0 {
			m[6] = 0
		}
		c.far.Send(&d) // what ibsim cannot carry is lost
	}
}

// in carries what comes for us. In transaction IDs, ibsim puts a number of its
// own into the upper 16 bits; of an answer, the kernel wants back its own: 0.
func (c *cable) in() {
	var d engine.Datagram
	for c.far.Recv(&d) == nil {
		if d.Undelivered {
			continue
		}
		if mad.ParseHeader(d.MAD).Method.IsResponse() {
			d.MAD[8], d.MAD[9] = 0, 0
		}
		d.QP = 1
		if mad.Class(d.MAD[1]).Family() == mad.ClassSubn {
			d.QP = 0
		}
		c.hca.Send(&d)
	}
}

// follow has the kernel's port be as ibsim's, which the subnet manager sets.
func (c *cable) follow(last engine.Port) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.stop:
			return
		}
		p, err := c.far.Port()
		if err == nil && fmt.Sprint(p) != fmt.Sprint(last) && c.hca.Set(p) == nil {
			last = p
		}
	}
}
