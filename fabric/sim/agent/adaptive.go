package agent

import (
	"encoding/binary"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// The agent answers what GeneralInfo announces. Where the public sources do not have the
// modifier of an attribute, this one is the simulator's own: 0 for HBFConfig, and the number
// of the block for WeightedHBFConfig and the tables of routing notifications. Only the subnet
// manager in this process sets these attributes: there is no Set.

func has(n *state.Node, c mad.Capabilities0) bool { return n.Capabilities.CapMask0&c != 0 }

// getGeneralInfo reads the capabilities, the one form whose modifier is public.
func getGeneralInfo(n *state.Node, modifier uint32, data []byte) mad.Status {
	if modifier != mad.GeneralInfoFormCapabilities {
		return mad.StatusBadValue
	}
	caps := n.Capabilities
	caps.CapMask0 |= mad.Capabilities0AccessRegister // sim.temperature gives nodes registers later
	if hasExtPortInfo(n) {
		caps.CapMask0 |= mad.Capabilities0ExtendedPortInfo
	}
	return encodeAnswer(data, &caps, 0)
}

// hasGeneralInfo reports whether a node answers GeneralInfo.
func hasGeneralInfo(n *state.Node) bool {
	return n.IsMellanox() || hasExtPortInfo(n) || n.Capabilities != (mad.GeneralInfoCapabilities{})
}

// hasAdaptive reports whether a node announces adaptive routing.
func hasAdaptive(n *state.Node) bool { return has(n, mad.Capabilities0AR) }

// getAdaptiveInfo reads AdaptiveRoutingInfo.
func getAdaptiveInfo(n *state.Node, modifier uint32, data []byte) mad.Status {
	n.Subnet.EnsureTables()
	info := n.Adaptive.Info
	info.GroupTop = n.Adaptive.GroupTop()
	return encodeAnswer(data, &info, modifier)
}

// getGroups reads a block of AdaptiveRoutingGroupTable: two sub-groups.
func getGroups(n *state.Node, modifier uint32, data []byte) mad.Status {
	a := n.Adaptive
	n.Subnet.EnsureTables()
	sub := max(int(a.Info.SubGrpsActive), 1)
	if modifier > uint32((int(a.Info.GroupCap)*sub+sub-1)/2) {
		return mad.StatusBadValue
	}
	clear(data)
	if len(a.Tables) == 0 {
		return mad.StatusOK
	}
	for i := range 2 {
		entry := int(modifier)*2 + i
		mask := a.Tables[0].Groups.Ports(entry/sub, entry%sub).Mask()
		copy(data[i*len(mask):], mask[:])
	}
	return mad.StatusOK
}

// adaptiveBlock is the number of LIDs in a block of AdaptiveRoutingLFT.
const adaptiveBlock = 16

// GetAdaptiveLFT reads a block of AdaptiveRoutingLFT, of private LFT 0: how the modifier
// selects others is not public.
func GetAdaptiveLFT(n *state.Node, modifier uint32, data []byte) mad.Status {
	if modifier >= state.LinearCap/adaptiveBlock {
		return mad.StatusBadValue
	}
	n.Subnet.EnsureTables()
	var t *adaptive.Table
	if len(n.Adaptive.Tables) > 0 {
		t = n.Adaptive.Tables[0]
	}
	for i := range adaptiveBlock {
		e := adaptive.Entry{State: adaptive.Static, Port: mad.NoPort}
		if t != nil {
			e = t.Entry(mad.LID(modifier*adaptiveBlock + uint32(i)))
		}
		binary.BigEndian.PutUint32(data[4*i:], uint32(e.State)<<30|uint32(e.Port)<<16|uint32(e.Group))
	}
	return mad.StatusOK
}

// getHBF reads HBFConfig.
func getHBF(n *state.Node, modifier uint32, data []byte) mad.Status {
	return encodeAnswer(data, &n.Adaptive.HBF, modifier)
}

// getWHBF reads a block of WeightedHBFConfig: 16 groups, all with the same weights.
func getWHBF(n *state.Node, modifier uint32, data []byte) mad.Status {
	if modifier > uint32(n.Adaptive.Info.GroupCap)/16 {
		return mad.StatusBadValue
	}
	var w mad.WeightedHBFConfig
	for i := range w.Group {
		at := n.Adaptive.Weights
		w.Group[i].SG0Weight, w.Group[i].SG1Weight, w.Group[i].SG2Weight = at[0], at[1], at[2]
	}
	return encodeAnswer(data, &w, 0)
}

// getPFRN reads pFRNConfig.
func getPFRN(n *state.Node, modifier uint32, data []byte) mad.Status {
	return encodeAnswer(data, &n.Adaptive.PFRN, modifier)
}

// hasPrivate reports whether a node announces private LFTs.
func hasPrivate(n *state.Node) bool { return has(n, mad.Capabilities0PrivateLFT) }

// The simulated switches have four private LFTs, each in a bank of its own, in one mode.
const (
	privateLFTs = 4
	bankSize    = state.LinearCap / 1024
	privateUnit = 512 // LIDs, of PrivateLFTDef
)

// getPrivateInfo reads PrivateLFTInfo.
func getPrivateInfo(n *state.Node, modifier uint32, data []byte) mad.Status {
	info := mad.PrivateLFTInfo{NumPLFTs: privateLFTs, ModeCap: 1}
	info.Mode[0] = mad.PrivateLFTMode{BankSize: bankSize, NumBanks: privateLFTs}
	if n.Adaptive.Private != nil {
		info.ActiveMode = 1
	}
	return encodeAnswer(data, &info, modifier)
}

// getPrivateDef reads a block of PrivateLFTDef.
func getPrivateDef(n *state.Node, modifier uint32, data []byte) mad.Status {
	var def mad.PrivateLFTDef
	n.Subnet.EnsureTables()
	for i := range n.Adaptive.Tables {
		if n.Adaptive.Private != nil && i < privateLFTs {
			// Bank i: of the byte, the source does not say which bits are the bank.
			def.Table[i] = mad.PrivateLFTPlace{ForceSubGroup0Bank: uint8(i), LIDSpace: uint8(int(n.Adaptive.Tables[i].Top())/privateUnit + 1)}
		}
	}
	return encodeAnswer(data, &def, modifier)
}

// getPrivateMap reads PrivateLFTMap: the ports whose packets of SL 0 follow a private LFT.
func getPrivateMap(n *state.Node, modifier uint32, data []byte) mad.Status {
	if modifier >= privateLFTs {
		return mad.StatusBadValue
	}
	m := mad.PrivateLFTMap{PortMaskEnable: true}
	n.Subnet.EnsureTables()
	if int(modifier) < len(n.Adaptive.Tables) {
		m.LFTTopEnable, m.LFTTop = true, n.Adaptive.Tables[modifier].Top()
	}
	var ports adaptive.Ports
	for num := range n.Ports {
		if n.Adaptive.PrivateOf(num)[0] == uint8(modifier) {
			ports.Add(uint8(num))
		}
	}
	m.PortGroupMask = ports.Mask()
	return encodeAnswer(data, &m, 0)
}

// hasPortSL reports whether a node announces private LFTs by input port and SL.
func hasPortSL(n *state.Node) bool { return has(n, mad.Capabilities0PortSLToPrivateLFT) }

// getPortSL reads a block of PortSLToPrivateLFTMap: four ports.
func getPortSL(n *state.Node, modifier uint32, data []byte) mad.Status {
	if modifier > uint32(len(n.Ports)-1)/4 {
		return mad.StatusBadValue
	}
	var m mad.PortSLToPrivateLFTMap
	for i := range 4 {
		row := n.Adaptive.PrivateOf(int(modifier)*4 + i)
		copy(m.PLFTID[16*i:], row[:])
	}
	return encodeAnswer(data, &m, 0)
}
