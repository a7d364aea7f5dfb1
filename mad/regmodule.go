package mad

// What is plugged into a port of a Mellanox device: PDDR's page of it, its EEPROM
// through MCIA, and what stands there.

// PDDRModule is the cable or transceiver in the port, as its device has read it.
//
//mad:header size=196 section=vendor unconfirmed
//mad:variant of=PDDR.PageData name=module when=PageSelect:3
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb pddr_module_info_ext
type PDDRModule struct {
	// CableTechnology is how the cable sends: byte 147 of SFF-8636, byte 212 of CMIS.
	CableTechnology uint8    `mad:"0:8,ro"`
	_               [3]uint8 `mad:"8:8"`
	// CableType is the kind of cable.
	CableType CableType `mad:"32:4,ro"`
	_         uint8     `mad:"36:4"`
	// CableLength is the length in m; with CMIS the upper 2 bits say in which unit: 0.1, 1, 10 or 100 m.
	CableLength uint8 `mad:"40:8,ro"`
	// CableIdentifier is the kind of module.
	CableIdentifier CableIdentifier `mad:"48:8,ro"`
	_               [13]uint8       `mad:"56:8"`
	// VendorName is who made it, with blanks behind.
	VendorName [16]byte `mad:"160:128,ro,text"`
	// VendorPN is the part number.
	VendorPN [16]byte `mad:"288:128,ro,text,name=vendor_pn"`
	// VendorRev is the revision.
	VendorRev [4]byte `mad:"416:32,ro,text"`
	// FWVersion is the module's own firmware.
	FWVersion uint32 `mad:"448:32,ro,hex,name=fw_version"`
	// VendorSN is the serial number.
	VendorSN [16]byte `mad:"480:128,ro,text,name=vendor_sn"`
	// Temperature is the temperature in degrees Celsius; 0 may mean that it is not measured.
	Temperature uint16 `mad:"608:16,ro,signed,scale=256"`
	// Voltage is the voltage, in V.
	Voltage uint16 `mad:"624:16,ro,scale=10000"`
	// RxPowerLane is the light that comes in, by lane, in dBm.
	RxPowerLane [8]uint16 `mad:"640:16,ro,signed,name=rx_power_lane"`
	// TxPowerLane is the light that goes out, likewise.
	TxPowerLane [8]uint16 `mad:"768:16,ro,signed,name=tx_power_lane"`
	// TxBiasLane is the current of the lasers, by lane, in 2 uA.
	TxBiasLane [8]uint16 `mad:"896:16,ro,name=tx_bias_lane"`
	// TemperatureHighTh is the temperature from where on the module alarms.
	TemperatureHighTh uint16 `mad:"1024:16,ro,signed,scale=256"`
	// TemperatureLowTh is the one below which it does.
	TemperatureLowTh uint16   `mad:"1040:16,ro,signed,scale=256"`
	_                [4]uint8 `mad:"1056:8"`
	// RxPowerHighTh is the same of the light that comes in, in dBm.
	RxPowerHighTh uint16 `mad:"1088:16,ro,signed"`
	// RxPowerLowTh is the one below which it alarms.
	RxPowerLowTh uint16 `mad:"1104:16,ro,signed"`
	// TxPowerHighTh is the same of the light that goes out.
	TxPowerHighTh uint16 `mad:"1120:16,ro,signed"`
	// TxPowerLowTh is the one below which it alarms.
	TxPowerLowTh uint16    `mad:"1136:16,ro,signed"`
	_            [14]uint8 `mad:"1152:8"`
	// MonitorCapMask is what the module measures.
	MonitorCapMask ModuleMonitors `mad:"1264:8,ro"`
	_              [37]uint8      `mad:"1272:8"`
}

// ModuleMonitors is what a module measures (mstflint register_access_table.adb
// pddr_module_info_ext monitor_cap_mask).
//
//mad:mask
type ModuleMonitors uint8

const (
	ModuleMonitorsTemperature ModuleMonitors = 1 << 0
	ModuleMonitorsVoltage     ModuleMonitors = 1 << 1
	ModuleMonitorsTxPower     ModuleMonitors = 1 << 2
	ModuleMonitorsRxPower     ModuleMonitors = 1 << 3
	ModuleMonitorsTxBias      ModuleMonitors = 1 << 4
)

