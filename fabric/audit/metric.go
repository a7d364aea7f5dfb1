package audit

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Metric is a value that a script gives a name, for Prometheus.
type Metric struct {
	Name, Help string
	Labels     []string // names and values, by turns
	Value      float64
}

// IsCounter reports whether the value never falls, except when counting restarts. By the naming
// rules of Prometheus such names, and no others, end with _total.
func (m *Metric) IsCounter() bool { return strings.HasSuffix(m.Name, "_total") }

// The names that Prometheus takes everywhere (prometheus.io/docs/concepts/data_model).
var (
	metricName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`) })
	labelName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`) })
)

// maxMetricName is how long a name may be, in bytes.
const maxMetricName = 256

// CheckMetricName returns nil if name is valid for a metric.
func CheckMetricName(name string) error {
	if len(name) > maxMetricName || !metricName().MatchString(name) {
		return fmt.Errorf("invalid metric name %.80q; use letters, digits and _, a digit not first: \"site_links_down\"", name)
	}
	return nil
}

// CheckLabelName returns nil if name is valid for a label.
func CheckLabelName(name string) error {
	if len(name) > maxMetricName || !labelName().MatchString(name) || strings.HasPrefix(name, "__") {
		return fmt.Errorf("invalid label name %.80q; use letters, digits and _, neither a digit nor __ first", name)
	}
	return nil
}
