package mad

import (
	"encoding/binary"
	"slices"
	"strings"
)

// Registers are the registers of Mellanox' devices whose layout is known, by name.
func Registers() []*Attribute {
	var list []*Attribute
	for _, a := range headers {
		if a.Register != 0 {
			list = append(list, a)
		}
	}
	return list
}

// LookupRegister returns the register with a number; nil if it is unknown.
func LookupRegister(id uint16) *Attribute {
	i := slices.IndexFunc(headers, func(a *Attribute) bool { return a.Register == id && id != 0 })
	if i < 0 {
		return nil
	}
	return headers[i]
}

// RegisterNamed returns the register with a name, in either case; nil if it is unknown.
func RegisterNamed(name string) *Attribute {
	i := slices.IndexFunc(headers, func(a *Attribute) bool { return a.Register != 0 && strings.EqualFold(a.Name, name) })
	if i < 0 {
		return nil
	}
	return headers[i]
}

// registerUse is the effect of a request on the registers of a device, or on the
// configuration space behind them.
type registerUse uint8

const (
	registerNone    registerUse = iota // no effect
	registerQuery                      // only reads
	registerUnknown                    // reads, and possibly more
	registerWrite                      // writes or clears
)

// WritesRegister reports whether request m, a whole MAD, writes a register of a
// device, clears its counters, or reads an unknown register: such a read may
// clear. No program sends such a request, whatever else it may change: a wrong
// value in a register can make a device permanently unusable.
func WritesRegister(m []byte) bool { return registerUseOf(m) == registerWrite }

// registerUseOf uses only class, attribute and content: a device may ignore the
// rest.
func registerUseOf(m []byte) registerUse {
	h := ParseHeader(m)
	if h.Class.Family() == ClassSubn && h.Attribute < vendorFirst {
		return registerNone
	}
	switch a := Lookup(h.Class, h.Attribute); a {
	case AttrGeneralInfo:
		if h.Method == MethodGet {
			return registerQuery
		}
	case AttrMlnxAccessRegister, AttrAccessRegisterLong:
		// The method that counts is in the content (mstflint mreg_send_raw).
		at := a.Offset()
		if a == AttrAccessRegisterLong {
			at += 8 // the VS_Key
		}
		var op RegisterOperation
		op.Decode(m[at:])
		if op.RegisterMethod != RegisterMethodRead || op.OperationResponse || !isQuery(op.RegisterID, m[at+LayoutRegisterOperation.Size:]) {
			return registerWrite
		}
		wellFormed := op.OperationType == 1 && op.OperationLen == 4 && op.OperationClass == 1 && op.RegisterType == 3
		if h.Method == MethodGet && wellFormed {
			return registerQuery
		}
		return registerUnknown
	case AttrAccessRegister:
		if h.Method != MethodGet || h.Modifier > 0xffff || !isQuery(uint16(h.Modifier), m[a.Offset()+12:]) {
			return registerWrite
		}
		return registerQuery
	case AttrMlnxConfigSpace, AttrVendor09ConfigSpace, AttrVendor0AConfigSpace:
		if h.Method != MethodGet {
			return registerWrite
		}
	}
	return registerNone
}

// isQuery reports whether content, a request to read register id, clears and
// locks nothing.
func isQuery(id uint16, content []byte) bool {
	a := LookupRegister(id)
	if a == nil {
		return false
	}
	return !slices.ContainsFunc(a.Fields, func(f Field) bool { return f.W1C && f.Uint(content) != 0 })
}

// PutRegister writes to m the query of register a, whose content data has the
// fields that select: by SMP, otherwise by the vendor's class. m has its header.
func PutRegister(m []byte, a *Attribute, data []byte) {
	content := m[AttrAccessRegister.Offset():]
	if ParseHeader(m).Class.Family() == ClassSubn {
		content = m[AttrMlnxAccessRegister.Offset():]
		op := RegisterOperation{
			OperationType: 1, OperationLen: 4, OperationClass: 1, RegisterMethod: RegisterMethodRead, RegisterID: a.Register,
			RegisterType: 3, RegisterLen: uint16(a.Size/4 + 1),
		}
		op.Encode(content)
		copy(content[LayoutRegisterOperation.Size:][:SMPRegisterSize], data)
		return
	}
	copy(content[12:], data)
}

// SMPRegisterSize is the number of bytes of a register in an SMP,
// GMPRegisterSize in a datagram of the vendor's class.
const (
	SMPRegisterSize = 44
	GMPRegisterSize = 220
)

