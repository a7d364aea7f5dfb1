package mad

// EEPROMs of modules, with the addresses of the bus.

// SFF8636 is the EEPROM of a QSFP, QSFP+ or QSFP28 module: the lower half, and page
// 0.
//
//mad:header size=256 section=SFF-8636
//mad:source ethtool qsfp.h SFF8636_*
//mad:source sonic-platform-common sonic_platform_base/sonic_xcvr/mem_maps/public/sff8636.py Sff8636MemMap
type SFF8636 struct {
	// Identifier is the kind of module.
	Identifier ModuleIdentifier `mad:"0:8,ro"`
	// RevCompliance is the supported revision of SFF-8636.
	RevCompliance uint8 `mad:"8:8,ro"`
	_             uint8 `mad:"16:8"`
	// LOS has a bit for each lane without signal: 4 transmitted, 4 received.
	LOS uint8 `mad:"24:8,ro,hex,name=los"`
	// TxFault has a bit for each lane whose transmitter has a fault.
	TxFault uint8 `mad:"32:8,ro,hex"`
	_       uint8 `mad:"40:8"`
	// TemperatureAlarms are the alarms and warnings of the temperature.
	TemperatureAlarms ModuleAlarms `mad:"48:4,ro"`
	_                 uint8        `mad:"52:4"`
	// VoltageAlarms are the alarms and warnings of the voltage.
	VoltageAlarms ModuleAlarms `mad:"56:4,ro"`
	_             uint8        `mad:"60:4"`
	_             uint8        `mad:"64:8"`
	// RxPowerAlarms are the alarms and warnings of the received optical power, by lane.
	RxPowerAlarms [4]ModuleAlarms `mad:"72:4,ro"`
	// TxBiasAlarms are the alarms and warnings of the laser bias current, by lane.
	TxBiasAlarms [4]ModuleAlarms `mad:"88:4,ro"`
	// TxPowerAlarms are the alarms and warnings of the transmitted optical power, by lane.
	TxPowerAlarms [4]ModuleAlarms `mad:"104:4,ro"`
	_             [7]uint8        `mad:"120:8"`
	// Temperature is the temperature of the module, in degrees Celsius.
	Temperature uint16   `mad:"176:16,ro,signed,scale=256"`
	_           [2]uint8 `mad:"192:8"`
	// Voltage is the supply voltage, in V.
	Voltage uint16   `mad:"208:16,ro,scale=10000"`
	_       [6]uint8 `mad:"224:8"`
	// RxPower is the received optical power, by lane, in uW.
	RxPower [4]uint16 `mad:"272:16,ro,scale=10"`
	// TxBias is the laser bias current, by lane, in mA.
	TxBias [4]uint16 `mad:"336:16,ro,scale=500"`
	// TxPower is the transmitted optical power, by lane, in uW.
	TxPower [4]uint16 `mad:"400:16,ro,scale=10"`
	_       [72]uint8 `mad:"464:8"`
	// Connector is the kind of connector (SFF-8024).
	Connector uint8     `mad:"1040:8,ro,hex"`
	_         [11]uint8 `mad:"1048:8"`
	// LengthSMF is the reach over single-mode fibre, in km.
	LengthSMF uint8    `mad:"1136:8,ro,name=length_smf"`
	_         [3]uint8 `mad:"1144:8"`
	// LengthAssembly is the length of a cable, in m.
	LengthAssembly uint8 `mad:"1168:8,ro"`
	// DeviceTech is the transmitter technology, in the upper 4 bits.
	DeviceTech uint8 `mad:"1176:8,ro,hex"`
	// VendorName is the manufacturer, padded with blanks.
	VendorName [16]byte `mad:"1184:128,ro,text"`
	_          uint8    `mad:"1312:8"`
	// VendorOUI is the manufacturer's IEEE OUI.
	VendorOUI uint32 `mad:"1320:24,ro,hex"`
	// VendorPN is the part number.
	VendorPN [16]byte `mad:"1344:128,ro,text,name=vendor_pn"`
	// VendorRev is the revision.
	VendorRev [2]byte   `mad:"1472:16,ro,text"`
	_         [10]uint8 `mad:"1488:8"`
	// VendorSN is the serial number.
	VendorSN [16]byte `mad:"1568:128,ro,text,name=vendor_sn"`
	// DateCode is the date of manufacture: year, month, day, lot.
	DateCode [8]byte   `mad:"1696:64,ro,text"`
	_        [36]uint8 `mad:"1760:8"`
}

