package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Capabilities of the subnet administrator: those of OpenSM that are implemented here
// (opensm osm_sa_class_port_info.c cpi_rcv_respond). OpenSM also announces
// IsGetSetNoticeSupported, without answering such requests, and with use_mfttop
// IsMulticastTopSupported.
const (
	capabilities = mad.SubnAdmCapabilityMaskIsUDMulticastSupported |
		mad.SubnAdmCapabilityMaskIsMultiPathSupported |
		mad.SubnAdmCapabilityMaskIsPortInfoCapabilityMaskMatchSupported
	capabilities2 = mad.SubnAdmCapabilityMask2IsAdditionalGUIDSupported |
		mad.SubnAdmCapabilityMask2IsFullPortInfoRecordSupported |
		mad.SubnAdmCapabilityMask2IsExtendedSpeedsSupported |
		mad.SubnAdmCapabilityMask2IsMulticastServiceRecordSupported |
		mad.SubnAdmCapabilityMask2IsPortInfoCapabilityMask2MatchSupported |
		mad.SubnAdmCapabilityMask2IsSendOnlyFullMemberSupported |
		mad.SubnAdmCapabilityMask2IsLinkWidth2xSupported |
		mad.SubnAdmCapabilityMask2IsLinkSpeedHDRSupported
)

func (r *saRequest) getSAClassPortInfo() mad.Status {
	info := mad.ClassPortInfo{
		BaseVersion: 1, ClassVersion: r.ClassVersion, RespTimeValue: state.LifeTime,
		CapabilityMask: uint16(capabilities), CapabilityMask2: uint32(capabilities2),
	}
	if r.ClassVersion == 1 { // MCGroupRecord, which its multicast needs, has no public layout
		info.CapabilityMask, info.CapabilityMask2 = 0, 0
	}
	return encodeAnswer(r.Data, &info, r.Modifier)
}

// capabilityMasks are the fields of PortInfo that, with bit 31 of the modifier, match if
// they have all the bits of the query (IBA 15.2.5.3; opensm osm_sa_portinfo_record.c
// sa_pir_check_physp).
var capabilityMasks = []string{"CapabilityMask", "CapabilityMask2"}
