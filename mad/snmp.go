package mad

// SNMPHeader stands at byte 56 of the MADs that carry SNMP.
//
//mad:header size=8 section=16.4.1 unconfirmed
//mad:source python-rdma codegen/iba_16_4.xml SNMPFormat
type SNMPHeader struct {
	// RAddress is where the answer goes.
	RAddress uint32 `mad:"0:32,hex"`
	// PayloadLength is the number of bytes of data.
	PayloadLength uint8 `mad:"32:8"`
	// SegmentNumber counts the MADs of a message.
	SegmentNumber uint8 `mad:"40:8"`
	// SourceLID is the LID of the sender.
	SourceLID LID `mad:"48:16"`
}

// SNMPData is what a MAD carries of SNMP.
//
//mad:attr class=SNMP id=0x0010 name=CommunityInfo methods=Send size=64 section=16.4.3.2 unconfirmed ; is the community name of the messages that follow.
//mad:attr class=SNMP id=0x0011 name=PDUInfo methods=Send size=192 section=16.4.3.3 unconfirmed ; is a segment of a message.
//mad:source python-rdma codegen/iba_16_4.xml SNMPCommunityInfo, SNMPPDUInfo
type SNMPData struct {
	// Data is the attribute's first 64 bytes as they came.
	Data [64]byte `mad:"0:512,bytes"`
	// More is the rest of it.
	More [128]byte `mad:"512:1024,bytes"`
}
