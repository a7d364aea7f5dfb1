package mad

import (
	"fmt"
	"slices"
	"strings"
)

// The general attributes of NVIDIA's and Mellanox' devices in subnet management.

// GeneralInfo is information on the device; the modifier selects which.
//
// The public sources have one form: the capabilities. They are read before any other
// attribute of the vendor is.
//
//mad:attr class=Subn id=0xff17 alias=MlnxGeneralInfo methods=Get size=64 section=vendor modifier=form:0:32 safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_general_info_smp_t (public copy in trex-core, external_libs/ibverbs)
type GeneralInfo struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}

// GeneralInfoCapabilities is GeneralInfo of form 4: the optional capabilities of the device.
//
//mad:header size=16 section=vendor unconfirmed
//mad:variant of=GeneralInfo.Data name=capabilities when=modifier.form:4
//mad:source opensm-mlnx include/iba/ib_types.h ib_general_info_is_cap_enabled, IB_GENERAL_INFO_CAP_ATTRIBUTE_MODIFIER
type GeneralInfoCapabilities struct {
	// CapMask0 are the capabilities 0 to 31.
	CapMask0 Capabilities0 `mad:"0:32,ro"`
	// CapMask1 are the capabilities 32 to 63.
	CapMask1 Capabilities1 `mad:"32:32,ro"`
	// CapMask2 are the capabilities 64 to 95.
	CapMask2 Capabilities2 `mad:"64:32,ro"`
	// CapMask3 are the capabilities 96 to 127.
	CapMask3 uint32 `mad:"96:32,ro,hex"`
}

// GeneralInfoFormCapabilities is the modifier of GeneralInfo for the capabilities.
const GeneralInfoFormCapabilities = 4

// Capabilities0 are the capabilities 0 to 31 of a device (opensm-mlnx
// include/iba/ib_types.h IB_GENERAL_INFO_*_BIT; up to 14 also mstflint
// tools_open_layouts.h).
//
//mad:mask
type Capabilities0 uint32

const (
	Capabilities0PrivateLFT           Capabilities0 = 1 << 0 // "private_lft"
	Capabilities0AR                   Capabilities0 = 1 << 1
	Capabilities0ARRev1               Capabilities0 = 1 << 2 // "ar_rev1"
	Capabilities0RemotePortMirroring  Capabilities0 = 1 << 3
	Capabilities0TemperatureSensing   Capabilities0 = 1 << 4
	Capabilities0ConfigSpaceAccess    Capabilities0 = 1 << 5
	Capabilities0CableInfo            Capabilities0 = 1 << 6
	Capabilities0EyeOpening           Capabilities0 = 1 << 7
	Capabilities0LossyVL              Capabilities0 = 1 << 8
	Capabilities0ExtendedPortInfo     Capabilities0 = 1 << 9
	Capabilities0AccessRegister       Capabilities0 = 1 << 10
	Capabilities0InterProcessor       Capabilities0 = 1 << 11
	Capabilities0PortSLToPrivateLFT   Capabilities0 = 1 << 12 // "port_sl_to_private_lft"
	Capabilities0ExtendedNodeInfo     Capabilities0 = 1 << 13
	Capabilities0SlaveVirtualSwitch   Capabilities0 = 1 << 14
	Capabilities0Virtualization       Capabilities0 = 1 << 15
	Capabilities0AME                  Capabilities0 = 1 << 16
	Capabilities0SHARPAggregationNode Capabilities0 = 1 << 18 // "sharp_aggregation_node"
	Capabilities0QoSConfigSLRateLimit Capabilities0 = 1 << 24 // "qos_config_sl_rate_limit"
	Capabilities0QoSConfigSLVPort     Capabilities0 = 1 << 25 // "qos_config_sl_vport_rate_limit"
	Capabilities0GlobalOutOfOrder     Capabilities0 = 1 << 30
)

