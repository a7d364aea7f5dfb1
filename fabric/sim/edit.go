// Package edit changes the settings and answers of nodes of a simulated subnet, as broken
// hardware, wrong settings and other programs do: at once, and without a report to the
// subnet manager.
//
//	edit.go     Editor: settings of ports, nodes, registers
//	table.go    tables in blocks
//	adaptive.go adaptive routing
//	group.go    multicast groups and their forwarding
//	console.go  LIDs and GUIDs, by the indexes of nodes
//	counter.go  Counters: set, and made to grow

package sim

import (
	"fmt"
	"slices"
	"time"

	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Editor changes settings of a subnet.
type Editor struct {
	subnet             *state.Subnet
	traffic            *state.Traffic
	CongestionSettings agent.CCSettings
}

// newEditor returns the Editor of a subnet.
func newEditor(s *state.Subnet, t *state.Traffic, congestion agent.CCSettings) *Editor {
	return &Editor{subnet: s, traffic: t, CongestionSettings: congestion}
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

// mkey gives the end ports of a node an M_Key, a protection level, and a lease in
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
