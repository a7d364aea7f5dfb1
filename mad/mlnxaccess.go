package mad

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
	OperationType uint8 `mad:"0:5"`
	// OperationLen is 4.
	OperationLen uint16 `mad:"5:11"`
	// OperationDR is set if the request followed a directed route.
	OperationDR bool `mad:"16:1"`
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
	OperationClass uint8 `mad:"56:8"`
	// OperationTID ties an answer to its operation.
	OperationTID uint64 `mad:"64:64,hex"`
	// RegisterType is 3.
	RegisterType uint8 `mad:"128:5"`
	// RegisterLen is one more than the length of the register.
	RegisterLen uint16 `mad:"133:11"`
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
