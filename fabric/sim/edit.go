package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"fabsh/mad"
)

// What broken hardware, wrong settings and wrong hands do to a subnet, at once
// and without a word: the subnet manager is not told, but of cables.

// EditPort changes what the agent of a port says of it. Nothing is checked. Packets
// reach the port by its old LIDs.
func (s *Subnet) EditPort(node mad.GUID, num int, change func(*mad.PortInfo)) error {
	return s.edit(node, num, func(p *port) {
		var info mad.PortInfo
		info.Decode(p.info[:])
		change(&info)
		lid, lmc := p.lid, p.lmc
		p.setInfo(&info)
		p.lid, p.lmc = lid, lmc
	})
}

// EditNode changes what the agent of a node says of it: its name, NodeInfo, and
// SwitchInfo, which is not used of other nodes. Nothing is checked.
func (s *Subnet) EditNode(node mad.GUID, change func(name *string, info *mad.NodeInfo, sw *mad.SwitchInfo)) error {
	return s.edit(node, 0, func(p *port) {
		n := p.node
		text, _, _ := bytes.Cut(n.desc[:], []byte{0})
		name := string(text)
		var info mad.NodeInfo
		var sw mad.SwitchInfo
		info.Decode(n.info[:])
		sw.Decode(n.sw[:])
		change(&name, &info, &sw)
		clear(n.desc[:])
		copy(n.desc[:], name)
		info.Encode(n.info[:])
		if n.isSwitch {
			sw.Encode(n.sw[:])
			n.fdbTop = mad.LID(sw.LinearFDBTop)
		}
	})
}

// EditLFT changes an entry of a forwarding table.
func (s *Subnet) EditLFT(node mad.GUID, lid mad.LID, to uint8) error {
	return s.edit(node, 0, func(p *port) {
		for len(p.node.lft) <= int(lid) {
			p.node.lft = append(p.node.lft, mad.NoPort)
		}
		p.node.lft[lid] = to
	})
}

// AddSM has a port answer for a subnet manager that says this of itself. It does
// nothing else.
func (s *Subnet) AddSM(node mad.GUID, num int, info mad.SMInfo) error {
	if err := s.EditPort(node, num, func(i *mad.PortInfo) { i.CapabilityMask |= mad.CapabilityMaskIsSM }); err != nil {
		return err
	}
	return s.edit(node, num, func(p *port) { s.otherSMs[p.endPort()] = info })
}

// MuteSA has the subnet administrator answer nobody, or everybody again.
func (s *Subnet) MuteSA(mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mutedSA = mute
}

// Cable is one end of a cable.
type Cable struct {
	Node mad.GUID
	Num  int
}

// Recable pulls all cables at the given ports, and plugs in new ones, one for
// each pair. The switches at the old ends and the new ones tell the subnet manager,
// as of Unlink and Link.
func (s *Subnet) Recable(pairs ...[2]Cable) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ports [][2]*port
	taken := map[*port]bool{}
	for _, pair := range pairs {
		var ends [2]*port
		for i, c := range pair {
			p, err := s.portAt(c.Node, c.Num)
			switch {
			case err != nil:
				return err
			case p.num == 0:
				return fmt.Errorf("port 0 of %s takes no cable", p.node.label)
			case taken[p]:
				return fmt.Errorf("port %d of %s takes one end of a cable, and is to get two", p.num, p.node.label)
			}
			ends[i], taken[p] = p, true
		}
		ports = append(ports, ends)
	}
	s.beforeChange()
	var changed []*port
	for _, pair := range ports {
		for _, p := range pair {
			q := p.peer
			if q == nil {
				continue
			}
			if p.up {
				changed = append(changed, p, q)
			}
			p.unplugged, q.unplugged = true, true
			p.linkDown(mad.PortPhysicalStatePolling)
			p.peer, q.peer = nil, nil
			p.unplugged, q.unplugged = false, false
		}
	}
	for _, pair := range ports {
		p, q := pair[0], pair[1]
		p.peer, q.peer = q, p
		if p.train(); p.up {
			changed = append(changed, p, q)
		}
	}
	s.tellOf(changed)
	return nil
}

func (s *Subnet) edit(node mad.GUID, num int, change func(*port)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.portAt(node, num)
	if err != nil {
		return err
	}
	s.beforeChange()
	change(p)
	return nil
}

// portAt is a port by the GUID of its node; port 0 of a CA stands for the node.
func (s *Subnet) portAt(node mad.GUID, num int) (*port, error) {
	return portOfNode(s.nodeByGUID(node), node, num)
}

// portOfNode is portAt of n, which has that GUID; nil: no node has.
func portOfNode(n *node, guid mad.GUID, num int) (*port, error) {
	switch {
	case n == nil:
		return nil, fmt.Errorf("the simulated fabric has no node with GUID %v", guid)
	case num < 0 || num >= len(n.ports):
		return nil, fmt.Errorf("%s has ports up to %d, no port %d", n.label, len(n.ports)-1, num)
	}
	return &n.ports[num], nil
}

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
