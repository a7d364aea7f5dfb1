package mad

// Virtual ports of NVIDIA's adapters.

// VirtualizationInfo is what a port supports of virtual ports.
//
//mad:attr class=Subn id=0xffb0 methods=Get,Set size=63 section=vendor modifier=port:0:8 capability=virtualization safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_virtualization_info_t, IB_VIRTUALIZATION_INFO_*
type VirtualizationInfo struct {
	// VPortCap is the largest number of virtual ports.
	VPortCap uint16 `mad:"0:16,ro,name=VPortCap"`
	// VPortIndexTop is the last virtual port in use.
	VPortIndexTop uint16 `mad:"16:16,name=VPortIndexTop"`
	// VirtualizationEnable is set if virtual ports are enabled.
	VirtualizationEnable bool `mad:"32:1"`
	// VClientReregister asks the clients of all virtual ports to renew their registrations.
	VClientReregister bool `mad:"33:1,name=VClientReregister"`
	// VPortStateChange is set if the state of a virtual port has changed.
	VPortStateChange bool   `mad:"34:1,name=VPortStateChange,w1c"`
	_                uint16 `mad:"35:13"`
	// VirtualizationRevision is the revision of virtualization.
	VirtualizationRevision uint8 `mad:"48:8,ro"`
	// CapMask are optional capabilities.
	CapMask uint8     `mad:"56:8,ro,hex"`
	_       [55]uint8 `mad:"64:8"`
}

// VPortInfo is the state of a virtual port.
//
//mad:attr class=Subn id=0xffb1 methods=Get,Set size=64 section=vendor modifier=unknown capability=virtualization safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_vport_info_t, IB_VPORT_INFO_*
type VPortInfo struct {
	// State is the state of the virtual port.
	State PortState `mad:"0:4,name=VPortState"`
	// ClientReregister asks the clients to renew their registrations.
	ClientReregister bool `mad:"4:1"`
	// LIDRequired is set if the virtual port needs its own LID.
	LIDRequired bool  `mad:"5:1,ro"`
	_           uint8 `mad:"6:2"`
	// GUIDCap is the number of entries of VPortGUIDInfo.
	GUIDCap uint8 `mad:"8:8,ro"`
	// CapMask are the capabilities of the virtual port.
	CapMask VPortCapabilities `mad:"16:16,ro"`
	// PKeyViolations counts packets with a wrong P_Key.
	PKeyViolations uint16 `mad:"32:16"`
	// QKeyViolations counts packets with a wrong Q_Key.
	QKeyViolations uint16 `mad:"48:16"`
	// LID is the LID of the virtual port.
	LID LID `mad:"64:16"`
	// LIDByVPortIndex is the virtual port whose LID it uses, if LIDRequired is clear.
	LIDByVPortIndex uint16 `mad:"80:16,name=LIDByVPortIndex"`
	// PortGUID is the GUID of the virtual port.
	PortGUID GUID `mad:"96:64"`
	// PortProfile is the profile of the virtual port.
	PortProfile uint64    `mad:"160:64,hex"`
	_           [36]uint8 `mad:"224:8"`
}

// VPortCapabilities are the capabilities of a virtual port (opensm-mlnx
// include/iba/ib_types.h IB_VPORT_INFO_CAP_IS_*).
//
//mad:mask
type VPortCapabilities uint16

const (
	VPortCapabilitiesCM         VPortCapabilities = 1 << 0 // "communication_management"
	VPortCapabilitiesSNMP       VPortCapabilities = 1 << 1
	VPortCapabilitiesDM         VPortCapabilities = 1 << 2 // "device_management"
	VPortCapabilitiesVendor     VPortCapabilities = 1 << 3 // "vendor_class"
	VPortCapabilitiesBM         VPortCapabilities = 1 << 4 // "boot_management"
	VPortCapabilitiesSM         VPortCapabilities = 1 << 5 // "is_sm"
	VPortCapabilitiesSMDisabled VPortCapabilities = 1 << 6 // "is_sm_disabled"
)

// VNodeInfo is the virtual node of a virtual port.
//
//mad:attr class=Subn id=0xffb2 methods=Get size=64 section=vendor modifier=unknown capability=virtualization safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_vnode_info_t
type VNodeInfo struct {
	// PartitionCap is the number of entries of VPortPKeyTable.
	PartitionCap uint16 `mad:"0:16,ro"`
	// LocalPortNum is the port of the virtual node that received the request.
	LocalPortNum uint8 `mad:"16:8,ro"`
	// NumPorts is the number of virtual ports of the virtual node.
	NumPorts uint8 `mad:"24:8,ro"`
	// VNodeGUID is the GUID of the virtual node.
	VNodeGUID GUID      `mad:"32:64,ro,name=VNodeGUID"`
	_         [52]uint8 `mad:"96:8"`
}

// VPortState is the states of 128 virtual ports.
//
//mad:attr class=Subn id=0xffb3 methods=Get size=64 section=vendor modifier=unknown capability=virtualization safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_vport_state_t, IB_VPORT_STATE_*
type VPortState struct {
	// State are the states of the virtual ports of the block.
	State [128]PortState `mad:"0:4,ro,name=VPortState"`
}

// VPortData is an attribute of virtual ports of which only the number is certain: its
// layout is probably that of the attribute without V.
//
//mad:attr class=Subn id=0xffb4 name=VNodeDescription methods=Get size=64 section=vendor modifier=unknown capability=virtualization safeget unconfirmed ; is the description of a virtual node.
//mad:attr class=Subn id=0xffb5 name=VPortGUIDInfo methods=Get,Set size=64 section=vendor modifier=unknown capability=virtualization safeget unconfirmed ; is the GUIDs of a virtual port.
//mad:attr class=Subn id=0xffb6 name=VPortPKeyTable methods=Get,Set size=64 section=vendor modifier=unknown capability=virtualization safeget unconfirmed ; is the partitions of a virtual port.
//mad:source opensm-mlnx include/iba/ib_types.h IB_MAD_ATTR_VNODE_DESC, IB_MAD_ATTR_VPORT_GUID_INFO, IB_MAD_ATTR_V_PKEY_TABLE (the numbers alone)
type VPortData struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}
