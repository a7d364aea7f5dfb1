// Package export writes what is known of a fabric in the names of other programs:
// metrics for Prometheus.
//
// A Dialect adds metrics of fabrics, counters and runs of audits to a MetricSet, which writes
// them. The dialects have the names and labels of treydock/infiniband_exporter, of its
// successor SckyzO/infiniband_exporter 2.0, and of guilbaults/infiniband-exporter; what these do
// not have begins with fabsh_. A Selection limits the metrics to shards, collectors and families.
//
// A MetricSet is not safe for concurrent use. Dialects, and Selections and Totals that do not
// change, are.
package export

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
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
	common   []byte // labels of all values that follow
	scratch  []byte

	selection *Selection      // nil: all
	part      map[string]bool // the metrics that are kept; nil: all
	counting  bool            // values are counted, and not kept
	collector string          // of what is added
	groups    map[string]bool // the collectors that have metrics of part; nil: all
}

// collects reports whether metrics of a collector are selected. The metrics that are added next
// belong to it.
func (s *MetricSet) collects(name string) bool {
	s.collector = name
	return s.selection.Collects(name) && (s.groups == nil || s.groups[name])
}

// Labels are the labels of a value in a MetricSet.
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

// Labels returns labels by pairs of a name and a value. Values may hold anything: they
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

// Common adds a label to all values that follow; an empty value removes it.
func (s *MetricSet) Common(name, value string) {
	s.common = nil
	if value != "" {
		s.common = s.labels.texts[s.Labels(name, value)]
	}
}

// family returns the family of a name. Its first type and help apply.
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

// add adds a value. Of values with equal labels, the first is written.
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

// AddOnce is Add for callers that do not know what exists already. A different value with
// equal labels is an error.
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

// sorter sorts values by the rank of their labels; values of one rank keep their order.
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

// labelTexts are labels in their written form, each once: `guid="0x...",port="1"`. Of
// large fabrics there are hundreds of thousands, so that they lie in few pieces.
type labelTexts struct {
	texts [][]byte
	index map[uint64]Labels // by hash; if it is taken, by the next free number
	seed  maphash.Seed
	room  []byte // for the next ones
}

// pieceSize is the size of a piece of memory for texts, in bytes.
const pieceSize = 1 << 16

// intern is the number of text, which is copied.
func (t *labelTexts) intern(text []byte) Labels {
	if t.index == nil {
		t.index, t.seed = map[uint64]Labels{}, maphash.MakeSeed()
	}
	hash := maphash.Bytes(t.seed, text)
	for {
		l, ok := t.index[hash]
		if !ok {
			break
		}
		if bytes.Equal(t.texts[l], text) {
			return l
		}
		hash++
	}
	if cap(t.room)-len(t.room) < len(text) {
		t.room = make([]byte, 0, max(pieceSize, len(text)))
	}
	at := len(t.room)
	t.room = append(t.room, text...)
	l := Labels(len(t.texts))
	t.texts = append(t.texts, t.room[at:len(t.room):len(t.room)])
	t.index[hash] = l
	return l
}

// ranks are the places of the labels in the order of their texts.
func (t *labelTexts) ranks() []int32 {
	order := make([]Labels, len(t.texts))
	for i := range order {
		order[i] = Labels(i)
	}
	slices.SortFunc(order, func(a, b Labels) int { return bytes.Compare(t.texts[a], t.texts[b]) })
	rank := make([]int32, len(order))
	for i, l := range order {
		rank[l] = int32(i)
	}
	return rank
}
