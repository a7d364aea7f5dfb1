//go:build linux

package run

import (
	"bytes"
	"encoding/binary"
	"slices"
	"syscall"
	"time"

	"fabsh/fabric/sim"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

const (
	minWriteMAD = mad.RMPPOffset + 12 // IB_MGMT_RMPP_HDR: what a write has at least
	// maxUmadWrite is the largest write: what a kernel has memory for differs.
	maxUmadWrite = 64 << 20
)

// activeFlag is of RMPPFlags: the MAD is of a transfer.
const activeFlag = byte(mad.RMPPFlagsActive)

// Write sends what a program writes: a header, and one MAD, or the data of several
// segments (ib_umad_write).
func (f *deviceFile) Write(b []byte) (int, syscall.Errno) {
	gid := f.port.checkGID(b)
	f.port.mu.Lock()
	messages, errno := f.prepare(b, gid)
	if f.port.posting { // behind ACKs: the receiver expects them first
		f.port.post(messages...)
		messages = nil
	}
	f.port.mu.Unlock()
	if errno != 0 {
		return 0, errno
	}
	for i := range messages {
		f.port.send(&messages[i])
	}
	return len(b), 0
}

// WriteAccepted is Write of what the kernel has accepted unchecked: what Write rejects is
// lost, and comes back as if nothing had answered it.
func (f *deviceFile) WriteAccepted(b []byte) {
	if _, errno := f.Write(b); errno != 0 {
		f.port.mu.Lock()
		defer f.port.mu.Unlock()
		f.lose(b)
	}
}

// send passes m to the subnet. The port's lock is not held.
func (p *umadPort) send(m *sim.Message) { p.client.Send(m) }

// post sends messages from another goroutine, in order. The port's lock is held.
func (p *umadPort) post(list ...sim.Message) {
	p.posted = append(p.posted, list...)
	if !p.posting && len(p.posted) > 0 {
		p.posting = true
		go p.sendPosted()
	}
}

func (p *umadPort) sendPosted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.posted) > 0 {
		list := p.posted
		p.posted = nil
		p.mu.Unlock()
		for i := range list {
			p.send(&list[i])
		}
		p.mu.Lock()
	}
	p.posting = false
}

// prepare checks a write, and notes what waits for an answer. gid is the result of
// checkGID.
func (f *deviceFile) prepare(b []byte, gid syscall.Errno) ([]sim.Message, syscall.Errno) {
	if len(b) < f.header+minWriteMAD {
		return nil, syscall.EINVAL
	}
	head, m := b[:f.header], b[f.header:]
	id := binary.NativeEndian.Uint32(head[offID:])
	if id >= maxAgents {
		return nil, syscall.EINVAL
	}
	a := f.agents[id]
	if a == nil {
		return nil, syscall.EIO
	}
	if gid != 0 {
		return nil, gid
	}
	class := mad.Class(m[mad.ClassOffset])
	active := hasRMPP(class) && m[mad.RMPPFlagsOffset]&activeFlag != 0
	split := active && a.rmpp
	if !split && len(m) > mad.Size {
		return nil, syscall.EINVAL
	}
	s := &sentMAD{agent: a, head: slices.Clone(head)}
	s.message = writtenMessage(head, m, a)
	if !isResponse(m) {
		t := s.message.MAD[mad.TIDOffset:]
		binary.BigEndian.PutUint16(t, uint16(f.port.client.Slot()))
		binary.BigEndian.PutUint16(t[2:], a.number)
	}
	s.key = sentKeyOf(s.message.MAD[:])
	if (!active || a.rmpp) && f.isDuplicate(s) {
		return nil, syscall.EINVAL
	}
	if class == mad.ClassSubnDirected {
		if !f.port.startsHere(s.message.MAD[:]) {
			return nil, syscall.EINVAL
		}
		if s.message.MAD[mad.HopCountOffset] == 0 {
			s.message.DLID, s.message.DQP = mad.PermissiveLID, 0 // it stays here: the kernel answers it, whatever the queue pair
		}
	}
	s.timeout = time.Duration(binary.NativeEndian.Uint32(head[offTimeout:])) * time.Millisecond
	s.retries = binary.NativeEndian.Uint32(head[offRetries:])
	messages := []sim.Message{s.message}
	if split { // the kernel writes the RMPP header, whatever the program has there
		messages = s.begin(bytes.Clone(payload(m)))
	}
	f.wait(s)
	return messages, 0
}

