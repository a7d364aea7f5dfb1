// Package capture records the traffic of a transport in a pcap file, which
// Wireshark opens, and answers from such a recording in place of a fabric.
//
//	capture.go   the format of a recording: datagrams as packets
//	record.go    the transport that records another one
//	segment.go   long datagrams as the segments on the wire
//	port.go      the facts of the local port, as MADs
//	load.go      reads a recording: requests and their answers
//	datagrams.go the datagrams of a recording, in order
//	replay.go    the transport that answers from a recording
//	order.go     the order in which it answers
//	anonymize.go a recording with other names, GUIDs and serial numbers; identity.go,
//	             what these are
//
// The capture interface of a packet is 0 if it was sent, 1 if it was received.
// Packets that were not on a wire have interface 2, or 3 if the fabric is
// simulated in process. They are of two kinds:
//
// The facts of the local port that a transport has without a request are stored
// as the port's answers to requests for NodeInfo, NodeDescription, PortInfo and
// P_KeyTable. They are recorded when the transport is called for them, unless
// they are unchanged.
//
// A request marked as a receive error was abandoned by the engine at that moment,
// because no answer had come.
//
// Datagrams that a transport returns undelivered or refuses to send are not
// recorded.
package capture

import (
	"cmp"
	"encoding/binary"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/erf"
)

// The capture interfaces.
const (
	sent = iota
	received
	local
	simulated // local, in a subnet simulated in process
)

const (
	defaultPKey  = 0xffff
	managementVL = 15 // the virtual lane of queue pair 0
)

// packet returns the packet of one MAD to or from a; port is the local end.
func packet(iface uint8, now time.Time, a *engine.Address, port *engine.Port, m []byte) erf.Packet {
	p := erf.Packet{Time: now, Interface: iface, SL: a.SL, PKey: defaultPKey, DestQP: a.QP, Payload: m}
	here := port.LID
	switch class := mad.Class(m[mad.ClassOffset]); {
	case class == mad.ClassSubnDirected:
		here = mad.PermissiveLID
		fallthrough
	case class == mad.ClassSubn:
		p.VL = managementVL
	default:
		p.SrcQP, p.QKey = 1, cmp.Or(a.QKey, mad.GeneralQKey)
		if int(a.PKeyIndex) < len(port.PKeys) {
			p.PKey = port.PKeys[a.PKeyIndex]
		}
	}
	p.SLID, p.DLID = uint16(here), uint16(a.LID)
	if a.HasGRH {
		p.GRH = &erf.GRH{TrafficClass: a.TrafficClass, FlowLabel: a.FlowLabel, HopLimit: a.HopLimit,
			SGID: mad.MakeGID(port.GIDPrefix, port.PortGUID), DGID: a.GID}
	}
	if iface == received {
		p.SLID, p.DLID = p.DLID, p.SLID
		p.SrcQP, p.DestQP = p.DestQP, p.SrcQP
		if p.GRH != nil {
			p.GRH.SGID, p.GRH.DGID = p.GRH.DGID, p.GRH.SGID
		}
	}
	return p
}

// farEnd returns the remote address of packet p, without the P_Key index.
func farEnd(p *erf.Packet) engine.Address {
	a := engine.Address{LID: mad.LID(p.DLID), QP: p.DestQP, SL: p.SL}
	if p.Interface == received {
		a.LID, a.QP = mad.LID(p.SLID), p.SrcQP
	}
	if g := p.GRH; g != nil {
		a.HasGRH, a.GID = true, g.DGID
		if p.Interface == received {
			a.GID = g.SGID
		}
		a.TrafficClass, a.FlowLabel, a.HopLimit = g.TrafficClass, g.FlowLabel, g.HopLimit
	}
	return a
}
func tidOf(m []byte) uint64 { return binary.BigEndian.Uint64(m[mad.TIDOffset:]) }
