package sim

import (
	"encoding/binary"

	"fabsh/mad"
)

// blockTable is a table of subnet management in blocks, each of which holds
// what was Set, or until then what a subnet manager would have set up.
type blockTable struct {
	attr *mad.Attribute
	// locate finds the port and the number of the block that the modifier
	// names; ok is false if there is none. A table of the node is kept with its
	// end port.
	locate func(r *request) (p *port, block uint32, ok bool)
	// fill completes a block; written: it was Set.
	fill func(p *port, block uint32, written bool, data []byte)
}

// blockKey names a block that was Set.
type blockKey struct {
	port  *port
	attr  *mad.Attribute
	block uint32
}

var (
	guidBlocks  = &blockTable{mad.AttrGUIDInfo, locateGUIDs, fillGUIDs}
	pkeyBlocks  = &blockTable{mad.AttrPKeyTable, locatePKeys, fillPKeys}
	sl2vlBlocks = &blockTable{mad.AttrSLtoVLMappingTable, locateSL2VL, fillSL2VL}
	vlArbBlocks = &blockTable{mad.AttrVLArbitrationTable, locateVLArb, fillVLArb}
	mftBlocks   = &blockTable{mad.AttrMulticastForwardingTable, locateMFT, nil}
)

func (t *blockTable) get(r *request) mad.Status {
	p, block, ok := t.locate(r)
	if !ok {
		return mad.StatusBadValue
	}
	r.readBlock(t, p, block, r.data)
	return mad.StatusOK
}

func (t *blockTable) set(r *request) mad.Status {
	p, block, ok := t.locate(r)
	if !ok {
		return mad.StatusBadValue
	}
	r.writeBlock(t, p, block, r.data)
	return t.get(r)
}

// readBlock writes a block of the table to data.
func (s *Subnet) readBlock(t *blockTable, p *port, block uint32, data []byte) {
	clear(data)
	content, written := s.blocks[blockKey{p, t.attr, block}]
	if written {
		copy(data, content[:])
	}
	if t.fill != nil {
		t.fill(p, block, written, data)
	}
}

// writeBlock keeps data as a block of the table.
func (s *Subnet) writeBlock(t *blockTable, p *port, block uint32, data []byte) {
	content := new([smpSize]byte)
	copy(content[:t.attr.Size], data)
	s.blocks[blockKey{p, t.attr, block}] = content
}

func locateGUIDs(r *request) (*port, uint32, bool) {
	return r.in.endPort(), r.Modifier, r.Modifier < guidCap/mad.GUIDBlock
}

// fillGUIDs: the first GUID of a port cannot be changed (IBA 14.2.5.5).
func fillGUIDs(p *port, block uint32, _ bool, data []byte) {
	if block == 0 {
		binary.BigEndian.PutUint64(data, uint64(p.guid))
	}
}

// locatePKeys: the modifier is the block, and in its upper half the port of a
// switch (IBA 14.2.5.7).
func locatePKeys(r *request) (p *port, block uint32, ok bool) {
	n, num := r.in.node, int(r.Modifier>>16)
	p, block = r.in.endPort(), r.Modifier&0xffff
	if n.isSwitch {
		if num >= len(n.ports) {
			return nil, 0, false
		}
		p = &n.ports[num]
	}
	return p, block, int(block) < p.pkeyBlocks()
}

// pkeyBlocks is the number of blocks of p's partition table.
func (p *port) pkeyBlocks() int {
	capacity := nodeInfoPartitions.Uint(p.node.info[:])
	if p.node.isSwitch && p.num > 0 {
		capacity = switchInfoPartitions.Uint(p.node.sw[:])
	}
	return (int(capacity) + mad.PKeyBlock - 1) / mad.PKeyBlock
}

func fillPKeys(_ *port, block uint32, written bool, data []byte) {
	if !written && block == 0 {
		binary.BigEndian.PutUint16(data, mad.DefaultPKey)
	}
}

// locateSL2VL: the modifier is the input and the output port of a switch (IBA
// 14.2.5.8).
func locateSL2VL(r *request) (p *port, block uint32, ok bool) {
	n, mod := r.in.node, r.Modifier
	if !n.isSwitch {
		return r.in.endPort(), 0, true
	}
	in, out := int(mod>>8&0xff), int(mod&0xff)
	return r.in.endPort(), mod, mod>>16 == 0 && in < len(n.ports) && out < len(n.ports)
}

// fillSL2VL: SL n goes to VL n modulo 8, the number of VLs.
func fillSL2VL(_ *port, _ uint32, written bool, data []byte) {
	for sl := 0; !written && sl < 16; sl += 2 {
		data[sl/2] = byte(sl%8<<4 | (sl+1)%8)
	}
}

// Bits of SLtoVLMappingTable's modifier that mean all ports of a switch (IBA
// 14.2.5.8; opensm opensm/osm_qos.c qos_extports_setup).
const (
	allOutPorts = 1 << 16
	allInPorts  = 1 << 17
)

// setSL2VL sets the mapping of one pair of ports, or with optimized programming
// those of several, where SwitchInfo says that the switch supports it.
func (r *request) setSL2VL() mad.Status {
	n, mod := r.in.node, int(r.Modifier)
	if !n.isSwitch || mod&(allInPorts|allOutPorts) == 0 {
		return sl2vlBlocks.set(r)
	}
	in, out := mod>>8&0xff, mod&0xff
	if switchInfoOptimized.Uint(n.sw[:])&1 == 0 || mod>>18 != 0 || in >= len(n.ports) || out >= len(n.ports) {
		return mad.StatusBadValue
	}
	for i := range n.ports {
		for o := range n.ports {
			if (mod&allInPorts != 0 || i == in) && (mod&allOutPorts != 0 || o == out) {
				r.writeBlock(sl2vlBlocks, r.in.endPort(), uint32(i<<8|o), r.data)
			}
		}
	}
	return mad.StatusOK
}

// locateVLArb: the modifier is the port, and in its upper half 1 for the
// low-priority table and 3 for the high-priority one; 2 and 4, their second
// halves, need more VLs than there are (IBA 14.2.5.9).
func locateVLArb(r *request) (p *port, block uint32, ok bool) {
	p, block = r.portOfModifier(int(r.Modifier&0xffff)), r.Modifier>>16
	return p, block, p != nil && (block == 1 || block == 3)
}

// fillVLArb: all VLs have the same weight.
func fillVLArb(_ *port, _ uint32, written bool, data []byte) {
	for vl := 0; !written && vl < vlArbCap; vl++ {
		data[2*vl], data[2*vl+1] = byte(vl), 32
	}
}

// locateMFT: the modifier is the block, and in its highest 4 bits the position:
// which 16 ports the masks are about (IBA 14.2.5.12).
func locateMFT(r *request) (p *port, block uint32, ok bool) {
	mod := r.Modifier
	number, position := int(mod&0x1ff), int(mod>>28)
	return r.in.endPort(), mod, mod&^0xf000_01ff == 0 && number < multicastCap/mad.MFTBlock && position*16 < len(r.in.node.ports)
}

// portOfModifier is the port with a number in the modifier; 0 on a CA is the
// port that the request came in through.
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
