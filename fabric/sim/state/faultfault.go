// Package fault contains the random faults of a simulated subnet: MADs that are lost,
// late or duplicated, and agents that answer BUSY.
//
//	fault.go  Faults: the settings of all MADs, and those of nodes and ports
//	model.go  Model: the faults of each MAD, which follow from a seed
//	loss.go   what ports lose of the MADs that cross their links

package state

import (
	"fabsh/mad"
	"fmt"
	"sync/atomic"
	"time"
)

// Faults are the faults of a subnet.
type Faults struct {
	subnet   *Subnet
	Settings atomic.Pointer[FaultSettings]
	lossy    bool // a port loses MADs; guarded by the subnet's lock
}

// NewFaults makes the faults of a subnet.
func NewFaults(s *Subnet, o FaultSettings) *Faults {
	f := &Faults{subnet: s}
	f.Settings.Store(&o)
	return f
}

// FaultSettings are the faults of all MADs. They are replaced as a whole.
type FaultSettings struct {
	Loss, Dup, Busy float64
	Delay, Jitter   time.Duration
	Seed            int64
	VL15            int
}

// change changes the faults of all MADs.
func (f *Faults) change(change func(*FaultSettings)) {
	f.subnet.Lock()
	defer f.subnet.Unlock()
	o := *f.Settings.Load()
	change(&o)
	f.Settings.Store(&o)
}

// active reports whether some MAD may have a fault.
func (o *FaultSettings) active() bool { return o.Loss > 0 || o.Dup > 0 || o.Busy > 0 || o.Jitter > 0 }

// SetLoss sets the probability that a MAD is lost, in each direction: of all MADs, or
// with a node of those that cross its ports; with a num of 0 or more, only that port.
func (f *Faults) SetLoss(p float64, node mad.GUID, num int) error {
	if p < 0 || p > 1 || p != p {
		return fmt.Errorf("invalid probability %v; want 0 to 1", p)
	}
	if node == 0 {
		f.change(func(o *FaultSettings) { o.Loss = p })
		return nil
	}
	return f.subnet.WithPort(node, max(0, num), func(at *Port) {
		ports := at.Node.Ports
		if num >= 0 {
			ports = ports[num : num+1]
		}
		for i := range ports {
			f.lose(&ports[i], Loss{Share: p})
		}
	})
}

// SetDelay sets the time from a request to its answer, and what is added to it at
// random.
func (f *Faults) SetDelay(delay, jitter time.Duration) error {
	if delay < 0 || jitter < 0 {
		return fmt.Errorf("invalid delay %v; want 0 or more", min(delay, jitter))
	}
	f.change(func(o *FaultSettings) { o.Delay, o.Jitter = delay, jitter })
	return nil
}

// SetBusy has the agents of a node answer BUSY to the next requests.
func (f *Faults) SetBusy(node mad.GUID, requests int) error {
	if requests < 0 {
		return fmt.Errorf("invalid number of requests %d; want 0 or more", requests)
	}
	return f.subnet.WithPort(node, 0, func(p *Port) { p.Node.Busy.Store(int64(requests)) })
}

// LosePackets has a port lose percent of the packets that come in, or of the requests
// of one attribute that end there.
func (f *Faults) LosePackets(at End, percent int, attr mad.AttributeID) error {
	f.subnet.Lock()
	defer f.subnet.Unlock()
	p, err := f.subnet.PortByIndex(at, 0)
	if err != nil {
		return err
	}
	f.lose(p, Loss{Share: float64(min(percent, 100)) / 100, Arriving: true, Attr: attr})
	return nil
}