// writtenMessage is what a write sends, but for its transaction ID.
func writtenMessage(head, m []byte, a *agent) sim.Message {
	s := sim.Message{
		DLID: mad.LID(binary.BigEndian.Uint16(head[offLID:])), DQP: binary.BigEndian.Uint32(head[offQP:]) & 0xffffff,
		SL: head[offSL] & 15, Length: mad.Size,
	}
	if len(head) == headerSize {
		s.PKeyIndex = binary.NativeEndian.Uint16(head[offPKeyIndex:])
	}
	if head[offHasGRH] != 0 {
		s.HasGRH, s.GID = true, mad.GID(head[offGID:])
	}
	copy(s.MAD[:], m)
	switch class := mad.Class(m[mad.ClassOffset]); {
	case class == mad.ClassSubnDirected:
		s.SLID = mad.PermissiveLID
	case class != mad.ClassSubn && a.gsi:
		s.SQP = 1
	}
	return s
}

// checkGID checks the index of the sender's GID (rdma_get_gid_attr). The port's lock is
// not held.
func (p *umadPort) checkGID(head []byte) syscall.Errno {
	if len(head) < oldHeaderSize || head[offHasGRH] == 0 {
		return 0
	}
	gids := p.client.GIDs()
	switch i := int(head[offGIDIndex]); {
	case i >= len(gids):
		return syscall.EINVAL
	case gids[i].GUID() == 0:
		return syscall.ENODATA
	}
	return 0
}

// isResponse reports whether a MAD is a response, for the kernel (ib_response_mad).
func isResponse(m []byte) bool {
	method := mad.Method(m[mad.MethodOffset])
	const baseboardResponse = 1 // of AttributeModifier
	return method.IsResponse() || method == mad.MethodTrapRepress ||
		mad.Class(m[mad.ClassOffset]) == mad.ClassBM && m[mad.ModifierOffset+3]&baseboardResponse != 0
}

// sentKey is what answers have of requests: the transaction ID and the class.
type sentKey struct {
	tid   uint64
	class mad.Class
}

func sentKeyOf(m []byte) sentKey {
	return sentKey{binary.BigEndian.Uint64(m[mad.TIDOffset:]), mad.Class(m[mad.ClassOffset])}
}

// sentMAD is a MAD, or a transfer, that waits for an answer or an ACK.
type sentMAD struct {
	agent   *agent
	key     sentKey
	head    []byte // as it was written
	message sim.Message
	timeout time.Duration // 0: nothing answers it
	retries uint32
	left    uint32 // of them
	timer   *time.Timer
	outgoingTransfer
}

// isDuplicate reports whether a MAD with this transaction ID and class is under way
// (is_duplicate): a request, or a response to this destination.
func (f *deviceFile) isDuplicate(s *sentMAD) bool {
	return slices.ContainsFunc(f.sent[s.key], func(other *sentMAD) bool {
		response := isResponse(s.message.MAD[:])
		if response != isResponse(other.message.MAD[:]) {
			return false
		}
		return !response || bytes.Equal(s.head[offLID:offLID+2], other.head[offLID:offLID+2])
	})
}

// takes is sim.TakesFunc: an agent is registered for the request.
func (p *umadPort) takes(class mad.Class, method mad.Method, m *[mad.Size]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taker(class, method, m) != nil
}

