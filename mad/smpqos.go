package mad

// Arbitration of bandwidth, and the states of a switch's ports.

// SwitchPortStateTable is the states of 128 ports of a switch. With extended in the modifier the switch may report state 5, active with deferred traffic.
//
//mad:attr class=Subn id=0x0034 methods=Get size=64 section=14.2.5.20 modifier=block:0:1,extended:15:1 unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_switch_port_state_table_t, IB_SPST_*, OSM_SPST_PORT_STATE_MASK_ATTR_MOD_HO
type SwitchPortStateTable struct {
	// State are the states of the ports 128*block to 128*block+127, as PortInfo.PortState; 5 is active-defer.
	State [128]uint8 `mad:"0:4,ro,name=SwitchPortState"`
}

// EnhQoSArbiterInfo is what a port supports of the arbitration of bandwidth.
//
//mad:attr class=Subn id=0x0050 methods=Get size=64 section=14.2.6.21 modifier=port:0:8 unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_enh_qos_arbiter_info_t, IB_ENH_QOS_*
type EnhQoSArbiterInfo struct {
	// CapMask are the supported limits and shares.
	CapMask QoSArbiterCapabilities `mad:"0:32,ro"`
	// NumVLGroupsCap is the number of groups of virtual lanes.
	NumVLGroupsCap uint8 `mad:"32:4,ro,name=NumVLGroupsCap"`
	// SLCap is the largest service level.
	SLCap uint8 `mad:"36:4,ro"`
	_     uint8 `mad:"40:8"`
	// RLGranCap is the smallest unit of rate limits.
	RLGranCap BandwidthUnit `mad:"48:4,ro,name=RLGranCap"`
	// RLGranEn is the unit of rate limits in use.
	RLGranEn BandwidthUnit `mad:"52:4,ro,name=RLGranEn"`
	// MinBWGranCap is the smallest unit of minimum bandwidths.
	MinBWGranCap BandwidthUnit `mad:"56:4,ro"`
	// MinBWGranEn is the unit of minimum bandwidths in use.
	MinBWGranEn BandwidthUnit `mad:"60:4,ro"`
	_           [56]uint8     `mad:"64:8"`
}

// QoSArbiterCapabilities are the limits and shares that a port supports (opensm-mlnx
// include/iba/ib_types.h IB_ENH_QOS_ARBINFO_CAPMASK_*).
//
//mad:mask
type QoSArbiterCapabilities uint32

const (
	QoSArbiterCapabilitiesPortRL      QoSArbiterCapabilities = 1 << 1  // "port_rate_limit"
	QoSArbiterCapabilitiesVLG0RL      QoSArbiterCapabilities = 1 << 2  // "vl_group0_rate_limit"
	QoSArbiterCapabilitiesVLGRL       QoSArbiterCapabilities = 1 << 3  // "vl_group_rate_limit"
	QoSArbiterCapabilitiesVLGShare    QoSArbiterCapabilities = 1 << 4  // "vl_group_share"
	QoSArbiterCapabilitiesVLShare     QoSArbiterCapabilities = 1 << 5  // "vl_share"
	QoSArbiterCapabilitiesVLRL        QoSArbiterCapabilities = 1 << 6  // "vl_rate_limit"
	QoSArbiterCapabilitiesSLShare     QoSArbiterCapabilities = 1 << 7  // "sl_share"
	QoSArbiterCapabilitiesSLRL        QoSArbiterCapabilities = 1 << 8  // "sl_rate_limit"
	QoSArbiterCapabilitiesVLG0Min     QoSArbiterCapabilities = 1 << 9  // "vl_group0_minimum"
	QoSArbiterCapabilitiesVLGMin      QoSArbiterCapabilities = 1 << 10 // "vl_group_minimum"
	QoSArbiterCapabilitiesVLMin       QoSArbiterCapabilities = 1 << 11 // "vl_minimum"
	QoSArbiterCapabilitiesGranularity QoSArbiterCapabilities = 1 << 12 // "separate_granularities"
)

// BandwidthUnit is a unit of bandwidth (opensm-mlnx include/iba/ib_types.h
// ib_enh_qos_ariter_rate_t).
//
//mad:enum
type BandwidthUnit uint8

