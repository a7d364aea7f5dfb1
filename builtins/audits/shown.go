package audits

import (
	"cmp"
	"io"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
	"go.starlark.net/starlark"
)

// shown has the values that a session has shown, but not written yet. It is the state that
// metrics keep with a lang.Runtime.
type shown struct {
	subject string   // the script or command; tables are named after it
	metrics *metrics // nil without values
}

// NameMetrics sets the script or command of a session; tables are named after it.
func NameMetrics(r *lang.Runtime, subject string) { lang.StateOf[shown](r).subject = subject }

// ShowMetrics keeps a value for Write: the values of a session are written together.
func ShowMetrics(r *lang.Runtime, v starlark.Value) error {
	s := lang.StateOf[shown](r)
	if s.metrics == nil {
		s.metrics = newMetrics(r.Format, s.subject)
	}
	return s.metrics.add(v)
}

// WriteMetrics writes the values and metrics since the last Write, if the format is -o prom. A
// program calls it when a script, or a statement, ends.
func WriteMetrics(r *lang.Runtime) error {
	measured := takeMetrics(r)
	if _, ok := r.Format.Dialect(); !ok {
		return nil
	}
	s := lang.StateOf[shown](r)
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
