// Package export writes what is known of a fabric in the words of other programs:
// metrics for Prometheus.
//
//	set.go        metrics, and their text format
//	dialect.go    whose names metrics have; counter.go, those of counters
//	treydock.go   the dialect of treydock/infiniband_exporter, and of its successor,
//	              SckyzO/infiniband_exporter 2.0
//	guilbaults.go that of guilbaults/infiniband-exporter
//	audit.go      runs of audits; link.go, links: fabsh's own names
//	tier.go       how far nodes are from the hosts
package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
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

// Set is metrics with their values, to be written in the text format 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats). The zero value is empty.
type Set struct {
	families map[string]*family
	labels   []string // texts: `guid="0x...",port="1"`
	index    map[string]Labels
	common   string // labels that all that follow have; "": none
}

// Labels are the labels of a value, as a Set knows them.
type Labels int32

// family are the values of one metric.
type family struct {
	name, help string
	kind       Type
	values     []value
	at         map[Labels]int // of values, as far as known; nil: nobody has asked
	known      int
}

type value struct {
	labels Labels
	value  float64
}

// Labels are those of names and values, by turns. Values may hold anything: they
// are made valid.
func (s *Set) Labels(pairs ...string) Labels {
	var b strings.Builder
	b.WriteString(s.common)
	for i := 0; i+1 < len(pairs); i += 2 {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(pairs[i])
		b.WriteString(`="`)
		writeEscaped(&b, pairs[i+1], true)
		b.WriteByte('"')
	}
	return s.intern(b.String())
}

func (s *Set) intern(text string) Labels {
	if l, ok := s.index[text]; ok {
		return l
	}
	if s.index == nil {
		s.index = map[string]Labels{}
	}
	l := Labels(len(s.labels))
	s.labels = append(s.labels, text)
	s.index[text] = l
	return l
}

// Common gives a label to all that follows; an empty value takes it away.
func (s *Set) Common(name, value string) {
	s.common = ""
	if value != "" {
		l := s.Labels(name, value)
		s.common = s.labels[l]
	}
}

// family is the one of a name. What was said first of its type and help holds.
func (s *Set) family(name string, kind Type, help string) *family {
	f := s.families[name]
	if f == nil {
		if s.families == nil {
			s.families = map[string]*family{}
		}
		f = &family{name: name, kind: kind, help: help}
		s.families[name] = f
	}
	return f
}

// add adds a value whose labels no other one of the metric has; where one has all
// the same, the first is written.
func (f *family) add(l Labels, v float64) { f.values = append(f.values, value{l, v}) }

// Add adds a value.
func (s *Set) Add(name string, kind Type, help string, l Labels, v float64) {
	s.family(name, kind, help).add(l, v)
}

// AddOnce is Add for who does not know what there is already. Another value with
// the same labels is an error.
func (s *Set) AddOnce(name string, kind Type, help string, l Labels, v float64) error {
	f := s.family(name, kind, help)
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
			return fmt.Errorf("%s{%s} is both %v and %v: labels must tell values apart", name, s.labels[l], old, v)
		}
		return nil
	}
	f.at[l] = len(f.values)
	f.add(l, v)
	f.known = len(f.values)
	return nil
}

// Empty: there is nothing to write.
func (s *Set) Empty() bool { return len(s.families) == 0 }

// Write writes all metrics, by name, then by labels.
func (s *Set) Write(w io.Writer) error {
	order := make([]Labels, len(s.labels))
	for i := range order {
		order[i] = Labels(i)
	}
	slices.SortFunc(order, func(a, b Labels) int { return strings.Compare(s.labels[a], s.labels[b]) })
	rank := make([]int32, len(order))
	for i, l := range order {
		rank[l] = int32(i)
	}
	names := make([]string, 0, len(s.families))
	for name := range s.families {
		names = append(names, name)
	}
	slices.Sort(names)
	out := bufio.NewWriterSize(w, 1<<16)
	for _, name := range names {
		s.families[name].write(out, s.labels, rank)
	}
	return out.Flush()
}

// write writes a metric. What cannot be written is kept by out for its Flush.
func (f *family) write(out *bufio.Writer, labels []string, rank []int32) {
	if f.help != "" {
		out.WriteString("# HELP " + f.name + " ")
		writeEscaped(out, f.help, false)
		out.WriteByte('\n')
	}
	out.WriteString("# TYPE " + f.name + " " + string(f.kind) + "\n")
	f.at = nil
	slices.SortStableFunc(f.values, func(a, b value) int { return cmp.Compare(rank[a.labels], rank[b.labels]) })
	for i, v := range f.values {
		if i > 0 && f.values[i-1].labels == v.labels {
			continue
		}
		out.WriteString(f.name)
		if text := labels[v.labels]; text != "" {
			out.WriteByte('{')
			out.WriteString(text)
			out.WriteByte('}')
		}
		out.WriteByte(' ')
		out.Write(appendNumber(out.AvailableBuffer(), v.value))
		out.WriteByte('\n')
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

// writeEscaped writes the value of a label, or help, which keeps its quotes. What
// is no UTF-8 or no character to be seen becomes U+FFFD: texts of a fabric may be
// anything.
func writeEscaped(w interface {
	io.StringWriter
	io.ByteWriter
}, text string, quotes bool) {
	plain := 0 // what follows is to be written as it is
	for i, r := range text {
		var as string
		size := utf8.RuneLen(r)
		switch {
		case r == '\\':
			as = `\\`
		case r == '\n':
			as = `\n`
		case r == '"' && quotes:
			as = `\"`
		case r == utf8.RuneError:
			_, size = utf8.DecodeRuneInString(text[i:])
			as = "\uFFFD"
		case !unicode.IsPrint(r):
			as = "\uFFFD"
		default:
			continue
		}
		w.WriteString(text[plain:i] + as)
		plain = i + size
	}
	w.WriteString(text[plain:])
}
