package remedy

import (
	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// Metrics returns metrics of a log: the ports that are isolated in f, and how many actions were
// declined.
func (l *Log) Metrics(f *fabric.Fabric) []audit.Metric {
	return []audit.Metric{
		{Name: "fabsh_isolated_ports", Help: "Ports that remedies isolated, and that are still disabled.", Value: float64(len(l.State.Isolated(f)))},
		{Name: "fabsh_remedy_refused_total", Help: "Actions of remedies that were declined, by their own rules or those of fabsh.", Value: float64(l.State.Refused)},
	}
}
