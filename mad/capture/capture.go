// Package capture records the traffic of a transport in a pcap file, which
// Wireshark opens, and answers from such a recording in place of a fabric.
//
// Record returns a transport that records another one. Load reads a recording, and
// NewReplay returns a transport that answers from it. Datagrams reads the datagrams of any
// capture in their order. Anonymize replaces names, GUIDs and serial numbers of a recording.
// Transports are safe for concurrent use as engine.Transport requires; a Recording does not
// change after Load.
//
// A recording is a file of ERF packets (mad/internal/erf), one for each MAD. Transfers of
// many segments are recorded as the segments that are on the wire.
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
	ifaceSent = iota
	ifaceReceived
	ifaceLocal
	ifaceSimulated // local, in a subnet simulated in process
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
	if iface == ifaceReceived {
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
	if p.Interface == ifaceReceived {
		a.LID, a.QP = mad.LID(p.SLID), p.SrcQP
	}
	if g := p.GRH; g != nil {
		a.HasGRH, a.GID = true, g.DGID
		if p.Interface == ifaceReceived {
			a.GID = g.SGID
		}
		a.TrafficClass, a.FlowLabel, a.HopLimit = g.TrafficClass, g.FlowLabel, g.HopLimit
	}
	return a
}

func tidOf(m []byte) uint64 { return binary.BigEndian.Uint64(m[mad.TIDOffset:]) }

// portMADs returns the facts of p as answers of its agent. Partition keys fill as
// many blocks as needed.
func portMADs(p *engine.Port) (list [][]byte) {
	add := func(a *mad.Attribute, modifier uint32) []byte {
		m := make([]byte, mad.Size)
		h := mad.Header{Class: mad.ClassSubn, ClassVersion: a.Version, Method: mad.MethodGetResp, Attribute: a.ID, Modifier: modifier}
		h.Put(m)
		mad.SetRoute(m, mad.DirectedRoute{0})
		m[mad.StatusOffset] = 0x80 // the D bit: on its way back
		list = append(list, m)
		return m[mad.SMPDataOffset:]
	}
	node := mad.NodeInfo{NodeGUID: p.NodeGUID, PortGUID: p.PortGUID, LocalPortNum: p.Num, PartitionCap: uint16(len(p.PKeys))}
	node.Encode(add(mad.AttrNodeInfo, 0))
	copy(add(mad.AttrNodeDescription, 0)[:mad.AttrNodeDescription.Size], p.Device)
	info := mad.PortInfo{LID: p.LID, LMC: p.LMC, MasterSMLID: p.SMLID, MasterSMSL: p.SMSL, PortState: p.State, GIDPrefix: p.GIDPrefix, LocalPortNum: p.Num}
	info.Encode(add(mad.AttrPortInfo, uint32(p.Num)))
	for block := 0; block*pkeysPerBlock < len(p.PKeys); block++ {
		data := add(mad.AttrPKeyTable, uint32(block))
		for i, key := range p.PKeys[block*pkeysPerBlock : min(len(p.PKeys), (block+1)*pkeysPerBlock)] {
			binary.BigEndian.PutUint16(data[2*i:], key)
		}
	}
	return list
}

const pkeysPerBlock = 32 // IBA 14.2.5.7

// addPortMAD adds one of portMADs; first reports whether it begins the facts again.
func addPortMAD(p *engine.Port, m []byte) (first, ok bool) {
	if len(m) != mad.Size {
		return false, false
	}
	h, data := mad.ParseHeader(m), m[mad.SMPDataOffset:]
	if h.Class != mad.ClassSubnDirected {
		return false, false
	}
	switch h.Attribute {
	case mad.AttrNodeInfo.ID:
		var node mad.NodeInfo
		node.Decode(data)
		*p = engine.Port{NodeGUID: node.NodeGUID, PortGUID: node.PortGUID, Num: node.LocalPortNum, PKeys: make([]uint16, node.PartitionCap)}
		return true, true
	case mad.AttrNodeDescription.ID:
		p.Device = mad.AttrNodeDescription.Fields[0].Text(data)
	case mad.AttrPortInfo.ID:
		var info mad.PortInfo
		info.Decode(data)
		p.LID, p.LMC, p.SMLID, p.SMSL, p.State, p.GIDPrefix = info.LID, info.LMC, info.MasterSMLID, info.MasterSMSL, info.PortState, info.GIDPrefix
	case mad.AttrPKeyTable.ID:
		for i := range pkeysPerBlock {
			if at := int64(h.Modifier)*pkeysPerBlock + int64(i); at < int64(len(p.PKeys)) {
				p.PKeys[at] = binary.BigEndian.Uint16(data[2*i:])
			}
		}
	default:
		return false, false
	}
	return false, true
}

// isTable reports whether h is the header of an answer of any number of records.
func isTable(h mad.Header) bool {
	switch h.Method {
	case mad.MethodGetTableResp, mad.MethodGetTraceTableResp, mad.MethodGetMultiResp:
		return h.Class == mad.ClassSubnAdm
	}
	return false
}

// segmentOf returns the RMPP header of m; nil if m is not part of a transfer.
func segmentOf(m []byte) *mad.RMPPHeader {
	if !mad.IsSegment(m) {
		return nil
	}
	s := new(mad.RMPPHeader)
	s.Decode(m[mad.RMPPOffset:])
	return s
}

// isUnsplit reports whether m is a request that the transport splits into segments.
func isUnsplit(m []byte) bool {
	s := segmentOf(m)
	return s != nil && s.RMPPType == mad.RMPPTypeData && s.SegmentNumber == 0 && !mad.ParseHeader(m).Method.IsResponse()
}

// split calls emit with each MAD that m was on the wire, or would have been. A
// transport with RMPP sends and receives a long transfer as one datagram, and one
// that carries less than a whole MAD shows the end of a short table by the length.
// Both are split into segments.
func split(m []byte, emit func(m []byte)) {
	h := mad.ParseHeader(m)
	if !isUnsplit(m) && (len(m) == mad.Size || !isTable(h) || h.Status != 0 || len(m) < mad.SADataOffset) {
		whole := make([]byte, mad.Size)
		copy(whole, m)
		emit(whole)
		return
	}
	var s mad.RMPPHeader
	s.Decode(m[mad.RMPPOffset:])
	table := m[mad.SADataOffset:]
	n := max(1, (len(table)+mad.SegmentData-1)/mad.SegmentData)
	for i := range n {
		data := table[min(len(table), i*mad.SegmentData):min(len(table), (i+1)*mad.SegmentData)]
		s.RMPPVersion, s.RMPPType, s.RMPPStatus = 1, mad.RMPPTypeData, 0
		s.RMPPFlags, s.SegmentNumber, s.PayloadLength = mad.RMPPFlagsActive, uint32(i+1), 0
		if i == 0 {
			s.RMPPFlags |= mad.RMPPFlagsFirst
			s.PayloadLength = uint32(n*mad.SegmentHeader + len(table))
		}
		if i == n-1 {
			s.RMPPFlags |= mad.RMPPFlagsLast
			s.PayloadLength = uint32(mad.SegmentHeader + len(data))
		}
		segment := make([]byte, mad.Size)
		copy(segment, m[:mad.SADataOffset])
		copy(segment[mad.SADataOffset:], data)
		s.Encode(segment[mad.RMPPOffset:])
		emit(segment)
	}
}

// forgetSegments clears the fields that show how a request was split.
func forgetSegments(m []byte) { clear(m[mad.RMPPOffset:mad.SAKeyOffset]) }
