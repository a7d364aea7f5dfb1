package sim

import "fabsh/mad"

// Components of records, by their bits in a ComponentMask.
var (
	pathDGIDMask       = components(mad.AttrPathRecord, "dgid")
	pathDLIDMask       = components(mad.AttrPathRecord, "dlid")
	pathLifeMask       = components(mad.AttrPathRecord, "packet_life_time")
	pathMTUMask        = components(mad.AttrPathRecord, "mtu")
	pathNumbPathMask   = components(mad.AttrPathRecord, "numb_path")
	pathPKeyMask       = components(mad.AttrPathRecord, "p_key")
	pathRateMask       = components(mad.AttrPathRecord, "rate")
	pathReversibleMask = components(mad.AttrPathRecord, "reversible")
	pathSGIDMask       = components(mad.AttrPathRecord, "sgid")
	pathSLIDMask       = components(mad.AttrPathRecord, "slid")
	pathSelectLifeMask = components(mad.AttrPathRecord, "packet_life_time_selector")
	pathSelectMTUMask  = components(mad.AttrPathRecord, "mtu_selector")
	pathSelectRateMask = components(mad.AttrPathRecord, "rate_selector")
	pathServiceIDMask  = components(mad.AttrPathRecord, "service_id")

	joinMask       = components(mad.AttrMCMemberRecord, "mgid", "port_gid", "join_state")
	createMask     = joinMask | components(mad.AttrMCMemberRecord, "q_key", "tclass", "p_key", "flow_label", "sl")
	guidRecordMask = components(mad.AttrGUIDInfoRecord, "lid", "block_num")
	lidMask        = components(mad.AttrNodeRecord, "lid")
)

func components(a *mad.Attribute, scripts ...string) (mask uint64) {
	for _, s := range scripts {
		mask |= a.Field(s).Mask()
	}
	return mask
}

func multiPathMask(script string) uint64 { return components(mad.AttrMultiPathRecord, script) }

// firstGUID is the first GUID that the subnet administrator chooses.
const firstGUID = mad.GUID(0x0014_0500_0000_0001)

// Fields of PortInfo and SwitchInfo.
var (
	portInfoKeyField           = mad.AttrPortInfo.Field("m_key")
	portInfoLeaseField         = mad.AttrPortInfo.Field("m_key_lease_period")
	portInfoProtectField       = mad.AttrPortInfo.Field("m_key_protect_bits")
	portInfoSMLIDField         = mad.AttrPortInfo.Field("master_sm_lid")
	portInfoViolationsField    = mad.AttrPortInfo.Field("m_key_violations")
	switchInfoStateChangeField = mad.AttrSwitchInfo.Field("port_state_change")
)
