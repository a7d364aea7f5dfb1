package mad

// SNMPHeader is at byte 56 of the MADs that carry SNMP.
//
//mad:header size=8 section=16.4.1 unconfirmed
//mad:source python-rdma codegen/iba_16_4.xml SNMPFormat
type SNMPHeader struct {
	// RAddress is the address for the answer.
	RAddress uint32 `mad:"0:32,hex"`
	// PayloadLength is the number of bytes of data.
	PayloadLength uint8 `mad:"32:8"`
	// SegmentNumber counts the MADs of a message.
	SegmentNumber uint8 `mad:"40:8"`
	// SourceLID is the LID of the sender.
	SourceLID LID `mad:"48:16"`
}

// SNMPData is the SNMP data of a MAD.
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

// HostPing checks whether a host answers: ibping.
//
//mad:attr class=Ping id=0x0000 oui=0x001405 methods=Get size=216 section=vendor unconfirmed
//mad:source rdma-core infiniband-diags/ibping.c ibping
type HostPing struct {
	// Data is the attribute as it came; ibping's server answers with the name of its host.
	Data [216]byte `mad:"0:1728,bytes"`
}

// SysStat is information about a host: ibsysstat.
//
//mad:attr class=SysStat id=0x0010 name=SysStatPing oui=0x001405 methods=Get size=216 section=vendor ; checks whether the host answers.
//mad:attr class=SysStat id=0x0011 name=HostInfo oui=0x001405 methods=Get size=216 section=vendor ; is the name of the host.
//mad:attr class=SysStat id=0x0012 name=CPUInfo oui=0x001405 methods=Get size=216 section=vendor ; is a line for each processor. (python-rdma has it at 0x0112.)
//mad:source rdma-core infiniband-diags/ibsysstat.c mk_reply
//mad:source python-rdma codegen/vend_ofa.xml OFASysStatHostInfo, OFASysStatCPUInfo
type SysStat struct {
	// Text is the answer of the host.
	Text [216]byte `mad:"0:1728,text"`
}
