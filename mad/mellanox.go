package mad

// The keys of NVIDIA's vendor classes: 0x0A (VS) and 0x0C, between nodes (N2N).

// VSKeyInfo is the key that protects class 0x0A.
//
//mad:attr class=Vendor0A id=0x000f name=KeyInfo methods=Get,Set size=14 section=vendor offset=32 needs=ClassPortInfo.CapabilityMask&0x0100 safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_vend_key_info_t, ib_vs_mad_t, IB_VS_CAPMASK_VENDKEY_SUPPORTED
type VSKeyInfo struct {
	// VSKey is the key.
	VSKey uint64 `mad:"0:64,name=VS_Key,key,hex"`
	// ProtectBit is set if the key protects.
	ProtectBit bool   `mad:"64:1"`
	_          uint16 `mad:"65:15"`
	// LeasePeriod is the time in seconds after which ProtectBit returns to 0; 0 is never.
	LeasePeriod uint16 `mad:"80:16"`
	// Violations counts requests with a wrong key.
	Violations uint16 `mad:"96:16"`
}

// N2NKeyInfo is the key that protects the requests of a manager in class 0x0C.
//
//mad:attr class=Vendor0C id=0x000f name=KeyInfo methods=Get,Set size=16 section=vendor offset=32 needs=ClassPortInfo safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_n2n_key_info_t, ib_n2n_mad_t
type N2NKeyInfo struct {
	// N2NMgrKey is the key of managers.
	N2NMgrKey uint64 `mad:"0:64,key,hex"`
	// ProtectBit is set if the key protects.
	ProtectBit bool   `mad:"64:1"`
	_          uint16 `mad:"65:15"`
	// LeasePeriod is the time in seconds after which ProtectBit returns to 0; 0 is never.
	LeasePeriod uint16 `mad:"80:16"`
	// Violations counts requests of managers with a wrong key.
	Violations uint16 `mad:"96:16"`
	// NodeKeyViolations counts requests of nodes with a wrong key.
	NodeKeyViolations uint16 `mad:"112:16"`
}

// NeighborsInfo is the nodes behind 14 ports of a switch.
//
//mad:attr class=Vendor0C id=0x0010 methods=Get,Set size=224 section=vendor offset=32 needs=ClassPortInfo modifier=block:0:4 safeget unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_neighbors_info_t, N2N_NEIGHBORS_*
type NeighborsInfo struct {
	// Neighbor are the nodes behind the ports of the block.
	Neighbor [14]NeighborRecord `mad:"0:128"`
}

// NeighborRecord is the node behind a port.
//
//mad:header size=16 section=vendor unconfirmed
//mad:source opensm-mlnx include/iba/ib_types.h ib_neighbor_record_t
type NeighborRecord struct {
	// NodeType is the type in its NodeInfo.
	NodeType NodeType `mad:"0:3"`
	_        uint16   `mad:"3:13"`
	// LID is the LID of the node.
	LID LID    `mad:"16:16"`
	_   uint32 `mad:"32:32"`
	// N2NKey is the key of the node.
	N2NKey uint64 `mad:"64:64,key,hex"`
}

// Mellanox' own attributes, in subnet management and in the vendor classes.

// MlnxPrivateLFTMap is the ports of a switch that share a linear forwarding table.
//
// It has 13 ports at a time. InfiniScale IV has it; PrivateLFTInfo of later switches has
// the same number.
//
//mad:attr class=Subn id=0xff10 methods=Get size=64 section=vendor modifier=upper_ports:16:1 older device=0xbd36 unconfirmed
//mad:source ibutils ibis/src/ibvs_base.h ib_vs_plft_map_t, ibis/src/ibvs.c ibvs_plft_map_get (the modifier)
type MlnxPrivateLFTMap struct {
	// Entry are the ports.
	Entry [13]PrivateLFTPort `mad:"0:32"`
	_     [12]uint8          `mad:"416:8"`
}

// PrivateLFTPort is a port of an MlnxPrivateLFTMap.
//
//mad:header size=4 section=vendor unconfirmed
//mad:source ibutils ibis/src/ibvs_base.h ib_vs_plft_map_t
type PrivateLFTPort struct {
	// IBPort is the number of the port.
	IBPort uint8 `mad:"0:8"`
	// SharedPLFTPort is the port whose forwarding table this one also uses.
	SharedPLFTPort uint8 `mad:"8:8,name=SharedPLFT_Port"`
	_              uint8 `mad:"16:8"`
	// Size is the size of the forwarding table; the source gives no unit.
	Size uint8 `mad:"24:8"`
}

