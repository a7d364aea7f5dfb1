// Package sma is the agent of subnet management of a simulated node.
//
//	sma.go       Request, and the attributes that the agent has
//	node.go      NodeDescription, NodeInfo, SwitchInfo, LedInfo, SMInfo
//	portinfo.go  PortInfo
//	table.go     forwarding tables, and tables in blocks
//	notice.go    Notice, for who polls the agent
//	mkey.go      M_Keys: who may, and what follows when one is wrong

package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// smaRequest is a Get or Set at an agent, and what the agent may read and change.
type smaRequest struct {
	Subnet   *state.Subnet
	SM       *Manager
	Notices  *state.Notices
	In       *state.Port // that the request came in through
	Modifier uint32
	Data     []byte // the attribute; afterwards that of the answer
	HideKey  bool   // the requester does not know the M_Key, and may not read it
}

// smaHandlers are the attributes of subnet management (IBA 14.2.5).
var smaHandlers = handlerTable[*smaRequest]{
	{Attr: mad.AttrNodeDescription, Get: (*smaRequest).getNodeDescription, Set: (*smaRequest).setNodeDescription},
	{Attr: mad.AttrNodeInfo, Get: (*smaRequest).getNodeInfo},
	{Attr: mad.AttrPortInfo, Get: (*smaRequest).getPortInfo, Set: (*smaRequest).setPortInfo},
	{Attr: mad.AttrSMInfo, On: onSM, Get: (*smaRequest).getSMInfo, Set: (*smaRequest).setSMInfo},
	{Attr: mad.AttrSwitchInfo, On: onSwitch, Get: (*smaRequest).getSwitchInfo, Set: (*smaRequest).setSwitchInfo},
	{Attr: mad.AttrLinearForwardingTable, On: onSwitch, Get: (*smaRequest).getLFT, Set: (*smaRequest).setLFT},
	{Attr: mad.AttrSLtoVLMappingTable, Get: getBlock(state.SL2VLBlocks), Set: (*smaRequest).setSL2VL},
	{Attr: mad.AttrMulticastForwardingTable, On: onSwitch, Get: getBlock(state.MFTBlocks), Set: setBlock(state.MFTBlocks)},
	{Attr: mad.AttrGUIDInfo, Get: getBlock(state.GUIDBlocks), Set: setBlock(state.GUIDBlocks)},
	{Attr: mad.AttrPKeyTable, Get: getBlock(state.PKeyBlocks), Set: setBlock(state.PKeyBlocks)},
	{Attr: mad.AttrVLArbitrationTable, Get: getBlock(state.VLArbBlocks), Set: setBlock(state.VLArbBlocks)},
	{Attr: mad.AttrMlnxAccessRegister, On: func(r *smaRequest) bool { return hasRegisters(r.In.Node) }, Get: (*smaRequest).getRegister},
	{Attr: mad.AttrExtendedPortInfo, On: func(r *smaRequest) bool { return hasExtPortInfo(r.In.Node) }, Get: (*smaRequest).getExtPortInfo, Set: (*smaRequest).setExtPortInfo},
	{Attr: mad.AttrAdaptiveRoutingLFT, On: onVendor(hasAdaptive), Get: getVendor(GetAdaptiveLFT)},
	{Attr: mad.AttrAdaptiveRoutingGroupTable, On: onVendor(hasAdaptive), Get: getVendor(getGroups)},
	{Attr: mad.AttrAdaptiveRoutingInfo, On: onVendor(hasAdaptive), Get: getVendor(getAdaptiveInfo)},
	{Attr: mad.AttrGeneralInfo, On: onVendor(hasGeneralInfo), Get: getVendor(getGeneralInfo)},
	{Attr: mad.AttrExtendedNodeInfo, On: onVendor(hasExtendedNodeInfo), Get: getVendor(getExtendedNodeInfo)},
	{Attr: mad.AttrVirtualizationInfo, On: onVendor(hasVirtual), Get: getVirtual(getVirtualization)},
	{Attr: mad.AttrVPortInfo, On: onVendor(hasVirtual), Get: getVirtual(getVirtualPort)},
	{Attr: mad.AttrVNodeInfo, On: onVendor(hasVirtual), Get: getVirtual(getVirtualNode)},
	{Attr: mad.AttrVPortState, On: onVendor(hasVirtual), Get: getVirtual(getVirtualStates)},
	{Attr: mad.AttrPrivateLFTInfo, On: onVendor(hasPrivate), Get: getVendor(getPrivateInfo)},
	{Attr: mad.AttrPrivateLFTDef, On: onVendor(hasPrivate), Get: getVendor(getPrivateDef)},
	{Attr: mad.AttrPrivateLFTMap, On: onVendor(hasPrivate), Get: getVendor(getPrivateMap)},
	{Attr: mad.AttrPortSLToPrivateLFTMap, On: onVendor(hasPortSL), Get: getVendor(getPortSL)},
	{Attr: mad.AttrHBFConfig, On: onVendor(hasAdaptive), Get: getVendor(getHBF)},
	{Attr: mad.AttrWeightedHBFConfig, On: onVendor(hasAdaptive), Get: getVendor(getWHBF)},
	{Attr: mad.AttrPFRNConfig, On: onVendor(hasAdaptive), Get: getVendor(getPFRN)},
	{Attr: mad.AttrRNSubGroupDirectionTable, On: onVendor(hasAdaptive), Get: getVendor(getSubGroupDirections)},
	{Attr: mad.AttrRNGenStringTable, On: onVendor(hasAdaptive), Get: getVendor(getGenStrings)},
	{Attr: mad.AttrRNRcvString, On: onVendor(hasAdaptive), Get: getVendor(getRcvStrings)},
	{Attr: mad.AttrRNXmitPortMask, On: onVendor(hasAdaptive), Get: getVendor(getXmitPorts)},
	{Attr: mad.AttrRNGenBySubGroupPriority, On: onVendor(hasAdaptive), Get: getVendor(getPriorities)},
	{Attr: mad.AttrSubnNotice, Get: (*smaRequest).getNotice, Set: (*smaRequest).setNotice},
	{Attr: mad.AttrLedInfo, Get: (*smaRequest).getLight, Set: (*smaRequest).setLight},
}

// The nodes that have an attribute.
func onSwitch(r *smaRequest) bool { return r.In.Node.IsSwitch }

func onVendor(has func(*state.Node) bool) func(r *smaRequest) bool {
	return func(r *smaRequest) bool { return has(r.In.Node) }
}

// getVirtual returns the Get of an attribute of virtual ports.
func getVirtual(get func(in *state.Port, modifier uint32, data []byte) mad.Status) func(r *smaRequest) mad.Status {
	return func(r *smaRequest) mad.Status { return get(r.In, r.Modifier, r.Data) }
}

// getVendor returns the Get of an attribute of the vendor.
func getVendor(get func(n *state.Node, modifier uint32, data []byte) mad.Status) func(r *smaRequest) mad.Status {
	return func(r *smaRequest) mad.Status { return get(r.In.Node, r.Modifier, r.Data) }
}
