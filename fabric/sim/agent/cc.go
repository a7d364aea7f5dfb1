package agent

import (
	"encoding/binary"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// CCSettings are what was Set of congestion control, by end port, attribute and modifier. The
// agent stores and returns it; it does not slow down traffic. Switches mark packets by it.
type CCSettings map[state.BlockKey][]byte

// PacketsPerMark returns how many packets that wait pass a switch for each one that it marks,
// by its SwitchCongestionSetting; 0: it marks none, as before one is Set.
func (s CCSettings) PacketsPerMark(sw *state.Node) float64 {
	image, ok := s[state.BlockKey{Port: &sw.Ports[0], Attr: mad.AttrSwitchCongestionSetting, Block: 0}]
	if !ok {
		return 0
	}
	var set mad.SwitchCongestionSetting
	if set.Decode(image); set.Threshold == 0 {
		return 0
	}
	return float64(set.MarkingRate) + 1
}

// ccRequest is a Get or Set at an agent, and what the agent may read and change.
type ccRequest struct {
	Settings CCSettings
	At       *state.Port // the end port that the request came to
	Modifier uint32
	MAD      []byte // all of the MAD; its attribute is afterwards the attribute of the answer
	Silent   bool   // there is no answer
}

// controlTableBlocks is how many blocks of 64 entries a CongestionControlTable has.
const controlTableBlocks = 2

// ccHandlers are the attributes of congestion control (IBA A10.4.3).
var ccHandlers = handlerTable[*ccRequest]{
	ccSetting{attr: mad.AttrCCClassPortInfo, initial: initialCCClassPortInfo}.handler(),
	ccSetting{attr: mad.AttrCongestionInfo, initial: initialCongestionInfo}.handler(),
	ccSetting{attr: mad.AttrCongestionKeyInfo}.handler(),
	ccSetting{attr: mad.AttrCongestionLog, initial: initialCongestionLog}.handler(),
	ccSetting{attr: mad.AttrSwitchCongestionSetting, on: onSwitches, apply: applySwitchCongestion}.handler(),
	ccSetting{attr: mad.AttrSwitchPortCongestionSetting, on: onSwitches, blocks: portBlocks}.handler(),
	ccSetting{attr: mad.AttrCACongestionSetting, on: onCAs, apply: applyCACongestion}.handler(),
	ccSetting{attr: mad.AttrCongestionControlTable, on: onCAs, blocks: tableBlocks}.handler(),
	ccSetting{attr: mad.AttrTimeStamp}.handler(),
}

// ccSetting is an attribute of congestion control: what was Set, or its
// initial content.
type ccSetting struct {
	attr    *mad.Attribute
	on      func(r *ccRequest) bool           // see handler
	blocks  func(n *state.Node) uint32        // how many blocks the modifier numbers; nil: 1
	initial func(p *state.Port) state.Encoder // nil: all 0
	apply   func(image, data []byte)          // changes image as a Set with data requests; nil: applySet
}

func (c ccSetting) handler() handler[*ccRequest] {
	return handler[*ccRequest]{Attr: c.attr, On: c.on, Get: c.get, Set: c.set}
}

func (c *ccSetting) get(r *ccRequest) mad.Status {
	if !c.hasBlock(r) {
		return mad.StatusBadValue
	}
	content := r.MAD[c.attr.Offset():][:c.attr.Size]
	copy(content, c.content(r))
	if key := r.congestionKey(); c.attr == mad.AttrCongestionKeyInfo && key.CCKeyProtectBit && !r.hasCCKey(key) {
		c.attr.Field("cc_key").SetUint(content, 0)
	}
	return mad.StatusOK
}

// set gives no answer where the CC_Key is wrong (IBA A10.2.1.1).
func (c *ccSetting) set(r *ccRequest) mad.Status {
	if !c.hasBlock(r) {
		return mad.StatusBadValue
	}
	if key := r.congestionKey(); !r.hasCCKey(key) {
		key.CCKeyViolations = uint16(min(int(key.CCKeyViolations)+1, 0xffff))
		image := make([]byte, mad.AttrCongestionKeyInfo.Size)
		key.Encode(image)
		r.Settings[state.BlockKey{Port: r.At, Attr: mad.AttrCongestionKeyInfo, Block: 0}] = image
		r.Silent = true
		return mad.StatusOK
	}
	content, image := r.MAD[c.attr.Offset():][:c.attr.Size], c.content(r)
	if c.apply != nil {
		c.apply(image, content)
	} else {
		applySet(c.attr, image, content)
	}
	r.Settings[state.BlockKey{Port: r.At, Attr: c.attr, Block: r.Modifier}] = image
	copy(content, image)
	return mad.StatusOK
}

func (c *ccSetting) hasBlock(r *ccRequest) bool {
	if c.blocks == nil {
		return r.Modifier == 0
	}
	return r.Modifier < c.blocks(r.At.Node)
}

// content is what was Set, or the initial content.
func (c *ccSetting) content(r *ccRequest) []byte {
	if image, ok := r.Settings[state.BlockKey{Port: r.At, Attr: c.attr, Block: r.Modifier}]; ok {
		return image
	}
	image := make([]byte, c.attr.Size)
	if c.initial != nil {
		c.initial(r.At).Encode(image)
	}
	return image
}

// congestionKey returns the CongestionKeyInfo of the port that r came to.
func (r *ccRequest) congestionKey() *mad.CongestionKeyInfo {
	key := &mad.CongestionKeyInfo{}
	key.Decode(r.Settings[state.BlockKey{Port: r.At, Attr: mad.AttrCongestionKeyInfo, Block: 0}])
	return key
}

// hasCCKey reports whether r has the CC_Key, or no key is set.
func (r *ccRequest) hasCCKey(key *mad.CongestionKeyInfo) bool {
	return key.CCKey == 0 || binary.BigEndian.Uint64(r.MAD[mad.SMPKeyOffset:]) == key.CCKey
}

func portBlocks(n *state.Node) uint32 { return uint32(len(n.Ports)/32 + 1) }

func tableBlocks(*state.Node) uint32 { return controlTableBlocks }

func initialCCClassPortInfo(*state.Port) state.Encoder {
	return classPortInfo(mad.ClassCongestion)
}

func initialCongestionInfo(*state.Port) state.Encoder {
	return &mad.CongestionInfo{ControlTableCap: controlTableBlocks}
}

func initialCongestionLog(p *state.Port) state.Encoder {
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