// MlnxConfigSpace reads and writes a device's configuration space.
//
// It can make a device permanently unusable.
//
//mad:attr class=Subn id=0xff50 methods=Get,Set size=64 section=vendor modifier=address:0:16,count:16:6,mode:22:2,address_high:24:8 capability=config_space_access unconfirmed
//mad:source mstflint mtcr_ul/mtcr_ib_ofed.c ibvsmad_craccess_rw_smp
type MlnxConfigSpace struct {
	// MKey authorizes the request.
	MKey uint64 `mad:"0:64,name=M_Key,key,hex"`
	// Records are words, or addresses with words and masks.
	Records [56]byte `mad:"64:448,bytes"`
}

// MlnxConfigWords are consecutive words from the address in the modifier on (mode 0).
//
//mad:header size=56 section=vendor unconfirmed
//mad:variant of=MlnxConfigSpace.Records name=words when=modifier.mode:0
//mad:source mstflint mtcr_ul/mtcr_ib_ofed.c ibvsmad_craccess_rw_smp
type MlnxConfigWords struct {
	// Words are the words; the modifier has their number.
	Words [14]uint32 `mad:"0:32,hex"`
}

// MlnxConfigRecords are single words, each with its address (mode 2).
//
//mad:header size=48 section=vendor unconfirmed
//mad:variant of=MlnxConfigSpace.Records name=records when=modifier.mode:2
//mad:source mstflint mtcr_ul/mtcr_ib_ofed.c ibvsmad_craccess_rw_smp, set_mad_data_for_mode_2
type MlnxConfigRecords struct {
	// Record are the records; the modifier has their number.
	Record [4]ConfigRecord `mad:"0:96"`
}

// MlnxSemaphore protects a device's configuration space against simultaneous
// changes by two programs.
//
//mad:attr class=Subn id=0xff53 methods=Get,Set size=64 section=vendor unconfirmed
//mad:source mstflint include/mtcr_ul/mtcr_com_defs.h SMP_SEMAPHOE_LOCK_CMD
type MlnxSemaphore struct {
	// Data is the attribute as it came.
	Data [64]byte `mad:"0:512,bytes"`
}

// VSGeneralInfo is the hardware and firmware of a device.
//
//mad:attr class=Vendor0A id=0x0017 name=GeneralInfo methods=Get size=136 section=vendor safeget
//mad:source rdma-core infiniband-diags/vendstat.c is3_general_info_t, is4_general_info_t
//mad:source ibutils ibis/src/ibvs_base.h ib_vs_gen_info_t
//mad:source python-rdma codegen/vend_mlx.xml MlxGeneralInfo
type VSGeneralInfo struct {
	// VSKey authorizes the request.
	VSKey uint64 `mad:"0:64,name=VS_Key,key,hex"`
	// HWRevision is the revision of the device.
	HWRevision uint16 `mad:"64:16,hex"`
	// DeviceID is the type of the device.
	DeviceID uint16    `mad:"80:16,hex"`
	_        [24]uint8 `mad:"96:8"`
	// Uptime is the time since the device started.
	Uptime uint32 `mad:"288:32"`
	_      uint8  `mad:"320:8"`
	// FWMajor is the first part of the firmware's version; see ExtFWMajor.
	FWMajor uint8 `mad:"328:8"`
	// FWMinor is the second part.
	FWMinor uint8 `mad:"336:8"`
	// FWSubMinor is the third part.
	FWSubMinor uint8 `mad:"344:8"`
	// FWBuildID is the number of the firmware's build.
	FWBuildID uint32 `mad:"352:32,hex"`
	// FWMonth is the month in which the firmware was built, in BCD: 0x12 is December.
	FWMonth uint8 `mad:"384:8,hex"`
	// FWDay is the day of the build, likewise.
	FWDay uint8 `mad:"392:8,hex"`
	// FWYear is the year of the build, likewise.
	FWYear uint16 `mad:"400:16,hex"`
	_      uint16 `mad:"416:16"`
	// FWHour is the hour of the build, likewise.
	FWHour uint16 `mad:"432:16,hex"`
	// PSID names the board that the firmware is for.
	PSID [16]byte `mad:"448:128,text"`
	// INIFileVersion is the version of the settings that the firmware was built with.
	INIFileVersion uint32 `mad:"576:32"`
	// Software is the part with the versions of the management software.
	Software [60]byte `mad:"608:480,bytes"`
}

