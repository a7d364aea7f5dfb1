package export

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// treydockRates are the rates of a lane in Gb/s: of signals, and without what the line code
// takes, as the other exporters have them (treydock collectors/ibnetdiscover.go,
// laneRates), except XDR, which is 200 (IBTA roadmap; they have 250).
var treydockRates = map[string][2]float64{
	"sdr": {2.5, 2}, "ddr": {5, 4}, "qdr": {10, 8}, "fdr10": {10.3125, 10}, "fdr": {14.0625, 13.64},
	"edr": {25.78125, 25}, "hdr": {50, 50}, "ndr": {100, 100}, "xdr": {200, 200},
}

// portRates are the rates of a port in bytes per second; false: not known.
func portRates(p *fabric.Port) (raw, effective float64, ok bool) {
	width, err := strconv.Atoi(strings.TrimSuffix(p.Width(), "x"))
	lane, known := treydockRates[p.Speed()]
	if err != nil || !known {
		return 0, 0, false
	}
	bytes := float64(width) * 1e9 / 8
	return lane[0] * bytes, lane[1] * bytes, true
}

// subject is what the dialect calls a node: "switch" or "hca"; "" of routers,
// which it does not know.
func subject(n *fabric.Node) string {
	switch n.Type() {
	case mad.NodeTypeSwitch:
		return "switch"
	case mad.NodeTypeCA:
		return "hca"
	}
	return ""
}

// treydockNodes adds nodes, cables and rates (treydock and SckyzO
// collectors/switch.go, hca.go, Collect). A port of an HCA is a device of its own,
// for it has a GUID of its own.
func (d Dialect) treydockNodes(s *MetricSet, f *fabric.Fabric) {
	tier := f.Tiers()
	nodes := f.Nodes()
	for i := range nodes {
		n := &nodes[i]
		what := subject(n)
		if what == "" || !s.selection.node(n) {
			continue
		}
		if n.IsSwitch() {
			p := n.Port(0)
			s.Add("infiniband_switch_info", Gauge, "1: the switch exists", s.Labels("guid", guidOf(p), "switch", trimName(n.Name()), "lid", lidOf(p)), 1)
		}
		for p := range n.Ports() {
			d.treydockPort(s, p, what, tier)
		}
	}
}

func (d Dialect) treydockPort(s *MetricSet, p *fabric.Port, what string, tier []int) {
	guid, num, name := guidOf(p), strconv.Itoa(p.Num()), trimName(p.Node().Name())
	peer := p.Peer()
	labels := d.portLabels(p)
	if what == "switch" && d != Treydock {
		if up, known := isUp(p); known {
			s.Add("infiniband_switch_port_state", Gauge, "1: the port is connected; 0: it is not", s.Labels(labels...), up)
		}
	}
	if peer == nil {
		return
	}
	rateName, rateLabels := "infiniband_switch_port", labels
	if what == "hca" {
		s.Add("infiniband_hca_info", Gauge, "1: the port of a channel adapter exists", s.Labels("guid", guid, "hca", name, "lid", lidOf(p)), 1)
		rateName, rateLabels = "infiniband_hca_port", []string{"guid", guid, "hca", name}
		if d == Treydock {
			rateName, rateLabels = "infiniband_hca", []string{"guid", guid}
		}
	}
	if raw, effective, ok := portRates(p); ok {
		l := s.Labels(rateLabels...)
		s.Add(rateName+"_rate_bytes_per_second", Gauge, "Data rate of the link", l, effective)
		s.Add(rateName+"_raw_rate_bytes_per_second", Gauge, "Signalling rate of the link", l, raw)
	}
	if d == Treydock {
		labels = []string{"guid", guid, "port", num, what, name}
	}
	if d != Treydock {
		s.Add("fabsh_link_tier_info", Gauge, "1: the tiers of the ends of a link. Tiers are links to the nearest host: 0 a host, 1 a leaf. end is 1 at the end with the lower GUID and port, else 2", s.Labels("guid", guid, "port", num, "tier", tierText(tier[p.Node().ID()]), "peer_tier", tierText(tier[peer.Node().ID()]), "end", endOf(p)), 1)
	}
	labels = append(labels, "uplink", trimName(peer.Node().Name()), "uplink_guid", guidOf(peer), "uplink_type", typeWord(peer.Node()), "uplink_port", strconv.Itoa(peer.Num()), "uplink_lid", lidOf(peer))
	s.Add("infiniband_"+what+"_uplink_info", Gauge, "1: the port at the other end of the cable", s.Labels(labels...), 1)
}

