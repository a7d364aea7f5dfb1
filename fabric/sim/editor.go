package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Editor changes the settings and answers of nodes of a subnet, as broken hardware, wrong
// settings and other programs do: at once, and without a report to the subnet manager.
type Editor struct {
	subnet             *state.Subnet
	traffic            *state.Traffic
	notices            *state.Notices
	CongestionSettings agent.CCSettings
}

// newEditor returns the Editor of a subnet.
func newEditor(s *state.Subnet, t *state.Traffic, n *state.Notices, congestion agent.CCSettings) *Editor {
	return &Editor{subnet: s, traffic: t, notices: n, CongestionSettings: congestion}
}

// Port changes what the agent of a port reports. Nothing is checked. Packets still reach
// the port by its old LIDs.
func (e *Editor) Port(node mad.GUID, num int, change func(*mad.PortInfo)) error {
	return e.traffic.ChangePort(node, num, func(p *state.Port) { p.EditInfo(change) })
}

// Node changes what the agent of a node reports: its name, NodeInfo, and SwitchInfo,
// which only switches use. Nothing is checked.
func (e *Editor) Node(node mad.GUID, change func(name *string, info *mad.NodeInfo, sw *mad.SwitchInfo)) error {
	return e.traffic.ChangePort(node, 0, func(p *state.Port) {
		n := p.Node
		name, info := n.Name(), n.NodeInfo()
		var sw mad.SwitchInfo
		sw.Decode(n.SwitchInfo[:])
		change(&name, &info, &sw)
		clear(n.Description[:])
		copy(n.Description[:], name)
		info.Encode(n.Info[:])
		if n.IsSwitch {
			sw.Encode(n.SwitchInfo[:])
			n.FDBTop = mad.LID(sw.LinearFDBTop)
		}
	})
}

// LFT changes an entry of a forwarding table.
func (e *Editor) LFT(node mad.GUID, lid mad.LID, to uint8) error {
	return e.traffic.ChangePort(node, 0, func(p *state.Port) {
		p.Node.LFT = slices.Clone(p.Node.LFT) // adaptive routing shares it
		for len(p.Node.LFT) <= int(lid) {
			p.Node.LFT = append(p.Node.LFT, mad.NoPort)
		}
		p.Node.LFT[lid] = to
	})
}

// MKey gives the end ports of a node an M_Key, a protection level, and a lease in
// seconds; 0: unlimited.
func (e *Editor) MKey(node mad.GUID, key uint64, protect uint8, lease uint16) error {
	if protect > 3 {
		return fmt.Errorf("invalid protection level %d; want 0 to 3", protect)
	}
	return e.traffic.ChangePort(node, 0, func(at *state.Port) {
		for _, p := range at.Node.EndPorts() {
			p.ChangeInfo(func(info *mad.PortInfo) {
				info.MKey, info.MKeyProtectBits, info.MKeyLeasePeriod = key, protect, lease
			})
			p.LeaseEnd = time.Time{}
		}
	})
}

// Congestion changes what an end port reports of its congestion control.
func (e *Editor) Congestion(a *mad.Attribute, node mad.GUID, num int, modifier uint32, change func(data []byte)) error {
	return e.traffic.ChangePort(node, num, func(p *state.Port) {
		key := state.BlockKey{Port: p.EndPort(), Attr: a, Block: modifier}
		data := make([]byte, a.Size)
		copy(data, e.CongestionSettings[key])
		change(data)
		e.CongestionSettings[key] = data
	})
}

// Report changes the answers of a node to Gets of an attribute of subnet management, or of the
// vendor's classes, with a modifier. Nothing else depends on it.
func (e *Editor) Report(node mad.GUID, a *mad.Attribute, modifier uint32, change func(data []byte)) error {
	return e.traffic.ChangePort(node, 0, func(p *state.Port) { p.Node.SetReport(a, modifier, change) })
}

// Hardware changes what the registers of a node show; num is the port concerned, or 0. If
// it succeeds, all devices have registers from then on.
func (e *Editor) Hardware(node mad.GUID, num int, change func(h *state.Hardware) error) error {
	e.subnet.Lock()
	defer e.subnet.Unlock()
	p, err := e.subnet.PortByGUID(node, num)
	if err != nil {
		return err
	}
	h := p.Node.Hardware
	if h == nil {
		h = state.NewHardware(p.Node.GUID(), p.Node.IsSwitch)
	}
	if err := change(h); err != nil {
		return err
	}
	p.Node.Hardware = h
	e.subnet.GiveRegisters()
	return nil
}

// editedTables are the tables that Editor.Table changes.
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

// AddGroup creates a multicast group, whatever its properties, with members, each a port
// by its cable. It replaces a group with this MGID. The forwarding tables carry the
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

// receivesMulticast reports whether members of the state receive the packets of the group (IBA
// 15.2.5.17).
func receivesMulticast(state mad.JoinState) bool {
	return state&(mad.JoinStateFullMember|mad.JoinStateNonMember) != 0
}

