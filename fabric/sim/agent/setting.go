package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

func portBlocks(n *state.Node) uint32 { return uint32(len(n.Ports)/32 + 1) }

func tableBlocks(*state.Node) uint32 { return controlTableBlocks }

func initialCCClassPortInfo(*state.Port) Encoder {
	return classPortInfo(mad.ClassCongestion)
}

func initialCongestionInfo(*state.Port) Encoder {
	return &mad.CongestionInfo{ControlTableCap: controlTableBlocks}
}

func initialCongestionLog(p *state.Port) Encoder {
	if p.Node.IsSwitch {
		return &mad.CongestionLog{LogType: mad.LogTypeSwitch}
	}
	return &mad.CongestionLog{LogType: mad.LogTypeCA}
}

// applySwitchCongestion sets the fields that the ControlMap names (IBA A10.4.3.6;
// opensm osm_subnet.c, cc_sw_cong_setting_control_map).
func applySwitchCongestion(image, data []byte) {
	var is, want mad.SwitchCongestionSetting
	is.Decode(image)
	want.Decode(data)
	is.ControlMap = want.ControlMap
	for bit, copyField := range []func(){
		func() { is.VictimMask = want.VictimMask },
		func() { is.CreditMask = want.CreditMask },
		func() { is.Threshold, is.PacketSize = want.Threshold, want.PacketSize },
		func() { is.CSThreshold, is.CSReturnDelay = want.CSThreshold, want.CSReturnDelay },
		func() { is.MarkingRate = want.MarkingRate },
	} {
		if want.ControlMap>>bit&1 != 0 {
			copyField()
		}
	}
	is.Encode(image)
}

// applyCACongestion sets the entries of the SLs that the ControlMap names (IBA
// A10.4.3.8; opensm osm_subnet.c, cc_ca_cong_setting_control_map).
func applyCACongestion(image, data []byte) {
	var is, want mad.CACongestionSetting
	is.Decode(image)
	want.Decode(data)
	is.PortControl, is.ControlMap = want.PortControl, want.ControlMap
	for sl := range is.Entry {
		if want.ControlMap>>sl&1 != 0 {
			is.Entry[sl] = want.Entry[sl]
		}
	}
	is.Encode(image)
}

func onSwitches(r *ccRequest) bool { return r.At.Node.IsSwitch }
func onCAs(r *ccRequest) bool      { return !r.At.Node.IsSwitch }