// endOf numbers the ends of the link of p, the same in each sweep.
func endOf(p *fabric.Port) string {
	q := p.Peer()
	if cmp.Or(cmp.Compare(p.Node().GUID(), q.Node().GUID()), cmp.Compare(p.Num(), q.Num())) < 0 {
		return "1"
	}
	return "2"
}

// portLabels are the labels of a port's counters: treydock has GUID and port, SckyzO
// names too.
func (d Dialect) portLabels(p *fabric.Port) []string {
	guid, num, name := guidOf(p), strconv.Itoa(p.Num()), trimName(p.Node().Name())
	switch {
	case d == Treydock:
		return []string{"guid", guid, "port", num}
	case p.Node().IsSwitch():
		return []string{"guid", guid, "port", num, "switch", name}
	}
	at := ""
	if q := p.Peer(); q != nil {
		at = trimName(q.Node().Name())
	}
	return []string{"guid", guid, "hca", name, "port", num, "switch", at}
}

// isUp is 1 of a port that is connected, 0 of one that is not, as SckyzO's exporter takes it
// from ibnetdiscover -p (collectors/ibnetdiscover.go): a port without another end is down,
// whatever its state.
func isUp(p *fabric.Port) (up float64, known bool) {
	switch {
	case p.Peer() != nil:
		return 1, true
	case p.Info() == nil:
		return 0, false
	}
	return 0, true
}

func lidOf(p *fabric.Port) string { return strconv.Itoa(int(p.LID())) }

func tierText(t int) string {
	if t < 0 {
		return ""
	}
	return strconv.Itoa(t)
}

// treydockCounters adds the counters of a port.
func (d Dialect) treydockCounters(at *columns, p *PortMetrics) {
	what := subject(p.Node())
	if what == "" || p.Value == nil {
		return
	}
	labels := onceLabels(func() Labels { return at.set.Labels(d.portLabels(p.Port)...) })
	for i := range counters {
		c := &counters[i]
		if c.port == "" || !at.has(c) {
			continue
		}
		at.add(at.of(column{i, what, false}, func() (string, string) { return "infiniband_" + what + "_" + c.port, c.help }, what == "switch"), c, p, labels)
		if c.portNew != "" && d != Treydock {
			at.add(at.of(column{i, what, true}, func() (string, string) { return "infiniband_" + what + "_" + c.portNew, c.help }, what == "switch"), c, p, labels)
		}
	}
}

// onceLabels returns f, which is called at most once.
func onceLabels(f func() Labels) func() Labels {
	l, made := Labels(0), false
	return func() Labels {
		if !made {
			l, made = f(), true
		}
		return l
	}
}

// withoutSwitchLabel are metrics that in treydock's dialect do not name the switch, and in
// SckyzO's do (collectors/ibswinfo.go, NewIbswinfoCollector).
var withoutSwitchLabel = []string{"uptime_seconds", "power_supply_status_info", "power_supply_dc_power_status_info", "power_supply_fan_status_info", "power_supply_watts", "temperature_celsius", "fan_status_info", "fan_rpm"}

