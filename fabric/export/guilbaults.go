package export

import (
	"fmt"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// signals are the signalling rates of a lane in Gb/s, as ibqueryerrors writes them
// (rdma-core libibmad/dump.c, mad_dump_linkspeed and mad_dump_linkspeedext).
var signals = map[string]float64{
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
		if speed, ok := signals[p.Speed()]; ok {
			s.Add("infiniband_speed", Gauge, "Signalling rate of a lane, in Gb/s", l, speed)
		}
		if width, err := strconv.Atoi(strings.TrimSuffix(p.Width(), "x")); err == nil {
			s.Add("infiniband_width", Gauge, "Lanes of the link", l, float64(width))
		}
	}
}

// guilbaultsLabels are those of a port; false: its link is not active. The local
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
	labels := lazily(func() Labels { return s.Labels(pairs...) })
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