// Capabilities1 are the capabilities 32 to 63 of a device (opensm-mlnx
// include/iba/ib_types.h IB_GENERAL_INFO_IS_*).
//
//mad:mask
type Capabilities1 uint32

const (
	Capabilities1CongestionControl Capabilities1 = 1 << 12
	Capabilities1AdaptiveTimeout   Capabilities1 = 1 << 13
	Capabilities1RouterLID         Capabilities1 = 1 << 16
	Capabilities1LFTSplit          Capabilities1 = 1 << 17 // "lft_split"
	Capabilities1QoSConfigVL       Capabilities1 = 1 << 19 // "qos_config_vl"
	Capabilities1FastRecovery      Capabilities1 = 1 << 20
	Capabilities1CreditWatchdog    Capabilities1 = 1 << 21
	Capabilities1NVLReduction      Capabilities1 = 1 << 23 // "nvl_reduction_management"
	Capabilities1RailFilter        Capabilities1 = 1 << 24
	Capabilities1NVLHBF            Capabilities1 = 1 << 25 // "nvl_hbf"
	Capabilities1ContainAndDrain   Capabilities1 = 1 << 27
	Capabilities1BER               Capabilities1 = 1 << 29
	Capabilities1VLBufferWeight    Capabilities1 = 1 << 31
)

// Capabilities2 are the capabilities 64 to 95 of a device (opensm-mlnx
// include/iba/ib_types.h IB_GENERAL_INFO_IS_*).
//
//mad:mask
type Capabilities2 uint32

const (
	Capabilities2EndPortPlaneFilter Capabilities2 = 1 << 0
	Capabilities2BWUtilization      Capabilities2 = 1 << 2
	Capabilities2ExtendedSwitchInfo Capabilities2 = 1 << 3
	Capabilities2FabricManagerInfo  Capabilities2 = 1 << 4
	Capabilities2ChassisInfo        Capabilities2 = 1 << 8
	Capabilities2ISSU               Capabilities2 = 1 << 10 // "issu", software update in service
	Capabilities2PortRecovery       Capabilities2 = 1 << 12 // "port_recovery_policy"
	Capabilities2NMXAdminState      Capabilities2 = 1 << 13 // "nmx_admin_state"
	Capabilities2LinkAutoRetrain    Capabilities2 = 1 << 17
)

