package sim

import (
	"encoding/binary"

	"fabsh/mad"
)

// controlTableBlocks is how many blocks of 64 entries a CongestionControlTable has.
const controlTableBlocks = 2

// congestionHandlers are the attributes of congestion control (IBA A10.4.3).
// What is Set is kept and shown; it does not slow anything down.
var congestionHandlers = []handler{
	congestionSetting{attr: mad.AttrCCClassPortInfo, initial: initialCCClassPortInfo}.handler(),
	congestionSetting{attr: mad.AttrCongestionInfo, initial: initialCongestionInfo}.handler(),
	congestionSetting{attr: mad.AttrCongestionKeyInfo}.handler(),
	congestionSetting{attr: mad.AttrCongestionLog, initial: initialCongestionLog}.handler(),
	congestionSetting{attr: mad.AttrSwitchCongestionSetting, on: onSwitch, apply: applySwitchCongestion}.handler(),
	congestionSetting{attr: mad.AttrSwitchPortCongestionSetting, on: onSwitch, blocks: portBlocks}.handler(),
	congestionSetting{attr: mad.AttrCACongestionSetting, on: onNonSwitch, apply: applyCACongestion}.handler(),
	congestionSetting{attr: mad.AttrCongestionControlTable, on: onNonSwitch, blocks: tableBlocks}.handler(),
	congestionSetting{attr: mad.AttrTimeStamp}.handler(),
}

// congestionSetting is an attribute of congestion control: what was Set, or its
// initial content.
type congestionSetting struct {
	attr    *mad.Attribute
	on      func(r *request) bool    // as of a handler
	blocks  func(n *node) uint32     // how many blocks the modifier numbers; nil: 1
	initial func(p *port) encoder    // nil: all 0
	apply   func(image, data []byte) // changes image as a Set with data asks; nil: applySet
}

func (c congestionSetting) handler() handler {
	return handler{attr: c.attr, on: c.on, get: c.get, set: c.set}
}

func (c *congestionSetting) get(r *request) mad.Status {
	if !c.hasBlock(r) {
		return mad.StatusBadValue
	}
	content := r.mad[c.attr.Offset():][:c.attr.Size]
	copy(content, c.content(r))
	if key := r.congestionKey(); c.attr == mad.AttrCongestionKeyInfo && key.CCKeyProtectBit && !r.hasCCKey(key) {
		c.attr.Field("cc_key").SetUint(content, 0)
	}
	return mad.StatusOK
}

// set gives no answer where the CC_Key is wrong (IBA A10.2.1.1).
func (c *congestionSetting) set(r *request) mad.Status {
	if !c.hasBlock(r) {
		return mad.StatusBadValue
	}
	p := r.in.endPort()
	if key := r.congestionKey(); !r.hasCCKey(key) {
		key.CCKeyViolations = uint16(min(int(key.CCKeyViolations)+1, 0xffff))
		image := make([]byte, mad.AttrCongestionKeyInfo.Size)
		key.Encode(image)
		r.settings[blockKey{p, mad.AttrCongestionKeyInfo, 0}] = image
		r.reply = replyNone
		return mad.StatusOK
	}
	content, image := r.mad[c.attr.Offset():][:c.attr.Size], c.content(r)
	if c.apply != nil {
		c.apply(image, content)
	} else {
		applySet(c.attr, image, content)
	}
	r.settings[blockKey{p, c.attr, r.Modifier}] = image
	copy(content, image)
	return mad.StatusOK
}

func (c *congestionSetting) hasBlock(r *request) bool {
	if c.blocks == nil {
		return r.Modifier == 0
	}
	return r.Modifier < c.blocks(r.in.node)
}

// content is what was Set, or the initial content.
func (c *congestionSetting) content(r *request) []byte {
	p := r.in.endPort()
	if image, ok := r.settings[blockKey{p, c.attr, r.Modifier}]; ok {
		return image
	}
	image := make([]byte, c.attr.Size)
	if c.initial != nil {
		c.initial(p).Encode(image)
	}
	return image
}

// congestionKey is the CongestionKeyInfo of the port that r came to.
func (r *request) congestionKey() *mad.CongestionKeyInfo {
	key := &mad.CongestionKeyInfo{}
	key.Decode(r.settings[blockKey{r.in.endPort(), mad.AttrCongestionKeyInfo, 0}])
	return key
}

// hasCCKey: r has the CC_Key, or none is set.
func (r *request) hasCCKey(key *mad.CongestionKeyInfo) bool {
	return key.CCKey == 0 || binary.BigEndian.Uint64(r.mad[mad.SMPKeyOffset:]) == key.CCKey
}

func portBlocks(n *node) uint32 { return uint32(len(n.ports)/32 + 1) }

func tableBlocks(*node) uint32 { return controlTableBlocks }

func initialCCClassPortInfo(*port) encoder { return classPortInfo(mad.ClassCongestion) }

func initialCongestionInfo(*port) encoder {
	return &mad.CongestionInfo{ControlTableCap: controlTableBlocks}
}

func initialCongestionLog(p *port) encoder {
	if p.node.isSwitch {
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