// taker returns the agent that a request is for (find_mad_agent): the one of its class, version,
// method, and OUI.
func (p *umadPort) taker(class mad.Class, method mad.Method, m *[mad.Size]byte) *agent {
	for _, a := range p.agents {
		if a.class != class || a.methods[method>>6&1]>>(method&63)&1 == 0 {
			continue
		}
		if m == nil || m[mad.ClassVersionOffset] == a.version && (!class.HasOUI() || bytes.Equal(m[mad.VendorOUIOffset:][:3], a.oui[:])) {
			return a
		}
	}
	return nil
}

// receive takes what the subnet has for the port (ib_mad_complete_recv).
func (p *umadPort) receive(m *sim.Message) {
	if m.Undelivered { // the timeout reports it
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := m.MAD[:]
	response := isResponse(b)
	var a *agent
	if response {
		a = p.agents[binary.BigEndian.Uint16(b[mad.TIDOffset+2:])]
	} else {
		a = p.taker(mad.Class(b[mad.ClassOffset]), mad.Method(b[mad.MethodOffset]), &m.MAD)
	}
	if a == nil {
		return
	}
	data, active := b, b[mad.RMPPFlagsOffset]&activeFlag != 0
	if a.rmpp && active {
		if data = a.receiveSegment(m); data == nil {
			return
		}
	}
	if !response {
		a.deliver(m, data, nil)
		return
	}
	for _, s := range a.file.sent[sentKeyOf(b)] {
		if s.agent == a && !isResponse(s.message.MAD[:]) {
			a.deliver(m, data, s)
			return
		}
	}
	// What nothing waits for is dropped, unless the program does RMPP itself.
	if active && !a.rmpp && hasRMPP(mad.Class(b[mad.ClassOffset])) {
		a.deliver(m, data, nil)
	}
}

// deliver puts a MAD, or all of a transfer, into the queue of the agent's file; request is
// what it answers.
func (a *agent) deliver(m *sim.Message, data []byte, request *sentMAD) {
	f := a.file
	if f.small && len(data) > mad.Size {
		return
	}
	head := make([]byte, f.header+len(data))
	copy(head[f.header:], data)
	binary.NativeEndian.PutUint32(head[offID:], a.id)
	binary.NativeEndian.PutUint32(head[offLength:], uint32(f.header+len(data)))
	binary.BigEndian.PutUint32(head[offQP:], m.SQP)
	binary.BigEndian.PutUint16(head[offLID:], uint16(m.SLID))
	head[offSL] = m.SL
	if f.header == headerSize {
		binary.NativeEndian.PutUint16(head[offPKeyIndex:], m.PKeyIndex)
	}
	switch {
	case request != nil && request.message.HasGRH:
		head[offHasGRH], head[offHopLimit] = 1, 0xff
		copy(head[offGIDIndex:offGIDIndex+1], request.head[offGIDIndex:])
		copy(head[offGID:offGID+16], request.head[offGID:])
	case request == nil && m.HasGRH:
		head[offHasGRH], head[offHopLimit] = 1, 0xff
		copy(head[offGID:], m.GID[:])
	}
	if request != nil {
		f.settle(request)
	}
	f.push(readEntry{bytes: head})
}

// startsHere reports whether the kernel sends a directed-route SMP of a program through
// this port (smi_handle_dr_smp_send; IBA 14.2.2). That it does not the write reports.
func (p *umadPort) startsHere(m []byte) bool {
	pointer, count := int(m[mad.HopPointerOffset]), int(m[mad.HopCountOffset])
	slid, dlid := state.DRLIDs(m)
	isSwitch := p.num == 0
	if m[mad.StatusOffset]&state.DirectionBit != 0 {
		if dlid != mad.PermissiveLID {
			return true // by LID first
		}
		switch {
		case count > mad.MaxHops:
			return false
		case count > 0 && pointer == count+1:
			return int(m[mad.SMPReturnPathOffset+count]) == int(p.num)
		case 2 <= pointer && pointer <= count:
			return isSwitch && int(m[mad.SMPReturnPathOffset+pointer-1]) == int(p.num)
		case pointer <= 1:
			return isSwitch || slid == mad.PermissiveLID
		}
		return false
	}
	if slid != mad.PermissiveLID {
		return true
	}
	switch {
	case count > mad.MaxHops:
		return false
	case count > 0 && pointer == 0:
		return int(m[mad.SMPInitialPathOffset+1]) == int(p.num) || isSwitch
	case pointer > 0 && pointer < count:
		return isSwitch && int(m[mad.SMPInitialPathOffset+pointer+1]) == int(p.num)
	case pointer == count:
		return isSwitch || dlid == mad.PermissiveLID
	}
	return pointer == count+1
}

// wait notes a MAD that was written with a timeout: without an answer it is sent again,
// and at last comes back. The kernel waits for an answer to responses too, if they are
// written so; and for the ACKs of all transfers. The port's lock is held.
func (f *deviceFile) wait(s *sentMAD) {
	after := s.timeout
	if s.count > 0 {
		after = s.firstWait()
	}
	if after == 0 {
		return
	}
	s.left = s.retries
	f.sent[s.key] = append(f.sent[s.key], s)
	s.timer = time.AfterFunc(after, func() { f.expire(s) })
}

// expire sends a MAD again, or returns it.
func (f *deviceFile) expire(s *sentMAD) {
	p := f.port
	p.mu.Lock()
	if !slices.Contains(f.sent[s.key], s) { // it was answered meanwhile
		p.mu.Unlock()
		return
	}
	if s.left > 0 && (s.count == 0 || s.acked < s.count) {
		s.left--
		messages := []sim.Message{s.message}
		if s.count > 0 {
			s.last = s.acked
			messages = s.nextWindow()
			s.timer.Reset(s.firstWait())
		} else {
			s.timer.Reset(s.timeout)
		}
		p.mu.Unlock()
		for i := range messages {
			p.send(&messages[i])
		}
		return
	}
	defer p.mu.Unlock()
	f.settle(s)
	f.bounce(s.agent, s.head, s.message.MAD[:])
}

// bounce puts a MAD into the queue that nothing has answered.
func (f *deviceFile) bounce(a *agent, head, m []byte) {
	head = append(slices.Clone(head), m[:mad.HeaderSize]...)
	binary.NativeEndian.PutUint32(head[offID:], a.id)
	binary.NativeEndian.PutUint32(head[offStatus:], statusTimeout)
	f.push(readEntry{bytes: head, returned: true})
}

// lose has a write come back after its timeout, if its agent is still there.
func (f *deviceFile) lose(b []byte) {
	if len(b) < f.header+minWriteMAD {
		return
	}
	head, m := slices.Clone(b[:f.header]), slices.Clone(b[f.header:][:mad.HeaderSize])
	id := binary.NativeEndian.Uint32(head[offID:])
	if id >= maxAgents || f.agents[id] == nil {
		return
	}
	a, timeout, retries := f.agents[id], binary.NativeEndian.Uint32(head[offTimeout:]), binary.NativeEndian.Uint32(head[offRetries:])
	if timeout == 0 {
		return
	}
	time.AfterFunc(time.Duration(timeout)*time.Millisecond*time.Duration(1+uint64(retries)), func() {
		f.port.mu.Lock()
		defer f.port.mu.Unlock()
		if f.agents[id] == a {
			f.bounce(a, head, m)
		}
	})
}

// settle forgets a MAD that waited.
func (f *deviceFile) settle(s *sentMAD) {
	s.timer.Stop()
	list := f.sent[s.key]
	if list = slices.DeleteFunc(list, func(other *sentMAD) bool { return other == s }); len(list) == 0 {
		delete(f.sent, s.key)
	} else {
		f.sent[s.key] = list
	}
}
