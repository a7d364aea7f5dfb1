package mad

// HostPing asks whether somebody is there: ibping.
//
//mad:attr class=Ping id=0x0000 oui=0x001405 methods=Get size=216 section=vendor unconfirmed
//mad:source rdma-core infiniband-diags/ibping.c ibping
type HostPing struct {
	// Data is the attribute as it came; ibping's server answers with the name of its host.
	Data [216]byte `mad:"0:1728,bytes"`
}

// SysStat is what a host tells of itself: ibsysstat.
//
//mad:attr class=SysStat id=0x0010 name=SysStatPing oui=0x001405 methods=Get size=216 section=vendor ; asks whether somebody is there.
//mad:attr class=SysStat id=0x0011 name=HostInfo oui=0x001405 methods=Get size=216 section=vendor ; is the name of the host.
//mad:attr class=SysStat id=0x0012 name=CPUInfo oui=0x001405 methods=Get size=216 section=vendor ; is a line for each processor. (python-rdma has it at 0x0112.)
//mad:source rdma-core infiniband-diags/ibsysstat.c mk_reply
//mad:source python-rdma codegen/vend_ofa.xml OFASysStatHostInfo, OFASysStatCPUInfo
type SysStat struct {
	// Text is what the host says.
	Text [216]byte `mad:"0:1728,text"`
}
