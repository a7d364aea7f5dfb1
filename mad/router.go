package mad

// Routers of NVIDIA.

// RouterInfo is what a router supports, the sizes of its tables and its ranges of LIDs (FLIDs).
//
//mad:attr class=Subn id=0xffd0 methods=Get,Set size=40 section=vendor onlyrouters safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_router_info_t, IB_ROUTER_*
type RouterInfo struct {
	_ uint32 `mad:"0:31"`
	// PFRNSup is set if pFRN is supported.
	PFRNSup bool `mad:"31:1,ro,name=pFRNSup"`
	// NextHopCap is the number of entries of NextHopTable.
	NextHopCap uint32 `mad:"32:32,ro"`
	// NextHopTop is the number of entries in use.
	NextHopTop uint32 `mad:"64:32,ro"`
	// ATC is set if AdjSiteLocalSubnetsTable has changed.
	ATC bool `mad:"96:1"`
	// NHTC is set if NextHopTable has changed.
	NHTC bool `mad:"97:1"`
	// ALTC is set if the information on adjacent subnets has changed.
	ALTC bool `mad:"98:1"`
	// RLTC is set if RouterLIDTable has changed.
	RLTC bool `mad:"99:1"`
	// ARLITC is set if AdjSubnetsRouterLIDInfo has changed.
	ARLITC bool   `mad:"100:1"`
	_      uint16 `mad:"101:11"`
	// AdjSubnetsTop is the number of entries of AdjSiteLocalSubnetsTable in use.
	AdjSubnetsTop uint8 `mad:"112:8,ro"`
	// AdjSubnetsCap is its size.
	AdjSubnetsCap uint8 `mad:"120:8,ro"`
	// CapSupportedSubnets is the number of subnets that are supported.
	CapSupportedSubnets uint8 `mad:"128:8,ro"`
	_                   uint8 `mad:"136:8"`
	// ARGroupToLIDCap is the size of ARGroupToRouterLIDTable.
	ARGroupToLIDCap uint16 `mad:"144:16,ro,name=ARGroupToLIDCap"`
	_               uint8  `mad:"160:7"`
	// PFRNRtrEn is set if the router passes pFRN on.
	PFRNRtrEn bool `mad:"167:1,name=pFRNRtrEn"`
	// AdjLIDInfoTop is the number of entries of AdjSubnetsRouterLIDInfo in use.
	AdjLIDInfoTop uint8 `mad:"168:8"`
	// RouterLIDCap is the number of FLIDs that are supported.
	RouterLIDCap uint16 `mad:"176:16,ro"`
	// MaxARGroupID is the largest group of adaptive routing.
	MaxARGroupID uint16 `mad:"192:12,name=MaxARGroupID"`
	// GlobalLIDStart is the first FLID of all subnets.
	GlobalLIDStart uint32 `mad:"204:20"`
	_              uint16 `mad:"224:12"`
	// GlobalLIDEnd is the last.
	GlobalLIDEnd uint32 `mad:"236:20"`
	_            uint16 `mad:"256:12"`
	// LocalLIDStart is the first FLID of this subnet.
	LocalLIDStart uint32 `mad:"268:20"`
	_             uint16 `mad:"288:12"`
	// LocalLIDEnd is the last.
	LocalLIDEnd uint32 `mad:"300:20"`
}

// NextHopTable is the subnets that a router leads to, 4 at a time.
//
//mad:attr class=Subn id=0xffd1 methods=Get size=64 section=vendor modifier=block:0:32 onlyrouters safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rtr_next_hop_table_block_t
type NextHopTable struct {
	// Record are the entries 4*block to 4*block+3.
	Record [4]NextHop `mad:"0:128,ro"`
}