// GeneralInfoIS3 is the end of GeneralInfo of InfiniScale III, InfiniHost,
// ConnectX and ConnectX-2.
//
// The condition has the numbers of these devices in PCI, and 0x0190, ConnectX'
// own. All others end as InfiniScale IV does.
//
//mad:header size=4 section=vendor
//mad:variant of=VSGeneralInfo.Software name=is3 when=DeviceID:0x0190|0x5a44-0x5a46|0x5e8c|0x6274|0x6278-0x6279|0x6282|0x6340|0x634a|0x6354|0x6368|0x6372|0x6732|0x673c|0x6746|0x6750|0x675a|0x6764|0x676e|0xa87c|0xb924
//mad:source rdma-core infiniband-diags/vendstat.c is3_general_info_t, IS3_DEVICE_ID, ext_fw_info_device (it lacks these)
//mad:source python-rdma codegen/vend_mlx.xml MlxGeneralInfo
//mad:source linux include/linux/pci_ids.h PCI_DEVICE_ID_MELLANOX_* (the numbers alone)
//mad:source ibutils ibdm/ibnl/Buffalo.ibnl MT43132 (the number alone)
//mad:source mstflint mtcr_freebsd/mtcr_ul.c mtcr_check_signature (the numbers alone)
type GeneralInfoIS3 struct {
	_ uint8 `mad:"0:8"`
	// SWMajor is the first part of the management software's version.
	SWMajor uint8 `mad:"8:8"`
	// SWMinor is the second part.
	SWMinor uint8 `mad:"16:8"`
	// SWSubMinor is the third part.
	SWSubMinor uint8 `mad:"24:8"`
}

// GeneralInfoIS4 is the end of GeneralInfo of InfiniScale IV, ConnectX-3 and
// later devices.
//
//mad:header size=32 section=vendor
//mad:variant of=VSGeneralInfo.Software name=is4 when=DeviceID:0-65535
//mad:source rdma-core infiniband-diags/vendstat.c is4_general_info_t
//mad:source mstflint tools_layouts/reg_access_hca_layouts.h reg_access_hca_mgir_ext: mgir_fw_info_ext, mgir_sw_info_ext
//mad:source ibutils ibis/src/ibvs_base.h ib_vs_gen_info_t (reserved up to SWMajor)
type GeneralInfoIS4 struct {
	// ExtFWMajor is the first part of the firmware's version; recent devices have 0 in FWMajor.
	ExtFWMajor uint32 `mad:"0:32"`
	// ExtFWMinor is the second part.
	ExtFWMinor uint32 `mad:"32:32"`
	// ExtFWSubMinor is the third part.
	ExtFWSubMinor uint32    `mad:"64:32"`
	_             [16]uint8 `mad:"96:8"`
	_             uint8     `mad:"224:8"`
	// SWMajor is the first part of the management software's version.
	SWMajor uint8 `mad:"232:8"`
	// SWMinor is the second part.
	SWMinor uint8 `mad:"240:8"`
	// SWSubMinor is the third part.
	SWSubMinor uint8 `mad:"248:8"`
}

// ConfigSpace reads and writes a device's configuration space.
//
// It can make a device permanently unusable.
//
//mad:attr class=Vendor09 id=0x0050 methods=Get,Set size=224 section=vendor modifier=address:0:16,count:16:6,mode:22:2,address_high:24:8
//mad:attr class=Vendor0A id=0x0050 methods=Get,Set size=224 section=vendor modifier=address:0:16,count:16:6,mode:22:2,address_high:24:8
//mad:source mstflint mtcr_ul/mtcr_ib_ofed.c ibvsmad_craccess_rw_vs
//mad:source ibutils ibis/src/ibcr_base.h ib_cr_space_t
//mad:source rdma-core infiniband-diags/vendstat.c is3_config_space_t
type ConfigSpace struct {
	// VSKey authorizes the request.
	VSKey uint64 `mad:"0:64,name=VS_Key,key,hex"`
	// Records are words, or addresses with words and masks.
	Records [216]byte `mad:"64:1728,bytes"`
}

