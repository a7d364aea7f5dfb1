//go:build linux

package run

import (
	"bytes"
	"encoding/binary"

	"fabsh/fabric/sim"
	"fabsh/mad"
)

// takes is sim.TakesFunc: an agent is registered for the request.
func (p *umadPort) takes(class mad.Class, method mad.Method, m *[mad.Size]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taker(class, method, m) != nil
}

// taker returns the agent that a request is for (find_mad_agent): that of its class,
// version and method, and OUI.
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
	for _, s := range a.file.sent[keyOf(b)] {
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
func (a *agent) deliver(m *sim.Message, data []byte, request *sent) {
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
	f.push(entry{bytes: head})
}
