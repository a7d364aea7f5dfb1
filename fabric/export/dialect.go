package export

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// Dialect is the choice of names, labels and units of metrics.
type Dialect string

// The dialects.
const (
	SckyzO     Dialect = "" // SckyzO/infiniband_exporter 2.0, which has most
	Treydock   Dialect = "treydock"
	Guilbaults Dialect = "guilbaults"
)

// Dialects are all that have a name.
var Dialects = []string{string(Treydock), string(Guilbaults)}

// ParseDialect reads the name of a dialect; empty: SckyzO's.
func ParseDialect(name string) (Dialect, error) {
	switch d := Dialect(name); d {
	case SckyzO, Treydock, Guilbaults:
		return d, nil
	}
	return "", fmt.Errorf("unknown dialect %q%s; supported: %s", name, fabric.DidYouMean(name, Dialects), strings.Join(Dialects, " or "))
}

// Fabric adds what is known of nodes and links.
func (d Dialect) Fabric(s *MetricSet, f *fabric.Fabric) {
	if !s.collects(CollectNodes) {
		return
	}
	if d == Guilbaults {
		guilbaultsLinks(s, f)
	} else {
		d.treydockNodes(s, f)
	}
	links(s, f)
}

// Counters adds what was read of the counters of ports.
func (d Dialect) Counters(s *MetricSet, ports []PortMetrics) {
	c := &columns{set: s, traffic: s.collects(CollectTraffic), errors: s.collects(CollectErrors), nonzero: s.selection != nil && s.selection.Nonzero}
	if !c.traffic && !c.errors {
		return
	}
	for i := range ports {
		switch p := &ports[i]; {
		case !s.selection.node(p.Node()):
		case p.Node().IsSwitch():
			c.switches++
		default:
			c.others++
		}
	}
	for i := range ports {
		switch p := &ports[i]; {
		case !s.selection.node(p.Node()):
		case d == Guilbaults:
			guilbaultsCounters(c, p)
		default:
			d.treydockCounters(c, p)
		}
	}
	for i := range ports {
		if c.errors && s.selection.node(ports[i].Node()) {
			ber(s, &ports[i])
		}
	}
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

// maxFindings is how many findings have a series of their own; all are counted.
const maxFindings = 1000

// Audit adds a run of audits: the fabric, the counters that it read, what it found,
// and what it covered. totals belong to a program that runs them repeatedly;
// nil: the run stands for itself.
func (d Dialect) Audit(s *MetricSet, r *audit.Report, totals *Totals) error {
	return d.AuditPorts(s, r, PortsOf(r), totals)
}

// PortsOf are the ports whose counters a run read.
func PortsOf(r *audit.Report) []PortMetrics {
	ports := make([]PortMetrics, len(r.Rates))
	for i := range r.Rates {
		ports[i] = PortOf(&r.Rates[i])
	}
	return ports
}

// AuditPorts is Audit for a caller that has what PortsOf returns.
func (d Dialect) AuditPorts(s *MetricSet, r *audit.Report, ports []PortMetrics, totals *Totals) error {
	if r.Model != nil {
		d.Fabric(s, r.Model)
	}
	d.Counters(s, ports)
	took := r.Ended.Sub(r.Began)
	d.run(s, ports, r.Answered(), r.Began, took, totals)

	if !s.collects(CollectAudit) {
		return nil
	}
	if !s.selection.Whole() {
		return d.Metrics(s, r.Metrics)
	}
	findings(s, r.Findings)
	coverage(s, &r.Coverage)
	ended := float64(r.Ended.UnixMilli()) / 1e3
	s.Add("fabsh_audit_timestamp_seconds", Gauge, "When the run ended, in Unix time", s.Labels(), ended)
	if r.Answered() {
		s.Add("fabsh_audit_last_success_timestamp_seconds", Gauge, "When the last run ended in which all requests were answered, in Unix time", s.Labels(), ended)
	}
	s.Add("fabsh_audit_duration_seconds", Gauge, "How long the run took", s.Labels(), took.Seconds())
	return d.Metrics(s, r.Metrics)
}

// Metrics adds the metrics that scripts made.
func (d Dialect) Metrics(s *MetricSet, list []audit.Metric) error {
	for i := range list {
		m := &list[i]
		if !s.selection.metric(m) {
			continue
		}
		kind := Gauge
		if m.IsCounter() {
			kind = Counter
		}
		if err := s.AddOnce(m.Name, kind, m.Help, s.Labels(d.scriptLabels(m)...), m.Value); err != nil {
			return err
		}
	}
	return nil
}

// columns are the metrics of counters, found once: of large fabrics there are
// millions of values.
type columns struct {
	set              *MetricSet
	switches, others int  // how many ports there are of these
	traffic, errors  bool // which counters are selected
	nonzero          bool // leave out error counters that are 0
	words            bool // data in units of 4 bytes
	families         map[column]*family
}

// column is a counter with a name in front.
type column struct {
	counter int
	prefix  string
	renamed bool // SckyzO's name
}

// has reports whether a counter is selected.
func (c *columns) has(of *counter) bool {
	if of.isTraffic() {
		return c.traffic
	}
	return c.errors
}

// add adds the value of a counter of a port, unless it is not wanted.
func (c *columns) add(f *family, of *counter, p *PortMetrics, labels func() Labels) {
	if f.left && (!c.set.counting || !c.nonzero) {
		f.counted++
		return
	}
	v, ok := p.Value(of.name)
	if !ok || v == 0 && c.nonzero && !of.isTraffic() {
		return
	}
	if of.words && c.words {
		v /= 4
	}
	f.add(labels(), float64(v))
}

// of is the metric of a counter. name is only called where it is new.
func (c *columns) of(k column, name func() (name, help string), isSwitch bool) *family {
	f := c.families[k]
	if f == nil {
		if c.families == nil {
			c.families = map[column]*family{}
		}
		text, help := name()
		c.set.collector = CollectErrors
		if counters[k.counter].isTraffic() {
			c.set.collector = CollectTraffic
		}
		f = c.set.family(text, Counter, help)
		n := c.others
		if isSwitch {
			n = c.switches
		}
		if !f.left && !c.nonzero {
			f.values = slices.Grow(f.values, n)
		}
		c.families[k] = f
	}
	return f
}

// run adds the metrics of a run that read ports; complete: all its requests
// were answered.
func (d Dialect) run(s *MetricSet, ports []PortMetrics, complete bool, began time.Time, took time.Duration, totals *Totals) {
	if !s.collects(CollectRun) {
		return
	}
	if d == Guilbaults {
		if !s.selection.Whole() {
			return
		}
		ok := 0.0
		if complete {
			ok = 1
		}
		s.Add("infiniband_scrape_ok", Gauge, "1: all requests were answered", s.Labels(), ok)
		s.Add("infiniband_ibqueryerrors_duration_seconds", Gauge, "How long reading the counters took, with the rest of the run", s.Labels(), took.Seconds())
		s.Add("infiniband_scrape_duration_seconds", Gauge, "How long the run took", s.Labels(), took.Seconds())
		return
	}
	d.treydockRun(s, ports, began, took, totals)
}

// findings adds the number of findings of each check, and each finding, the most severe
// first, up to maxFindings.
func findings(s *MetricSet, found []audit.Finding) {
	type kind struct{ check, severity string }
	number := map[kind]int{}
	for i := range found {
		number[kind{found[i].Check, found[i].Severity.String()}]++
	}
	for k, n := range number {
		s.Add("fabsh_audit_findings_total", Untyped, "Findings of the run, including those without a series of their own", s.Labels("check", k.check, "severity", k.severity), float64(n))
	}
	s.Add("fabsh_audit_findings_left_out", Gauge, "Findings of the run without a series of their own", s.Labels(), float64(max(0, len(found)-maxFindings)))
	order := slices.Clone(found)
	slices.SortStableFunc(order, func(a, b audit.Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	for i := range order[:min(len(order), maxFindings)] {
		f := &order[i]
		name, peer := f.Subject.Name(), ""
		if f.Subject.Kind == audit.KindLink {
			name, peer = f.Subject.Ends[0].Label(), f.Subject.Ends[1].Label()
		}
		s.Add("fabsh_audit_finding", Gauge, "1: the finding exists", s.Labels("id", f.ID(), "check", f.Check, "severity", f.Severity.String(), "subject", name, "peer", peer), 1)
	}
}

// coverage adds the share of requests that were answered, by attribute. What
// agents do not have was not wanted.
func coverage(s *MetricSet, c *audit.Coverage) {
	wanted, answered := map[string]int{}, map[string]int{}
	for _, r := range c.Rows() {
		wanted[r.Attribute] += r.Requests - r.Unsupported
		answered[r.Attribute] += r.Answered
	}
	for attribute, n := range wanted {
		if n > 0 {
			s.Add("fabsh_audit_coverage_ratio", Gauge, "Share of requests that were answered", s.Labels("attribute", attribute), float64(answered[attribute])/float64(n))
		}
	}
}

// links adds what no other exporter has: the states of ports, and the number of nodes.
func links(s *MetricSet, f *fabric.Fabric) {
	types := []struct {
		kind mad.NodeType
		word string
	}{{mad.NodeTypeCA, "ca"}, {mad.NodeTypeRouter, "router"}, {mad.NodeTypeSwitch, "switch"}}
	if !s.selection.Whole() {
		types = nil
	}
	for _, t := range types {
		s.Add("fabsh_fabric_nodes", Gauge, "Nodes of the fabric", s.Labels("type", t.word), float64(len(f.OfType(t.kind))))
	}
	ports := f.Ports()
	for i := range ports {
		p := &ports[i]
		if !s.selection.node(p.Node()) {
			continue
		}
		if p.Info() != nil && (p.Num() > 0 || !p.Node().IsSwitch()) {
			s.Add("fabsh_link_state", Gauge, "PortState: 1 down, 2 init, 3 armed, 4 active", s.Labels("guid", guidOf(p), "port", strconv.Itoa(p.Num())), float64(p.State()))
		}
	}
}

// ber adds the bit error rate of the link at a port. Symbol errors are errors that
// FEC, where the link has it, did not correct.
func ber(s *MetricSet, p *PortMetrics) {
	if p.BER == nil {
		return
	}
	l := s.Labels("guid", guidOf(p.Port), "port", strconv.Itoa(p.Num()), "kind", "symbol")
	s.Add("fabsh_link_ber", Gauge, "Bit error rate in the window: symbol errors received per bit that the link carries", l, p.BER.Rate)
	s.Add("fabsh_link_ber_window_seconds", Gauge, "Length of the window in seconds", l, p.BER.Window)
}

// trimName returns a name as the other exporters have it: without blanks around.
func trimName(name string) string { return strings.TrimSpace(name) }

// guidOf is the GUID of a port, of a port of a switch the GUID of port 0; where a file has
// none, the node's.
func guidOf(p *fabric.Port) string {
	if g := p.GUID(); g != 0 {
		return g.String()
	}
	return p.Node().GUID().String()
}

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

// counters are the counters that the dialects know, in the order of PortCounters.
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

// guilbaultsRates are the signalling rates of a lane in Gb/s, as ibqueryerrors writes them
// (rdma-core libibmad/dump.c, mad_dump_linkspeed and mad_dump_linkspeedext).
var guilbaultsRates = map[string]float64{
	"sdr": 2.5, "ddr": 5, "qdr": 10, "fdr10": 10, "fdr": 14.0625, "edr": 25.78125, "hdr": 53.125, "ndr": 106.25, "xdr": 212.5,
}

// guilbaultsLinks adds width and speed of links (infiniband-exporter.py,
// gauge_info and active_link_pattern: active links alone, and no port 0).
func guilbaultsLinks(s *MetricSet, f *fabric.Fabric) {
	ports := f.Ports()
	for i := range ports {
		p := &ports[i]
		labels, ok := guilbaultsLabels(p)
		if !ok || !s.selection.node(p.Node()) {
			continue
		}
		l := s.Labels(labels...)
		if speed, ok := guilbaultsRates[p.Speed()]; ok {
			s.Add("infiniband_speed", Gauge, "Signalling rate of a lane, in Gb/s", l, speed)
		}
		if width, err := strconv.Atoi(strings.TrimSuffix(p.Width(), "x")); err == nil {
			s.Add("infiniband_width", Gauge, "Lanes of the link", l, float64(width))
		}
	}
}

// guilbaultsLabels are the labels of a port; false: its link is not active. The local
// GUID has no leading zeros, and the remote one has (rdma-core
// infiniband-diags/ibqueryerrors.c, print_results and print_port_config).
func guilbaultsLabels(p *fabric.Port) ([]string, bool) {
	peer := p.Peer()
	component := "ca"
	if p.Node().IsSwitch() {
		component = "switch"
	}
	if peer == nil || p.Num() == 0 || p.Info() != nil && p.State() != mad.PortStateActive || subject(p.Node()) == "" {
		return nil, false
	}
	guid := p.GUID()
	if guid == 0 {
		guid = p.Node().GUID()
	}
	return []string{
		"component", component, "local_name", p.Node().Name(), "local_guid", fmt.Sprintf("0x%x", uint64(guid)), "local_port", strconv.Itoa(p.Num()),
		"remote_guid", guidOf(peer), "remote_port", strconv.Itoa(peer.Num()), "remote_name", peer.Node().Name(),
	}, true
}

// guilbaultsCounters adds the counters of a port, or that reading them failed.
func guilbaultsCounters(at *columns, p *PortMetrics) {
	s := at.set
	if p.Value == nil {
		s.Add("infiniband_query_failed_error", Gauge, "1: reading the counters of a port failed",
			s.Labels("counter_name", "PortCounters", "local_name", p.Node().Name(), "lid", lidOf(p.Port), "port", strconv.Itoa(p.Num())), 1)
		if p.TimedOut {
			s.Add("infiniband_mad_rpc_failed_error", Gauge, "1: a request to this address timed out", s.Labels("portid", "Lid "+lidOf(p.Port)), 1)
		}
		return
	}
	pairs, ok := guilbaultsLabels(p.Port)
	if !ok {
		return
	}
	at.words = true
	labels := onceLabels(func() Labels { return s.Labels(pairs...) })
	for i := range counters {
		c := &counters[i]
		if c.guilbaults == "" || !at.has(c) {
			continue
		}
		at.add(at.of(column{counter: i}, func() (string, string) {
			if c.words {
				return "infiniband_" + c.guilbaults, c.help + ", in units of 4 bytes"
			}
			return "infiniband_" + c.guilbaults, c.help
		}, true), c, p, labels)
	}
}
