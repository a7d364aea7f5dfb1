// Package umad sends and receives through the host's own InfiniBand devices:
// Linux's /dev/infiniband/umadN, without C.
//
// Open chooses a port and returns a Transport, an engine.Transport over it. HostPorts and
// ActivePorts list the ports of the host, ReadCounters reads the counters that the kernel
// shows of a port; they read only files of sysfs and open no device.
//
// Sources: Linux 6.1: include/uapi/rdma/ib_user_mad.h (layouts),
// drivers/infiniband/core/user_mad.c and mad.c (behaviour), mad_rmpp.c.
//
// All agents are for sending: they receive only answers, so that no subnet
// manager or other agent of the host misses its requests. Only a listener
// (Accept) has an agent that receives requests, of one method. The issm devices,
// which announce a subnet manager, are never opened.
package umad

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// Options select the port to use. A device that is named may be a RoCE device;
// otherwise only InfiniBand ports are considered.
type Options struct {
	// Device is its name ("mlx5_0"); "" is the first with a usable port.
	Device string
	// Port is its number; 0 is the device's first that is ACTIVE, otherwise the
	// first whose link is up.
	Port int
	// FS is the root of the files, which has sys/class/infiniband; nil: the host's.
	FS fs.FS
}

// Transport is an engine.Transport over a port of the host. As there, one goroutine
// sends at a time and another receives; Accept, Port and Close are safe for concurrent
// use. The opener closes it, or the engine that it was passed to.
//
// A planarized adapter (XDR) shows one port as two: on one device for general
// services (mlx5_0), on another for subnet management (smi1). Then both are open,
// and each datagram is sent through the right one.
type Transport struct {
	// Skipped is why ports that come before this one in the order of choice were not used.
	// Ports of a named device are not skipped.
	Skipped []error

	sys      sysfs
	gsi, smi *device // the same, unless planarized

	// With two devices, a goroutine for each receives.
	arrived chan arrival
	closing chan struct{}
	readers sync.WaitGroup
	close   sync.Once
}

var _ engine.Transport = (*Transport)(nil)

// Open opens the port that o selects. Without the name of a device, ports that cannot be
// opened are skipped; the error is the error of the first.
func Open(o Options) (*Transport, error) { return openBest(newSysfs(o.FS), o, openFile) }

func openBest(sys sysfs, o Options, openFile func(path string) (file, error)) (*Transport, error) {
	all, err := sys.ports()
	if err != nil {
		return nil, err
	}
	var skipped []error
	for {
		gsi, smi, err := choose(all, o)
		var t *Transport
		if err == nil {
			t, err = open(sys, gsi, smi, openFile)
		}
		switch {
		case err == nil:
			t.Skipped = skipped
			return t, nil
		case gsi.device == "" || o.Device != "":
			return nil, cmp.Or(append(skipped, err)...)
		}
		skipped = append(skipped, err)
		all = slices.DeleteFunc(all, func(p port) bool { return p == gsi || p == smi })
	}
}

// OpenPort opens a port that AllPorts returned, without a choice and without its other half:
// for SMPs, if its role is not "gsi".
func OpenPort(sys fs.FS, h HostPort) (*Transport, error) {
	p := port{device: h.Device, num: int(h.Num), umad: h.Umad, ethernet: h.Link != "infiniband", state: h.State, phys: h.PhysicalState, guid: h.PortGUID}
	if p.umad == "" {
		return nil, fmt.Errorf("%v: ib_umad does not serve it", p)
	}
	return open(newSysfs(sys), p, p, openFile)
}

// open opens the devices of a pair of ports with the given function.
func open(sys sysfs, gsi, smi port, openFile func(path string) (file, error)) (*Transport, error) {
	t := &Transport{sys: sys, closing: make(chan struct{})}
	var err error
	if t.gsi, err = openDevice(gsi, openFile); err != nil {
		return nil, err
	}
	t.smi = t.gsi
	if smi == gsi {
		return t, nil
	}
	if t.smi, err = openDevice(smi, openFile); err != nil {
		t.gsi.close()
		return nil, err
	}
	t.arrived = make(chan arrival)
	for _, d := range []*device{t.gsi, t.smi} {
		t.readers.Go(func() { t.read(d) })
	}
	return t, nil
}

