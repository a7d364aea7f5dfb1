package sim

import (
	"encoding/binary"

	"fabsh/mad"
)

// controlTableCap is how many blocks of 64 entries a CongestionControlTable has.
const controlTableCap = 2

// congestion executes a request for congestion control (IBA A10). What is Set
// is kept and shown, and slows nothing down. Who does not know the CC_Key is
// not answered to a Set (A10.2.1.1).
func (r *request) congestion(m []byte) (mad.Status, verdict) {
	a := mad.Lookup(mad.ClassCongestion, r.Attribute)
	set := r.Method == mad.MethodSet
	if !allows(a, r.Method) || !set && r.Method != mad.MethodGet {
		return mad.StatusBadMethodAttribute, single
	}
	blocks := 1
	switch n := r.in.node; a {
	case mad.AttrSwitchPortCongestionSetting:
		blocks = len(n.ports)/32 + 1
		fallthrough
	case mad.AttrSwitchCongestionSetting:
		if !n.isSwitch {
			return mad.StatusBadMethodAttribute, single
		}
	case mad.AttrCongestionControlTable:
		blocks = controlTableCap
		fallthrough
	case mad.AttrCACongestionSetting:
		if n.isSwitch {
			return mad.StatusBadMethodAttribute, single
		}
	case mad.AttrCCNotice:
		return mad.StatusBadMethodAttribute, single
	}
	if r.Modifier >= uint32(blocks) {
		return mad.StatusBadValue, single
	}
	var key mad.CongestionKeyInfo
	keyAt := blockKey{r.in.endPort(), mad.AttrCongestionKeyInfo, 0}
	key.Decode(r.setting(keyAt))
	knows := key.CCKey == 0 || binary.BigEndian.Uint64(m[mad.SMPKeyOffset:]) == key.CCKey
	at := blockKey{r.in.endPort(), a, r.Modifier}
	if set && !knows {
		key.CCKeyViolations = uint16(min(int(key.CCKeyViolations)+1, 0xffff))
		key.Encode(r.edit(keyAt))
		return 0, silent
	}
	content := m[a.Offset():][:a.Size]
	if set {
		mergeCongestion(a, r.edit(at), content)
	}
	copy(content, r.setting(at))
	if hide := key.CCKeyProtectBit && !knows; hide && a == mad.AttrCongestionKeyInfo {
		a.Field("cc_key").SetUint(content, 0)
	}
	return mad.StatusOK, single
}

// setting is an attribute as it is shown.
func (s *Subnet) setting(at blockKey) []byte {
	if data, ok := s.settings[at]; ok {
		return data
	}
	data := make([]byte, at.attr.Size)
	switch at.attr {
	case mad.AttrCCClassPortInfo:
		classPortInfo(mad.ClassCongestion).Encode(data)
	case mad.AttrCongestionInfo:
		info := mad.CongestionInfo{ControlTableCap: controlTableCap}
		info.Encode(data)
	case mad.AttrCongestionLog:
		log := mad.CongestionLog{LogType: mad.LogTypeCA}
		if at.port.node.isSwitch {
			log.LogType = mad.LogTypeSwitch
		}
		log.Encode(data)
	}
	return data
}

// edit is an attribute to be changed.
func (s *Subnet) edit(at blockKey) []byte {
	s.settings[at] = s.setting(at)
	return s.settings[at]
}

// mergeCongestion does what a Set asks for: of two attributes, what their
// ControlMaps name (IBA A10.4.3.6, A10.4.3.8; opensm osm_subnet.c,
// cc_sw_cong_setting_control_map, cc_ca_cong_setting_control_map).
func mergeCongestion(a *mad.Attribute, image, data []byte) {
	switch a {
	case mad.AttrSwitchCongestionSetting:
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
	case mad.AttrCACongestionSetting:
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
	default:
		applySet(a, image, data)
	}
}

// classPortInfo is that of a class that has nothing special.
func classPortInfo(c mad.Class) *mad.ClassPortInfo {
	return &mad.ClassPortInfo{BaseVersion: 1, ClassVersion: c.Version(), RespTimeValue: lifeTime}
}

// onlyClassPortInfo executes a request of a class that is there, and no more.
func (r *request) onlyClassPortInfo() mad.Status {
	a := mad.Lookup(r.Class, r.Attribute)
	if a == nil || a.Name != mad.AttrBMClassPortInfo.Name || r.Method != mad.MethodGet {
		return mad.StatusBadMethodAttribute
	}
	clear(r.data)
	classPortInfo(r.Class).Encode(r.data)
	return r.modifierIs0()
}