// ConfigWords are consecutive words from the address in the modifier on (mode 0).
//
//mad:header size=216 section=vendor
//mad:variant of=ConfigSpace.Records name=words when=modifier.mode:0
//mad:source mstflint mtcr_ul/mtcr_ib_ofed.c create_attribute_mode_0
//mad:source ibutils ibis/src/ibcr_base.h ib_cr_space_t
type ConfigWords struct {
	// Words are the words; the modifier has their number.
	Words [54]uint32 `mad:"0:32,hex"`
}

// ConfigRecords are single words, each with its address (mode 2).
//
//mad:header size=216 section=vendor
//mad:variant of=ConfigSpace.Records name=records when=modifier.mode:2
//mad:source mstflint mtcr_ul/mtcr_ib_ofed.c create_attribute_mode_2, set_mad_data_for_mode_2
//mad:source rdma-core infiniband-diags/vendstat.c is3_config_space_t
type ConfigRecords struct {
	// Record are the records; the modifier has their number.
	Record [18]ConfigRecord `mad:"0:96"`
}

// ConfigRecord is a word of configuration space.
//
//mad:header size=12 section=vendor
//mad:source mstflint mtcr_ul/mtcr_ib_ofed.c set_mad_data_for_mode_2
//mad:source rdma-core infiniband-diags/vendstat.c is3_config_space_t is3_record
type ConfigRecord struct {
	// Address is the address of the word.
	Address uint32 `mad:"0:32,hex"`
	// Word is its value.
	Word uint32 `mad:"32:32,hex"`
	// Mask selects the bits of the word that count.
	Mask uint32 `mad:"64:32,hex"`
}

// VendorData is a vendor's attribute of which only the number is certain.
//
//mad:attr class=Vendor09 id=0x0051 name=ConfigSpaceMode methods=Get,Set size=232 section=vendor unconfirmed ; belongs to ConfigSpace of old devices.
//mad:attr class=Vendor0A id=0x0012 name=SoftReset methods=Set size=232 section=vendor unconfirmed ; restarts the device.
//mad:attr class=Vendor0A id=0x0015 name=VSMulticastForwardingTable methods=Get,Set size=232 section=vendor unconfirmed ; is a switch's multicast forwarding table.
//mad:attr class=Vendor0A id=0x0016 name=IBPortConfig methods=Get,Set size=232 section=vendor unconfirmed ; sets up a port.
//mad:attr class=Vendor0A id=0x0018 name=Mirror methods=Get,Set size=232 section=vendor unconfirmed ; copies a port's packets to another.
//mad:source ibutils ibis/src/ibvs_base.h VS_* (the numbers alone), ibis/src/ibcr_base.h CR_ATTR_51
//mad:source mstflint mtcr_ul/mtcr_ib_ofed.c IB_VS_ATTR_* (the numbers alone)
type VendorData struct {
	// VSKey authorizes the request.
	VSKey uint64 `mad:"0:64,name=VS_Key,key,hex"`
	// Content is the rest of the attribute as it came.
	Content [224]byte `mad:"64:1792,bytes"`
}

// Mellanox' attributes for the internals of a device: registers, flash memory,
// the I2C bus, the selection of counters. Each is in one source only.

// MlnxAccessRegister reads and writes a device's registers. RegisterMethod
// decides: a Set may read, and a Get may write.
//
//mad:attr class=Subn id=0xff52 methods=Get,Set size=64 section=vendor capability=access_register unconfirmed
//mad:source mstflint mtcr_ul/mtcr_ib_ofed.c mib_acces_reg_mad, mtcr_ul/mtcr_ul_com.c mreg_send_raw
type MlnxAccessRegister struct {
	// Operation is the register and the operation on it.
	Operation RegisterOperation `mad:"0:160"`
	// Register is the content of the register.
	Register [44]byte `mad:"160:352,bytes"`
}

// AccessRegisterLong is MlnxAccessRegister for registers that are too long for it.
//
//mad:attr class=Vendor0A id=0xff52 methods=Get,Set size=232 section=vendor capability=access_register unconfirmed
//mad:source mstflint mtcr_ul/mtcr_ib_ofed.c cls_a_query_via, CLASS_VS_DATA_OFFSET
type AccessRegisterLong struct {
	// VSKey authorizes the request.
	VSKey uint64 `mad:"0:64,name=VS_Key,key,hex"`
	// Operation is the register and the operation on it.
	Operation RegisterOperation `mad:"64:160"`
	// Register is the content of the register.
	Register [204]byte `mad:"224:1632,bytes"`
}

