package sim

import (
	"fmt"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

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
		if at.Num > 0 && !p.Node.IsSwitch {
			p.GUID = guid
			return nil
		}
		state.NodeInfoGUID.SetUint(p.Node.Info[:], uint64(guid))
		if p.Node.IsSwitch {
			p.Node.Ports[0].GUID = guid
		}
		return nil
	})
}
