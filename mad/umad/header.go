package umad

import (
	"encoding/binary"
	"math"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// headerSize is the length of the header before each MAD (struct
// ib_user_mad_hdr, with the P_Key index). Fields are in the host's byte order
// unless noted as big endian.
const (
	headerSize = 64

	offAgent        = 0
	offStatus       = 4  // 0, or why our request was returned
	offTimeout      = 8  // ms; 0: no answer is expected
	offRetries      = 12 // the kernel's
	offLength       = 16 // of all, on receive
	offQP           = 20 // big endian from here
	offQKey         = 24
	offLID          = 28
	offSL           = 30
	offGRH          = 32 // 1: present
	offHopLimit     = 34 // after the index of our GID: the first
	offTrafficClass = 35
	offGID          = 36
	offFlowLabel    = 52
	offPKeyIndex    = 56 // host order
)

// putHeader writes the header of d, which goes out through agent.
func putHeader(b []byte, agent uint32, d *engine.Datagram) {
	clear(b[:headerSize])
	ne, be := binary.NativeEndian, binary.BigEndian
	ne.PutUint32(b[offAgent:], agent)
	ne.PutUint32(b[offTimeout:], millis(d.Timeout))
	be.PutUint32(b[offQP:], d.QP)
	if d.QP != 0 {
		be.PutUint32(b[offQKey:], mad.GeneralQKey)
	}
	be.PutUint16(b[offLID:], uint16(d.LID))
	b[offSL] = d.SL
	if d.HasGRH {
		b[offGRH], b[offHopLimit], b[offTrafficClass] = 1, d.HopLimit, d.TrafficClass
		copy(b[offGID:], d.GID[:])
		be.PutUint32(b[offFlowLabel:], d.FlowLabel)
	}
	ne.PutUint16(b[offPKeyIndex:], d.PKeyIndex)
}

// The kernel repeats a segment that is not acknowledged within 2 s, up to
// segmentRetries times (mad_rmpp.c, ib_retry_rmpp). It never does if the timeout
// for the answer is shorter: send_next_seg then leaves an absolute time where the
// relative one should be.
const (
	segmentRetries = 5
	minTransfer    = 2001 // ms
)

// putTransfer sets in header b how often the kernel repeats the segments of a
// request.
func putTransfer(b []byte) {
	ne := binary.NativeEndian
	ne.PutUint32(b[offTimeout:], max(ne.Uint32(b[offTimeout:]), minTransfer))
	ne.PutUint32(b[offRetries:], segmentRetries)
}

// isTransfer reports whether m is a request that is sent by RMPP.
func isTransfer(m []byte) bool {
	return mad.Class(m[mad.ClassOffset]) == mad.ClassSubnAdm && !mad.Method(m[mad.MethodOffset]).IsResponse() &&
		mad.RMPPFlags(m[mad.RMPPFlagsOffset])&mad.RMPPFlagsActive != 0
}

// millis rounds up: 0 would mean that no answer is expected.
func millis(t time.Duration) uint32 {
	return uint32(min((t+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
}

// getAddress reads the remote address in a header: the source of an answer, or the
// destination of our request that was returned.
func getAddress(b []byte) (a engine.Address) {
	ne, be := binary.NativeEndian, binary.BigEndian
	a.LID = mad.LID(be.Uint16(b[offLID:]))
	a.QP = be.Uint32(b[offQP:])
	a.SL = b[offSL]
	a.PKeyIndex = ne.Uint16(b[offPKeyIndex:])
	if b[offGRH] != 0 {
		a.HasGRH = true
		a.HopLimit, a.TrafficClass = b[offHopLimit], b[offTrafficClass]
		a.GID = mad.GID(b[offGID:])
		a.FlowLabel = be.Uint32(b[offFlowLabel:])
	}
	return a
}

// requestSize is the length of a request for an agent (struct
// ib_user_mad_reg_req2). The kernel writes the agent's number into its start.
const requestSize = 40

// openibOUI is in requests for agents of classes with a vendor; answers are
// matched by transaction ID, so the vendor does not matter.
const openibOUI = 0x001405

// agentRequest requests an agent that sends MADs of class c. It receives no
// requests: the masks of methods are empty.
func agentRequest(c mad.Class, userRMPP bool) (b [requestSize]byte) {
	ne := binary.NativeEndian
	if c.Family() != mad.ClassSubn {
		ne.PutUint32(b[4:], 1) // queue pair
	}
	b[8], b[9] = uint8(c), c.Version()
	if c >= 0x30 && c <= 0x4f {
		ne.PutUint32(b[32:], openibOUI)
	}
	if c == mad.ClassSubnAdm {
		b[36] = 1 // RMPP version
		if userRMPP {
			ne.PutUint32(b[12:], 1) // flags: segments and ACKs are left to us
		}
	}
	return b
}

// acceptMethod makes the agent also receive requests of method m.
func acceptMethod(b *[requestSize]byte, m mad.Method) {
	mask := b[16:32] // two words of 64 bits, the first for the lower methods
	ne := binary.NativeEndian
	word := mask[8*(m/64):]
	ne.PutUint64(word, ne.Uint64(word)|1<<(m%64))
}
