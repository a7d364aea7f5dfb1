// Package export writes what is known of a fabric in the words of other programs:
// metrics for Prometheus.
//
//	set.go        metrics, and their text format; labeltext.go, their labels
//	dialect.go    whose names metrics have; counter.go, those of counters
//	treydock.go   the dialect of treydock/infiniband_exporter, and of its successor,
//	              SckyzO/infiniband_exporter 2.0
//	guilbaults.go that of guilbaults/infiniband-exporter
//	selection.go  parts of the metrics: shards, collectors, families
//	audit.go      runs of audits; link.go, links: fabsh's own names
package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Type is the type of a metric.
type Type string

// The types. Untyped is for names in _total whose values are counts of one run,
// so that they may fall.
const (
	Gauge   Type = "gauge"
	Counter Type = "counter"
	Untyped Type = "untyped"
)

// MetricSet is metrics with their values, to be written in the text format 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats). The zero value is empty.
type MetricSet struct {
	families map[string]*family
	labels   labelTexts
	common   []byte // labels that all that follow have
	scratch  []byte

	selection *Selection      // nil: all
	part      map[string]bool // the metrics that are kept; nil: all
	counting  bool            // values are counted, and not kept
	collector string          // of what is added
	groups    map[string]bool // the collectors that have metrics of part; nil: all
}

// collects reports whether metrics of a collector are wanted. What follows is of it.
func (s *MetricSet) collects(name string) bool {
	s.collector = name
	return s.selection.Collects(name) && (s.groups == nil || s.groups[name])
}

// Labels are the labels of a value, as a Set knows them.
type Labels int32

// family are the values of one metric.
type family struct {
	name, help string
	kind       Type
	collector  string
	values     []value
	left       bool // out: values are not kept, only counted
	excluded   bool // by the selection
	counted    int
	at         map[Labels]int // of values, as far as known; nil: not needed yet
	known      int
}

type value struct {
	labels Labels
	value  float64
}

// Labels are those of names and values, by turns. Values may hold anything: they
// are made valid.
func (s *MetricSet) Labels(pairs ...string) Labels {
	if s.counting {
		return 0
	}
	b := append(s.scratch[:0], s.common...)
	for i := 0; i+1 < len(pairs); i += 2 {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(append(b, pairs[i]...), `="`...)
		b = append(appendEscaped(b, pairs[i+1], true), '"')
	}
	s.scratch = b
	return s.labels.intern(b)
}

// Common gives a label to all that follows; an empty value removes it.
func (s *MetricSet) Common(name, value string) {
	s.common = nil
	if value != "" {
		s.common = s.labels.texts[s.Labels(name, value)]
	}
}

// family is the one of a name. Its first type and help apply.
func (s *MetricSet) family(name string, kind Type, help string) *family {
	f := s.families[name]
	if f == nil {
		if s.families == nil {
			s.families = map[string]*family{}
		}
		f = &family{name: name, kind: kind, help: help, left: s.counting, collector: s.collector}
		if !s.selection.family(name) || s.part != nil && !s.part[name] {
			f.left, f.excluded = true, true
		}
		s.families[name] = f
	}
	return f
}

// add adds a value whose labels no other one of the metric has; where one has all
// the same, the first is written.
func (f *family) add(l Labels, v float64) {
	if f.left {
		f.counted++
		return
	}
	f.values = append(f.values, value{l, v})
}

// Add adds a value.
func (s *MetricSet) Add(name string, kind Type, help string, l Labels, v float64) {
	s.family(name, kind, help).add(l, v)
}

