// Package sma is the agent of subnet management of a simulated node.
//
//	sma.go       Request, and the attributes that the agent has
//	node.go      NodeDescription, NodeInfo, SwitchInfo, LedInfo, SMInfo
//	portinfo.go  PortInfo
//	table.go     forwarding tables, and tables in blocks
//	notice.go    Notice, for who polls the agent
//	mkey.go      M_Keys: who may, and what follows when one is wrong
package sma

import (
	"fabsh/fabric/sim/agent/handler"
	"fabsh/fabric/sim/agent/vendor"
	"fabsh/fabric/sim/notice"
	"fabsh/fabric/sim/sm"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Request is a Get or Set at an agent, and what the agent may read and change.
type Request struct {
	Subnet   *state.Subnet
	SM       *sm.Manager
	Notices  *notice.Notices
	In       *state.Port // that the request came in through
	Modifier uint32
	Data     []byte // the attribute; afterwards that of the answer
	HideKey  bool   // the requester does not know the M_Key, and may not read it
}

// Handlers are the attributes of subnet management (IBA 14.2.5).
var Handlers = handler.Table[*Request]{
	{Attr: mad.AttrNodeDescription, Get: (*Request).getNodeDescription, Set: (*Request).setNodeDescription},
	{Attr: mad.AttrNodeInfo, Get: (*Request).getNodeInfo},
	{Attr: mad.AttrPortInfo, Get: (*Request).getPortInfo, Set: (*Request).setPortInfo},
	{Attr: mad.AttrSMInfo, On: onSM, Get: (*Request).getSMInfo, Set: (*Request).setSMInfo},
	{Attr: mad.AttrSwitchInfo, On: onSwitch, Get: (*Request).getSwitchInfo, Set: (*Request).setSwitchInfo},
	{Attr: mad.AttrLinearForwardingTable, On: onSwitch, Get: (*Request).getLFT, Set: (*Request).setLFT},
	{Attr: mad.AttrSLtoVLMappingTable, Get: getBlock(state.SL2VLBlocks), Set: (*Request).setSL2VL},
	{Attr: mad.AttrMulticastForwardingTable, On: onSwitch, Get: getBlock(state.MFTBlocks), Set: setBlock(state.MFTBlocks)},
	{Attr: mad.AttrGUIDInfo, Get: getBlock(state.GUIDBlocks), Set: setBlock(state.GUIDBlocks)},
	{Attr: mad.AttrPKeyTable, Get: getBlock(state.PKeyBlocks), Set: setBlock(state.PKeyBlocks)},
	{Attr: mad.AttrVLArbitrationTable, Get: getBlock(state.VLArbBlocks), Set: setBlock(state.VLArbBlocks)},
	{Attr: mad.AttrMlnxAccessRegister, On: func(r *Request) bool { return vendor.HasRegisters(r.In.Node) }, Get: (*Request).getRegister},
	{Attr: mad.AttrExtendedPortInfo, On: func(r *Request) bool { return vendor.HasExtPortInfo(r.In.Node) }, Get: (*Request).getExtPortInfo, Set: (*Request).setExtPortInfo},
	{Attr: mad.AttrAdaptiveRoutingLFT, On: onVendor(vendor.HasAdaptive), Get: getVendor(vendor.GetAdaptiveLFT)},
	{Attr: mad.AttrAdaptiveRoutingGroupTable, On: onVendor(vendor.HasAdaptive), Get: getVendor(vendor.GetGroups)},
	{Attr: mad.AttrAdaptiveRoutingInfo, On: onVendor(vendor.HasAdaptive), Get: getVendor(vendor.GetAdaptiveInfo)},
	{Attr: mad.AttrGeneralInfo, On: onVendor(vendor.HasGeneralInfo), Get: getVendor(vendor.GetGeneralInfo)},
	{Attr: mad.AttrExtendedNodeInfo, On: onVendor(vendor.HasExtendedNodeInfo), Get: getVendor(vendor.GetExtendedNodeInfo)},
	{Attr: mad.AttrVirtualizationInfo, On: onVendor(vendor.HasVirtual), Get: getVirtual(vendor.GetVirtualization)},
	{Attr: mad.AttrVPortInfo, On: onVendor(vendor.HasVirtual), Get: getVirtual(vendor.GetVirtualPort)},
	{Attr: mad.AttrVNodeInfo, On: onVendor(vendor.HasVirtual), Get: getVirtual(vendor.GetVirtualNode)},
	{Attr: mad.AttrVPortState, On: onVendor(vendor.HasVirtual), Get: getVirtual(vendor.GetVirtualStates)},
	{Attr: mad.AttrPrivateLFTInfo, On: onVendor(vendor.HasPrivate), Get: getVendor(vendor.GetPrivateInfo)},
	{Attr: mad.AttrPrivateLFTDef, On: onVendor(vendor.HasPrivate), Get: getVendor(vendor.GetPrivateDef)},
	{Attr: mad.AttrPrivateLFTMap, On: onVendor(vendor.HasPrivate), Get: getVendor(vendor.GetPrivateMap)},
	{Attr: mad.AttrPortSLToPrivateLFTMap, On: onVendor(vendor.HasPortSL), Get: getVendor(vendor.GetPortSL)},
	{Attr: mad.AttrHBFConfig, On: onVendor(vendor.HasAdaptive), Get: getVendor(vendor.GetHBF)},
	{Attr: mad.AttrWeightedHBFConfig, On: onVendor(vendor.HasAdaptive), Get: getVendor(vendor.GetWHBF)},
	{Attr: mad.AttrPFRNConfig, On: onVendor(vendor.HasAdaptive), Get: getVendor(vendor.GetPFRN)},
	{Attr: mad.AttrRNSubGroupDirectionTable, On: onVendor(vendor.HasAdaptive), Get: getVendor(vendor.GetSubGroupDirections)},
	{Attr: mad.AttrRNGenStringTable, On: onVendor(vendor.HasAdaptive), Get: getVendor(vendor.GetGenStrings)},
	{Attr: mad.AttrRNRcvString, On: onVendor(vendor.HasAdaptive), Get: getVendor(vendor.GetRcvStrings)},
	{Attr: mad.AttrRNXmitPortMask, On: onVendor(vendor.HasAdaptive), Get: getVendor(vendor.GetXmitPorts)},
	{Attr: mad.AttrRNGenBySubGroupPriority, On: onVendor(vendor.HasAdaptive), Get: getVendor(vendor.GetPriorities)},
	{Attr: mad.AttrSubnNotice, Get: (*Request).getNotice, Set: (*Request).setNotice},
	{Attr: mad.AttrLedInfo, Get: (*Request).getLight, Set: (*Request).setLight},
}

// The nodes that have an attribute.
func onSwitch(r *Request) bool { return r.In.Node.IsSwitch }

func onVendor(has func(*state.Node) bool) func(r *Request) bool {
	return func(r *Request) bool { return has(r.In.Node) }
}

// getVirtual returns the Get of an attribute of virtual ports.
func getVirtual(get func(in *state.Port, modifier uint32, data []byte) mad.Status) func(r *Request) mad.Status {
	return func(r *Request) mad.Status { return get(r.In, r.Modifier, r.Data) }
}

// getVendor returns the Get of an attribute of the vendor.
func getVendor(get func(n *state.Node, modifier uint32, data []byte) mad.Status) func(r *Request) mad.Status {
	return func(r *Request) mad.Status { return get(r.In.Node, r.Modifier, r.Data) }
}
