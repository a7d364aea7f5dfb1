package mad

// CounterFile is a file in which Linux shows a counter of a port of the host, in the
// directory counters of the port, and the field from which the kernel reads it.
type CounterFile struct {
	Name  string // "symbol_error"
	Attr  *Attribute
	Field string
}

// CounterFiles are all of them (linux drivers/infiniband/core/sysfs.c, pma_attrs_ext).
var CounterFiles = []CounterFile{
	{"symbol_error", AttrPortCounters, "symbol_error_counter"},
	{"link_error_recovery", AttrPortCounters, "link_error_recovery_counter"},
	{"link_downed", AttrPortCounters, "link_downed_counter"},
	{"port_rcv_errors", AttrPortCounters, "port_rcv_errors"},
	{"port_rcv_remote_physical_errors", AttrPortCounters, "port_rcv_remote_physical_errors"},
	{"port_rcv_switch_relay_errors", AttrPortCounters, "port_rcv_switch_relay_errors"},
	{"port_xmit_discards", AttrPortCounters, "port_xmit_discards"},
	{"port_xmit_constraint_errors", AttrPortCounters, "port_xmit_constraint_errors"},
	{"port_rcv_constraint_errors", AttrPortCounters, "port_rcv_constraint_errors"},
	{"local_link_integrity_errors", AttrPortCounters, "local_link_integrity_errors"},
	{"excessive_buffer_overrun_errors", AttrPortCounters, "excessive_buffer_overrun_errors"},
	{"VL15_dropped", AttrPortCounters, "vl15_dropped"},
	{"port_xmit_wait", AttrPortCounters, "port_xmit_wait"},
	{"port_xmit_data", AttrPortCountersExtended, "port_xmit_data"},
	{"port_rcv_data", AttrPortCountersExtended, "port_rcv_data"},
	{"port_xmit_packets", AttrPortCountersExtended, "port_xmit_pkts"},
	{"port_rcv_packets", AttrPortCountersExtended, "port_rcv_pkts"},
	{"unicast_xmit_packets", AttrPortCountersExtended, "port_unicast_xmit_pkts"},
	{"unicast_rcv_packets", AttrPortCountersExtended, "port_unicast_rcv_pkts"},
	{"multicast_xmit_packets", AttrPortCountersExtended, "port_multicast_xmit_pkts"},
	{"multicast_rcv_packets", AttrPortCountersExtended, "port_multicast_rcv_pkts"},
}
