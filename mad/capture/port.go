package capture

import (
	"encoding/binary"

	"fabsh/mad"
	"fabsh/mad/engine"
)

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