// RegisterContent returns register a in answer m, and the result of the query by
// the device. ok reports whether m answers the query of that register.
func RegisterContent(m []byte, a *Attribute) (content []byte, status RegisterStatus, ok bool) {
	h := ParseHeader(m)
	if h.Class.Family() != ClassSubn {
		at := AttrAccessRegister.Offset()
		blockNum := binary.BigEndian.Uint16(m[at+8:])
		return m[at+12:][:min(a.Size, GMPRegisterSize)], RegisterStatusOf(h.Status), h.Modifier == uint32(a.Register) && blockNum == 0
	}
	at := AttrMlnxAccessRegister.Offset()
	var op RegisterOperation
	op.Decode(m[at:])
	ok = op.RegisterID == a.Register && op.OperationType == 1 && op.RegisterMethod == RegisterMethodRead
	if op.RegisterStatus == RegisterStatusOK {
		// An older device has a shorter register, without some fields.
		ok = ok && op.RegisterType == 3 && op.RegisterLen >= 2 && int(op.RegisterLen-1)*4 <= SMPRegisterSize
	}
	return m[at+LayoutRegisterOperation.Size:][:min(a.Size, SMPRegisterSize)], op.RegisterStatus, ok
}

// RegisterStatusOf returns the status of a register by the status of a datagram of
// the vendor's class (mstflint mtcr_ib_ofed.c translate_mad_status_to_reg_status_gmp).
func RegisterStatusOf(s Status) RegisterStatus {
	switch s {
	case 0x04:
		return RegisterStatusClassNotSupported
	case 0x0c:
		return RegisterStatusMethodNotSupported
	case 0x14:
		return RegisterStatusRegisterNotSupported
	case 0x1c:
		return RegisterStatusBadParameter
	}
	return RegisterStatusOK
}

// Unsupported reports whether the device does not have the register.
func (s RegisterStatus) Unsupported() bool {
	switch s {
	case RegisterStatusVersionNotSupported, RegisterStatusUnknownTLV, RegisterStatusRegisterNotSupported, RegisterStatusClassNotSupported, RegisterStatusMethodNotSupported:
		return true
	}
	return false
}

// Registers of Mellanox' devices about the device: its environment (temperatures, fans,
// power supplies), its hardware and its firmware. They are read through
// MlnxAccessRegister and AccessRegister.

// MTMP is a temperature sensor.
//
// Sensor 0 is the chip itself; 64 and up are the modules, 64 that in the first cage.
//
//mad:header size=32 section=vendor register=0x900a
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb mtmp_ext
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h mtmp
type MTMP struct {
	_ uint8 `mad:"0:8"`
	_ uint8 `mad:"8:4"`
	// SlotIndex is the slot of a modular system; 0 is the main board.
	SlotIndex uint8 `mad:"12:4"`
	_         uint8 `mad:"16:4"`
	// SensorIndex is the number of the sensor.
	SensorIndex uint16   `mad:"20:12"`
	_           [2]uint8 `mad:"32:8"`
	// Temperature is the measured temperature, in degrees Celsius.
	Temperature uint16 `mad:"48:16,ro,signed,scale=8"`
	// MTE is set if MaxTemperature is measured.
	MTE bool `mad:"64:1"`
	// MTR resets MaxTemperature.
	MTR bool  `mad:"65:1,w1c"`
	_   uint8 `mad:"66:6"`
	_   uint8 `mad:"72:8"`
	// MaxTemperature is the highest measured temperature, if MTE is set.
	MaxTemperature uint16 `mad:"80:16,ro,signed,scale=8"`
	// TEE selects the events of the sensor: 0 none, 1 each time, 2 once.
	TEE uint8 `mad:"96:2"`
	_   uint8 `mad:"98:6"`
	_   uint8 `mad:"104:8"`
	// TemperatureThresholdHi is the temperature at which the warning begins.
	TemperatureThresholdHi uint16   `mad:"112:16,signed,scale=8"`
	_                      [2]uint8 `mad:"128:8"`
	// TemperatureThresholdLo is the temperature at which the warning ends.
	TemperatureThresholdLo uint16   `mad:"144:16,signed,scale=8"`
	_                      [4]uint8 `mad:"160:8"`
	// SensorName is the device's name for the sensor.
	SensorName [8]byte `mad:"192:64,ro,text"`
}

// MTCAP lists the temperature sensors.
//
//mad:header size=16 section=vendor register=0x9009
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb mtcap_ext
//mad:source linux include/linux/mlx5/mlx5_ifc.h mlx5_ifc_mtcap_reg_bits
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h mtcap (sensor_count)
type MTCAP struct {
	_ [3]uint8 `mad:"0:8"`
	_ uint8    `mad:"24:1"`
	// SensorCount is the number of sensors, without those of modules.
	SensorCount uint8    `mad:"25:7,ro"`
	_           [4]uint8 `mad:"32:8"`
	// SensorMap has a bit for each sensor.
	SensorMap uint64 `mad:"64:64,ro,hex"`
}