// CableIdentifier is a kind of module (mstflint register_access_table.adb
// pddr_module_info_ext cable_identifier).
//
//mad:enum
type CableIdentifier uint8

const (
	CableIdentifierQSFP28    CableIdentifier = 0 // "qsfp28"
	CableIdentifierQSFPPlus  CableIdentifier = 1 // "qsfp_plus"
	CableIdentifierSFP       CableIdentifier = 2 // "sfp"
	CableIdentifierQSA       CableIdentifier = 3 // "qsa"
	CableIdentifierBackplane CableIdentifier = 4
	CableIdentifierSFPDD     CableIdentifier = 5 // "sfp_dd"
	CableIdentifierQSFPDD    CableIdentifier = 6 // "qsfp_dd"
	CableIdentifierQSFPCMIS  CableIdentifier = 7 // "qsfp_cmis"
	CableIdentifierOSFP      CableIdentifier = 8 // "osfp"
)

// CableType is a kind of cable (mstflint register_access_table.adb
// pddr_module_info_ext cable_type).
//
//mad:enum
type CableType uint8

const (
	CableTypeUnidentified  CableType = 0
	CableTypeActive        CableType = 1
	CableTypeOptical       CableType = 2
	CableTypePassiveCopper CableType = 3
	CableTypeUnplugged     CableType = 4
	CableTypeTwistedPair   CableType = 5
)

// MCIA reads the EEPROM of a module.
//
// 48 bytes at a time is what all firmware can. reg_get("EEPROM", port) reads and
// decodes all that is known here.
//
//mad:header size=148 section=vendor register=0x9014
//mad:source mstflint tools_layouts/adb/prm/switch/ext/register_access_table.adb mcia_ext
//mad:source linux drivers/net/ethernet/mellanox/mlxsw/reg.h mcia
type MCIA struct {
	// L: lock the page that was read last.
	L bool  `mad:"0:1,w1c"`
	_ uint8 `mad:"1:7"`
	// Module is the module, from 0 on; reg_get fills in the number of the port less 1.
	Module uint8 `mad:"8:8"`
	// SlotIndex is the slot of a modular system; 0 is the main board.
	SlotIndex uint8 `mad:"16:4"`
	_         uint8 `mad:"20:4"`
	// ModuleStatus says whether the module was read.
	ModuleStatus ModuleStatus `mad:"24:8,ro"`
	// I2CDeviceAddress is the address of the module on its bus: 0x50.
	I2CDeviceAddress uint8 `mad:"32:8,hex,name=i2c_device_address"`
	// PageNumber is the page to be read, of bytes 128 and up.
	PageNumber uint8 `mad:"40:8,hex"`
	// DeviceAddress is the first byte to be read.
	DeviceAddress uint16 `mad:"48:16"`
	_             uint8  `mad:"64:8"`
	// BankNumber is the bank of the page.
	BankNumber uint8 `mad:"72:8"`
	// Size is how many bytes.
	Size uint16   `mad:"80:16"`
	_    [4]uint8 `mad:"96:8"`
	// EEPROM are the bytes.
	EEPROM [128]byte `mad:"128:1024,ro,bytes,name=eeprom"`
	_      [4]uint8  `mad:"1152:8"`
}

// ModuleStatus says whether a module was read (mstflint
// register_access_table.adb mcia_ext status; linux mlxsw reg.h
// MLXSW_REG_MCIA_STATUS_*).
//
//mad:enum
type ModuleStatus uint8

const (
	ModuleStatusOK           ModuleStatus = 0
	ModuleStatusNoEEPROM     ModuleStatus = 1 // "no_eeprom"
	ModuleStatusNotSupported ModuleStatus = 2
	ModuleStatusNotConnected ModuleStatus = 3
	ModuleStatusTypeInvalid  ModuleStatus = 4
	ModuleStatusI2CError     ModuleStatus = 9 // "i2c_error"
	ModuleStatusDisabled     ModuleStatus = 16
)
