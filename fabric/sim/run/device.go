//go:build linux

// Package device has the rules of Linux' ib_umad and ib_mad: what programs may do with
// /dev/infiniband/umadN and issmN, and what comes of it. The far side is a simulated
// subnet. It makes no system calls: package run connects it to programs.
//
//	device.go    Port, and the files that are open on it
//	register.go  agents: the rules of registration
//	layout.go    the header before a MAD, requests for agents
//	write.go     what programs send
//	route.go     the first hop of a directed route
//	timeout.go   requests that wait for an answer
//	receive.go   what comes for programs
//	transfer.go  MADs of several segments (RMPP) that programs send
//	assemble.go  those that come for programs
//	read.go      what programs read
//
// Sources: Linux 6.1: drivers/infiniband/core user_mad.c, mad.c, mad_rmpp.c, smi.c, and
// include/uapi/rdma/ib_user_mad.h.

package run

import (
	"sync"
	"syscall"

	"fabsh/fabric/sim"
)

// umadPort is a port as its host's kernel has it. It is safe for concurrent use.
type umadPort struct {
	num    uint8
	client *sim.Client

	mu     sync.Mutex // guards all below, and the files; taken after the subnet's lock
	files  []*deviceFile
	agents map[uint16]*agent // by number
	last   uint16            // the number given last
	sms    int               // issm files that are open: 0 or 1

	posted  []sim.Message // that sendPosted is to send
	posting bool          // it runs
}

// newUmadPort attaches a port to its subnet.
func newUmadPort(clients *sim.Clients, node, num int) (*umadPort, error) {
	p := &umadPort{num: uint8(num), agents: map[uint16]*agent{}}
	var err error
	p.client, err = clients.AttachClient(sim.ClientOptions{Node: node, Port: num, Takes: p.takes, Receive: p.receive})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Client returns what the subnet knows of the port.
func (p *umadPort) Client() *sim.Client { return p.client }

// Close detaches the port from the subnet.
func (p *umadPort) Close() { p.client.Detach() }

// deviceFile is an open umad file. Its methods may be called from any goroutine.
type deviceFile struct {
	port   *umadPort
	wake   func() // called when the queue changes from empty, with the port's lock held
	closed bool
	small  bool // it drops what does not fit in one MAD, whose request times out

	agents     [maxAgents]*agent
	registered bool // an agent was
	header     int  // headerSize, or oldHeaderSize
	sent       map[sentKey][]*sent
	transfers  map[transferKey]*transfer
	queue      []entry
	bytes      int // in the queue
}

// maxAgents is the number of agents that a file may have (IB_UMAD_MAX_AGENTS).
const maxAgents = 32

// Open opens the umad file of the port. wake is called when something can be read, and of
// the file must call Flush alone. small: the file drops transfers of several segments, and
// their requests time out.
func (p *umadPort) Open(small bool, wake func()) *deviceFile {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &deviceFile{port: p, wake: wake, small: small, header: oldHeaderSize, sent: map[sentKey][]*sent{}, transfers: map[transferKey]*transfer{}}
	p.files = append(p.files, f)
	return f
}

// Close closes the file: its agents are gone, and what they wait for is forgotten.
func (f *deviceFile) Close() {
	p := f.port
	p.mu.Lock()
	for id, a := range f.agents {
		if a != nil {
			f.remove(id)
		}
	}
	f.closed, f.queue, f.transfers = true, nil, nil
	for i, other := range p.files {
		if other == f {
			p.files = append(p.files[:i], p.files[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	p.client.Registered()
}

// OpenSM opens the issm file: the port shows a subnet manager until CloseSM. One is open
// at a time; the next one gets EAGAIN, and waits unless it must not block.
func (p *umadPort) OpenSM() syscall.Errno {
	p.mu.Lock()
	if p.sms > 0 {
		p.mu.Unlock()
		return syscall.EAGAIN
	}
	p.sms++
	p.mu.Unlock()
	p.client.SetSM(true)
	return 0
}

// CloseSM closes the issm file.
func (p *umadPort) CloseSM() {
	p.client.SetSM(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sms--
}
