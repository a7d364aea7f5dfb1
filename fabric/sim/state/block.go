package state

import (
	"encoding/binary"
	"iter"

	"fabsh/mad"
)

// BlockTable is a table of subnet management in blocks, each of which contains what was
// Set or, before that, what a subnet manager would have set up.
type BlockTable struct {
	Attr *mad.Attribute
	// locate finds the port and the number of the block that the modifier
	// names; ok is false if it does not exist. A table of the node is kept with its
	// end port.
	Locate func(in *Port, modifier uint32) (p *Port, block uint32, ok bool)
	// fill completes a block; written: it was Set.
	fill func(p *Port, block uint32, written bool, data []byte)
}

// BlockKey names a block that was Set.
type BlockKey struct {
	Port  *Port
	Attr  *mad.Attribute
	Block uint32
}

// The tables in blocks.
var (
	GUIDBlocks  = &BlockTable{mad.AttrGUIDInfo, locateGUIDs, fillGUIDs}
	PKeyBlocks  = &BlockTable{mad.AttrPKeyTable, locatePKeys, fillPKeys}
	SL2VLBlocks = &BlockTable{mad.AttrSLtoVLMappingTable, locateSL2VL, fillSL2VL}
	VLArbBlocks = &BlockTable{mad.AttrVLArbitrationTable, locateVLArb, fillVLArb}
	MFTBlocks   = &BlockTable{mad.AttrMulticastForwardingTable, locateMFT, nil}
)

// ReadBlock writes a block of the table to data.
func (s *Subnet) ReadBlock(t *BlockTable, p *Port, block uint32, data []byte) {
	clear(data)
	content, written := s.Blocks[BlockKey{Port: p, Attr: t.Attr, Block: block}]
	if written {
		copy(data, content[:])
	}
	if t.fill != nil {
		t.fill(p, block, written, data)
	}
}

// WriteBlock keeps data as a block of the table.
func (s *Subnet) WriteBlock(t *BlockTable, p *Port, block uint32, data []byte) {
	content := new([SMPSize]byte)
	copy(content[:t.Attr.Size], data)
	s.Blocks[BlockKey{Port: p, Attr: t.Attr, Block: block}] = content
}

// Block returns a block of a table.
func (s *Subnet) Block(t *BlockTable, p *Port, block uint32) []byte {
	var data [SMPSize]byte
	s.ReadBlock(t, p, block, data[:])
	return data[:]
}

func locateGUIDs(in *Port, modifier uint32) (*Port, uint32, bool) {
	return in.EndPort(), modifier, modifier < GUIDCap/mad.GUIDBlock
}

// fillGUIDs restores the first GUID of a port, which cannot be changed (IBA 14.2.5.5).
func fillGUIDs(p *Port, block uint32, _ bool, data []byte) {
	if block == 0 {
		binary.BigEndian.PutUint64(data, uint64(p.GUID))
	}
}

// locatePKeys reads a modifier that is the block, and in its upper half the port of a
// switch (IBA 14.2.5.7).
func locatePKeys(in *Port, modifier uint32) (p *Port, block uint32, ok bool) {
	n, num := in.Node, int(modifier>>16)
	p, block = in.EndPort(), modifier&0xffff
	if n.IsSwitch {
		if num >= len(n.Ports) {
			return nil, 0, false
		}
		p = &n.Ports[num]
	}
	return p, block, int(block) < p.NumPKeyBlocks()
}

// NumPKeyBlocks is the number of blocks of p's partition table.
func (p *Port) NumPKeyBlocks() int {
	capacity := nodeInfoPartitions.Uint(p.Node.Info[:])
	if p.Node.IsSwitch && p.Num > 0 {
		capacity = switchInfoPartitions.Uint(p.Node.SwitchInfo[:])
	}
	return (int(capacity) + mad.PKeyBlock - 1) / mad.PKeyBlock
}

func fillPKeys(_ *Port, block uint32, written bool, data []byte) {
	if !written && block == 0 {
		binary.BigEndian.PutUint16(data, mad.DefaultPKey)
	}
}

// locateSL2VL reads a modifier that is the input and the output port of a switch (IBA
// 14.2.5.8).
func locateSL2VL(in *Port, modifier uint32) (p *Port, block uint32, ok bool) {
	n, mod := in.Node, modifier
	if !n.IsSwitch {
		return in.EndPort(), 0, true
	}
	from, to := int(mod>>8&0xff), int(mod&0xff)
	return in.EndPort(), mod, mod>>16 == 0 && from < len(n.Ports) && to < len(n.Ports)
}

