package mad

// SLtoVLMappingTableRecord is an SLtoVLMappingTable as the subnet
// administrator knows it.
//
//mad:attr class=SubnAdm id=0x0013 alias=SltoVlMappingTableRecord methods=Get,GetTable v1=Get,GetTable,GetBulk state required size=16 section=15.2.5.4
//mad:source opensm include/iba/ib_types.h ib_slvl_table_record_t, IB_SLVL_COMPMASK_*
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sa_recs.h sa_SLtoVLmapping_record_t
type SLtoVLMappingTableRecord struct {
	// LID is the LID of the port; of a switch, that of its port 0.
	LID LID `mad:"0:16"`
	// InputPortNum is the switch's port that packets come in through.
	InputPortNum uint8 `mad:"16:8"`
	// OutputPortNum is the switch's port that packets leave through.
	OutputPortNum uint8  `mad:"24:8"`
	_             uint32 `mad:"32:32"`
	// SLtoVLMappingTable is the table.
	SLtoVLMappingTable SLtoVLMappingTable `mad:"64:64"`
}

// RandomForwardingTableRecord is a block of a switch's RandomForwardingTable
// as the subnet administrator knows it.
//
//mad:attr class=SubnAdm id=0x0016 methods=Get,GetTable v1=GetTable,GetBulk state size=72 section=15.2.5.7
//mad:source python-rdma codegen/iba_15.xml SARandomForwardingTableRecord
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sa_recs.h sa_randomft_record_t
type RandomForwardingTableRecord struct {
	// LID is the LID of the switch.
	LID LID `mad:"0:16"`
	// BlockNum is the block of entries 16*BlockNum to 16*BlockNum+15.
	BlockNum uint16 `mad:"16:16"`
	_        uint32 `mad:"32:32"`
	// RandomForwardingTable is the block's content.
	RandomForwardingTable RandomForwardingTable `mad:"64:512"`
}

// MulticastForwardingTableRecord is a block of a switch's multicast forwarding
// table as the subnet administrator knows it.
//
//mad:attr class=SubnAdm id=0x0017 methods=Get,GetTable v1=GetTable,GetBulk state size=72 section=15.2.5.8
//mad:source opensm opensm/osm_sa_mft_record.c mftr_rcv_new_mftr, include/iba/ib_types.h ib_mft_record_t
//mad:source illumos usr/src/uts/common/sys/ib/mgt/sa_recs.h sa_multicastft_record_t
//mad:source python-rdma codegen/iba_15.xml SAMulticastForwardingTableRecord (Position 2 bits later, BlockNum of 10 bits)
type MulticastForwardingTableRecord struct {
	// LID is the LID of the switch.
	LID LID `mad:"0:16"`
	// Position selects the 16 ports of the masks, from 16*Position on.
	Position uint8 `mad:"16:4"`
	_        uint8 `mad:"20:3"`
	// BlockNum is the block of LIDs 0xC000+32*BlockNum on.
	BlockNum uint16 `mad:"23:9"`
	_        uint32 `mad:"32:32"`
	// MulticastForwardingTable is the block's content.
	MulticastForwardingTable MulticastForwardingTable `mad:"64:512"`
}

// PortInfoExtendedRecord is a PortInfoExtended as the subnet administrator knows
// it. OpenSM 3.3 does not have this record.
//
//mad:attr class=SubnAdm id=0x003e methods=Get,GetTable size=68 section=15.2.5 unconfirmed
//mad:source opensm include/iba/ib_types.h ib_portinfoext_record_t
type PortInfoExtendedRecord struct {
	// LID is the LID of the port; of a switch's external port, that of its port 0.
	LID LID `mad:"0:16"`
	// PortNum is the number of the port.
	PortNum uint8 `mad:"16:8"`
	// Options are undocumented; compare PortInfoRecord.
	Options uint8 `mad:"24:8,hex"`
	// PortInfoExtended is the port's PortInfoExtended.
	PortInfoExtended PortInfoExtended `mad:"32:512"`
}

// LinkSpeedWidthPairsTableRecord is a LinkSpeedWidthPairsTable as the subnet
// administrator knows it.
//
//mad:attr class=SubnAdm id=0x0019 methods=Get,GetTable size=200 section=15.2.5 unconfirmed
//mad:source rdma-core libibumad/umad_sa.h UMAD_SA_ATTR_LINK_SPD_WIDTH_TABLE_REC (the number alone)
type LinkSpeedWidthPairsTableRecord struct {
	// Data is the record as it came, and the rest of the MAD.
	Data [200]byte `mad:"0:1600,bytes,component=none"`
}

