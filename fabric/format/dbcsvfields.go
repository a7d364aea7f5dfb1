package format

import (
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// dbAttribute is an attribute whose fields are columns of a section.
type dbAttribute struct {
	section string
	attr    *mad.Attribute
	columns string // column=field, of all that must be known; field alone where they are spelt alike
	maybe   string // of those that older files, or some nodes, do not have
}

// dbAttributes are all of them. The names of the columns are those of real files: of
// PORTS and SWITCHES as readers of ibdiagnet's data base declare them, of PM_INFO as
// they use them. Speeds are in dbSpeeds.
var dbAttributes = []dbAttribute{
	{"PORTS", mad.AttrPortInfo,
		"GIDPrfx=gid_prefix MSMLID=master_sm_lid LID=lid CapMsk=capability_mask M_KeyLeasePeriod=m_key_lease_period DiagCode=diag_code " +
			"LinkWidthActv=link_width_active LinkWidthSup=link_width_supported LinkWidthEn=link_width_enabled LocalPortNum=local_port_num LMC=lmc " +
			"MKeyProtBits=m_key_protect_bits LinkDownDefState=link_down_default_state PortPhyState=port_physical_state PortState=port_state " +
			"VLArbHighCap=vl_arbitration_high_cap VLHighLimit=vl_high_limit VLArbLowCap=vl_arbitration_low_cap VLCap=vl_cap MSMSL=master_sm_sl " +
			"NMTU=neighbor_mtu MTUCap=mtu_cap OpVLs=operational_vls HoQLife=hoq_life VLStallCnt=vl_stall_count " +
			"FilterRawOutb=filter_raw_outbound FilterRawInb=filter_raw_inbound PartEnfOutb=partition_enforcement_outbound PartEnfInb=partition_enforcement_inbound " +
			"PKeyViolations=p_key_violations MKeyViolations=m_key_violations QKeyViolations=q_key_violations SubnTmo=subnet_time_out GUIDCap=guid_cap " +
			"OverrunErrs=overrun_errors LocalPhyError=local_phy_errors RespTimeValue=resp_time_value LinkSpeedActv= LinkSpeedSup= LinkSpeedEn=",
		"InitType=init_type InitTypeReply=init_type_reply MulticastPKeyTrapSuppressionEnabled=multicast_p_key_trap_suppression_enabled ClientReregister=client_reregister " +
			"MaxCreditHint=max_credit_hint LinkRoundTripLatency=link_round_trip_latency CapMsk2=capability_mask2"},
	{"SWITCHES", mad.AttrSwitchInfo,
		"LinearFDBCap=linear_fdb_cap RandomFDBCap=random_fdb_cap MCastFDBCap=multicast_fdb_cap LinearFDBTop=linear_fdb_top DefPort=default_port " +
			"DefMCastPriPort=default_multicast_primary_port DefMCastNotPriPort=default_multicast_not_primary_port LifeTimeValue=life_time_value PortStateChange=port_state_change " +
			"LidsPerPort=lids_per_port PartEnfCap=partition_enforcement_cap InbEnfCap=inbound_enforcement_cap OutbEnfCap=outbound_enforcement_cap " +
			"FilterRawInbCap=filter_raw_packet_inbound_cap FilterRawOutbCap=filter_raw_packet_outbound_cap ENP0=enhanced_port0",
		"OptimizedSLVLMapping=optimized_sl_to_vl_mapping_programming MCastFDBTop=multicast_fdb_top"},
	{"PM_INFO", mad.AttrPortCounters,
		"SymbolErrorCounter LinkErrorRecoveryCounter LinkDownedCounter PortRcvErrors PortRcvRemotePhysicalErrors PortRcvSwitchRelayErrors PortXmitDiscards " +
			"PortXmitConstraintErrors PortRcvConstraintErrors LocalLinkIntegrityErrors ExcessiveBufferOverrunErrors VL15Dropped " +
			"PortXmitData PortRcvData PortXmitPkts PortRcvPkts PortXmitWait",
		"QP1Dropped"},
	{"PM_INFO", mad.AttrPortCountersExtended,
		"PortXmitDataExtended=port_xmit_data PortRcvDataExtended=port_rcv_data PortXmitPktsExtended=port_xmit_pkts PortRcvPktsExtended=port_rcv_pkts " +
			"PortUniCastXmitPkts=port_unicast_xmit_pkts PortUniCastRcvPkts=port_unicast_rcv_pkts PortMultiCastXmitPkts=port_multicast_xmit_pkts PortMultiCastRcvPkts=port_multicast_rcv_pkts " +
			"SymbolErrorCounterExt=symbol_error_counter LinkErrorRecoveryCounterExt=link_error_recovery_counter LinkDownedCounterExt=link_downed_counter PortRcvErrorsExt=port_rcv_errors " +
			"PortRcvRemotePhysicalErrorsExt=port_rcv_remote_physical_errors PortRcvSwitchRelayErrorsExt=port_rcv_switch_relay_errors PortXmitDiscardsExt=port_xmit_discards " +
			"PortXmitConstraintErrorsExt=port_xmit_constraint_errors PortRcvConstraintErrorsExt=port_rcv_constraint_errors LocalLinkIntegrityErrorsExt=local_link_integrity_errors " +
			"ExcessiveBufferOverrunErrorsExt=excessive_buffer_overrun_errors VL15DroppedExt=vl15_dropped PortXmitWaitExt=port_xmit_wait QP1DroppedExt=qp1_dropped", ""},
	{"PM_INFO", mad.AttrPortRcvErrorDetails,
		"PortLocalPhysicalErrors PortMalformedPacketErrors PortBufferOverrunErrors PortDLIDMappingErrors PortVLMappingErrors PortLoopingErrors", ""},
	{"PM_INFO", mad.AttrPortXmitDiscardDetails,
		"PortInactiveDiscards PortNeighborMTUDiscards PortSwLifetimeLimitDiscards PortSwHOQLifetimeLimitDiscards", ""},
}

// dbBlock is an attribute in a section of a file.
type dbBlock struct {
	attr   *mad.Attribute
	fields []dbField
	whole  bool // the section has all columns that must be known
	data   []byte
}

type dbField struct {
	column string
	field  *mad.Field // nil: it is put together of others
	must   bool
}

// blockOf finds the columns of an attribute. Those that are not there are what the file
// lacks.
func (d *dbReader) blockOf(a *dbAttribute) dbBlock {
	b := dbBlock{attr: a.attr, whole: true, data: make([]byte, a.attr.Size)}
	var missing []string
	for i, list := range []string{a.columns, a.maybe} {
		for word := range strings.FieldsSeq(list) {
			column, field, apart := strings.Cut(word, "=")
			if !apart {
				field = mad.SnakeName(column)
			}
			if _, ok := d.columns[column]; ok {
				b.fields = append(b.fields, dbField{column, a.attr.Field(field), i == 0})
			} else if i == 0 {
				missing = append(missing, column)
			}
		}
	}
	if len(missing) > 0 {
		b.whole = false
		d.lacks["has no "+a.attr.Name+": section "+a.section+" has no column "+some(missing)]++
	}
	return b
}

// attribute is block i of the present line, valid until the next; nil where the file
// does not have all of it.
func (d *dbReader) attribute(i int) []byte {
	b := &d.blocks[i]
	if !b.whole || d.err != nil {
		return nil
	}
	clear(b.data)
	for _, f := range b.fields {
		v, known, ok := dbNumber(d.cell(f.column))
		switch {
		case !ok, known && f.field != nil && v > f.field.Max():
			d.fail("a number that %s of %s can have in column %s, not %q", mad.SnakeName(f.column), b.attr.Name, f.column, fabric.Clip(string(d.cell(f.column))))
			return nil
		case known && f.field != nil:
			f.field.SetUint(b.data, v)
		case !known && f.must:
			d.lacks["does not know "+f.column+", so has no "+b.attr.Name+" of that port or node"]++
			return nil
		}
	}
	return b.data
}

// dbSpeeds puts the speeds of a port in its PortInfo. A mask of ibdiagnet has four
// bytes, from the lowest: LinkSpeed, LinkSpeedExt, Mellanox' own (FDR10, EDR20),
// LinkSpeedExt2 (ibutils2 ibdm/Fabric.h, IBLinkSpeed). fdr10: that is active.
func dbSpeeds(d *dbReader, data []byte) (fdr10 bool) {
	for _, c := range []struct{ column, suffix string }{{"LinkSpeedActv", "active"}, {"LinkSpeedSup", "supported"}, {"LinkSpeedEn", "enabled"}} {
		v, _, _ := dbNumber(d.cell(c.column))
		if v >= 1<<32 {
			d.fail("four bytes of speeds in column %s, not %q", c.column, fabric.Clip(string(d.cell(c.column))))
			return false
		}
		if c.suffix == "active" && v>>16&1 != 0 {
			fdr10, v = true, v|uint64(mad.LinkSpeedQDR)
		}
		for _, part := range []struct {
			name   string
			speeds uint64
		}{{"link_speed_" + c.suffix, v & 0xff}, {"link_speed_ext_" + c.suffix, v >> 8 & 0xff}, {"link_speed_ext_" + c.suffix + "2", v >> 24}} {
			f := mad.AttrPortInfo.Field(part.name)
			if part.speeds > f.Max() {
				d.fail("speeds that PortInfo has in column %s, not %q", c.column, fabric.Clip(string(d.cell(c.column))))
				return false
			}
			f.SetUint(data, part.speeds)
		}
	}
	return fdr10
}
