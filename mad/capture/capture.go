// Package capture records what goes over a transport in a pcap file, which
// Wireshark opens, and answers from such a recording as if it were the fabric.
//
//	capture.go   what a recording is: datagrams as packets
//	record.go    the transport that records another one
//	segment.go   long datagrams become what was on the wire
//	port.go      the facts of the local port, as MADs
//	load.go      a recording read: which request got which answer
//	datagrams.go the datagrams of a recording, one after the other
//	replay.go    the transport that answers from it
//	order.go     the order in which it answers
//
// A packet's capture interface says what it is to us: 0 was sent, 1 was
// received. What was on no wire is of interface 2, or 3 where the fabric is
// simulated in process, and of two sorts:
//
// The facts that a transport knows of the local port without asking anybody
// are the answers that the port would have given, had it been asked for
// NodeInfo, NodeDescription, PortInfo and P_KeyTable. They stand where the
// transport was asked, unless it said the same as before.
//
// A request marked as a receive error is one that the engine gave up at that
// moment, for no answer had come.
//
// What a transport gives back undelivered is not recorded, nor what it refuses
// to send.
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

// packet makes a packet of one MAD that goes to or comes from a; port is this
// end.
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

// farEnd is the address that packet made p of, but for the P_Key index.
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
