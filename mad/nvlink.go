package mad

// Attributes of NVLink fabrics and of planes, of which fabsh has the names and numbers.

// NVLinkData is an attribute that fabsh does not decode.
//
//mad:attr class=Subn id=0xff26 name=LinearForwardingTableSplit methods=Get,Set size=64 section=vendor capability=lft_split safeget unconfirmed ; divides the LIDs of a switch into ranges.
//mad:attr class=Subn id=0xff27 name=NVLHBFConfig methods=Get,Set size=64 section=vendor modifier=profile:0:31,by_profile:31:1 capability=nvl_hbf safeget unconfirmed ; is how a switch computes the hash of NVLink packets.
//mad:attr class=Subn id=0xff54 name=EndPortPlaneFilterConfig methods=Set size=64 section=vendor modifier=unknown capability=end_port_plane_filter unconfirmed ; is the LIDs of the planes of a port.
//mad:attr class=Subn id=0xff87 name=ContainAndDrainInfo methods=Get,Set size=64 section=vendor modifier=block:0:32 capability=contain_and_drain safeget unconfirmed ; is the action on the traffic of 128 ports.
//mad:attr class=Subn id=0xff88 name=ContainAndDrainPortState methods=Get,Set size=64 section=vendor modifier=block:0:32 capability=contain_and_drain safeget unconfirmed ; is the state of containment of 128 ports.
//mad:attr class=Subn id=0xff89 name=AnycastLIDInfo methods=Get,Set size=64 section=vendor modifier=block:0:32 capability=extended_node_info needs=ExtendedNodeInfo.AnycastLIDCap safeget unconfirmed ; is 16 anycast LIDs of a GPU.
//mad:attr class=Subn id=0xff8a name=RailFilterConfig methods=Get,Set size=64 section=vendor modifier=unknown capability=rail_filter safeget unconfirmed ; is the ports between which a switch forwards.
//mad:attr class=Subn id=0xff8e name=FabricManagerInfo methods=Get,Set size=64 section=vendor capability=fabric_manager_info safeget unconfirmed ; is the state of the fabric manager.
//mad:source opensm-mlnx include/iba/ib_types.h IB_MAD_ATTR_LFT_SPLIT, IB_MAD_ATTR_NVL_HBF_CONFIG, IB_MAD_ATTR_END_PORT_PLANE_FILTER_CONFIG, IB_MAD_ATTR_CONTAIN_AND_DRAIN_*, IB_MAD_ATTR_ALID_INFO, IB_MAD_ATTR_RAIL_FILTER_CONFIG, IB_MAD_ATTR_FABRIC_MANAGER_INFO (the numbers alone)
type NVLinkData struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}
