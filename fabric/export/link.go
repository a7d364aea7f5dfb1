package export

import (
	"strconv"

	"fabsh/fabric"
	"fabsh/mad"
)

// links adds what no incumbent has: the states of ports, and how many nodes there
// are.
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

// ber adds the bit error rate of the link at a port. Symbol errors are those that
// FEC, where the link has it, did not correct.
func ber(s *MetricSet, p *PortMetrics) {
	if p.BER == nil {
		return
	}
	l := s.Labels("guid", guidOf(p.Port), "port", strconv.Itoa(p.Num()), "kind", "symbol")
	s.Add("fabsh_link_ber", Gauge, "Bit error rate in the window: symbol errors received per bit that the link carries", l, p.BER.Rate)
	s.Add("fabsh_link_ber_window_seconds", Gauge, "Length of the window in seconds", l, p.BER.Window)
}