// fillSL2VL maps SL n to VL n modulo 8, the number of VLs.
func fillSL2VL(_ *Port, _ uint32, written bool, data []byte) {
	for sl := 0; !written && sl < 16; sl += 2 {
		data[sl/2] = byte(sl%8<<4 | (sl+1)%8)
	}
}

// Blocks of VLArbitrationTable: the first halves of the two tables.
const (
	VLArbLow  = 1
	VLArbHigh = 3
)

// locateVLArb reads a modifier that is the port, and in its upper half the block; 2 and 4,
// the second halves of the tables, need more VLs than there are (IBA 14.2.5.9).
func locateVLArb(in *Port, modifier uint32) (p *Port, block uint32, ok bool) {
	p, block = in.PortOfModifier(int(modifier&0xffff)), modifier>>16
	return p, block, p != nil && (block == VLArbLow || block == VLArbHigh)
}

// fillVLArb gives all VLs equal weights.
func fillVLArb(_ *Port, _ uint32, written bool, data []byte) {
	for vl := 0; !written && vl < VLArbCap; vl++ {
		data[2*vl], data[2*vl+1] = byte(vl), 32
	}
}

// locateMFT reads a modifier that is the block, and in its highest 4 bits the position,
// which selects the 16 ports of the masks (IBA 14.2.5.12).
func locateMFT(in *Port, modifier uint32) (p *Port, block uint32, ok bool) {
	mod := modifier
	number, position := int(mod&0x1ff), int(mod>>28)
	return in.EndPort(), mod, mod&^0xf000_01ff == 0 && number < MulticastCap/mad.MFTBlock && position*16 < len(in.Node.Ports)
}

// PortOfModifier is the port with a number in the modifier; 0 on a CA is the
// port that the request came in through.
func (p *Port) PortOfModifier(num int) *Port {
	n := p.Node
	switch {
	case num >= len(n.Ports):
		return nil
	case num == 0 && !n.IsSwitch:
		return p
	}
	return &n.Ports[num]
}

// HasPKey reports whether p is in the partition, as a full or limited member (opensm
// osm_pkey.c osm_physp_has_pkey).
func (s *Subnet) HasPKey(p *Port, pkey uint16) bool {
	if pkey&PKeyBase == 0 {
		return true
	}
	for key := range s.PKeys(p) {
		if key&PKeyBase == pkey&PKeyBase {
			return true
		}
	}
	return false
}

// PKeyAt is an entry of the P_Key table of an end port; 0: it is empty.
func (s *Subnet) PKeyAt(p *Port, index int) uint16 {
	if index >= int(nodeInfoPartitions.Uint(p.Node.Info[:])) {
		return 0
	}
	return binary.BigEndian.Uint16(s.pKeyBlock(p, uint32(index/mad.PKeyBlock))[2*(index%mad.PKeyBlock):])
}

// AcceptsPKey reports whether an end port accepts packets with a P_Key: it is in the
// partition, and it or the sender is a full member (IBA 10.9.1.1).
func (s *Subnet) AcceptsPKey(p *Port, pkey uint16) bool {
	for key := range s.PKeys(p) {
		if key&PKeyBase == pkey&PKeyBase && (key|pkey)&^uint16(PKeyBase) != 0 {
			return true
		}
	}
	return false
}

// PKeys are the entries of the P_Key table of an end port.
func (s *Subnet) PKeys(p *Port) iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		for i := range uint32(nodeInfoPartitions.Uint(p.Node.Info[:])) / mad.PKeyBlock {
			block := s.pKeyBlock(p, i)
			for j := range mad.PKeyBlock {
				if !yield(binary.BigEndian.Uint16(block[2*j:])) {
					return
				}
			}
		}
	}
}

// Blocks of the P_Key table of an end port that were not Set: the first, and the others.
var firstPKeys, emptyPKeys = func() (first, empty [SMPSize]byte) {
	fillPKeys(nil, 0, false, first[:])
	return first, empty
}()

// pKeyBlock is a block of the P_Key table of p, which is not copied: each packet of
// general services reads it.
func (s *Subnet) pKeyBlock(p *Port, block uint32) []byte {
	content, written := s.Blocks[BlockKey{Port: p, Attr: mad.AttrPKeyTable, Block: block}]
	switch {
	case written:
		return content[:]
	case block == 0:
		return firstPKeys[:]
	}
	return emptyPKeys[:]
}
