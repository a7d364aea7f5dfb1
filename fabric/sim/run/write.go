//go:build linux

package run

import (
	"bytes"
	"encoding/binary"
	"slices"
	"syscall"
	"time"

	"fabsh/fabric/sim"
	"fabsh/mad"
)

const (
	leastMAD = mad.RMPPOffset + 12 // IB_MGMT_RMPP_HDR: what a write has at least
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
	if len(b) < f.header+leastMAD {
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
	s := &sent{agent: a, head: slices.Clone(head)}
	s.message = message(head, m, a)
	if !isResponse(m) {
		t := s.message.MAD[mad.TIDOffset:]
		binary.BigEndian.PutUint16(t, uint16(f.port.client.Slot()))
		binary.BigEndian.PutUint16(t[2:], a.number)
	}
	s.key = keyOf(s.message.MAD[:])
	if (!active || a.rmpp) && f.isDuplicate(s) {
		return nil, syscall.EINVAL
	}
	if class == mad.ClassSubnDirected {
		if !f.port.startsHere(s.message.MAD[:]) {
			return nil, syscall.EINVAL
		}
		if s.message.MAD[mad.HopCountOffset] == 0 {
			s.message.DLID = mad.PermissiveLID // it stays here
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

// message is what a write sends, but for its transaction ID.
func message(head, m []byte, a *agent) sim.Message {
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
		s.SLID, s.DQP = mad.PermissiveLID, 0
	case class == mad.ClassSubn:
		s.DQP = 0
	case a.gsi:
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

func keyOf(m []byte) sentKey {
	return sentKey{binary.BigEndian.Uint64(m[mad.TIDOffset:]), mad.Class(m[mad.ClassOffset])}
}

// sent is a MAD, or a transfer, that waits for an answer or an ACK.
type sent struct {
	agent   *agent
	key     sentKey
	head    []byte // as it was written
	message sim.Message
	timeout time.Duration // 0: nothing answers it
	retries uint32
	left    uint32 // of them
	timer   *time.Timer
	outgoing
}

// isDuplicate reports whether a MAD with the same transaction ID and class is under way
// (is_duplicate): a request, or a response to the same destination.
func (f *deviceFile) isDuplicate(s *sent) bool {
	return slices.ContainsFunc(f.sent[s.key], func(other *sent) bool {
		response := isResponse(s.message.MAD[:])
		if response != isResponse(other.message.MAD[:]) {
			return false
		}
		return !response || bytes.Equal(s.head[offLID:offLID+2], other.head[offLID:offLID+2])
	})
}
