package sim

import (
	"encoding/binary"
	"fmt"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// editedTables are the tables that EditTable changes.
var editedTables = []*state.BlockTable{state.PKeyBlocks, state.SL2VLBlocks, state.VLArbBlocks, state.MFTBlocks}

// Table changes a block of a P_KeyTable, SLtoVLMappingTable,
// VLArbitrationTable or MulticastForwardingTable; modifier is what a Get through
// the port would have.
func (e *Editor) Table(a *mad.Attribute, node mad.GUID, num int, modifier uint32, change func(data []byte)) error {
	e.subnet.Lock()
	defer e.subnet.Unlock()
	in, err := e.subnet.PortByGUID(node, num)
	if err != nil {
		return err
	}
	for _, t := range editedTables {
		if t.Attr == a {
			return e.editTable(t, in, modifier, change)
		}
	}
	return fmt.Errorf("%s is not a table that can be edited", a.Name)
}

// editTable changes the block that a Get through in would read.
func (e *Editor) editTable(t *state.BlockTable, in *state.Port, modifier uint32, change func(data []byte)) error {
	p, block, ok := t.Locate(in, modifier)
	if !ok {
		return fmt.Errorf("%s has no block %#x of %s", in.Node.Label, modifier, t.Attr.Name)
	}
	var data [state.SMPSize]byte
	e.subnet.ReadBlock(t, p, block, data[:])
	change(data[:])
	e.subnet.WriteBlock(t, p, block, data[:])
	if t == state.MFTBlocks { // its last entry counts
		p.Node.RaiseMulticastTop(state.FirstMLID + mad.LID(block&0x1ff+1)*mad.MFTBlock - 1)
	}
	return nil
}

// PKeys replaces the first entries of the P_Key table of a port; 0 is an
// empty one. The others of the first block become empty.
func (e *Editor) PKeys(node mad.GUID, num int, keys ...uint16) error {
	if len(keys) > mad.PKeyBlock {
		return fmt.Errorf("%d P_Keys: a block has %d", len(keys), mad.PKeyBlock)
	}
	return e.Table(mad.AttrPKeyTable, node, num, uint32(num)<<16, func(data []byte) {
		clear(data)
		for i, key := range keys {
			binary.BigEndian.PutUint16(data[2*i:], key)
		}
	})
}
