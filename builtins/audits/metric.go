package audits

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/device"
	"fabsh/fabric/export"
	"fabsh/fabric/routing/verify"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
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
		x := collectorOf(c.Fiber())
		if x.audit == "" {
			if err := x.metrics.add(m); err != nil {
				return nil, err
			}
		} else {
			x.metrics.set(m)
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
	if m.Value, ok = metricNumber(a.Value); !ok {
		return nil, lang.ParamError("value", "%w", lang.WantType(a.Value, "a number, a bool or None"))
	}
	return m, nil
}

// metricNumber returns a number or a bool as a metric's value, false for other values.
func metricNumber(v starlark.Value) (float64, bool) {
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

// measurements are metrics of which each differs from the others in its name or its labels.
type measurements struct {
	list  []audit.Metric
	index map[string]int // by name and labels
}

// set adds m, or sets the value of the metric with its name and labels.
func (s *measurements) set(m *audit.Metric) {
	if old := s.find(m); old != nil {
		*old = *m
		return
	}
	if s.index == nil {
		s.index = map[string]int{}
	}
	s.index[metricKey(m)] = len(s.list)
	s.list = append(s.list, *m)
}

// add is set, except that it refuses another value.
func (s *measurements) add(m *audit.Metric) error {
	if old := s.find(m); old != nil && old.Value != m.Value && !(math.IsNaN(old.Value) && math.IsNaN(m.Value)) {
		return lang.Errorf("%s has the value %v already; add labels that distinguish the values", m.Name, old.Value)
	}
	s.set(m)
	return nil
}

// find returns the metric with the name and the labels of m; nil: none.
func (s *measurements) find(m *audit.Metric) *audit.Metric {
	if i, ok := s.index[metricKey(m)]; ok {
		return &s.list[i]
	}
	return nil
}

// metricKey returns a text that identifies a metric.
func metricKey(m *audit.Metric) string { return m.Name + "\x00" + strings.Join(m.Labels, "\x00") }

// MetricType is the type of the result of metric().
var MetricType = &lang.ResultType{
	Name:      "metric",
	Doc:       "A figure with a name, for Prometheus.",
	Important: []string{"name", "value", "labels"},
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

// wrapMetric returns m as a value for scripts.
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

// ratesOf returns the rates of a value of perf_rates, nil if v is another value.
func ratesOf(v starlark.Value) *audit.PortRates {
	if r, ok := v.(*portRates); ok {
		return &r.PortRates
	}
	return nil
}

// metrics collects values that are shown as metrics of Prometheus. The zero value uses
// SckyzO's names.
type metrics struct {
	set     export.MetricSet
	dialect export.Dialect
	of      string // prefix of the names of rows without a type of their own
}

// newMetrics returns an empty collection in the dialect of a format. of names tables.
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
		switch r := ratesOf(e); {
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

// isIdentity reports whether a number with this name identifies rows, and is not a measurement.
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
		case isNumber(f.Value) && (f.Hex > 0 || isIdentity(name)):
			labels = append(labels, name, f.Cell())
		case isNumber(f.Value) && !(f.Code && strings.HasSuffix(name, "_code")):
			numbers = append(numbers, f)
		}
	}
	l := m.set.Labels(labels...)
	for _, f := range numbers {
		name := prefix
		if f.Name != "" {
			name += "_" + snake(f.Name)
		}
		number, _ := metricNumber(f.Value)
		if err := m.set.AddOnce(strings.TrimSuffix(name, "_total"), export.Gauge, "", l, number); err != nil {
			return false, fmt.Errorf("-o %s: %w; show columns that distinguish them, or use metric()", lang.FormatProm, err)
		}
	}
	return len(numbers) > 0, nil
}

// isNumber reports whether v is a number or a bool.
func isNumber(v starlark.Value) bool {
	_, ok := metricNumber(v)
	return ok
}

// snake returns a name of a metric or label made from any text.
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

// pendingMetrics has the values that a session has shown, but not written yet. It is the state
// that metrics keep with a lang.Runtime.
type pendingMetrics struct {
	subject string   // the script or command; tables are named after it
	metrics *metrics // nil without values
}

// NameMetrics sets the script or command of a session; tables are named after it.
func NameMetrics(r *lang.Runtime, subject string) { lang.StateOf[pendingMetrics](r).subject = subject }

// ShowMetrics keeps a value for WriteMetrics: the values of a session are written together.
func ShowMetrics(r *lang.Runtime, v starlark.Value) error {
	s := lang.StateOf[pendingMetrics](r)
	if s.metrics == nil {
		s.metrics = newMetrics(r.Format, s.subject)
	}
	return s.metrics.add(v)
}