// AddOnce is Add for callers that do not know what exists already. Another value with
// the same labels is an error.
func (s *MetricSet) AddOnce(name string, kind Type, help string, l Labels, v float64) error {
	f := s.family(name, kind, help)
	if f.left {
		f.add(l, v)
		return nil
	}
	if f.at == nil || f.known != len(f.values) {
		f.at = map[Labels]int{}
		for i, x := range f.values {
			if _, ok := f.at[x.labels]; !ok {
				f.at[x.labels] = i
			}
		}
		f.known = len(f.values)
	}
	if i, ok := f.at[l]; ok {
		if old := f.values[i].value; old != v && !(math.IsNaN(old) && math.IsNaN(v)) {
			return fmt.Errorf("%s{%s} is both %v and %v: labels must distinguish values", name, s.labels.texts[l], old, v)
		}
		return nil
	}
	f.at[l] = len(f.values)
	f.add(l, v)
	f.known = len(f.values)
	return nil
}

// Write writes all metrics, by name, then by labels.
func (s *MetricSet) Write(w io.Writer) error {
	by := &sorter{rank: s.labels.ranks()}
	out := bufio.NewWriterSize(w, 1<<16)
	for _, name := range slices.Sorted(maps.Keys(s.families)) {
		if f := s.families[name]; !f.left {
			f.write(out, s.labels.texts, by)
		}
	}
	return out.Flush()
}

// write writes a metric. What cannot be written is kept by out for its Flush.
func (f *family) write(out *bufio.Writer, labels [][]byte, by *sorter) {
	if f.help != "" {
		out.WriteString("# HELP " + f.name + " ")
		out.Write(appendEscaped(out.AvailableBuffer(), f.help, false))
		out.WriteByte('\n')
	}
	out.WriteString("# TYPE " + f.name + " " + string(f.kind) + "\n")
	f.at = nil
	by.sort(f.values)
	for i, v := range f.values {
		if i > 0 && f.values[i-1].labels == v.labels {
			continue
		}
		line := append(out.AvailableBuffer(), f.name...)
		if text := labels[v.labels]; len(text) > 0 {
			line = append(append(append(line, '{'), text...), '}')
		}
		out.Write(append(appendNumber(append(line, ' '), v.value), '\n'))
	}
}

// sorter sorts values by the rank of their labels, those of one rank as they came.
type sorter struct {
	rank []int32 // by labels
	next []int32 // by rank, where the next value of it goes
	room []value
}

func (s *sorter) sort(values []value) {
	byRank := func(a, b value) int { return cmp.Compare(s.rank[a.labels], s.rank[b.labels]) }
	switch {
	case slices.IsSortedFunc(values, byRank):
		return
	case len(values) < len(s.rank)/16: // visiting all ranks would take longer
		slices.SortStableFunc(values, byRank)
		return
	case s.next == nil:
		s.next = make([]int32, len(s.rank)+1)
	}
	clear(s.next)
	for _, v := range values {
		s.next[s.rank[v.labels]+1]++
	}
	for i := range s.rank {
		s.next[i+1] += s.next[i]
	}
	s.room = append(s.room[:0], values...)
	for _, v := range s.room {
		at := &s.next[s.rank[v.labels]]
		values[*at] = v
		*at++
	}
}

// appendNumber appends a value: whole numbers without an exponent, while a float64
// holds them exactly.
func appendNumber(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case math.IsInf(v, 1):
		return append(b, "+Inf"...)
	case math.IsInf(v, -1):
		return append(b, "-Inf"...)
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// appendEscaped appends the value of a label, or help, which keeps its quotes. What
// is not UTF-8 or not visible becomes U+FFFD: texts of a fabric may be
// anything.
func appendEscaped(b []byte, text string, quotes bool) []byte {
	plain := 0 // what follows is written unchanged
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c <= '~' && c != '\\' && c != '"' {
			i++
			continue
		}
		as := "\uFFFD"
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\\':
			as = `\\`
		case r == '\n':
			as = `\n`
		case r == '"' && quotes:
			as = `\"`
		case r != utf8.RuneError && unicode.IsPrint(r):
			i += size
			continue
		}
		b = append(append(b, text[plain:i]...), as...)
		i += size
		plain = i
	}
	return append(b, text[plain:]...)
}