// scriptLabels are the labels of a metric that a script made.
func (d Dialect) scriptLabels(m *audit.Metric) []string {
	name, is := strings.CutPrefix(m.Name, "infiniband_switch_")
	i := slices.Index(m.Labels, "switch")
	if d != Treydock || !is || i < 0 || !slices.Contains(withoutSwitchLabel, name) {
		return m.Labels
	}
	return slices.Delete(slices.Clone(m.Labels), i, i+2)
}

// Totals are what a program that reads again and again has counted since it began.
type Totals struct{ errors, timeouts map[string]float64 } // by collector

// After returns the totals after another run. t does not change.
func (t *Totals) After(r *audit.Report) *Totals {
	next := &Totals{errors: map[string]float64{}, timeouts: map[string]float64{}}
	if t != nil {
		maps.Copy(next.errors, t.errors)
		maps.Copy(next.timeouts, t.timeouts)
	}
	for i := range r.Rates {
		switch p, what := &r.Rates[i], subject(r.Rates[i].Port.Node()); {
		case p.Answered() || what == "":
		case p.TimedOut:
			next.timeouts[what]++
		default:
			next.errors[what]++
		}
	}
	return next
}

// treydockRun adds which devices answered, and when. Where both exporters run once,
// for the textfile collector, these have names of their own.
func (d Dialect) treydockRun(s *MetricSet, ports []PortMetrics, began time.Time, took time.Duration, totals *Totals) {
	type device struct {
		labels           Labels
		up               Labels
		selected         bool
		errors, timeouts float64
	}
	for _, what := range []string{"switch", "hca"} {
		collector := what
		if totals == nil {
			collector += "-runonce"
		}
		devices := map[string]*device{}
		var order []*device
		var errors, timeouts float64
		for i := range ports {
			p := &ports[i]
			if subject(p.Node()) != what {
				continue
			}
			guid := guidOf(p.Port)
			x := devices[guid]
			if x == nil {
				x = &device{selected: s.selection.node(p.Node()), labels: s.Labels("guid", guid, "collector", collector), up: s.Labels("guid", guid, what, trimName(p.Node().Name()))}
				devices[guid] = x
				order = append(order, x)
			}
			switch {
			case p.Answered:
			case p.TimedOut:
				x.timeouts = 1
				timeouts++
			default:
				x.errors = 1
				errors++
			}
		}
		if len(order) == 0 {
			continue
		}
		for _, x := range order {
			if !x.selected {
				continue
			}
			s.Add("infiniband_"+what+"_collect_error", Gauge, "1: a port of the device refused to report its counters", x.labels, x.errors)
			s.Add("infiniband_"+what+"_collect_timeout", Gauge, "1: a port of the device did not answer", x.labels, x.timeouts)
			if d != Treydock {
				s.Add("infiniband_"+what+"_up", Gauge, "1: all ports of the device reported their counters", x.up, 1-max(x.errors, x.timeouts))
			}
		}
		if !s.selection.Whole() {
			continue
		}
		l := s.Labels("collector", collector)
		kind, suffix := Counter, "_total"
		if d == Treydock {
			kind, suffix = Gauge, ""
		} else if totals != nil {
			errors, timeouts = totals.errors[collector], totals.timeouts[collector]
		}
		s.Add("infiniband_exporter_collect_errors"+suffix, kind, "Ports that refused to report their counters", l, errors)
		s.Add("infiniband_exporter_collect_timeouts"+suffix, kind, "Ports that did not answer", l, timeouts)
		s.Add("infiniband_exporter_collector_duration_seconds", Gauge, "How long the run took; switches and HCAs are read in one", l, took.Seconds())
		s.Add("infiniband_exporter_last_execution", Gauge, "When the run began, in Unix time", l, float64(began.Unix()))
	}
}

// typeWord is ibnetdiscover's word for the type of a node.
func typeWord(n *fabric.Node) string {
	switch n.Type() {
	case mad.NodeTypeSwitch:
		return "SW"
	case mad.NodeTypeRouter:
		return "RT"
	}
	return "CA"
}