// RegisterOperation is the part before a register: an operation TLV and the
// head of a register TLV (type, length, value). Lengths are in units of 4 bytes
// and include the head of the TLV.
//
//mad:header size=20 section=vendor
//mad:source mstflint mtcr_ul/packets_layout.h OperationTlv, reg_tlv
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/emad.h and core.c emad_op_tlv, emad_reg_tlv
//mad:source linux drivers/net/ethernet/mellanox/mlx4/fw.c mlx4_access_reg (reserved: DR, TID)
type RegisterOperation struct {
	// OperationType is 1.
	OperationType uint8 `mad:"0:5,minor"`
	// OperationLen is 4.
	OperationLen uint16 `mad:"5:11,minor"`
	// OperationDR is set if the request followed a directed route.
	OperationDR bool `mad:"16:1,minor"`
	// RegisterStatus is the result of the operation; 0 on success.
	RegisterStatus RegisterStatus `mad:"17:7"`
	_              uint8          `mad:"24:8"`
	// RegisterID is the number of the register.
	RegisterID uint16 `mad:"32:16,hex"`
	// OperationResponse is set in the answer to an operation.
	OperationResponse bool `mad:"48:1"`
	// RegisterMethod is the operation on the register.
	RegisterMethod RegisterMethod `mad:"49:7"`
	// OperationClass is 1, access to registers.
	OperationClass uint8 `mad:"56:8,minor"`
	// OperationTID ties an answer to its operation.
	OperationTID uint64 `mad:"64:64,hex,minor"`
	// RegisterType is 3.
	RegisterType uint8 `mad:"128:5,minor"`
	// RegisterLen is one more than the length of the register.
	RegisterLen uint16 `mad:"133:11,minor"`
	_           uint16 `mad:"144:16"`
}

// RegisterMethod is an operation on a register (mstflint
// include/mtcr_ul/mtcr_com_defs.h maccess_reg_method_t; linux mlxsw emad.h
// MLXSW_EMAD_OP_TLV_METHOD_*).
//
//mad:enum
type RegisterMethod uint8

const (
	RegisterMethodRead  RegisterMethod = 1
	RegisterMethodWrite RegisterMethod = 2
)

// RegisterStatus is the result of an operation (linux mlxsw emad.h
// MLXSW_EMAD_OP_TLV_STATUS_*; mstflint include/mtcr_ul/mtcr_com_defs.h
// ME_REG_ACCESS_*, mtcr_ul/mtcr_ul_com.c mreg_send_raw).
//
//mad:enum
type RegisterStatus uint8

const (
	RegisterStatusOK                   RegisterStatus = 0
	RegisterStatusBusy                 RegisterStatus = 1
	RegisterStatusVersionNotSupported  RegisterStatus = 2
	RegisterStatusUnknownTLV           RegisterStatus = 3 // "unknown_tlv"
	RegisterStatusRegisterNotSupported RegisterStatus = 4
	RegisterStatusClassNotSupported    RegisterStatus = 5
	RegisterStatusMethodNotSupported   RegisterStatus = 6
	RegisterStatusBadParameter         RegisterStatus = 7
	RegisterStatusNoResources          RegisterStatus = 8
	RegisterStatusReceived             RegisterStatus = 9
	RegisterStatusInternalError        RegisterStatus = 0x70
)

// AccessRegister reads a device's register. The modifier is the register's
// number; the status of the answer is also that of the register.
//
//mad:attr class=Vendor0A id=0x0051 methods=Get,Set size=232 section=vendor modifier=register:0:32 capability=access_register unconfirmed
//mad:source mstflint mtcr_ul/mtcr_ib_ofed.c mib_send_gmp_access_reg_mad
type AccessRegister struct {
	// VSKey authorizes the request.
	VSKey uint64 `mad:"0:64,name=VS_Key,key,hex"`
	// BlockNum is the part of the register, from byte 220*BlockNum on.
	BlockNum uint16 `mad:"64:16"`
	_        uint16 `mad:"80:16"`
	// Content is that part.
	Content [220]byte `mad:"96:1760,bytes"`
}

// ExtPortAccess accesses what is connected to a device: the processor port
// (port 1), I2C (2, 3) and GPIO (4).
//
//mad:attr class=Vendor0A id=0x0013 methods=Get,Set size=232 section=vendor modifier=port:0:32 unconfirmed
//mad:source ibutils ibis/src/ibvs_base.h ib_vs_t, EXT_*_PORT
type ExtPortAccess struct {
	// VSKey authorizes the request.
	VSKey uint64 `mad:"0:64,name=VS_Key,key,hex"`
	// Access depends on the port.
	Access [224]byte `mad:"64:1792,bytes"`
}

