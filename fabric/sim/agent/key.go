package agent

import (
	"encoding/binary"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// The keys of the vendor's classes 0x0A (VS) and 0x0C (between nodes, N2N). They protect
// themselves alone: a Get without the key reads 0 in its place. Registers are read without
// a key. A MAD has its key at offset 24.

// Capabilities in classPortInfo: the class has KeyInfo (VS), and a key for managers and
// another for nodes (N2N).
const (
	vsHasKey     = 0x0100
	n2nTwoKeys   = 0x0200
	keyOffset    = 24
	neighborsPer = 14 // ports in a block of NeighborsInfo
)

// vendorRequest is a Get in one of these classes.
type vendorRequest struct {
	Node     *state.Node
	Modifier uint32
	MAD      []byte
}

// vsHandlers are the attributes of class 0x0A, but for registers.
var vsHandlers = handlerTable[*vendorRequest]{
	{Attr: mad.AttrVendor0AClassPortInfo, On: func(r *vendorRequest) bool { return r.Node.VSKey != nil }, Get: func(r *vendorRequest) mad.Status {
		info := classPortInfo(mad.ClassVendor0A)
		info.CapabilityMask = vsHasKey
		return r.answer(mad.AttrVendor0AClassPortInfo, info)
	}},
	{Attr: mad.AttrVSKeyInfo, On: func(r *vendorRequest) bool { return r.Node.VSKey != nil }, Get: func(r *vendorRequest) mad.Status {
		info := *r.Node.VSKey
		if info.ProtectBit && !r.hasKey(info.VSKey) {
			info.VSKey = 0
		}
		return r.answer(mad.AttrVSKeyInfo, &info)
	}},
}

// n2nHandlers are the attributes of class 0x0C.
var n2nHandlers = handlerTable[*vendorRequest]{
	{Attr: mad.AttrVendor0CClassPortInfo, On: hasN2N, Get: func(r *vendorRequest) mad.Status {
		info := classPortInfo(mad.ClassVendor0C)
		info.CapabilityMask = n2nTwoKeys
		return r.answer(mad.AttrVendor0CClassPortInfo, info)
	}},
	{Attr: mad.AttrN2NKeyInfo, On: hasN2N, Get: func(r *vendorRequest) mad.Status {
		info := *r.Node.N2NKey
		if info.ProtectBit && !r.hasKey(info.N2NMgrKey) {
			info.N2NMgrKey = 0
		}
		return r.answer(mad.AttrN2NKeyInfo, &info)
	}},
	{Attr: mad.AttrNeighborsInfo, On: hasN2N, Get: (*vendorRequest).getNeighbors},
}

func hasN2N(r *vendorRequest) bool { return r.Node.N2NKey != nil }

func (r *vendorRequest) hasKey(key uint64) bool {
	return binary.BigEndian.Uint64(r.MAD[keyOffset:]) == key
}

func (r *vendorRequest) answer(attr *mad.Attribute, e Encoder) mad.Status {
	return encodeAnswer(r.MAD[attr.Offset():][:attr.Size], e, r.Modifier)
}

// getNeighbors reads the nodes behind 14 ports, from port 14*block on. Their keys are hidden
// as that of the manager is.
func (r *vendorRequest) getNeighbors() mad.Status {
	n := r.Node
	if r.Modifier > uint32(len(n.Ports)-1)/neighborsPer {
		return mad.StatusBadValue
	}
	var info mad.NeighborsInfo
	hidden := n.N2NKey.ProtectBit && !r.hasKey(n.N2NKey.N2NMgrKey)
	for i := range info.Neighbor {
		num := int(r.Modifier)*neighborsPer + i
		if num == 0 || num >= len(n.Ports) || !n.Ports[num].Up || !n.Adaptive.Info.PFRNEn {
			continue
		}
		peer := n.Ports[num].Peer
		if !peer.Node.IsSwitch { // hosts send no notifications
			continue
		}
		info.Neighbor[i] = mad.NeighborRecord{NodeType: peer.Node.NodeInfo().NodeType, LID: peer.EndPort().LID}
		if !hidden {
			info.Neighbor[i].N2NKey = uint64(peer.Node.GUID()) ^ nodeKey
		}
	}
	attr := mad.AttrNeighborsInfo
	return encodeAnswer(r.MAD[attr.Offset():][:attr.Size], &info, 0)
}

// nodeKey makes the keys between nodes of their GUIDs.
const nodeKey = 0x5a5a_00c0_0000_0000
