// Package metrics shows values as metrics for Prometheus.
//
//	metrics.go  a value: fabrics, counters, metrics and the numbers of rows
//	shown.go    what a session has shown; values in any format; reports of audits

package audits

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/export"
	"fabsh/mad"
	"go.starlark.net/starlark"
)

// metrics collects values that are shown as metrics of Prometheus. The zero value uses
// SckyzO's names.
type metrics struct {
	set     export.MetricSet
	dialect export.Dialect
	of      string // prefix of the names of rows without a type of their own
}

func newMetrics(format lang.Format, of string) *metrics {
	dialect, _ := format.Dialect()
	return &metrics{dialect: export.Dialect(dialect), of: snake(cmp.Or(of, "value"))}
}

// add adds a value: a fabric and the counters of its ports with the names of the dialect,
// others with their own.
func (m *metrics) add(v starlark.Value) error {
	if f, ok := v.(*topology.Fabric); ok {
		m.dialect.Fabric(&m.set, f.Fabric)
		return nil
	}
	found, rows := false, lang.Elements(v)
	for _, e := range rows {
		switch r := RatesOf(e); {
		case r != nil:
			m.dialect.Counters(&m.set, []export.PortMetrics{export.PortOf(r)})
		case metricOf(e) != nil:
			if err := m.dialect.Metrics(&m.set, []audit.Metric{*metricOf(e)}); err != nil {
				return err
			}
		case m.addCounters(e):
		default:
			has, err := m.addRow(e)
			if err != nil {
				return err
			}
			found = found || has
			continue
		}
		found = true
	}
	if !found && len(rows) > 0 {
		return fmt.Errorf("-o %s: %s has no numbers; use metric(name, value)", lang.FormatProm, rows[0].Type())
	}
	return nil
}

// addCounters adds a record of counters of a known port. It returns false for other values.
func (m *metrics) addCounters(v starlark.Value) bool {
	r, ok := v.(*records.Record)
	if !ok || !slices.ContainsFunc(audit.CounterAttributes[:], func(a *mad.Attribute) bool { return a.ID == r.Attribute.ID && a.Class == r.Attribute.Class }) {
		return false
	}
	p := portOf(r)
	if p == nil {
		return false
	}
	m.dialect.Counters(&m.set, []export.PortMetrics{{Port: p, Answered: true, Value: func(name string) (uint64, bool) {
		scale := uint64(1)
		if base, ok := strings.CutSuffix(name, "_bytes"); ok {
			name, scale = base+"_data", 4
		}
		f := r.Attribute.Field(name)
		if f == nil || f.Count > 1 {
			return 0, false
		}
		v := f.UintAt(r.Data, 0)
		return v * scale, v <= ^uint64(0)/scale
	}}})
	return true
}

// portOf returns the port of a record, nil if unknown.
func portOf(r *records.Record) *fabric.Port {
	of, _ := r.Attr("of")
	num, _ := r.Attr("port")
	if num == nil || num == starlark.None {
		num, _ = r.Attr("port_select")
	}
	n, err := lang.ToInt(num)
	if err != nil {
		return nil
	}
	node, ok := of.(topology.Node)
	if !ok {
		return nil
	}
	return node.Port(n)
}

// isIdentity reports whether a number of that name identifies rows, and is not a measurement.
func isIdentity(name string) bool {
	last := name[strings.LastIndexByte(name, '_')+1:]
	return slices.Contains([]string{"lid", "num", "port", "select", "sl", "vl", "lane", "block", "entry", "index"}, last)
}

// addRow adds the numbers of a row, with its texts as labels. It returns false if it has none.
func (m *metrics) addRow(v starlark.Value) (bool, error) {
	prefix := "fabsh_" + m.of
	if x, ok := v.(lang.Factual); ok {
		name, _, _ := strings.Cut(x.Schema(), "/")
		prefix = "fabsh_" + snake(name)
	}
	facts, ok := lang.FactsOf(v)
	if !ok {
		facts = []lang.Fact{{Value: v}}
	}
	var labels []string
	var numbers []lang.Fact
	seen := map[string]bool{}
	for _, f := range facts {
		name := snake(f.Name)
		if seen[name] {
			continue
		}
		seen[name] = true
		text, isText := starlark.AsString(f.Value)
		switch {
		case isText && f.Name != "" && text != "":
			labels = append(labels, name, text)
		case isFigure(f.Value) && (f.Hex > 0 || isIdentity(name)):
			labels = append(labels, name, f.Cell())
		case isFigure(f.Value) && !(f.Code && strings.HasSuffix(name, "_code")):
			numbers = append(numbers, f)
		}
	}
	l := m.set.Labels(labels...)
	for _, f := range numbers {
		name := prefix
		if f.Name != "" {
			name += "_" + snake(f.Name)
		}
		number, _ := Figure(f.Value)
		if err := m.set.AddOnce(strings.TrimSuffix(name, "_total"), export.Gauge, "", l, number); err != nil {
			return false, fmt.Errorf("-o %s: %w; show columns that distinguish them, or use metric()", lang.FormatProm, err)
		}
	}
	return len(numbers) > 0, nil
}

func isFigure(v starlark.Value) bool {
	_, ok := Figure(v)
	return ok
}

// snake makes a name of a metric or label from any text.
func snake(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, text)
}