// ExtendedPortInfo is further state of a port: whether it runs FDR10, which PortInfo
// shows as QDR, and the service levels on which it accepts packets out of order. Only
// NVIDIA's and Mellanox' devices have it; some do not have GeneralInfo, and are known by
// VendorID and DeviceID.
//
// The fields of the speeds have two sources; the others have one, opensm-mlnx.
//
//mad:attr class=Subn id=0xff90 alias=MlnxExtPortInfo methods=Get,Set size=64 section=vendor modifier=port:0:8 capability=extended_port_info
//mad:source rdma-core libibmad/fields.c Mellanox ExtendedPortInfo fields (StateChangeEnable and the speeds)
//mad:source opensm include/iba/ib_types.h ib_mlnx_ext_port_info_t (the same)
//mad:source opensm-mlnx include/iba/ib_types.h ib_mlnx_ext_port_info_t (all)
type ExtendedPortInfo struct {
	// AME is set if the advanced modes of retransmission and error correction are enabled.
	AME bool `mad:"0:1"`
	// SHARPANEn is set if the port's SHARP aggregation node is enabled.
	SHARPANEn bool `mad:"1:1"`
	// RouterLIDEn is set if the port uses the LIDs of routers (FLIDs).
	RouterLIDEn bool `mad:"2:1"`
	// PortRecovered is set during a recovery of the port and after a successful one; a Set of 0 clears it.
	PortRecovered bool   `mad:"3:1"`
	_             uint32 `mad:"4:20"`
	// StateChangeEnable selects the fields below that a Set changes; bit 1 is NMXAdminState.
	StateChangeEnable uint8 `mad:"24:8,hex"`
	_                 uint8 `mad:"32:5"`
	// BWUtilEn is set if the port measures the utilization of its bandwidth.
	BWUtilEn bool `mad:"37:1"`
	// BWUtilization is that utilization; the source gives no unit.
	BWUtilization uint16 `mad:"38:10"`
	// UnhealthyReason is why the port is considered unhealthy.
	UnhealthyReason UnhealthyReason `mad:"48:8,ro"`
	// LinkSpeedSupported is a mask of speeds that the port supports; bit 0 is FDR10.
	LinkSpeedSupported uint8  `mad:"56:8,ro,hex"`
	_                  uint32 `mad:"64:17"`
	// MinBWUtilization is the smallest utilization; the source gives no unit.
	MinBWUtilization uint8 `mad:"81:7"`
	// LinkSpeedEnabled is a mask of speeds that may be negotiated; bit 0 is FDR10.
	LinkSpeedEnabled uint8  `mad:"88:8,hex"`
	_                uint32 `mad:"96:24"`
	// LinkSpeedActive is a mask of the speed in use; bit 0 is FDR10.
	LinkSpeedActive uint8  `mad:"120:8,ro,hex"`
	_               uint16 `mad:"128:12"`
	// NMXAdminState is the administrative state of the port.
	NMXAdminState NMXAdminState `mad:"140:3"`
	_             uint8         `mad:"143:1"`
	// CapabilityMask is what the port supports; bit 9 is two M_Keys.
	CapabilityMask uint16    `mad:"144:16,ro,hex"`
	_              [24]uint8 `mad:"160:8"`
	// IsFNMPort is set if the port is for the management of the fabric's network.
	IsFNMPort bool `mad:"352:1,ro"`
	// MissionPortAsFNM is set if an ordinary port serves as one; reserved where IsFNMPort is set.
	MissionPortAsFNM bool `mad:"353:1"`
	// QoSConfigVLEn is set if QoSConfigVL may be used.
	QoSConfigVLEn bool `mad:"354:1"`
	// AccessTrunk is set for a trunk port, and clear for an access port.
	AccessTrunk bool   `mad:"355:1"`
	_           uint32 `mad:"356:20"`
	// IsSpecialPort is set if SpecialPortType is valid.
	IsSpecialPort bool  `mad:"376:1,ro"`
	_             uint8 `mad:"377:3"`
	// SpecialPortType is what is behind the port: 1 is an aggregation node, 2 a router, 3 an Ethernet gateway.
	SpecialPortType uint8    `mad:"380:4,ro"`
	_               [4]uint8 `mad:"384:8"`
	// AdaptiveTimeoutSLMask are the service levels with adaptive timeouts, a bit each.
	AdaptiveTimeoutSLMask uint16 `mad:"416:16,hex"`
	// OOOSLMask are the service levels on which the adapter accepts packets out of order, a bit each.
	OOOSLMask uint16   `mad:"432:16,hex"`
	_         [8]uint8 `mad:"448:8"`
}

// UnhealthyReason is why a port is considered unhealthy (opensm-mlnx
// include/iba/ib_types.h ib_epi_unhealthy_reason_type).
//
//mad:enum
type UnhealthyReason uint8

const (
	UnhealthyReasonNotSupported    UnhealthyReason = 0
	UnhealthyReasonHealthy         UnhealthyReason = 1
	UnhealthyReasonCreditWatchdog  UnhealthyReason = 2
	UnhealthyReasonSymmetry        UnhealthyReason = 3 // "symmetry", symmetry enforcement
	UnhealthyReasonRawBER          UnhealthyReason = 4 // "raw_ber"
	UnhealthyReasonEffectiveBER    UnhealthyReason = 5 // "effective_ber"
	UnhealthyReasonSymbolBER       UnhealthyReason = 6 // "symbol_ber"
	UnhealthyReasonContainAndDrain UnhealthyReason = 8
)

