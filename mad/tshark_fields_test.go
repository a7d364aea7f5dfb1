package mad

// seenAs are the fields that tshark (4.0, packet-infiniband.c) calls
// otherwise than infiniband.<attribute>.<component>; two names are the upper
// and lower part of each element, or every other element.
var seenAs = map[string][]string{
	"GUIDInfo.GUIDBlock":                     {"switchinfo.guid"},
	"LinearForwardingTable.PortBlock":        {"linearforwardingtable.port"},
	"LinearForwardingTableRecord.LID":        {"sa.lid"},
	"LinearForwardingTableRecord.BlockNum":   {"sa.blocknum_sixteenbit"},
	"MulticastForwardingTable.PortMaskBlock": {"multicastforwardingtable.portmask"},
	"NodeRecord.LID":                         {"sa.lid"},
	"P_KeyTable.P_KeyBlock":                  {"p_keytable.membershiptype", "p_keytable.p_keybase"},
	"PortInfo.GIDPrefix":                     {"portinfo.guid"},
	"PortInfoRecord.EndportLID":              {"sa.endportlid"},
	"PortInfoRecord.PortNum":                 {"sa.portnum"},
	"SLtoVLMappingTable.SLtoVL":              {"sltovlmappingtable.sltovlhighbits", "sltovlmappingtable.sltovllowbits"},
	"SMInfoRecord.LID":                       {"sa.lid"},
	"SwitchInfo.EnhancedPort0":               {"switchinfo.enhancedportzero"},
	"SwitchInfo.FilterRawPacketInboundCap":   {"switchinfo.filterrawinboundcap"},
	"SwitchInfo.FilterRawPacketOutboundCap":  {"switchinfo.filterrawoutboundcap"},
	"SwitchInfoRecord.LID":                   {"sa.lid"},
	"RMPPHeader.RMPPVersion":                 {"rmpp.rmppversion"},
	"RMPPHeader.RMPPType":                    {"rmpp.rmpptype"},
	"RMPPHeader.RRespTime":                   {"rmpp.rresptime"},
	"RMPPHeader.RMPPFlags":                   {"rmpp.rmppflags"},
	"RMPPHeader.RMPPStatus":                  {"rmpp.rmppstatus"},
	"RMPPHeader.SegmentNumber":               {"rmpp.segmentnumber"},
	"RMPPHeader.PayloadLength":               {"rmpp.payloadlength"},
	"SAHeader.SM_Key":                        {"sa.smkey"},
	"SAHeader.AttributeOffset":               {"sa.attributeoffset"},
	"SAHeader.ComponentMask":                 {"sa.componentmask"},
}

// unseen are the fields that tshark does not know, or shows wrongly, each with
// the two witnesses that take its place. Where an embedded attribute's field
// is unseen only in a record, the name is the record's. Another version of
// tshark may know more.
const unseenBy = "4.0."

var unseen = map[string]string{
	"SwitchInfo.MulticastFDBTop":                    "rdma-core fields.c SwitchInfo, opensm ib_switch_info_t",
	"PortInfo.MulticastP_KeyTrapSuppressionEnabled": "rdma-core fields.c PortInfo, opensm ib_port_info_t",
	// Of these three, tshark and opensm still take all 8 bits from 448 on for
	// reserved. Linux reads the first only; the others follow it in rdma-core.
	"PortInfo.LinkSpeedExtActive2":           "rdma-core fields.c More PortInfo fields (XDR), linux drivers/infiniband/hw/mlx5/mad.c mlx5_query_mad_ifc_port",
	"PortInfo.LinkSpeedExtSupported2":        "rdma-core fields.c More PortInfo fields (XDR); no second source",
	"PortInfo.LinkSpeedExtEnabled2":          "rdma-core fields.c More PortInfo fields (XDR); no second source",
	"PortInfo.CapabilityMask2":               "rdma-core fields.c More PortInfo fields, opensm ib_port_info_t",
	"PortInfo.LinkSpeedExtActive":            "rdma-core fields.c More PortInfo fields, opensm ib_port_info_t",
	"PortInfo.LinkSpeedExtSupported":         "rdma-core fields.c More PortInfo fields, opensm ib_port_info_t",
	"PortInfo.LinkSpeedExtEnabled":           "rdma-core fields.c More PortInfo fields, opensm ib_port_info_t",
	"MulticastForwardingTable.PortMaskBlock": "shown right, but only 16 of 32; opensm ib_mft_record_t, python-rdma SMPMulticastForwardingTable",
	"MlnxExtPortInfo.StateChangeEnable":      "rdma-core fields.c Mellanox ExtendedPortInfo, opensm ib_mlnx_ext_port_info_t",
	"MlnxExtPortInfo.LinkSpeedSupported":     "rdma-core fields.c Mellanox ExtendedPortInfo, opensm ib_mlnx_ext_port_info_t",
	"MlnxExtPortInfo.LinkSpeedEnabled":       "rdma-core fields.c Mellanox ExtendedPortInfo, opensm ib_mlnx_ext_port_info_t",
	"MlnxExtPortInfo.LinkSpeedActive":        "rdma-core fields.c Mellanox ExtendedPortInfo, opensm ib_mlnx_ext_port_info_t",
	"ClassPortInfo.TrapHL":                   "rdma-core fields.c ClassPortInfo, opensm ib_class_port_info_t",
	"NodeRecord.NodeString":                  "opensm ib_node_record_t, python-rdma SANodeRecord",
	"PortInfoRecord.Options":                 "opensm ib_portinfo_record_t, opensm IB_PIR_COMPMASK_OPTIONS; reserved in python-rdma",
	"PathRecord.ServiceID":                   "opensm ib_path_rec_t, linux path_rec_table",
	"PathRecord.QoSClass":                    "opensm ib_path_rec_t, linux path_rec_table",
	"PortCounters.CounterSelect2":            "rdma-core fields.c Port counters, opensm ib_port_counters_t",
	"PortCounters.QP1Dropped":                "opensm ib_port_counters_t, linux ib_pma_portcounters (reserved2); rdma-core has VL15Dropped's offset",
	"PortCounters.PortXmitWait":              "rdma-core fields.c Port counters, linux ib_pma_portcounters",

	"PortCountersExtended.CounterSelect2":               "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.SymbolErrorCounter":           "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.LinkErrorRecoveryCounter":     "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.LinkDownedCounter":            "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.PortRcvErrors":                "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.PortRcvRemotePhysicalErrors":  "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.PortRcvSwitchRelayErrors":     "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.PortXmitDiscards":             "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.PortXmitConstraintErrors":     "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.PortRcvConstraintErrors":      "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.LocalLinkIntegrityErrors":     "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.ExcessiveBufferOverrunErrors": "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.VL15Dropped":                  "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.PortXmitWait":                 "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",
	"PortCountersExtended.QP1Dropped":                   "rdma-core fields.c More PortCountersExtended, opensm ib_port_counters_ext_t",

	// tshark has these at 4 and 4 bits, not 5 and 3.
	"RMPPHeader.RRespTime": "rdma-core fields.c SA RMPP, python-rdma RMPPHeader",
	"RMPPHeader.RMPPFlags": "rdma-core fields.c SA RMPP, python-rdma RMPPHeader",
}