// WriteMetrics writes the values and metrics since its last call, if the format is -o prom. A
// program calls it when a script, or a statement, ends.
func WriteMetrics(r *lang.Runtime) error {
	of := reportsOf(r)
	measured := of.measured.list
	of.measured = measurements{}
	if _, ok := r.Format.Dialect(); !ok {
		return nil
	}
	s := lang.StateOf[pendingMetrics](r)
	m := s.metrics
	if s.metrics = nil; m == nil {
		m = newMetrics(r.Format, s.subject)
	}
	if err := m.dialect.Metrics(&m.set, measured); err != nil {
		return err
	}
	return m.set.Write(r.Stdout)
}

// RenderMetrics returns v in a format. Tables in metrics are named after of.
func RenderMetrics(v starlark.Value, format lang.Format, of string) (string, error) {
	if _, ok := format.Dialect(); !ok {
		return lang.Render(v, format)
	}
	m := newMetrics(format, of)
	if err := m.add(v); err != nil {
		return "", err
	}
	var b strings.Builder
	err := m.set.Write(&b)
	return b.String(), err
}

// WriteReportMetrics writes several reports in a format, as one document. view selects rows and
// columns, except of metrics.
func WriteReportMetrics(w io.Writer, reports []*audit.Report, format lang.Format, view func(starlark.Value) (starlark.Value, error)) error {
	var values []starlark.Value
	for _, r := range reports {
		v, err := view(WrapReport(r, format, false))
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	if _, ok := format.Dialect(); ok {
		return writeReports(w, reports, format)
	}
	text, err := renderReports(values, format)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// renderReports returns reports as one text in a format.
func renderReports(reports []starlark.Value, format lang.Format) (string, error) {
	if len(reports) == 1 {
		return lang.Render(reports[0], format)
	}
	var all []starlark.Value
	text := ""
	for _, v := range reports {
		if list, ok := v.(*starlark.List); ok {
			all = append(all, lang.Collect(list)...)
		} else {
			all = append(all, v)
		}
		text += lang.RenderText(v)
	}
	if format == lang.FormatText {
		return text, nil
	}
	return lang.Render(starlark.NewList(all), format)
}

// writeReports writes reports as metrics. If there are several, each has its local port as a
// label.
func writeReports(w io.Writer, reports []*audit.Report, format lang.Format) error {
	m := newMetrics(format, "")
	for _, r := range reports {
		if len(reports) > 1 {
			m.set.Common("rail", cmp.Or(r.Rail, r.Port))
		}
		if err := m.dialect.Audit(&m.set, r, nil); err != nil {
			return err
		}
	}
	return m.set.Write(w)
}

// Metrics that need tables or keys to be read in each cycle.
const (
	ShortGroups     = "fabsh_ar_short_groups"
	UnprotectedKeys = "fabsh_key_unprotected_nodes"
)

// AdaptiveMetrics returns metrics of adaptive routing and of keys for the exporter, of the
// latest fabric. It reads AdaptiveRoutingInfo of the switches that announce it, one request
// each; the tables of adaptive routing for ShortGroups, and KeyInfo for UnprotectedKeys, only
// if wanted returns true for these. A device that does not answer is counted.
func AdaptiveMetrics(ctx context.Context, r *lang.Runtime, wanted func(family string) bool) (metrics []audit.Metric, err error) {
	current := topology.EnvOf(r).Current
	if current == nil {
		return nil, nil
	}
	t, release := r.Thread(ctx, "command")
	defer release()
	f := current.Fabric
	err = lang.Operate(t, "", func(c *lang.Call) error {
		e, err := topology.EngineOf(c)
		if err != nil {
			return err
		}
		some, on, err := switchMetrics(c, e, f)
		metrics = append(some, unprotected(f))
		if err == nil && on && wanted(ShortGroups) {
			some, err = shortGroups(c, e, f)
			metrics = append(metrics, some...)
		}
		if err == nil && wanted(UnprotectedKeys) {
			some, err = unprotectedKeys(c, topology.EnvOf(r).SA, f)
			metrics = append(metrics, some...)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return metrics, nil
}

// switchMetrics returns metrics of AdaptiveRoutingInfo. on reports that adaptive routing is on
// at some switch.
func switchMetrics(c *lang.Call, e *engine.Engine, f *fabric.Fabric) (metrics []audit.Metric, on bool, err error) {
	var list []*device.AR
	var of []*fabric.Node
	for i := range f.OfType(mad.NodeTypeSwitch) {
		if n := &f.OfType(mad.NodeTypeSwitch)[i]; n.Route() != nil || n.LID() != 0 {
			list = append(list, &device.AR{Dest: fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}, GUID: n.GUID(), Known: true, Node: *n.Info()})
			of = append(of, n)
		}
	}
	if err := c.Block(func(ctx context.Context) error { return device.ReadARInfo(ctx, e, list...) }); err != nil {
		return nil, false, err
	}
	for i, a := range list {
		topology.CountUnanswered(c, a.Err)
		if a.Err != nil || a.Info == nil {
			continue
		}
		mask := 0xffff
		if a.Info.BySLEn {
			mask = int(a.Info.EnableBySLMask)
		}
		enabled := 0.0
		if a.Info.E {
			enabled = 1
		}
		on = on || a.Info.E || a.Info.HBFEn
		metrics = append(metrics,
			audit.Metric{Name: "fabsh_ar_enabled", Help: "Whether a switch that announces adaptive routing routes adaptively (AdaptiveRoutingInfo).", Labels: switchLabels(of[i]), Value: enabled},
			audit.Metric{Name: "fabsh_ar_sl_mask", Help: "Service levels that the switch routes adaptively if it is on, bit n for SL n.", Labels: switchLabels(of[i]), Value: float64(mask)})
	}
	return metrics, on, nil
}

// switchLabels returns the labels of metrics of a switch.
func switchLabels(n *fabric.Node) []string {
	return []string{"guid", n.GUID().String(), "switch", n.Name()}
}

// shortGroups returns the metrics of port groups. A switch whose tables are unknown has none.
func shortGroups(c *lang.Call, e *engine.Engine, f *fabric.Fabric) (metrics []audit.Metric, err error) {
	err = c.Block(func(ctx context.Context) error {
		routes, failed, err := device.ReadAdaptiveRoutes(ctx, e, f, nil)
		if err != nil {
			return err
		}
		for _, x := range failed {
			topology.CountUnanswered(c, x.Err)
		}
		short, err := verify.ShortGroups(ctx, routes)
		for s, n := range short {
			if n >= 0 {
				metrics = append(metrics, audit.Metric{Name: ShortGroups, Help: "Port groups of a switch that routes adaptively with fewer linked ports than most groups for hosts as far away, at switches with as many ports.",
					Labels: switchLabels(routes.Graph().Switches()[s]), Value: float64(n)})
			}
		}
		return err
	})
	return metrics, err
}

// unprotectedKeys returns the metrics of the keys of classes.
func unprotectedKeys(c *lang.Call, client *sa.Client, f *fabric.Fabric) (metrics []audit.Metric, err error) {
	var classes []device.KeyClass
	if err := c.Block(func(ctx context.Context) (err error) {
		classes, err = device.ReadKeys(ctx, client, f)
		return err
	}); err != nil {
		return nil, err
	}
	for _, k := range classes {
		for _, err := range k.Failed {
			topology.CountUnanswered(c, err)
		}
		if k.Devices > 0 {
			metrics = append(metrics, audit.Metric{Name: UnprotectedKeys, Help: "Nodes whose key of a management class does not protect: ProtectBit of KeyInfo is 0.", Labels: []string{"class", k.Name}, Value: float64(k.Unprotected)})
		}
	}
	return metrics, nil
}

// ReadAdaptivity reads at which switches of f adaptive routing is on, by device.ReadAdaptivity.
func ReadAdaptivity(ctx context.Context, r *lang.Runtime, f *fabric.Fabric) (a *device.Adaptivity, err error) {
	t, release := r.Thread(ctx, "command")
	defer release()
	err = lang.Operate(t, "", func(c *lang.Call) error {
		e, err := topology.EngineOf(c)
		if err != nil {
			return err
		}
		return c.Block(func(ctx context.Context) (err error) {
			a, err = device.ReadAdaptivity(ctx, e, f)
			return err
		})
	})
	return a, err
}

// unprotected returns the metric of M_Keys that do not protect, by the PortInfo of the sweep.
func unprotected(f *fabric.Fabric) audit.Metric {
	m := audit.Metric{Name: "fabsh_mkey_unprotected_ports", Help: "End ports whose M_Key any client can read and change: M_KeyProtectBits is 0."}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if end := p.Num() == 0 || !p.Node().IsSwitch() && p.Peer() != nil; end && p.Info() != nil && p.Info().MKeyProtectBits == 0 {
			m.Value++
		}
	}
	return m
}
