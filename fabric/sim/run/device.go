//go:build linux

package run

import (
	"encoding/binary"
	"slices"
	"sync"
	"syscall"

	"fabsh/fabric/sim"
	"fabsh/mad"
)

// Umad devices have the rules of Linux' ib_umad and ib_mad: what programs may do with
// /dev/infiniband/umadN and issmN, and what comes of it. The far side is a simulated subnet.
// Nothing here makes system calls: file.go connects it to programs.
//
// Sources: Linux 6.1: drivers/infiniband/core user_mad.c, mad.c, mad_rmpp.c, smi.c, and
// include/uapi/rdma/ib_user_mad.h.

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
	sent       map[sentKey][]*sentMAD
	transfers  map[transferKey]*incomingTransfer
	queue      []readEntry
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
	f := &deviceFile{port: p, wake: wake, small: small, header: oldHeaderSize, sent: map[sentKey][]*sentMAD{}, transfers: map[transferKey]*incomingTransfer{}}
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

// agent is a registration of a program.
type agent struct {
	file    *deviceFile
	id      uint32
	number  uint16 // on its port, which the transaction IDs of its requests have
	gsi     bool   // it sends from queue pair 1
	rmpp    bool   // the kernel splits and joins for it
	class   mad.Class
	version uint8
	oui     [3]byte
	methods [2]uint64 // that it receives
}

// maxOUIs is how many OUIs of a vendor class may be registered (MAX_MGMT_OUI).
const maxOUIs = 8

// Ioctl executes a request. argument is of ioctlArgumentSize bytes. changed are the bytes of
// it that are to be written back, at once, whether or not there is an error; commit, if
// it is not nil, must be called after that, with whether they could be.
func (f *deviceFile) Ioctl(request uint32, argument []byte) (changed []byte, offset int, errno syscall.Errno, commit func(written bool)) {
	p := f.port
	p.mu.Lock()
	defer p.mu.Unlock()
	u32 := binary.NativeEndian.Uint32
	var r registration
	switch request {
	case enablePKey:
		if f.registered {
			return nil, 0, syscall.EINVAL, nil
		}
		f.header = headerSize
		return nil, 0, 0, nil
	case unregisterAgent:
		id := u32(argument)
		if id >= maxAgents || f.agents[id] == nil {
			return nil, 0, syscall.EINVAL, nil
		}
		f.remove(int(id))
		return nil, 0, 0, func(bool) { p.client.Registered() }
	case registerAgent:
		r = registration{qp: uint32(argument[20]), class: argument[21], version: argument[22], oui: [3]byte(argument[23:]), rmpp: argument[26]}
		r.methods = methodsOf(argument[4:])
	case registerAgent2:
		r = registration{qp: u32(argument[4:]), class: argument[8], version: argument[9], flags: u32(argument[12:]), rmpp: argument[36]}
		r.methods = methodsOf(argument[16:])
		oui := u32(argument[32:])
		r.oui = [3]byte{byte(oui >> 16), byte(oui >> 8), byte(oui)}
		if r.qp > 1 {
			return nil, 0, syscall.EINVAL, nil
		}
		if r.flags&^userRMPP != 0 {
			return binary.NativeEndian.AppendUint32(nil, userRMPP), 12, syscall.EINVAL, nil
		}
		if r.class != 0 && oui>>24 != 0 {
			return nil, 0, syscall.EINVAL, nil
		}
	default:
		return nil, 0, syscall.ENOTTY, nil
	}
	a, errno := f.register(&r)
	if errno != 0 {
		return nil, 0, errno, nil
	}
	return binary.NativeEndian.AppendUint32(nil, a.id), 0, 0, func(written bool) {
		p.mu.Lock()
		if !written {
			f.remove(int(a.id))
		} else if !f.registered {
			f.registered = true
			if request == registerAgent2 {
				f.header = headerSize
			}
		}
		p.mu.Unlock()
		p.client.Registered()
	}
}