// MFCR lists the fans, and how they are driven.
//
//mad:header size=8 section=vendor register=0x9001
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb mfcr_ext
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h mfcr
type MFCR struct {
	_ [3]uint8 `mad:"0:8"`
	_ uint8    `mad:"24:1"`
	// PWMFrequency is the code of the frequency that drives the fans.
	PWMFrequency uint8 `mad:"25:7,hex,name=pwm_frequency"`
	_            uint8 `mad:"32:6"`
	// TachoActive has a bit for each fan with a tachometer, as MFSM counts them.
	TachoActive uint16 `mad:"38:10,ro,hex"`
	_           uint8  `mad:"48:8"`
	_           uint8  `mad:"56:3"`
	// PWMActive has a bit for each drive in use.
	PWMActive uint8 `mad:"59:5,ro,hex,name=pwm_active"`
}

// MFSM is the speed of a fan.
//
//mad:header size=8 section=vendor register=0x9003
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb mfsm_ext
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h mfsm
type MFSM struct {
	_ uint8 `mad:"0:4"`
	// Tacho is the number of the fan.
	Tacho uint8    `mad:"4:4"`
	_     [5]uint8 `mad:"8:8"`
	// RPM is the speed of the fan, in revolutions per minute.
	RPM uint16 `mad:"48:16,ro"`
}

// MSPS is the state of the power supplies. The meaning of its bits is not public.
//
//mad:header size=160 section=vendor register=0x900d unconfirmed
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb msps_ext
type MSPS struct {
	// PSU0 is the state of the first supply, as it came.
	PSU0 [80]byte `mad:"0:640,ro,bytes"`
	// PSU1 is the state of the second supply.
	PSU1 [80]byte `mad:"640:640,ro,bytes"`
}

// MGIR is the hardware and firmware of a device.
//
//mad:header size=160 section=vendor register=0x9020
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb mgir_ext
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h mgir (hw_info_device_hw_revision, fw_info_psid, fw_info_extended_*)
//mad:source rdma-core infiniband-diags/vendstat.c is4_general_info_t (the same, behind VSKey)
type MGIR struct {
	// HWRevision is the revision of the device.
	HWRevision uint16 `mad:"0:16,ro,hex"`
	// DeviceID is the type of the device.
	DeviceID uint16    `mad:"16:16,ro,hex"`
	_        [24]uint8 `mad:"32:8"`
	// Uptime is the time since the device started, in seconds.
	Uptime uint32 `mad:"224:32,ro"`
	_      uint8  `mad:"256:8"`
	// FWMajor is the first part of the firmware's version; see ExtFWMajor.
	FWMajor uint8 `mad:"264:8,ro"`
	// FWMinor is the second part.
	FWMinor uint8 `mad:"272:8,ro"`
	// FWSubMinor is the third part.
	FWSubMinor uint8 `mad:"280:8,ro"`
	// FWBuildID is the number of the firmware's build.
	FWBuildID uint32 `mad:"288:32,ro,hex"`
	// FWMonth is the month in which the firmware was built, in BCD: 0x12 is December.
	FWMonth uint8 `mad:"320:8,ro,hex"`
	// FWDay is the day of the build, likewise.
	FWDay uint8 `mad:"328:8,ro,hex"`
	// FWYear is the year of the build, likewise.
	FWYear uint16   `mad:"336:16,ro,hex"`
	_      [2]uint8 `mad:"352:8"`
	// FWHour is the hour of the build, likewise.
	FWHour uint16 `mad:"368:16,ro,hex"`
	// PSID names the board that the firmware is for.
	PSID [16]byte `mad:"384:128,ro,text"`
	// INIFileVersion is the version of the settings that the firmware was built with.
	INIFileVersion uint32 `mad:"512:32,ro"`
	// ExtFWMajor is the first part of the firmware's version; recent devices have 0 in FWMajor.
	ExtFWMajor uint32 `mad:"544:32,ro"`
	// ExtFWMinor is the second part.
	ExtFWMinor uint32 `mad:"576:32,ro"`
	// ExtFWSubMinor is the third part.
	ExtFWSubMinor uint32    `mad:"608:32,ro"`
	_             [17]uint8 `mad:"640:8"`
	// SWMajor is the first part of the management software's version.
	SWMajor uint8 `mad:"776:8,ro"`
	// SWMinor is the second part.
	SWMinor uint8 `mad:"784:8,ro"`
	// SWSubMinor is the third part.
	SWSubMinor uint8     `mad:"792:8,ro"`
	_          [60]uint8 `mad:"800:8"`
}

// MSGI is the content of a system's label.
//
//mad:header size=128 section=vendor register=0x9021 unconfirmed
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb msgi_ext
type MSGI struct {
	// SerialNumber is the serial number.
	SerialNumber [24]byte `mad:"0:192,ro,text"`
	_            [8]uint8 `mad:"192:8"`
	// PartNumber is the part number.
	PartNumber [20]byte `mad:"256:160,ro,text"`
	_          [4]uint8 `mad:"416:8"`
	// Revision is the revision.
	Revision [4]byte  `mad:"448:32,ro,text"`
	_        [4]uint8 `mad:"480:8"`
	// ProductName is the name of the product.
	ProductName [64]byte `mad:"512:512,ro,text"`
}
