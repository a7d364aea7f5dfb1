package sim

import (
	"encoding/binary"
	"fmt"
	"slices"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// AddGroup creates a multicast group, whatever its properties, with members, each a port
// by its cable. It replaces a group with the same MGID. The forwarding tables carry the
// group along a tree to all members that receive.
func (e *Editor) AddGroup(rec mad.MCMemberRecord, as mad.JoinState, members ...state.Cable) error {
	e.subnet.Lock()
	defer e.subnet.Unlock()
	g := &state.Group{MCMemberRecord: rec}
	for _, c := range members {
		p, err := e.subnet.PortByGUID(c.Node, c.Num)
		if err != nil {
			return err
		}
		if p.EndPort().LID == 0 {
			return fmt.Errorf("port %d of %s has no LID", p.Num, p.Node.Label)
		}
		g.AddMember(state.Member{Port: p.EndPort(), State: as})
	}
	e.subnet.AddGroup(g)
	return e.routeGroup(g)
}

// DropGroup removes a multicast group; its forwarding tables stay.
func (e *Editor) DropGroup(mgid mad.GID) {
	e.subnet.Lock()
	defer e.subnet.Unlock()
	e.subnet.Groups = slices.DeleteFunc(e.subnet.Groups, func(x *state.Group) bool { return x.MGID == mgid })
}

// receives reports whether members of the state receive the packets of the group (IBA
// 15.2.5.17).
func receives(state mad.JoinState) bool {
	return state&(mad.JoinStateFullMember|mad.JoinStateNonMember) != 0
}

// routeGroup enters a group into the multicast forwarding tables: a tree of
// shortest paths from the switch of the first member that receives.
func (e *Editor) routeGroup(g *state.Group) error {
	var receiving []state.Member
	for _, m := range g.Members {
		if receives(m.State) && (m.Port.Node.IsSwitch || m.Port.Neighbour() != nil) {
			receiving = append(receiving, m)
		}
	}
	for n, nums := range state.MulticastTree(receiving) {
		for _, num := range nums {
			if err := e.multicastEntry(n, g.MLID, num, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// Multicast sets whether a switch forwards a multicast LID through a port.
func (e *Editor) Multicast(node mad.GUID, lid mad.LID, num uint8, on bool) error {
	e.subnet.Lock()
	defer e.subnet.Unlock()
	p, err := e.subnet.PortByGUID(node, 0)
	if err != nil {
		return err
	}
	return e.multicastEntry(p.Node, lid, num, on)
}

func (e *Editor) multicastEntry(n *state.Node, lid mad.LID, num uint8, on bool) error {
	row := int(lid) - int(state.FirstMLID)
	modifier := uint32(num/16)<<28 | uint32(row/mad.MFTBlock)
	if row < 0 || !n.IsSwitch {
		return fmt.Errorf("%s has no entry for multicast LID %#x", n.Label, lid)
	}
	return e.editTable(state.MFTBlocks, &n.Ports[0], modifier, func(data []byte) {
		at := data[2*(row%mad.MFTBlock):]
		mask := binary.BigEndian.Uint16(at) &^ (1 << (num % 16))
		if on {
			mask |= 1 << (num % 16)
		}
		binary.BigEndian.PutUint16(at, mask)
	})
}
