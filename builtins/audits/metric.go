package audits

import (
	"fmt"
	"math"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
)

// Metric is metric(), which reports a measurement.
var Metric = lang.Builtin{
	Name:    "metric",
	Returns: "metric",
	Group:   GroupAudit,
	Params: []lang.Param{
		{Name: "name", Kind: lang.KindText, Doc: `letters, digits and _, the unit last: "site_link_age_seconds"; a counter if it ends with _total, else a gauge`},
		{Name: "value", Kind: lang.KindAny, Doc: "a number, or a bool, which is 1 or 0; None for no metric"},
		{Name: "help", Kind: lang.KindText, Default: `""`, Keyword: true, Doc: "a description in one line"},
		{Name: "**labels", Kind: lang.KindAny, Doc: "labels that distinguish metrics of one name: guid=p.guid, port=p.num; labels that are None are omitted"},
	},
	Doc: `Reports a figure for Prometheus, and returns it as a metric.
With -o prom, the metrics of a script are written at its end, and those of audits with the report; with other formats, where they are shown. In a script, two values of one name need different labels; if an audit runs a second time, its later values count.`,
	Example: `
> m = metric("site_links", len(discover().links), help="links of the fabric", row="a3")
> m.name, m.value, m.labels
("site_links", 64.0, {"row": "a3"})
`,
	Run: lang.Do(func(c *lang.Call, a *metricArgs) (starlark.Value, error) {
		m, err := a.metric()
		if err != nil || m == nil {
			return starlark.None, err
		}
		if err := collectorOf(c.Runtime()).measured(m); err != nil {
			return nil, err
		}
		return wrapMetric(m), nil
	}),
}

// metricArgs are the arguments of metric().
type metricArgs struct {
	Name   string
	Value  starlark.Value
	Help   string
	Labels []starlark.Tuple
}

// maxLabels is the largest number of labels of a metric.
const maxLabels = 64

// metric checks the arguments. It returns nil if the value is None.
func (a *metricArgs) metric() (*audit.Metric, error) {
	m := &audit.Metric{Name: a.Name, Help: a.Help}
	if err := audit.CheckMetricName(a.Name); err != nil {
		return nil, lang.ParamError("name", "%w", err)
	}
	if len(a.Help) > maxMessage {
		return nil, lang.ParamError("help", "too long: %d bytes; want at most %d", len(a.Help), maxMessage)
	}
	if len(a.Labels) > maxLabels {
		return nil, lang.ParamError("labels", "too many labels: %d; want at most %d", len(a.Labels), maxLabels)
	}
	for _, kv := range a.Labels {
		name := string(kv[0].(starlark.String))
		if err := audit.CheckLabelName(name); err != nil {
			return nil, lang.Errorf("%w", err)
		}
		if kv[1] == starlark.None {
			continue
		}
		text, ok := starlark.AsString(kv[1])
		if !ok {
			text = kv[1].String()
		}
		if len(text) > maxMessage {
			return nil, lang.ParamError(name, "too long: %d bytes; want at most %d", len(text), maxMessage)
		}
		m.Labels = append(m.Labels, name, text)
	}
	if a.Value == nil || a.Value == starlark.None {
		return nil, nil
	}
	var ok bool
	if m.Value, ok = Figure(a.Value); !ok {
		return nil, lang.ParamError("value", "%w", lang.WantType(a.Value, "a number, a bool or None"))
	}
	return m, nil
}

// Figure returns a number or a bool as a metric's value, false for other values.
func Figure(v starlark.Value) (float64, bool) {
	switch v := v.(type) {
	case starlark.Bool:
		if v {
			return 1, true
		}
		return 0, true
	case starlark.Int, starlark.Float:
		return starlark.AsFloat(v)
	}
	return 0, false
}

// measured adds m.
func (c *collector) measured(m *audit.Metric) error {
	key := m.Name + "\x00" + strings.Join(m.Labels, "\x00")
	i, ok := c.index[key]
	switch {
	case !ok:
		if c.index == nil {
			c.index = map[string]int{}
		}
		c.index[key] = len(c.metrics)
		c.metrics = append(c.metrics, *m)
	case c.audit == "" && c.metrics[i].Value != m.Value && !(math.IsNaN(c.metrics[i].Value) && math.IsNaN(m.Value)):
		return lang.Errorf("%s has the value %v already; add labels that distinguish the values", m.Name, c.metrics[i].Value)
	default:
		c.metrics[i] = *m
	}
	return nil
}

// takeMetrics returns the metrics since the last TakeMetrics.
func takeMetrics(r *lang.Runtime) []audit.Metric {
	c := collectorOf(r)
	list := c.metrics
	c.metrics, c.index = nil, nil
	return list
}

// MetricType is the type of the result of metric().
var MetricType = &lang.ResultType{
	Name: "metric",
	Doc:  "A figure with a name, for Prometheus.",
	Members: []lang.ResultMember{
		{Name: "name", Type: "string", Doc: "the name"},
		{Name: "value", Doc: "a float"},
		{Name: "labels", Doc: "a dict of names to texts"},
		{Name: "help", Doc: "the description, None without one"},
	},
}

// metricValue is the value `metric`.
type metricValue struct {
	*lang.Result
	m audit.Metric
}

func wrapMetric(m *audit.Metric) *metricValue {
	labels := starlark.NewDict(len(m.Labels) / 2)
	for i := 0; i < len(m.Labels); i += 2 {
		labels.SetKey(starlark.String(m.Labels[i]), starlark.String(m.Labels[i+1]))
	}
	return &metricValue{m: *m, Result: lang.NewResult(MetricType, starlark.String(m.Name), starlark.Float(m.Value), labels, lang.TextOrNone(m.Help))}
}

// String returns the metric in one line.
func (v *metricValue) String() string { return fmt.Sprintf("metric(%q, %v)", v.m.Name, v.m.Value) }

// metricOf returns the metric of a value, nil if v is not a metric.
func metricOf(v starlark.Value) *audit.Metric {
	if m, ok := v.(*metricValue); ok {
		return &m.m
	}
	return nil
}

// RatesOf returns the rates of a value of perf_rates, nil if v is another value.
func RatesOf(v starlark.Value) *audit.PortRates {
	if r, ok := v.(*portRates); ok {
		return &r.PortRates
	}
	return nil
}
