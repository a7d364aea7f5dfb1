package mad

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
//mad:attr class=Vendor0A id=0x0017 name=GeneralInfo methods=Get size=136 section=vendor
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
