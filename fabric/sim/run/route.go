//go:build linux

package run

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// startsHere reports whether the kernel sends a directed-route SMP of a program through
// this port (smi_handle_dr_smp_send; IBA 14.2.2). That it does not the write reports.
func (p *umadPort) startsHere(m []byte) bool {
	pointer, count := int(m[mad.HopPointerOffset]), int(m[mad.HopCountOffset])
	slid, dlid := state.DRLIDs(m)
	isSwitch := p.num == 0
	if m[mad.StatusOffset]&state.DirectionBit != 0 {
		if dlid != mad.PermissiveLID {
			return true // by LID first
		}
		switch {
		case count > mad.MaxHops:
			return false
		case count > 0 && pointer == count+1:
			return int(m[mad.SMPReturnPathOffset+count]) == int(p.num)
		case 2 <= pointer && pointer <= count:
			return isSwitch && int(m[mad.SMPReturnPathOffset+pointer-1]) == int(p.num)
		case pointer <= 1:
			return isSwitch || slid == mad.PermissiveLID
		}
		return false
	}
	if slid != mad.PermissiveLID {
		return true
	}
	switch {
	case count > mad.MaxHops:
		return false
	case count > 0 && pointer == 0:
		return int(m[mad.SMPInitialPathOffset+1]) == int(p.num) || isSwitch
	case pointer > 0 && pointer < count:
		return isSwitch && int(m[mad.SMPInitialPathOffset+pointer+1]) == int(p.num)
	case pointer == count:
		return isSwitch || dlid == mad.PermissiveLID
	}
	return pointer == count+1
}
