package sim

import (
	"encoding/binary"
	"fmt"

	"fabsh/mad"
)

// editedTables are the tables that EditTable changes.
var editedTables = []*blockTable{pkeyBlocks, sl2vlBlocks, vlArbBlocks, mftBlocks}

// EditTable changes a block of a P_KeyTable, SLtoVLMappingTable,
// VLArbitrationTable or MulticastForwardingTable; modifier is what a Get through
// the port would have.
func (s *Subnet) EditTable(a *mad.Attribute, node mad.GUID, num int, modifier uint32, change func(data []byte)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	in, err := s.portAt(node, num)
	if err != nil {
		return err
	}
	for _, t := range editedTables {
		if t.attr == a {
			return s.editTable(t, in, modifier, change)
		}
	}
	return fmt.Errorf("%s is no table that can be edited", a.Name)
}

// editTable changes the block that a Get through in would read.
func (s *Subnet) editTable(t *blockTable, in *port, modifier uint32, change func(data []byte)) error {
	p, block, ok := t.locate(&request{Subnet: s, Header: mad.Header{Modifier: modifier}, in: in})
	if !ok {
		return fmt.Errorf("%s has no block %#x of %s", in.node.label, modifier, t.attr.Name)
	}
	var data [smpSize]byte
	s.readBlock(t, p, block, data[:])
	change(data[:])
	s.writeBlock(t, p, block, data[:])
	return nil
}

// EditPKeys replaces the first entries of the P_Key table of a port; 0 is an
// empty one. The others of the first block become empty.
func (s *Subnet) EditPKeys(node mad.GUID, num int, keys ...uint16) error {
	if len(keys) > mad.PKeyBlock {
		return fmt.Errorf("%d P_Keys: a block has %d", len(keys), mad.PKeyBlock)
	}
	return s.EditTable(mad.AttrPKeyTable, node, num, uint32(num)<<16, func(data []byte) {
		clear(data)
		for i, key := range keys {
			binary.BigEndian.PutUint16(data[2*i:], key)
		}
	})
}

// EditCongestion changes what an end port says of its congestion control.
func (s *Subnet) EditCongestion(a *mad.Attribute, node mad.GUID, num int, modifier uint32, change func(data []byte)) error {
	return s.edit(node, num, func(p *port) {
		key := blockKey{p.endPort(), a, modifier}
		data := make([]byte, a.Size)
		copy(data, s.settings[key])
		change(data)
		s.settings[key] = data
	})
}