// NMXAdminState is the administrative state of a port (opensm-mlnx
// include/iba/ib_types.h ib_nmx_admin_state_t).
//
//mad:enum
type NMXAdminState uint8

const (
	NMXAdminStateNotAvailable NMXAdminState = 0
	NMXAdminStateUp           NMXAdminState = 1
	NMXAdminStateDown         NMXAdminState = 2
	NMXAdminStateDiag         NMXAdminState = 3
)

// ExtendedNodeInfo is further information on a node.
//
//mad:attr class=Subn id=0xff91 methods=Get,Set size=64 section=vendor capability=extended_node_info safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_mlnx_ext_node_info_t, IB_MENI_*
type ExtendedNodeInfo struct {
	// NumOOB is the number of ports for management out of band.
	NumOOB uint8 `mad:"0:8,ro"`
	// NumPCIe is the number of PCIe interfaces.
	NumPCIe uint8 `mad:"8:8,ro"`
	// SL2VLAct is the mode of SLtoVLMappingTable in use.
	SL2VLAct uint8 `mad:"16:8,name=SL2VLAct"`
	// SL2VLCap are the supported modes.
	SL2VLCap uint8    `mad:"24:8,ro,name=SL2VLCap"`
	_        [9]uint8 `mad:"32:8"`
	// AnycastLIDTop is the last entry of AnycastLIDInfo in use.
	AnycastLIDTop uint8 `mad:"104:8"`
	// AnycastLIDCap is the number of entries of AnycastLIDInfo.
	AnycastLIDCap uint8 `mad:"112:8,ro"`
	// NodeTypeExtended is the kind of node.
	NodeTypeExtended ExtendedNodeType `mad:"120:8,ro"`
	// MultiplaneAsymmetryEn is set if the planes may be different.
	MultiplaneAsymmetryEn bool `mad:"128:1"`
	// LinkAutoRetrainEn is set if links are trained again by themselves.
	LinkAutoRetrainEn bool   `mad:"129:1"`
	_                 uint32 `mad:"130:22"`
	// AsicMaxPlanes is the largest number of planes of the device.
	AsicMaxPlanes uint8     `mad:"152:8,ro"`
	_             [44]uint8 `mad:"160:8"`
}

// ExtendedNodeType is the kind of a node (opensm-mlnx include/iba/ib_types.h
// IB_EXTENDED_NODE_TYPE_*, which does not name 0).
//
//mad:enum
type ExtendedNodeType uint8

const (
	ExtendedNodeTypeStandard   ExtendedNodeType = 0
	ExtendedNodeTypeGPU        ExtendedNodeType = 1
	ExtendedNodeTypeMultiplane ExtendedNodeType = 2 // "multi_plane_ca"
)

// ExtendedSwitchInfo is further information on a switch: updates in service (ISSU) and turbo path.
//
//mad:attr class=Subn id=0xff92 methods=Get,Set size=16 section=vendor capability=extended_switch_info safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_extended_switch_info_t, IB_EXT_SW_INFO_*
type ExtendedSwitchInfo struct {
	_ uint32 `mad:"0:26"`
	// ISSUApprove is set if an update is approved, or failed if ISSURequest is clear.
	ISSUApprove bool `mad:"26:1"`
	// ISSURequest is set if an update is requested.
	ISSURequest bool `mad:"27:1"`
	// TurboPathCap is set if turbo path is supported.
	TurboPathCap bool `mad:"28:1,ro"`
	// TurboPathEn is the mode of turbo path.
	TurboPathEn uint8 `mad:"29:3"`
	_           uint8 `mad:"32:4"`
	// ReqDelayCap is set if ReqDelay is valid.
	ReqDelayCap bool `mad:"36:1,ro"`
	// SetTrigThCap is set if SetTrigTh is valid.
	SetTrigThCap bool `mad:"37:1,ro"`
	// RstTrigThCap is set if RstTrigTh is valid.
	RstTrigThCap bool `mad:"38:1,ro"`
	// ReqTrigWindowCap is set if ReqTrigWindow is valid.
	ReqTrigWindowCap bool   `mad:"39:1,ro"`
	_                uint16 `mad:"40:14"`
	// ReqDelay is the delay of requests of turbo path.
	ReqDelay uint16 `mad:"54:10"`
	_        uint8  `mad:"64:6"`
	// SetTrigTh is the threshold that begins it.
	SetTrigTh uint16 `mad:"70:10"`
	_         uint8  `mad:"80:6"`
	// RstTrigTh is the threshold that ends it.
	RstTrigTh uint16 `mad:"86:10"`
	_         uint32 `mad:"96:22"`
	// ReqTrigWindow is the window of its requests.
	ReqTrigWindow uint16 `mad:"118:10"`
}