// I2CAccess reads and writes a device on the I2C bus.
//
//mad:header size=224 section=vendor unconfirmed
//mad:variant of=ExtPortAccess.Access name=i2c when=modifier.port:2-3
//mad:source ibutils ibis/src/ibvs_base.h ib_vs_i2c_t
type I2CAccess struct {
	// Size is the number of bytes.
	Size uint32 `mad:"0:32"`
	// DeviceSelect is the address of the device on the bus.
	DeviceSelect uint32 `mad:"32:32,hex"`
	// Offset is the position of the first byte in the device.
	Offset uint32 `mad:"64:32,hex"`
	// Content are the bytes.
	Content [212]byte `mad:"96:1696,bytes"`
}

// FlashAccess is the layout of accesses to a device's flash memory.
//
//mad:attr class=Vendor0A id=0x000a name=FlashOpen methods=Get size=232 section=vendor modifier=last:0:32 unconfirmed ; requests permission to use a device's flash memory.
//mad:attr class=Vendor0A id=0x000b name=FlashClose methods=Get size=232 section=vendor modifier=force:0:32 unconfirmed ; returns the permission to use a device's flash memory.
//mad:attr class=Vendor0A id=0x000c name=FlashSetBank methods=Set size=232 section=vendor unconfirmed ; selects the bank of a device's flash memory.
//mad:attr class=Vendor0A id=0x000d name=FlashReadSector methods=Get size=232 section=vendor unconfirmed ; reads a device's flash memory.
//mad:attr class=Vendor0A id=0x000e name=FlashWriteSector methods=Set size=232 section=vendor unconfirmed ; writes a device's flash memory. It can make a device permanently unusable.
//mad:attr class=Vendor0A id=0x000f name=FlashEraseSector methods=Set size=232 section=vendor older unconfirmed ; erases a sector of a device's flash memory. It can make a device permanently unusable.
//mad:source ibutils ibis/src/ibvs_base.h ib_vs_flash_t, VS_FLASH_*, ibis/src/ibvs.c __ibvs_prep_flash_access_mad
type FlashAccess struct {
	// VSKey authorizes the request.
	VSKey uint64 `mad:"0:64,name=VS_Key,key,hex"`
	// Size is the number of bytes.
	Size uint32 `mad:"64:32"`
	// Offset is the position of the first byte in the flash memory.
	Offset uint32 `mad:"96:32,hex"`
	// Content are the bytes.
	Content [216]byte `mad:"128:1728,bytes"`
}

// CounterGroupInfo is the groups of counters of a port of InfiniScale IV.
//
//mad:attr class=Vendor0A id=0x0090 methods=Get size=232 section=vendor modifier=port:0:32 unconfirmed
//mad:source rdma-core infiniband-diags/vendstat.c is4_counter_group_info_t
type CounterGroupInfo struct {
	// VSKey authorizes the request.
	VSKey uint64   `mad:"0:64,name=VS_Key,key,hex"`
	_     [3]uint8 `mad:"64:8"`
	// NumOfCounterGroups is the number of groups.
	NumOfCounterGroups uint8 `mad:"88:8"`
	// GroupMask are the counters that each group can count, a bit each.
	GroupMask [2]uint32  `mad:"96:32,hex"`
	_         [212]uint8 `mad:"160:8"`
}

// ConfigCounterGroup selects the counters of the groups of a port of
// InfiniScale IV.
//
//mad:attr class=Vendor0A id=0x0091 methods=Get,Set size=232 section=vendor modifier=port:0:32 unconfirmed
//mad:source rdma-core infiniband-diags/vendstat.c is4_config_counter_groups_t, is4_group_select_t
type ConfigCounterGroup struct {
	// VSKey authorizes the request.
	VSKey uint64   `mad:"0:64,name=VS_Key,key,hex"`
	_     [7]uint8 `mad:"64:8"`
	// GroupSelect0 is the number of the counter that group 0 counts.
	GroupSelect0 uint8    `mad:"120:8,name=GroupSelect_0"`
	_            [3]uint8 `mad:"128:8"`
	// GroupSelect1 is the number of the counter that group 1 counts.
	GroupSelect1 uint8      `mad:"152:8,name=GroupSelect_1"`
	_            [212]uint8 `mad:"160:8"`
}
