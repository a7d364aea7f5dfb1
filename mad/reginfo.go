package mad

// Registers of Mellanox' devices that say what they are, and run.

// MGIR says what a device is and runs: hardware and firmware.
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
	// FWMonth is when the firmware was built; the hexadecimal digits are decimal ones.
	FWMonth uint8 `mad:"320:8,ro,hex"`
	// FWDay is when the firmware was built, likewise.
	FWDay uint8 `mad:"328:8,ro,hex"`
	// FWYear is when the firmware was built, likewise.
	FWYear uint16   `mad:"336:16,ro,hex"`
	_      [2]uint8 `mad:"352:8"`
	// FWHour is when the firmware was built, likewise.
	FWHour uint16 `mad:"368:16,ro,hex"`
	// PSID names the board that the firmware is for.
	PSID [16]byte `mad:"384:128,ro,text"`
	// INIFileVersion is the version of the settings that the firmware was made with.
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

// MSGI is what stands on a system's label.
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
	// ProductName is what the product is called.
	ProductName [64]byte `mad:"512:512,ro,text"`
}