// CMIS is the EEPROM of an OSFP, QSFP-DD or newer QSFP module: the lower half, and the
// pages 0x00 and 0x11.
//
// A module with flat memory, such as a copper cable, has no page 0x11: it reads as 0.
//
//mad:header size=384 section=CMIS
//mad:source ethtool qsfp-dd.h QSFP_DD_*, cmis.h CMIS_*
//mad:source sonic-platform-common sonic_platform_base/sonic_xcvr/mem_maps/public/cmis/pages page00_lower.py, page00_upper.py, page11.py
type CMIS struct {
	// Identifier is the kind of module.
	Identifier ModuleIdentifier `mad:"0:8,ro"`
	// RevCompliance is the supported revision of CMIS, in two digits.
	RevCompliance uint8 `mad:"8:8,ro,hex"`
	// FlatMem is set if the module has only page 0x00.
	FlatMem bool  `mad:"16:1,ro"`
	_       uint8 `mad:"17:7"`
	_       uint8 `mad:"24:4"`
	// ModuleState is the state of the module: 1 low power, 3 ready, 5 fault.
	ModuleState uint8    `mad:"28:3,ro"`
	_           uint8    `mad:"31:1"`
	_           [5]uint8 `mad:"32:8"`
	// VoltageAlarms are the alarms and warnings of the voltage.
	VoltageAlarms CMISAlarms `mad:"72:4,ro"`
	// TemperatureAlarms are the alarms and warnings of the temperature.
	TemperatureAlarms CMISAlarms `mad:"76:4,ro"`
	_                 [4]uint8   `mad:"80:8"`
	// Temperature is the temperature of the module, in degrees Celsius.
	Temperature uint16 `mad:"112:16,ro,signed,scale=256"`
	// Voltage is the supply voltage, in V.
	Voltage uint16    `mad:"128:16,ro,scale=10000"`
	_       [67]uint8 `mad:"144:8"`
	// MediaType is the medium: 1 multi-mode fibre, 2 single-mode fibre, 3 passive copper, 4 an active cable.
	MediaType uint8     `mad:"680:8,ro"`
	_         [43]uint8 `mad:"688:8"`
	// VendorName is the manufacturer, padded with blanks.
	VendorName [16]byte `mad:"1032:128,ro,text"`
	// VendorOUI is the manufacturer's IEEE OUI.
	VendorOUI uint32 `mad:"1160:24,ro,hex"`
	// VendorPN is the part number.
	VendorPN [16]byte `mad:"1184:128,ro,text,name=vendor_pn"`
	// VendorRev is the revision.
	VendorRev [2]byte `mad:"1312:16,ro,text"`
	// VendorSN is the serial number.
	VendorSN [16]byte `mad:"1328:128,ro,text,name=vendor_sn"`
	// DateCode is the date of manufacture: year, month, day, lot.
	DateCode [8]byte   `mad:"1456:64,ro,text"`
	_        [11]uint8 `mad:"1520:8"`
	// MaxPower is the largest power consumption, in W.
	MaxPower uint8 `mad:"1608:8,ro,scale=4"`
	// LengthMultiplier is the unit of LengthValue: 0.1, 1, 10 or 100 m.
	LengthMultiplier uint8 `mad:"1616:2,ro"`
	// LengthValue is the length of a cable, in that unit.
	LengthValue uint8 `mad:"1618:6,ro"`
	// Connector is the kind of connector (SFF-8024).
	Connector uint8    `mad:"1624:8,ro,hex"`
	_         [8]uint8 `mad:"1632:8"`
	// MediaInterfaceTech is the transmitter technology.
	MediaInterfaceTech uint8     `mad:"1696:8,ro,hex"`
	_                  [50]uint8 `mad:"1704:8"`
	// TxFault are the lanes whose transmitter has a fault.
	TxFault ModuleLanes `mad:"2104:8,ro"`
	// TxLOS are the lanes without a signal from the host.
	TxLOS ModuleLanes `mad:"2112:8,ro"`
	_     [2]uint8    `mad:"2120:8"`
	// TxPowerHighAlarm are the lanes whose transmitted power is too high.
	TxPowerHighAlarm ModuleLanes `mad:"2136:8,ro"`
	// TxPowerLowAlarm are the lanes whose transmitted power is too low.
	TxPowerLowAlarm ModuleLanes `mad:"2144:8,ro"`
	_               [2]uint8    `mad:"2152:8"`
	// TxBiasHighAlarm are the lanes whose laser bias current is too high.
	TxBiasHighAlarm ModuleLanes `mad:"2168:8,ro"`
	// TxBiasLowAlarm are the lanes whose laser bias current is too low.
	TxBiasLowAlarm ModuleLanes `mad:"2176:8,ro"`
	_              [2]uint8    `mad:"2184:8"`
	// RxLOS are the lanes without a received signal.
	RxLOS ModuleLanes `mad:"2200:8,ro"`
	_     uint8       `mad:"2208:8"`
	// RxPowerHighAlarm are the lanes whose received power is too high.
	RxPowerHighAlarm ModuleLanes `mad:"2216:8,ro"`
	// RxPowerLowAlarm are the lanes whose received power is too low.
	RxPowerLowAlarm ModuleLanes `mad:"2224:8,ro"`
	_               [3]uint8    `mad:"2232:8"`
	// TxPower is the transmitted optical power, by lane, in uW.
	TxPower [8]uint16 `mad:"2256:16,ro,scale=10"`
	// TxBias is the laser bias current, by lane, in mA.
	TxBias [8]uint16 `mad:"2384:16,ro,scale=500"`
	// RxPower is the received optical power, by lane, in uW.
	RxPower [8]uint16 `mad:"2512:16,ro,scale=10"`
	_       [54]uint8 `mad:"2640:8"`
}

