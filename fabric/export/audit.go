package export

import (
	"cmp"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

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
		wanted[r.Attribute] += r.Asked - r.Unsupported
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