// GUIDInfoRecord is a block of a port's GUID table as the subnet administrator
// knows it.
//
// A Set requests GUIDs for virtual ports; for a 0 the subnet manager chooses the
// GUID. A Delete releases them.
//
//mad:attr class=SubnAdm id=0x0030 alias=GuidInfoRecord methods=Get,GetTable,Set,Delete v1=Get,GetTable,GetBulk state size=72 section=15.2.5.18
//mad:source opensm include/iba/ib_types.h ib_guidinfo_record_t, IB_GIR_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SAGUIDInfoRecord
type GUIDInfoRecord struct {
	// LID is the LID of the port.
	LID LID `mad:"0:16"`
	// BlockNum is the block of entries 8*BlockNum to 8*BlockNum+7.
	BlockNum uint8  `mad:"16:8"`
	_        uint8  `mad:"24:8"`
	_        uint32 `mad:"32:32"`
	// GUIDInfo is the block's content.
	GUIDInfo GUIDInfo `mad:"64:512"`
}

// P_KeyTableRecord is a block of a port's partition table as the subnet
// administrator knows it. OpenSM shows it only to requests with its SM_Key.
//
//mad:attr class=SubnAdm id=0x0033 name=P_KeyTableRecord alias=PartitionRecord methods=Get,GetTable v1=Get,GetTable,GetBulk state required size=72 section=15.2.5.11
//mad:source opensm include/iba/ib_types.h ib_pkey_table_record_t, IB_PKEY_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SAPKeyTableRecord
type PKeyTableRecord struct {
	// LID is the LID of the port; of a switch, that of its port 0.
	LID LID `mad:"0:16"`
	// BlockNum is the block of entries 32*BlockNum to 32*BlockNum+31.
	BlockNum uint16 `mad:"16:16"`
	// PortNum is the switch's port.
	PortNum uint8   `mad:"32:8"`
	_       [3]byte `mad:"40:24,bytes"`
	// PKeyTable is the block's content.
	PKeyTable PKeyTable `mad:"64:512,name=P_KeyTable"`
}

// VLArbitrationTableRecord is a block of a port's VLArbitrationTable as the
// subnet administrator knows it.
//
//mad:attr class=SubnAdm id=0x0036 alias=VLArbitrationRecord methods=Get,GetTable v1=GetTable,GetBulk state required size=72 section=15.2.5.9
//mad:source opensm include/iba/ib_types.h ib_vl_arb_table_record_t, IB_VLA_COMPMASK_*
//mad:source python-rdma codegen/iba_15.xml SAVLArbitrationTableRecord
type VLArbitrationTableRecord struct {
	// LID is the LID of the port; of a switch, that of its port 0.
	LID LID `mad:"0:16"`
	// OutputPortNum is the switch's port.
	OutputPortNum uint8 `mad:"16:8"`
	// BlockNum is the block: 1 and 2 of the low-priority table, 3 and 4 of the high-priority one.
	BlockNum uint8  `mad:"24:8"`
	_        uint32 `mad:"32:32"`
	// VLArbitrationTable is the block's content.
	VLArbitrationTable VLArbitrationTable `mad:"64:512"`
}

// RecordData is a record of which only the number is certain.
//
//mad:attr class=SubnAdm id=0x003c name=HierarchyInfoRecord methods=Get,GetTable size=200 section=15.2.5 unconfirmed ; is a HierarchyInfo as the subnet administrator knows it.
//mad:attr class=SubnAdm id=0x003d name=CableInfoRecord methods=Get,GetTable size=200 section=15.2.5 unconfirmed ; is a CableInfo as the subnet administrator knows it.
//mad:source rdma-core libibumad/umad_sa.h UMAD_SA_ATTR_* (the numbers alone)
type RecordData struct {
	// Data is the record as it came, and the rest of the MAD.
	Data [200]byte `mad:"0:1600,bytes,component=none"`
}

// RecordData1 is one of class version 1.
//
//mad:attr class=SubnAdm version=1 id=0x0034 name=RangeRecord v1=Get,Set,GetTable,GetBulk,Config state config required size=192 section=15.2.5 unconfirmed ; is a range of LIDs, recorded in version 1 so that no two subnet managers assign the same LIDs.
//mad:attr class=SubnAdm version=1 id=0x0037 name=MCGroupRecord v1=Get,Set,GetTable,GetBulk,Config state config size=192 section=15.2.5 unconfirmed ; is a multicast group, in version 1; MCMemberRecord replaced it.
//mad:attr class=SubnAdm version=1 id=0x00f4 name=NoticeRecord v1=Get,GetTable,GetBulk state size=192 section=15.2.5 unconfirmed ; is a received Notice, in version 1.
//mad:attr class=SubnAdm version=1 id=0x8001 name=SAResponse v1=GetBulk size=192 section=15.2.5 unconfirmed ; begins the answer to GetBulk, in version 1: it describes what follows.
//mad:source Shanley, InfiniBand Network Architecture, table 33-4 (the numbers alone)
type RecordData1 struct {
	// Data is the record as it came, and the rest of the MAD.
	Data [192]byte `mad:"0:1536,bytes,component=none"`
}