// ModuleIdentifier is a kind of module (SFF-8024; ethtool sff-common.h
// SFF8024_ID_*; sonic-platform-common sff8024.py XCVR_IDENTIFIERS).
//
//mad:enum
type ModuleIdentifier uint8

const (
	ModuleIdentifierSFP      ModuleIdentifier = 0x03 // "sfp"
	ModuleIdentifierQSFP     ModuleIdentifier = 0x0c // "qsfp"
	ModuleIdentifierQSFPPlus ModuleIdentifier = 0x0d // "qsfp_plus"
	ModuleIdentifierQSFP28   ModuleIdentifier = 0x11 // "qsfp28"
	ModuleIdentifierQSFPDD   ModuleIdentifier = 0x18 // "qsfp_dd"
	ModuleIdentifierOSFP     ModuleIdentifier = 0x19 // "osfp"
	ModuleIdentifierSFPDD    ModuleIdentifier = 0x1a // "sfp_dd"
	ModuleIdentifierDSFP     ModuleIdentifier = 0x1b // "dsfp"
	ModuleIdentifierQSFPCMIS ModuleIdentifier = 0x1e // "qsfp_cmis"
)

// ModuleAlarms are the alarms and warnings of a measured value, by SFF-8636.
//
//mad:mask
type ModuleAlarms uint8

const (
	ModuleAlarmsLowWarning  ModuleAlarms = 1 << 0
	ModuleAlarmsHighWarning ModuleAlarms = 1 << 1
	ModuleAlarmsLowAlarm    ModuleAlarms = 1 << 2
	ModuleAlarmsHighAlarm   ModuleAlarms = 1 << 3
)

// CMISAlarms are the same by CMIS.
//
//mad:mask
type CMISAlarms uint8

const (
	CMISAlarmsHighAlarm   CMISAlarms = 1 << 0
	CMISAlarmsLowAlarm    CMISAlarms = 1 << 1
	CMISAlarmsHighWarning CMISAlarms = 1 << 2
	CMISAlarmsLowWarning  CMISAlarms = 1 << 3
)

// ModuleLanes are lanes of a module.
//
//mad:mask
type ModuleLanes uint8

const (
	ModuleLanesLane0 ModuleLanes = 1 << 0
	ModuleLanesLane1 ModuleLanes = 1 << 1
	ModuleLanesLane2 ModuleLanes = 1 << 2
	ModuleLanesLane3 ModuleLanes = 1 << 3
	ModuleLanesLane4 ModuleLanes = 1 << 4
	ModuleLanesLane5 ModuleLanes = 1 << 5
	ModuleLanesLane6 ModuleLanes = 1 << 6
	ModuleLanesLane7 ModuleLanes = 1 << 7
)