// NextHop is a subnet that a router leads to.
//
//mad:header size=16 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h rtr_next_hop_record_t
type NextHop struct {
	// SubnetPrefix is the prefix of the subnet.
	SubnetPrefix uint64 `mad:"0:64,ro,hex"`
	// Weight is the weight of the way.
	Weight uint8 `mad:"64:8,ro"`
	_      uint8 `mad:"72:8"`
	// PKey is the partition.
	PKey uint16 `mad:"80:16,ro,name=P_Key,hex"`
	_    uint32 `mad:"96:32"`
}

// AdjSiteLocalSubnetsTable is the subnets that a router is in, 8 at a time.
//
//mad:attr class=Subn id=0xffd2 methods=Get size=64 section=vendor modifier=block:0:32 onlyrouters safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rtr_adj_table_block_t
type AdjSiteLocalSubnetsTable struct {
	// Record are the entries 8*block to 8*block+7.
	Record [8]AdjSubnet `mad:"0:64,ro"`
}

// AdjSubnet is a subnet that a router is in.
//
//mad:header size=8 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h rtr_adj_site_local_subn_record_t
type AdjSubnet struct {
	// PKey is the partition.
	PKey uint16 `mad:"0:16,ro,name=P_Key,hex"`
	// SubnetPrefixID is the end of the prefix of the subnet.
	SubnetPrefixID uint16 `mad:"16:16,ro,hex"`
	// PFRNMaxARGroupID is whether pFRN is enabled, and the largest group of adaptive routing; the source does not divide it.
	PFRNMaxARGroupID uint16 `mad:"32:16,ro,name=pFRNMaxARGroupID,hex"`
	// MasterSMLID is the LID of the subnet manager.
	MasterSMLID LID `mad:"48:16,ro"`
}

// AdjSubnetsRouterLIDInfo is the FLIDs of adjacent subnets, 8 at a time.
//
//mad:attr class=Subn id=0xffd5 methods=Get,Set size=64 section=vendor modifier=block:0:32 onlyrouters capability=router_lid safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rtr_adj_subnets_lid_info_block_t, ib_rtr_adj_subnets_lid_info_tbl_get_*
type AdjSubnetsRouterLIDInfo struct {
	// Record are the entries 8*block to 8*block+7.
	Record [8]AdjSubnetLIDs `mad:"0:64"`
}

// AdjSubnetLIDs is the FLIDs of an adjacent subnet.
//
//mad:header size=8 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rtr_adj_subnets_lid_info_tbl_get_subnet_prefix, ib_rtr_adj_subnets_lid_info_tbl_get_local_lid_start, ib_rtr_adj_subnets_lid_info_tbl_get_local_lid_end
type AdjSubnetLIDs struct {
	// SubnetPrefixID is the end of the prefix of the subnet.
	SubnetPrefixID uint16 `mad:"0:16,hex"`
	// LocalLIDStart is the first FLID.
	LocalLIDStart uint32 `mad:"16:20"`
	_             uint8  `mad:"36:8"`
	// LocalLIDEnd is the last.
	LocalLIDEnd uint32 `mad:"44:20"`
}

// RouterLIDTable is the FLIDs that are enabled, 512 at a time.
//
//mad:attr class=Subn id=0xffd6 methods=Get,Set size=64 section=vendor modifier=block:0:32 onlyrouters capability=router_lid safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rtr_router_lid_tbl_block_t (it does not state the order of the bits)
type RouterLIDTable struct {
	// LIDBits are 32 FLIDs each, a bit each.
	LIDBits [16]uint32 `mad:"0:32,hex"`
}

// ARGroupToRouterLIDTable is the FLIDs of 32 groups of adaptive routing.
//
//mad:attr class=Subn id=0xffd7 methods=Get,Set size=64 section=vendor modifier=block:0:32 onlyrouters capability=router_lid safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_rtr_ar_group_to_lid_tbl_block_t
type ARGroupToRouterLIDTable struct {
	// LID are the FLIDs of the groups 32*block to 32*block+31.
	LID [32]LID `mad:"0:16"`
}