// ChassisInfo is the chassis of a device.
//
//mad:attr class=Subn id=0xff18 methods=Get size=20 section=vendor capability=chassis_info safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_chassis_info_t
type ChassisInfo struct {
	_ uint32 `mad:"0:32"`
	// ChassisID is the serial number of the chassis.
	ChassisID [16]byte `mad:"32:128,text"`
}

// MlnxCableInfo reads the memory of the cable or transceiver in a port. A request has
// BusAddress, Page, Address and Size; the answer also has Memory. The place of the port in the
// modifier is not public.
//
//mad:attr class=Subn id=0xff60 methods=Get size=64 section=vendor modifier=unknown capability=cable_info safeget unconfirmed
//mad:source linux drivers/net/ethernet/mellanox/mlx4/port.c struct mlx4_cable_info
type MlnxCableInfo struct {
	// BusAddress is the address of the memory on the I2C bus: 0x50 or, in some transceivers, 0x51.
	BusAddress uint8 `mad:"0:8,hex"`
	// Page is the page of the memory.
	Page uint8 `mad:"8:8"`
	// Address is the first byte to read.
	Address uint16 `mad:"16:16"`
	_       uint16 `mad:"32:16"`
	// Size is the number of bytes to read.
	Size uint16 `mad:"48:16"`
	_    uint64 `mad:"64:64"`
	// Memory are the bytes that were read.
	Memory [48]byte `mad:"128:384,bytes"`
}

// Which attributes of NVIDIA and Mellanox a device has: no others may be requested from it.

// Capability is the number of a capability in GeneralInfo, from 0 to 127.
type Capability uint8

// Has reports whether the device has capability c.
func (t *GeneralInfoCapabilities) Has(c Capability) bool {
	masks := [4]uint32{uint32(t.CapMask0), uint32(t.CapMask1), uint32(t.CapMask2), t.CapMask3}
	return c < 128 && masks[c/32]>>(c%32)&1 != 0
}

// String returns the word of c in GeneralInfo's masks.
func (c Capability) String() string {
	masks := []*Words{WordsCapabilities0, WordsCapabilities1, WordsCapabilities2}
	if int(c/32) < len(masks) {
		if word, ok := masks[c/32].Word()[1<<(c%32)]; ok {
			return word
		}
	}
	return fmt.Sprintf("unknown(%d)", uint8(c))
}

// Need is a condition of an attribute on what a device answers to a Get of another one,
// with modifier 0: that Field has one of the bits of Mask, or, where Field is "", any
// answer without an error.
type Need struct {
	Of    *Attribute
	Field string // script name
	Mask  uint64
}

// IsMet reports whether the answer, with the data of n.Of, meets n.
func (n *Need) IsMet(data []byte) bool {
	return n.Field == "" || n.Of.Field(n.Field).Uint(data)&n.Mask != 0
}