const (
	BandwidthUnit1M   BandwidthUnit = 1 // "1_mbit"
	BandwidthUnit10M  BandwidthUnit = 2 // "10_mbit"
	BandwidthUnit100M BandwidthUnit = 3 // "100_mbit"
	BandwidthUnit1G   BandwidthUnit = 4 // "1_gbit"
	BandwidthUnit10G  BandwidthUnit = 5 // "10_gbit"
	BandwidthUnit100G BandwidthUnit = 6 // "100_gbit"
	BandwidthUnit1T   BandwidthUnit = 7 // "1_tbit"
)

// EnhPortVLArbiter is the arbitration of bandwidth of a port: rate limits, or minimum bandwidths with minimum in the modifier.
//
//mad:attr class=Subn id=0x0051 methods=Get,Set size=64 section=14.2.6.22 modifier=port:0:8,by_vl:30:1,minimum:31:1 unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_enh_port_vl_arbiter_t, IB_VL_PORT_ARBITER_*
type EnhPortVLArbiter struct {
	// Arbiter is of groups of virtual lanes, or of virtual lanes with by_vl in the modifier.
	Arbiter [64]byte `mad:"0:512,bytes"`
}

// VLGroupArbiter is EnhPortVLArbiter of groups of virtual lanes.
//
//mad:header size=64 section=14.2.6.22 unconfirmed
//mad:variant of=EnhPortVLArbiter.Arbiter name=groups when=modifier.by_vl:0
//mad:source opensm-mlnx include/iba/ib_types.h ib_vl_groups_arbiter_config_t
type VLGroupArbiter struct {
	// VLGroupMask are the groups that are valid, a bit each.
	VLGroupMask uint8  `mad:"0:8,hex"`
	_           uint32 `mad:"8:24"`
	// PortRateLimit is the rate limit of the port.
	PortRateLimit uint32 `mad:"32:20"`
	_             uint16 `mad:"52:12"`
	// VLMask are the virtual lanes of each group, a bit each.
	VLMask [8]uint16 `mad:"64:16,hex"`
	// Group are the groups.
	Group [8]BandwidthShare `mad:"192:32"`
	_     uint64            `mad:"448:64"`
}

// VLArbiter is EnhPortVLArbiter of virtual lanes.
//
//mad:header size=64 section=14.2.6.22 unconfirmed
//mad:variant of=EnhPortVLArbiter.Arbiter name=lanes when=modifier.by_vl:1
//mad:source opensm-mlnx include/iba/ib_types.h ib_vl_arbiter_config_t
type VLArbiter struct {
	// VLMask are the virtual lanes that are valid, a bit each.
	VLMask uint16 `mad:"0:16,hex"`
	_      uint16 `mad:"16:16"`
	// VL are the virtual lanes from 0 to 14.
	VL [15]BandwidthShare `mad:"32:32"`
}

// BandwidthShare is a share of the bandwidth, and a limit or minimum.
//
//mad:header size=4 section=14.2.6.22 unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_enh_bw_per_element_t, IB_ENH_BW_PER_ELEMENT_*
type BandwidthShare struct {
	// Share is the share.
	Share uint16 `mad:"0:12"`
	// Limit is the rate limit or the minimum bandwidth.
	Limit uint32 `mad:"12:20"`
}

// EnhSLArbiter is the bandwidth of each service level of a port.
//
//mad:attr class=Subn id=0x0052 methods=Get,Set size=64 section=14.2.6.23 modifier=port:0:8 unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_enh_sl_arbiter_t
type EnhSLArbiter struct {
	// SL are the service levels from 0 to 15.
	SL [16]BandwidthShare `mad:"0:32"`
}

// EnhVPortData is the arbitration of bandwidth of virtual ports, of which only the
// number is certain.
//
//mad:attr class=Subn id=0x0053 name=EnhVPortQoSArbiterInfo methods=Get size=64 section=14.2.6 modifier=unknown unconfirmed ; is EnhQoSArbiterInfo of a virtual port.
//mad:attr class=Subn id=0x0054 name=EnhVPortSLArbiter methods=Get,Set size=64 section=14.2.6 modifier=unknown unconfirmed ; is EnhSLArbiter of a virtual port.
//mad:source opensm-mlnx include/iba/ib_types.h IB_MAD_ATTR_VPORT_ENH_QOS_ARBITER_INFO, IB_MAD_ATTR_VPORT_ENH_SL_ARBITER (the numbers alone)
type EnhVPortData struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}