// registration is a request for an agent.
type registration struct {
	qp, flags            uint32
	class, version, rmpp uint8
	oui                  [3]byte
	methods              [2]uint64
}

// methodsOf reads a mask of methods: bit m of 128, in longs.
func methodsOf(b []byte) [2]uint64 {
	return [2]uint64{binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:])}
}

// register makes an agent (ib_umad_reg_agent, ib_register_mad_agent).
func (f *deviceFile) register(r *registration) (*agent, syscall.Errno) {
	if r.qp > 1 {
		return nil, syscall.EINVAL
	}
	id := uint32(0)
	for f.agents[id] != nil {
		if id++; id == maxAgents {
			return nil, syscall.ENOMEM
		}
	}
	if r.rmpp > 1 {
		return nil, syscall.EINVAL
	}
	class := mad.Class(r.class)
	smp := class.Family() == mad.ClassSubn
	switch {
	case class == 0: // it only sends
		if r.flags != 0 {
			return nil, syscall.EINVAL
		}
		r.methods, r.version = [2]uint64{}, 0
	case r.version >= 8, class >= 0x50 && class != mad.ClassSubnDirected,
		class.HasOUI() && r.oui == [3]byte{}, r.rmpp != 0 && !hasRMPP(class), smp != (r.qp == 0):
		return nil, syscall.EINVAL
	}
	p := f.port
	ouis := map[[3]byte]bool{}
	for _, a := range p.agents {
		if a.class == class && a.version == r.version && class != 0 {
			ouis[a.oui] = true
			if (a.oui == r.oui || !class.HasOUI()) && (a.methods[0]&r.methods[0] != 0 || a.methods[1]&r.methods[1] != 0) {
				return nil, syscall.EINVAL
			}
		}
	}
	if class.HasOUI() && !ouis[r.oui] && len(ouis) == maxOUIs {
		return nil, syscall.EINVAL
	}
	for range 1 << 16 {
		if p.last++; p.last != 0 && p.agents[p.last] == nil {
			break
		}
	}
	if p.last == 0 || p.agents[p.last] != nil {
		return nil, syscall.ENOMEM
	}
	a := &agent{file: f, id: id, number: p.last, gsi: r.qp == 1, rmpp: r.rmpp == 1 && r.flags&userRMPP == 0, class: class, version: r.version, oui: r.oui, methods: r.methods}
	f.agents[id], p.agents[a.number] = a, a
	return a, 0
}

// remove removes an agent, and what waits for it. What is in the queue stays.
func (f *deviceFile) remove(id int) {
	a := f.agents[id]
	f.agents[id] = nil
	delete(f.port.agents, a.number)
	for key, list := range f.sent {
		list = slices.DeleteFunc(list, func(s *sentMAD) bool {
			if s.agent == a {
				s.timer.Stop()
			}
			return s.agent == a
		})
		if f.sent[key] = list; len(list) == 0 {
			delete(f.sent, key)
		}
	}
	for key, t := range f.transfers {
		if key.agent == a {
			t.timer.Stop()
			delete(f.transfers, key)
		}
	}
}

// hasRMPP reports whether MADs of a class may have several segments
// (ib_is_mad_class_rmpp).
func hasRMPP(c mad.Class) bool {
	switch c {
	case mad.ClassSubnAdm, mad.ClassDevMgt, 0x10, 0x12:
		return true
	}
	return c.HasOUI()
}

// dataOffset is where the data of a class begin, for the kernel (ib_get_mad_data_offset).
func dataOffset(c mad.Class) int {
	switch c {
	case mad.ClassSubnAdm:
		return mad.SADataOffset
	case mad.ClassDevMgt, 0x10, 0x12:
		return 64
	}
	if c.HasOUI() {
		return mad.VendorDataOffset
	}
	return mad.HeaderSize
}

// Sizes of struct ib_user_mad_hdr: with the P_Key index, and as old programs know it.
const (
	headerSize    = 64
	oldHeaderSize = 56
)

