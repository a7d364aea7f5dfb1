package mad

// Attributes of subnet management that few devices have.

// VendorDiag is vendor-specific diagnostic data of a device.
//
// The modifier is 0 in the first request, then NextIndex of the last answer until
// that is 0.
//
//mad:attr class=Subn id=0x0030 methods=Get size=64 section=14.2.5.14 modifier=index:0:32
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_vendor_diag_t
//mad:source wireshark epan/dissectors/packet-infiniband.c parse_VendorDiag
//mad:source python-rdma codegen/iba_14.xml SMPVendorDiag (DiagData 16 bits later)
type VendorDiag struct {
	// NextIndex is the modifier of the next request; 0 at the end.
	NextIndex uint16 `mad:"0:16"`
	// DiagData is the vendor-specific data.
	DiagData [62]byte `mad:"16:496,bytes"`
}

// LedInfo is the port's beacon light, for people who look for the port.
//
//mad:attr class=Subn id=0x0031 alias=LEDInfo methods=Get,Set size=4 section=14.2.5.15 modifier=port:0:8
//mad:source python-rdma codegen/iba_14.xml SMPLedInfo
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_ledinfo_t
type LedInfo struct {
	// LedMask is set if the light is on.
	LedMask bool   `mad:"0:1"`
	_       uint32 `mad:"1:31"`
}

// PortInfoExtended is further configuration and state of a port: the forward
// error correction of each speed.
//
//mad:attr class=Subn id=0x0033 methods=Get,Set size=64 section=14.2.5.19 modifier=port:0:8 smowned
//mad:source opensm include/iba/ib_types.h ib_port_info_ext_t
//mad:source rdma-core libibmad/fields.c PortInfoExtended fields (of HDR and NDR, each two fields there are the other way round)
type PortInfoExtended struct {
	// CapabilityMask is what the port supports of this attribute.
	CapabilityMask ExtendedCapabilityMask `mad:"0:32,ro"`
	// FECModeActive is the forward error correction in use.
	FECModeActive FECMode `mad:"32:16,ro"`
	// FDRFECModeSupported are the modes that the port supports at FDR, a bit each.
	FDRFECModeSupported uint16 `mad:"48:16,ro,hex"`
	// FDRFECModeEnabled are the modes that may be used at FDR, a bit each.
	FDRFECModeEnabled uint16 `mad:"64:16,hex"`
	// EDRFECModeSupported are the modes that the port supports at EDR, a bit each.
	EDRFECModeSupported uint16 `mad:"80:16,ro,hex"`
	// EDRFECModeEnabled are the modes that may be used at EDR, a bit each.
	EDRFECModeEnabled uint16 `mad:"96:16,hex"`
	// HDRFECModeSupported are the modes that the port supports at HDR, a bit each.
	HDRFECModeSupported uint16 `mad:"112:16,ro,hex"`
	// HDRFECModeEnabled are the modes that may be used at HDR, a bit each.
	HDRFECModeEnabled uint16 `mad:"128:16,hex"`
	// NDRFECModeSupported are the modes that the port supports at NDR, a bit each.
	NDRFECModeSupported uint16 `mad:"144:16,ro,hex"`
	// NDRFECModeEnabled are the modes that may be used at NDR, a bit each.
	NDRFECModeEnabled uint16    `mad:"160:16,hex"`
	_                 [42]uint8 `mad:"176:8"`
}

// FECMode is a forward error correction (opensm include/iba/ib_types.h,
// rdma-core libibmad/iba_types.h IB_PORT_EXT_*_MODE_ACTIVE).
//
//mad:enum
type FECMode uint16

const (
	FECModeNone         FECMode = 0
	FECModeFireCode     FECMode = 1
	FECModeRS           FECMode = 2 // Reed-Solomon
	FECModeLowLatencyRS FECMode = 3
	FECModeRS2          FECMode = 4 // "rs2"
)

// ExtendedCapabilityMask is what a port supports of PortInfoExtended (opensm
// include/iba/ib_types.h IB_PORT_EXT_CAP_*).
//
//mad:mask
type ExtendedCapabilityMask uint32

const (
	ExtendedCapabilityMaskIsFECModeSupported ExtendedCapabilityMask = 1 << 0
)

// LinkSpeedWidthPairsTable is the supported pairs of widths and speeds.
//
//mad:attr class=Subn id=0x001c methods=Get size=64 section=14.2.5 modifier=port:0:8 unconfirmed
//mad:source rdma-core libibumad/umad_sm.h UMAD_SM_ATTR_LINK_SPD_WIDTH_TABLE (the number alone)
type LinkSpeedWidthPairsTable struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}

// VendorSpecificMadsTable is the vendor-specific MADs that a node supports.
//
//mad:attr class=Subn id=0x001d methods=Get size=64 section=14.2.5 modifier=index:0:32 unconfirmed
//mad:source rdma-core libibumad/umad_sm.h UMAD_SM_ATTR_VENDOR_MADS_TABLE (the number alone)
type VendorSpecificMadsTable struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}

// HierarchyInfo is the position of a port in its chassis.
//
//mad:attr class=Subn id=0x001e methods=Get,Set size=64 section=A15 modifier=port:0:8,index:8:8 unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_hierarchy_info_t, IB_HIERARCHY_INFO_ATTR_MOD_*
type HierarchyInfo struct {
	// TemplateGUID is the meaning of the levels.
	TemplateGUID GUID `mad:"0:64"`
	// MaxSupportedIndex is the largest index that is supported.
	MaxSupportedIndex uint8 `mad:"64:8,ro"`
	// MaxActiveIndex is the largest index in use.
	MaxActiveIndex uint8 `mad:"72:8,ro"`
	// ActiveLevels is the number of levels in use.
	ActiveLevels uint8  `mad:"80:4"`
	_            uint16 `mad:"84:12"`
	// Level are the positions, from the outermost.
	Level [13]uint32 `mad:"96:32"`
}

// CableInfo reads the memory of the cable or transceiver in a port.
//
//mad:attr class=Subn id=0x0032 methods=Get size=64 section=14.2.5 modifier=index:0:32 unconfirmed
//mad:source rdma-core libibumad/umad_sm.h UMAD_SM_ATTR_CABLE_INFO (the number alone)
type CableInfo struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}