// routeGroup enters a group into the multicast forwarding tables: a tree of
// shortest paths from the switch of the first member that receives.
func (e *Editor) routeGroup(g *state.Group) error {
	var receiving []state.Member
	for _, m := range g.Members {
		if receivesMulticast(m.State) && (m.Port.Node.IsSwitch || m.Port.Neighbour() != nil) {
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

// Adaptive lets all switches route adaptively, as the subnet manager sets it up. It ends the
// faults of adaptive routing.
func (e *Editor) Adaptive(set *state.AdaptiveSettings) {
	e.subnet.Lock()
	defer e.subnet.Unlock()
	e.traffic.BeforeChange()
	e.subnet.SetUpAdaptive(set, true)
	e.subnet.InvalidateTables()
}

// BreakAdaptive gives a switch a fault of adaptive routing.
func (e *Editor) BreakAdaptive(node mad.GUID, f state.AdaptiveFault) (err error) {
	bad := e.traffic.ChangePort(node, 0, func(p *state.Port) { err = p.Node.Break(f) })
	if bad != nil {
		return bad
	}
	return err
}

// Reset makes a port lose what the subnet manager has set: its LIDs.
func (e *Editor) Reset(at state.End) error {
	return e.traffic.Change(func() (*state.Port, error) { return e.subnet.PortByIndex(at, 0) }, func(p *state.Port) error {
		if p != p.EndPort() {
			return nil
		}
		e.subnet.SetLID(p, 0, 0)
		p.ChangeInfo(func(info *mad.PortInfo) { info.LID, info.LMC, info.MasterSMLID = 0, 0, 0 })
		return nil
	})
}

// LID gives an end port other LIDs without the subnet manager.
func (e *Editor) LID(at state.End, lid mad.LID, lmc uint8) error {
	return e.traffic.Change(func() (*state.Port, error) { return e.subnet.PortByIndex(at, 0) }, func(p *state.Port) error {
		p = p.EndPort()
		if lid == 0 || lid > mad.MaxUnicastLID || lmc > 7 || int(lid)+1<<lmc-1 > int(mad.MaxUnicastLID) {
			return fmt.Errorf("LID %d, LMC %d: not a range of unicast LIDs", lid, lmc)
		}
		e.subnet.SetLID(p, lid, lmc)
		p.ChangeInfo(func(info *mad.PortInfo) { info.LID, info.LMC = lid, lmc })
		p.Node.SetStateChange()
		return nil
	})
}

// GUID gives a node or, with a number above 0, a port another GUID, which need not be
// unique. A switch has one GUID for all ports.
func (e *Editor) GUID(at state.End, guid mad.GUID) error {
	return e.traffic.Change(func() (*state.Port, error) { return e.subnet.PortByIndex(at, 0) }, func(p *state.Port) error {
		p.SetGUID(guid)
		return nil
	})
}

// NodeGUID does as GUID for a node that is named by its GUID.
func (e *Editor) NodeGUID(node mad.GUID, num int, guid mad.GUID) error {
	return e.traffic.ChangePort(node, num, func(p *state.Port) { p.SetGUID(guid) })
}

// Name gives a node another description, as the software of its host does: its agent reports
// the change to the subnet manager (IBA 14.2.5.1, trap 144).
func (e *Editor) Name(node mad.GUID, name string) error {
	return e.traffic.ChangePort(node, 0, func(p *state.Port) {
		n := p.Node
		clear(n.Description[:])
		copy(n.Description[:], name)
		for _, end := range n.EndPorts() {
			if end.Up || n.IsSwitch {
				e.notices.Trap(end, mad.NoticeTypeInformational, 144, &mad.NoticeLocalChange{
					LIDAddr: end.LID, CapabilityMask: end.PortInfo().CapabilityMask, OtherLocalChanges: true, NodeDescriptionChange: true,
				})
				return
			}
		}
	})
}

// VirtualPort changes a virtual port of an adapter's port, by its index, from 1 on. If the port
// does not have it, it gets virtual ports up to it.
func (e *Editor) VirtualPort(node mad.GUID, num, index int, change func(*state.VirtualPort)) error {
	return e.traffic.Change(func() (*state.Port, error) { return e.subnet.PortByGUID(node, num) }, func(p *state.Port) error {
		switch {
		case num == 0 || !p.Node.HasVirtualPorts():
			return fmt.Errorf("port %d of %s cannot have virtual ports: only ports of adapters of Mellanox and NVIDIA can", num, p.Node.Label)
		case index < 1 || index > state.MaxVirtualPorts:
			return fmt.Errorf("invalid index %d of a virtual port; want 1 to %d", index, state.MaxVirtualPorts)
		}
		if len(p.Virtual) < index {
			e.subnet.ExtendVirtualPorts(p, index)
			e.subnet.InvalidateTables()
		}
		change(&p.Virtual[index-1])
		return nil
	})
}

// CounterEditor changes the counters of a subnet's ports.
type CounterEditor struct {
	subnet  *state.Subnet
	traffic *state.Traffic
	notices *state.Notices
}

// newCounterEditor returns the CounterEditor of a subnet.
func newCounterEditor(s *state.Subnet, t *state.Traffic, n *state.Notices) *CounterEditor {
	return &CounterEditor{subnet: s, traffic: t, notices: n}
}

// Set sets counters of a port, by the script names of their fields. Values too large for
// an attribute show as its largest value.
func (c *CounterEditor) Set(node mad.GUID, num int, values map[string]uint64) error {
	return eachCounter(c, node, num, values, func(p *state.Port, key state.CounterKey, v uint64) {
		c.putCounter(p, key, v)
	})
}

// SetRates makes counters of a port grow by a number a second; 0 ends it.
func (c *CounterEditor) SetRates(node mad.GUID, num int, rates map[string]float64) error {
	return eachCounter(c, node, num, rates, func(p *state.Port, key state.CounterKey, rate float64) {
		p.Settle(c.subnet.Now())
		p.Counters.Stop(key)
		if rate > 0 {
			p.Grow(key, rate, false, c.subnet.Now())
			c.notices.ThresholdTrap(p, key)
		}
	})
}

// eachCounter applies a function to all named counters of a port or, if one is invalid,
// to none. (A method has no type parameters.)
func eachCounter[T uint64 | float64](c *CounterEditor, node mad.GUID, num int, values map[string]T, do func(p *state.Port, key state.CounterKey, v T)) error {
	c.subnet.Lock()
	defer c.subnet.Unlock()
	c.traffic.Update()
	p, err := c.subnet.PortByGUID(node, num)
	if err != nil {
		return err
	}
	switch {
	case num == 0 && !p.Node.IsSwitch:
		return fmt.Errorf("port 0 of %s has no counters; ports begin with 1", p.Node.Label)
	case len(values) == 0:
		return errors.New("no counter is named")
	}
	names := slices.Sorted(maps.Keys(values)) // traps of several go out in one order
	keys := make([]state.CounterKey, len(names))
	for i, name := range names {
		if keys[i], err = state.CounterByName(name); err != nil {
			return err
		}
	}
	for i, name := range names {
		do(p, keys[i], values[name])
	}
	return nil
}

// Add adds to a counter of a port, by the name of its field: "PortRcvErrors". If a field
// holds several, it is the first. Counters stop at their largest value.
func (c *CounterEditor) Add(node mad.GUID, num int, name string, by uint64) error {
	for _, list := range state.CounterViews() {
		for _, known := range list {
			if known.Name != name {
				continue
			}
			key := state.CounterKey{Name: name, Element: 0}
			return c.traffic.ChangePort(node, num, func(p *state.Port) {
				v := p.Counters.Value(key, c.subnet.Now())
				c.putCounter(p, key, v+min(by, math.MaxUint64-v))
			})
		}
	}
	return fmt.Errorf("no attribute has a counter %q", name)
}

// Reset sets all counters of a port to 0, as a reboot of its node does.
func (c *CounterEditor) Reset(node mad.GUID, num int) error {
	return c.traffic.ChangePort(node, num, func(p *state.Port) {
		p.Settle(c.subnet.Now())
		p.Counters.Reset()
	})
}

// putCounter sets a counter of a port. If that increases the counter, the port has
// exceeded a threshold.
func (c *CounterEditor) putCounter(p *state.Port, key state.CounterKey, v uint64) {
	before := p.Counters.Value(key, c.subnet.Now())
	p.Settle(c.subnet.Now())
	p.Counters.Set(key, v)
	if v > before {
		c.notices.ThresholdTrap(p, key)
	}
}

// SetByName sets a counter of a port, at most to its largest value, and returns
// that. Attribute and field are named as in the specification, an element of an
// array by a number behind the field's name.
func (c *CounterEditor) SetByName(at state.End, attr, field string, value uint64) (set uint64, err error) {
	err = c.traffic.Change(func() (*state.Port, error) { return c.subnet.PortByIndex(at, 0) }, func(p *state.Port) error {
		var names []string
		for a, list := range state.CounterViews() {
			names = append(names, a.Name)
			if !strings.EqualFold(a.Name, attr) {
				continue
			}
			for _, known := range list {
				for e := range known.Count {
					name := known.Name
					if known.Count > 1 {
						name = fmt.Sprintf("%s%d", known.Name, e)
					}
					if strings.EqualFold(name, field) {
						set = min(value, known.Max())
						c.putCounter(p, state.CounterKey{Name: known.Name, Element: e}, set)
						return nil
					}
				}
			}
			return fmt.Errorf("field %s cannot be found in attribute %s", field, attr)
		}
		return fmt.Errorf("attribute %s not found%s", attr, fabric.DidYouMean(attr, names))
	})
	return set, err
}