// Offsets in struct ib_user_mad_hdr. Fields are in the host's byte order, but for those
// marked as big endian.
const (
	offID         = 0
	offStatus     = 4
	offTimeout    = 8 // in ms
	offRetries    = 12
	offLength     = 16
	offQP         = 20 // big endian
	offLID        = 28 // big endian
	offSL         = 30
	offHasGRH     = 32
	offGIDIndex   = 33
	offHopLimit   = 34
	offGID        = 36
	offPKeyIndex  = 56
	statusTimeout = 110 // ETIMEDOUT
)

// umadIoctlType is the type of the requests (_IOC_TYPE), their second byte.
const umadIoctlType = 0x1b

// Requests of ioctl.
const (
	registerAgent   = 0xc01c1b01
	unregisterAgent = 0x40041b02
	enablePKey      = 0x1b03
	registerAgent2  = 0xc0281b04
)

// userRMPP is the one flag of registerAgent2.
const userRMPP = 1

// ioctlArgumentSize is the size of the argument of a request, in bytes.
func ioctlArgumentSize(request uint32) int {
	switch request {
	case registerAgent:
		return 28
	case registerAgent2:
		return 40
	case unregisterAgent:
		return 4
	}
	return 0
}

// readEntry is what a read returns.
type readEntry struct {
	bytes    []byte // header and MAD
	returned bool   // the MAD is the program's own, without an answer
}

// Limits of what waits to be read; what comes beyond is dropped
// (MAX_UMAD_RECV_LIST_SIZE of newer kernels).
const (
	maxQueue      = 200000
	maxQueueBytes = 256 << 20
)

// push adds an entry to the queue. The port's lock is held.
func (f *deviceFile) push(e readEntry) {
	size := len(e.bytes)
	if f.closed || !e.returned && (len(f.queue) >= maxQueue || f.bytes+size > maxQueueBytes) {
		return
	}
	f.queue = append(f.queue, e)
	f.bytes += size
	f.wake()
}

// Read has a program read into a buffer of some size (ib_umad_read). copy copies bytes to
// it; if that fails, or the buffer is too small, the entry remains the first. empty:
// nothing waits, so that the program waits, or gets EAGAIN. drained is called when the
// queue has become empty; it must not call the file.
func (f *deviceFile) Read(size int, copy func(b []byte) bool, drained func()) (n int, errno syscall.Errno, empty bool) {
	f.port.mu.Lock()
	defer f.port.mu.Unlock()
	if size < f.header {
		return 0, syscall.EINVAL, false
	}
	if len(f.queue) == 0 {
		return 0, 0, true
	}
	b := f.queue[0].bytes
	first := b[:min(len(b), f.header+mad.Size)] // all of it, but of a transfer
	switch {
	case size < len(first):
		return 0, syscall.EINVAL, false
	case size < len(b):
		if !copy(first) {
			return 0, syscall.EFAULT, false
		}
		return 0, syscall.ENOSPC, false
	case !copy(b):
		return 0, syscall.EFAULT, false
	}
	f.pop()
	if len(f.queue) == 0 {
		drained()
	}
	return len(b), 0, false
}

// pop removes the first entry. The port's lock is held.
func (f *deviceFile) pop() {
	f.bytes -= len(f.queue[0].bytes)
	f.queue[0] = readEntry{}
	if f.queue = f.queue[1:]; len(f.queue) == 0 {
		f.queue = f.queue[:0:0]
	}
}

// Flush passes entries to send, the first ones first, until it returns false. wake, of
// Open, may call it: the port's lock is held then.
func (f *deviceFile) Flush(send func(b []byte) bool) (empty bool) {
	for len(f.queue) > 0 {
		if !send(f.queue[0].bytes) {
			return false
		}
		f.pop()
	}
	return true
}

// WithLock calls fn with the lock that is held when wake of Open is called.
func (f *deviceFile) WithLock(fn func()) {
	f.port.mu.Lock()
	defer f.port.mu.Unlock()
	fn()
}
