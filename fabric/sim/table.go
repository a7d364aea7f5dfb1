package sim

import (
	"encoding/binary"

	"fabsh/mad"
)

// blockKey names a block that was Set: of a port, or with a node's port 0 of the node.
type blockKey struct {
	port  *port
	attr  *mad.Attribute
	block uint32
}

// table answers for the tables that are the same on all ports until they are Set.
func (r *request) table(a *mad.Attribute, set bool) mad.Status {
	if r.allPorts(a) {
		return r.setAlike(set)
	}
	key, ok := r.block(a)
	if !ok {
		return mad.StatusBadValue
	}
	if set {
		block := new([smpSize]byte)
		copy(block[:a.Size], r.data)
		r.blocks[key] = block
	}
	r.readBlock(key, r.data)
	return 0
}

// Bits of SLtoVLMappingTable's modifier (IBA 14.2.5.8; opensm
// opensm/osm_qos.c qos_extports_setup).
const (
	allOutPorts = 1 << 16
	allInPorts  = 1 << 17
)

// allPorts: the modifier means the mappings of several ports.
func (r *request) allPorts(a *mad.Attribute) bool {
	return a == mad.AttrSLtoVLMappingTable && r.in.node.isSwitch && r.Modifier&(allInPorts|allOutPorts) != 0
}

// setAlike sets the mappings of several ports, where SwitchInfo says that the
// switch can.
func (r *request) setAlike(set bool) mad.Status {
	n, mod := r.in.node, int(r.Modifier)
	in, out := mod>>8&0xff, mod&0xff
	if !set || switchInfoOptimized.Uint(n.sw[:])&1 == 0 || mod>>18 != 0 || in >= len(n.ports) || out >= len(n.ports) {
		return mad.StatusBadValue
	}
	for i := range n.ports {
		for o := range n.ports {
			if (mod&allInPorts != 0 || i == in) && (mod&allOutPorts != 0 || o == out) {
				block := new([smpSize]byte)
				copy(block[:mad.AttrSLtoVLMappingTable.Size], r.data)
				r.blocks[blockKey{r.in.endPort(), mad.AttrSLtoVLMappingTable, uint32(i<<8 | o)}] = block
			}
		}
	}
	return 0
}

// block finds the block that the modifier means.
func (r *request) block(a *mad.Attribute) (key blockKey, ok bool) {
	n, mod := r.in.node, r.Modifier
	low, high := int(mod&0xffff), int(mod>>16)
	key = blockKey{r.in.endPort(), a, mod}
	switch a {
	case mad.AttrGUIDInfo:
		ok = mod < guidCap/mad.GUIDBlock

	case mad.AttrPKeyTable: // high: the port, of a switch only
		key.block = uint32(low)
		var info mad.NodeInfo
		info.Decode(n.info[:])
		capacity := int(info.PartitionCap)
		if n.isSwitch {
			if high >= len(n.ports) {
				return key, false
			}
			if key.port = &n.ports[high]; high > 0 {
				var sw mad.SwitchInfo
				sw.Decode(n.sw[:])
				capacity = int(sw.PartitionEnforcementCap)
			}
		}
		ok = low < (capacity+mad.PKeyBlock-1)/mad.PKeyBlock

	case mad.AttrSLtoVLMappingTable: // in and out port, of a switch only
		in, out := low>>8, low&0xff
		if !n.isSwitch {
			key.block, ok = 0, true
			break
		}
		ok = high == 0 && in < len(n.ports) && out < len(n.ports)

	case mad.AttrVLArbitrationTable: // high: 1 the low-priority table, 3 the other; 2 and 4 would be their second halves
		p := r.portOfModifier(low)
		key.port, key.block = p, uint32(high)
		ok = p != nil && (high == 1 || high == 3)

	case mad.AttrMulticastForwardingTable:
		block, position := int(mod&0x1ff), int(mod>>28)
		ok = mod&^0xf000_01ff == 0 && block < multicastCap/mad.MFTBlock && position*16 < len(n.ports)
	}
	return key, ok
}

// portOfModifier is the port that a modifier means; 0 on a CA is where the request came in.
func (r *request) portOfModifier(num int) *port {
	n := r.in.node
	switch {
	case num >= len(n.ports):
		return nil
	case num == 0 && !n.isSwitch:
		return r.in
	}
	return &n.ports[num]
}

// readBlock writes what was Set, or what a subnet manager would have.
func (s *Subnet) readBlock(key blockKey, data []byte) {
	clear(data)
	block, written := s.blocks[key]
	if written {
		copy(data, block[:])
	}
	switch key.attr {
	case mad.AttrGUIDInfo:
		if key.block == 0 { // cannot be changed
			binary.BigEndian.PutUint64(data, uint64(key.port.guid))
		}
	case mad.AttrPKeyTable:
		if !written && key.block == 0 {
			binary.BigEndian.PutUint16(data, mad.DefaultPKey)
		}
	case mad.AttrSLtoVLMappingTable:
		for sl := 0; !written && sl < 16; sl += 2 { // SL n to VL n modulo the 8 there are
			data[sl/2] = byte(sl%8<<4 | (sl+1)%8)
		}
	case mad.AttrVLArbitrationTable:
		for vl := 0; !written && vl < vlArbCap; vl++ { // all lanes alike
			data[2*vl], data[2*vl+1] = byte(vl), 32
		}
	}
}

// linearTable answers for a block of the linear forwarding table.
func (r *request) linearTable(set bool) mad.Status {
	n := r.in.node
	if r.Modifier >= linearCap/mad.LFTBlock {
		return mad.StatusBadValue
	}
	first := int(r.Modifier) * mad.LFTBlock
	if set {
		for len(n.lft) < first+mad.LFTBlock {
			n.lft = append(n.lft, mad.NoPort)
		}
		copy(n.lft[first:], r.data)
	}
	n.readLFT(first, r.data)
	return 0
}

// readLFT writes the block of entries from first on.
func (n *node) readLFT(first int, data []byte) {
	rest := data[copy(data, n.lft[min(first, len(n.lft)):]):]
	for i := range rest {
		rest[i] = mad.NoPort
	}
}