// IsAnnounced reports whether a device has to announce the attribute before it may be
// requested: attributes of NVIDIA and Mellanox with Capabilities, Needs or OnlyRouters, and
// GeneralInfo, which only their devices have.
func (a *Attribute) IsAnnounced() bool {
	return a == AttrGeneralInfo || len(a.Capabilities) > 0 || len(a.Needs) > 0 || a.OnlyRouters
}

// AnnouncedBy returns what announces the attribute: "ar or ar_rev1 of GeneralInfo".
func (a *Attribute) AnnouncedBy() string {
	var parts []string
	if a.OnlyRouters {
		parts = append(parts, "node type router")
	}
	if len(a.Capabilities) > 0 {
		var words []string
		for _, c := range a.Capabilities {
			words = append(words, c.String())
		}
		parts = append(parts, strings.Join(words, " or ")+" of GeneralInfo")
	}
	if len(a.Needs) > 0 {
		var words []string
		for _, n := range a.Needs {
			words = append(words, strings.TrimSuffix(n.Of.Name+"."+n.Field, "."))
		}
		parts = append(parts, strings.Join(words, " or "))
	}
	return strings.Join(parts, ", ")
}

// OlderOf returns the older attribute with the number of a; nil without one.
func OlderOf(a *Attribute) *Attribute {
	i := slices.IndexFunc(attributes, func(b *Attribute) bool { return b.Older && b.Class == a.Class && b.ID == a.ID })
	if i < 0 {
		return nil
	}
	return attributes[i]
}

// VendorBull is the VendorID of Bull, whose devices have Mellanox' chips.
const VendorBull = 0x119f

// HasExtPortInfo reports whether DeviceID is of a device with [ExtendedPortInfo]. Some of
// them are older than GeneralInfo (rdma-core infiniband-diags/ibdiag_common.c
// is_mlnx_ext_port_info_supported has these numbers).
func (t *NodeInfo) HasExtPortInfo() bool {
	switch d := t.DeviceID; {
	case d >= 0xc738 && d <= 0xc73b, d >= 0x1003 && d <= 0x101b:
		return true
	case d == 0xc839, d == 0xcb20, d == 0xcf08, d == 0xcf09, d == 0xd2f0, d == 0xa2d2:
		return true
	case t.VendorID != VendorBull:
		return false
	default:
		switch {
		case d >= 0x1bd0 && d <= 0x1bd5, d >= 0x1bc4 && d <= 0x1bc6:
			return true
		}
		switch d {
		case 0x1b02, 0x1b50, 0x1ba0, 0x1bf0, 0x1b33, 0x1b73, 0x1b40, 0x1b41, 0x1b60, 0x1b61, 0x1b83, 0x1b93, 0x1b94, 0x1bb4, 0x1bb5:
			return true
		}
		return false
	}
}

// IsNVIDIA reports whether a device is of NVIDIA or Mellanox, by the VendorID of its
// NodeInfo or by the GUID of the node. With VendorID 0 only the GUID counts.
func IsNVIDIA(vendorID uint32, node GUID) bool {
	return slices.Contains(nvidiaOUIs, vendorID) || slices.Contains(nvidiaOUIs, uint32(node>>40))
}

// nvidiaOUIs are numbers of NVIDIA and Mellanox in the list of the IEEE. Devices of other
// numbers have VendorID 0x0002c9.
var nvidiaOUIs = []uint32{
	0x00_02_c9, 0x00_25_8b, 0x04_3f_72, 0x08_c0_eb, 0x0c_42_a1, 0x10_70_fd, 0x1c_34_da, 0x24_8a_07, 0x50_6b_4b, 0x58_a2_e1, 0x7c_fe_90,
	0x94_6d_ae, 0x98_03_9b, 0x9c_05_91, 0xa0_88_c2, 0xb0_cf_0e, 0xb8_3f_d2, 0xb8_59_9f, 0xb8_ce_f6, 0xc4_70_bd, 0xe4_1d_2d, 0xe8_eb_d3,
	0xec_0d_9a, 0xf4_52_14, 0xfc_6a_1c,
}
