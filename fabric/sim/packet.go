// Package client attaches programs to the ports of a simulated subnet, and delivers
// messages to them.
//
//	client.go       Client: a foreign program; Clients: all of them
//	send.go         what a foreign program sends, and its answers
//	forward.go      requests that are for another program
//	waiting.go      requests that a program has not answered yet
//	conn.go         Attach: a program in this process, an engine.Transport
//	delayqueue.go   what waits for it
//	packet.go       RMPP headers
//	rmppreceive.go  requests of several segments
//	rmppsend.go     answers of several segments

package sim

import (
	"encoding/binary"

	"fabsh/fabric/sim/agent"
	"fabsh/mad"
)

// isSegment reports whether p is a packet of an RMPP transfer.
func isSegment(p *agent.Packet) bool {
	if mad.Class(p.MAD[mad.ClassOffset]) != mad.ClassSubnAdm || p.MAD[mad.ClassVersionOffset] == 1 {
		return false
	}
	h := rmppHeader(p.MAD[:])
	return h.RMPPVersion == 1 && h.RMPPFlags&mad.RMPPFlagsActive != 0 &&
		h.RMPPType >= mad.RMPPTypeData && h.RMPPType <= mad.RMPPTypeAbort
}

func rmppHeader(m []byte) (h mad.RMPPHeader) {
	h.Decode(m[mad.RMPPOffset:])
	return h
}

func transferID(p *agent.Packet) uint64 { return binary.BigEndian.Uint64(p.MAD[mad.TIDOffset:]) }