// Traits returns the traits of the transport: the kernel splits and reassembles the
// tables of SubnAdm. It has no limit of outstanding requests; recent kernels queue
// requests beyond 128 SMPs or 16 requests to SubnAdm.
func (t *Transport) Traits() engine.Traits { return engine.Traits{Name: "umad", RMPP: true} }

// Send passes d to the kernel. If the kernel rejects it, the error is an
// *engine.SendError; other errors mean that the device was removed.
func (t *Transport) Send(d *engine.Datagram) error {
	return t.deviceFor(mad.Class(d.MAD[mad.ClassOffset])).send(d)
}

// TrySend is Send: the kernel queues what it cannot send at once.
func (t *Transport) TrySend(d *engine.Datagram) (bool, error) {
	err := t.Send(d)
	return err == nil, err
}

// BeforeWait makes Recv call f before it waits. With two devices their readers
// wait.
func (t *Transport) BeforeWait(f func() (again bool)) bool {
	return t.arrived == nil && t.gsi.file.beforeWait(f)
}

// Accept registers for requests of others. The kernel delivers the requests of a class
// and method to one program.
func (t *Transport) Accept(c mad.Class, m mad.Method) (stop func(), err error) {
	return t.deviceFor(c).accept(c, m)
}

// GaveUp does nothing: the kernel has the engine's timeout.
func (t *Transport) GaveUp(*engine.Datagram) {}

// Behind returns false: agents answer, not this process.
func (t *Transport) Behind() bool { return false }

// deviceFor returns the device for a class.
func (t *Transport) deviceFor(c mad.Class) *device {
	if c.Family() == mad.ClassSubn {
		return t.smi
	}
	return t.gsi
}

// Recv waits for the next datagram.
func (t *Transport) Recv(d *engine.Datagram) error {
	if t.arrived == nil {
		return t.gsi.recv(d)
	}
	select {
	case a := <-t.arrived:
		if a.err != nil {
			return a.err
		}
		*d, *a.d = *a.d, *d
		a.taken <- struct{}{}
		return nil
	case <-t.closing:
		return engine.ErrClosed
	}
}

// arrival is a datagram passed from a device to Recv.
type arrival struct {
	d     *engine.Datagram
	err   error
	taken chan struct{}
}

// read passes the datagrams of d to Recv, one at a time.
func (t *Transport) read(d *device) {
	a := arrival{d: new(engine.Datagram), taken: make(chan struct{}, 1)}
	for a.err == nil {
		a.err = d.recv(a.d)
		select {
		case t.arrived <- a:
		case <-t.closing:
			return
		}
		if a.err == nil {
			<-a.taken
		}
	}
}

// Port reads the current facts of the port. For a planarized port, the number is
// the SMI device's: directed routes begin with it.
func (t *Transport) Port() (engine.Port, error) {
	p, err := t.sys.facts(t.gsi.port)
	if err != nil {
		return engine.Port{}, cmp.Or(t.gsi.gone(err), err)
	}
	p.Num, p.Planarized = uint8(t.smi.num), t.smi != t.gsi
	return p, nil
}

// Close ends a waiting Recv.
func (t *Transport) Close() error {
	t.close.Do(func() {
		close(t.closing)
		t.gsi.close()
		if t.smi != t.gsi {
			t.smi.close()
		}
		t.readers.Wait()
	})
	return nil
}

// String returns the port's name: "mlx5_0/1", "mlx5_0/1+smi1/2".
func (t *Transport) String() string {
	if t.smi == t.gsi {
		return t.gsi.String()
	}
	return fmt.Sprintf("%v+%v", t.gsi, t.smi)
}
