package export

import (
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// counter is a counter of ports with its names in other programs: treydock's
// (collectors/switch.go, hca.go) and SckyzO's (collectors/port_counters.go), behind
// infiniband_switch_ or infiniband_hca_; and guilbaults's (infiniband-exporter.py,
// counter_info), behind infiniband_. Empty: it has none there.
type counter struct {
	name          string // audit.Counter's
	port, portNew string // treydock's; SckyzO's where it is another
	guilbaults    string
	words         bool // guilbaults counts it in units of 4 bytes
	help          string
}

// isTraffic reports whether c counts data, packets or waiting, not errors.
func (c *counter) isTraffic() bool {
	return strings.HasSuffix(c.name, "_bytes") || strings.HasSuffix(c.name, "_pkts") || c.name == "port_xmit_wait"
}

// counters are those that the dialects know, in the order of PortCounters.
var counters = []counter{
	{name: "port_xmit_bytes", port: "port_transmit_data_bytes_total", guilbaults: "portxmitdata_total", words: true, help: "Data sent"},
	{name: "port_rcv_bytes", port: "port_receive_data_bytes_total", guilbaults: "portrcvdata_total", words: true, help: "Data received"},
	{name: "port_xmit_pkts", port: "port_transmit_packets_total", guilbaults: "portxmitpkts_total", help: "Packets sent"},
	{name: "port_rcv_pkts", port: "port_receive_packets_total", guilbaults: "portrcvpkts_total", help: "Packets received"},
	{name: "port_unicast_xmit_pkts", port: "port_unicast_transmit_packets_total", guilbaults: "portunicastxmitpkts_total", help: "Unicast packets sent"},
	{name: "port_unicast_rcv_pkts", port: "port_unicast_receive_packets_total", guilbaults: "portunicastrcvpkts_total", help: "Unicast packets received"},
	{name: "port_multicast_xmit_pkts", port: "port_multicast_transmit_packets_total", guilbaults: "portmulticastxmitpkts_total", help: "Multicast packets sent"},
	{name: "port_multicast_rcv_pkts", port: "port_multicast_receive_packets_total", guilbaults: "portmulticastrcvpkts_total", help: "Multicast packets received"},
	{name: "symbol_error_counter", port: "port_symbol_error_total", guilbaults: "symbolerrorcounter_total", help: "Minor link errors of one or more lanes; with FEC, only those that it did not correct"},
	{name: "link_error_recovery_counter", port: "port_link_error_recovery_total", guilbaults: "linkerrorrecoverycounter_total", help: "Times the link recovered from errors"},
	{name: "link_downed_counter", port: "port_link_downed_total", guilbaults: "linkdownedcounter_total", help: "Times the link went down"},
	{name: "port_rcv_errors", port: "port_receive_errors_total", guilbaults: "portrcverrors_total", help: "Packets received with an error"},
	{name: "port_rcv_remote_physical_errors", port: "port_receive_remote_physical_errors_total", guilbaults: "portrcvremotephysicalerrors_total", help: "Packets received that another switch had marked as bad"},
	{name: "port_rcv_switch_relay_errors", port: "port_receive_switch_relay_errors_total", help: "Packets received that could not be forwarded"},
	{name: "port_xmit_discards", port: "port_transmit_discards_total", guilbaults: "portxmitdiscards_total", help: "Packets to be sent that were dropped"},
	{name: "port_xmit_constraint_errors", port: "port_transmit_constraint_errors_total", guilbaults: "portxmitconstrainterrors_total", help: "Packets not sent because of their partition"},
	{name: "port_rcv_constraint_errors", port: "port_receive_constraint_errors_total", guilbaults: "portrcvconstrainterrors_total", help: "Packets received and dropped because of their partition"},
	{name: "local_link_integrity_errors", port: "port_local_link_integrity_errors_total", guilbaults: "locallinkintegrityerrors_total", help: "Times local physical errors crossed their threshold"},
	{name: "excessive_buffer_overrun_errors", port: "port_excessive_buffer_overrun_errors_total", guilbaults: "excessivebufferoverrunerrors_total", help: "Times buffers overran in consecutive flow control periods"},
	{name: "vl15_dropped", port: "port_vl15_dropped_total", guilbaults: "vl15dropped_total", help: "Subnet management packets dropped for lack of buffers"},
	{name: "port_xmit_wait", port: "port_transmit_wait_total", guilbaults: "portxmitwait_total", help: "Ticks in which data waited and none could be sent; the length of a tick depends on the device"},
	{name: "qp1_dropped", port: "port_qp1_dropped_total", help: "Packets for queue pair 1 dropped"},
	{name: "port_local_physical_errors", port: "port_local_physical_errors_total", guilbaults: "portlocalphysicalerrors_total", help: "Packets received with physical errors of this link"},
	{name: "port_malformed_packet_errors", port: "port_malformed_packet_errors_total", guilbaults: "portmalformedpkterrors_total", help: "Malformed packets received"},
	{name: "port_buffer_overrun_errors", port: "port_buffer_overrun_errors_total", guilbaults: "portbufferoverrunerrors_total", help: "Packets received and dropped because buffers were full"},
	{name: "port_dlid_mapping_errors", port: "port_dli_mapping_errors_total", portNew: "port_dlid_mapping_errors_total", guilbaults: "portdlidmappingerrors_total", help: "Packets received for a LID without a port"},
	{name: "port_vl_mapping_errors", port: "port_vl_mapping_errors_total", help: "Packets received whose service level has no lane"},
	{name: "port_looping_errors", port: "port_looping_errors_total", help: "Packets received that would have left through the same port"},
	{name: "port_inactive_discards", guilbaults: "portinactivediscards_total", help: "Packets dropped because the port was not active"},
	{name: "port_neighbor_mtu_discards", guilbaults: "portneighbormtudiscards_total", help: "Packets dropped because they were longer than the neighbour's MTU"},
	{name: "port_sw_lifetime_limit_discards", guilbaults: "portswlifetimelimitdiscards_total", help: "Packets dropped because they were too long in the switch"},
	{name: "port_sw_hoq_lifetime_limit_discards", guilbaults: "portswhoqlifetimelimitdiscards_total", help: "Packets dropped because they were too long at the head of a queue"},
}

// PortMetrics is what was read of the counters of a port.
type PortMetrics struct {
	*fabric.Port
	// Value is a counter of audit.Counters by name; false: unknown.
	Value func(name string) (uint64, bool)
	// BER is the bit error rate, and the window in seconds that it is of; nil: it is
	// not known.
	BER      *BER
	Answered bool
	TimedOut bool // why it did not answer
}

// BER is a bit error rate of a link.
type BER struct{ Rate, Window float64 }

// PortOf is a port as a run of audits read it.
func PortOf(r *audit.PortRates) PortMetrics {
	p := PortMetrics{Port: r.Port, Answered: r.Answered(), TimedOut: r.TimedOut}
	if !p.Answered {
		return p
	}
	p.Value = r.Read.Value // not r, whose windows need earlier reads
	if rate, window, ok := r.BER(); ok {
		p.BER = &BER{rate, window.Seconds()}
	}
	return p
}
