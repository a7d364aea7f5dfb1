package suspect

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/hosts"
)

const (
	maxFile         = 64 << 20 // bytes
	maxMeasurements = 1 << 18
	maxMembers      = 1 << 20 // of all groups
	maxName         = 253     // bytes of the name of an end
)

const wanted = `want a table with the columns from, to and gbps, or the output of nccl-tests, perftest, OSU, mpiGraph, hp2p or SuperBench`

// Read reads measurements from a table with a header, or from the output of benchmarks, several
// of which may follow each other. name is used in errors.
//
// A line "# pair: FROM TO" names the ends of the outputs that follow it; OSU does not print them.
func Read(r io.Reader, name string) ([]Measurement, error) {
	r, err := format.Bounded(r, name, maxFile)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	f := &file{name: name}
	switch start := bytes.TrimLeft(data, " \t\r\n"); {
	case bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")):
		return nil, fmt.Errorf("%s: UTF-16 text is unsupported; write the file as UTF-8", name)
	case len(start) == 0:
		return nil, fmt.Errorf("%s: empty; %s", name, wanted)
	case bytes.IndexByte(data, 0) >= 0:
		return nil, fmt.Errorf("%s: not text; %s", name, wanted)
	case start[0] == '{':
		err = f.readJSON(data)
	case bytes.Contains(data, []byte("// hostlist start")):
		err = f.readHP2P(string(data))
	case bytes.Contains(data, []byte("START mpiGraph")):
		err = f.readMPIGraph(string(data))
	case superbenchLine.Match(data):
		err = f.readSuperBench(string(data))
	case toolLine.Match(data):
		err = f.readTools(string(data))
	default:
		err = f.readTable(data)
	}
	if err != nil {
		return nil, err
	}
	if f.list == nil {
		return nil, fmt.Errorf("%s: no measurement; %s", name, wanted)
	}
	return f.list, nil
}

// file is a file that is read.
type file struct {
	name    string
	list    []Measurement
	members int
}

// add adds a measurement.
func (f *file) add(m Measurement) error {
	at := fmt.Sprintf("%s:%d", f.name, m.Line)
	names := m.Group
	if names == nil {
		names = []string{m.From, m.To}
	}
	for _, name := range names {
		switch {
		case name == "":
			return fmt.Errorf("%s: the name of an end is empty", at)
		case len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
			return fmt.Errorf("%s: invalid name %.60q: longer than %d bytes, or with a character that cannot be printed", at, name, maxName)
		}
	}
	if m.State == Measured && (!(m.Value > 0) || math.IsInf(m.Value, 0)) {
		m.State, m.Value = Failed, 0 // benchmarks write 0 or -1
	}
	f.members += len(names)
	if len(f.list) == maxMeasurements || f.members > maxMembers {
		return fmt.Errorf("%s: more than %d measurements, or %d members of groups", f.name, maxMeasurements, maxMembers)
	}
	f.list = append(f.list, m)
	return nil
}

// columns are the names of columns, without case, spaces and underscores.
var columns = map[string][]string{
	"from":    {"from", "source", "src", "sender", "client", "node1", "host1"},
	"to":      {"to", "destination", "dst", "receiver", "server", "node2", "host2"},
	"group":   {"group", "hosts", "hostlist", "nodelist", "nodes"},
	"pattern": {"pattern"},
	"rail":    {"rail"},
	"both":    {"both", "bidirectional"},
	"class":   {"class", "test", "benchmark"},
	"size":    {"size", "msgsize", "bytes", "messagesize"},
	"round":   {"round"},
}

// units are the names of columns of values, and how many Gb/s or µs 1 is. Gb and GB differ.
var units = map[string]struct {
	factor float64
	time   bool
}{
	"gbps": {1, false}, "Gbps": {1, false}, "Gb/s": {1, false}, "Gbit/s": {1, false}, "bandwidth_gbps": {1, false}, "Gb/sec": {1, false},
	"GBps": {8, false}, "GB/s": {8, false}, "gbytes_per_s": {8, false}, "busbw": {8, false}, "algbw": {8, false},
	"MB/s": {0.008, false}, "MBps": {0.008, false}, "MiB/s": {8 * 1.048576e-3, false}, "MiB/sec": {8 * 1.048576e-3, false},
	"us": {1, true}, "usec": {1, true}, "µs": {1, true}, "time_us": {1, true}, "latency_us": {1, true}, "ms": {1000, true}, "time_ms": {1000, true},
}

// header is where the columns of a table are.
type header struct {
	at     map[string]int
	value  int
	factor float64
	time   bool
}

// parseHeader reads a header; nil: the row is not a header.
func parseHeader(row []string) *header {
	h := &header{at: map[string]int{}, value: -1}
	for i, word := range row {
		word = strings.TrimSpace(word)
		if u, ok := units[word]; ok && h.value < 0 {
			h.value, h.factor, h.time = i, u.factor, u.time
			continue
		}
		plain := strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(word))
		for key, names := range columns {
			if _, known := h.at[key]; !known && slices.Contains(names, plain) {
				h.at[key] = i
			}
		}
	}
	_, from := h.at["from"]
	_, to := h.at["to"]
	_, group := h.at["group"]
	if h.value < 0 || !(from && to) && !group {
		return nil
	}
	return h
}

// readTable reads a table that is separated by commas, tabs, semicolons or |. Its header may
// come again, as in tables one after the other. Lines that begin with # are comments.
func (f *file) readTable(data []byte) error {
	first, rest := []byte("#"), data
	for len(rest) > 0 && (len(first) == 0 || first[0] == '#') {
		first, rest, _ = bytes.Cut(rest, []byte("\n"))
		first = bytes.TrimSpace(first)
	}
	c := csv.NewReader(bytes.NewReader(data))
	c.Comment, c.FieldsPerRecord, c.TrimLeadingSpace = '#', -1, true
	for _, separator := range "|;\t" {
		if bytes.ContainsRune(first, separator) {
			c.Comma, c.TrimLeadingSpace = separator, separator != '\t'
		}
	}
	var h *header
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if wrong := new(csv.ParseError); errors.As(err, &wrong) {
			return fmt.Errorf("%s:%d: column %d: %w", f.name, wrong.Line, wrong.Column, wrong.Err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		line, _ := c.FieldPos(0)
		if next := parseHeader(row); next != nil {
			h = next
			continue
		}
		if h == nil {
			return fmt.Errorf("%s:%d: the header %q has no columns of ends, or none of values; %s (values: Gb/s, GB/s, MB/s, MiB/s or us)", f.name, line, fabric.Clip(strings.Join(row, string(c.Comma))), wanted)
		}
		if err := f.addRow(h, row, line); err != nil {
			return err
		}
	}
	return nil
}

// addRow adds a row of a table.
func (f *file) addRow(h *header, row []string, line int) (err error) {
	field := func(key string) string {
		if i, ok := h.at[key]; ok && i < len(row) {
			return strings.TrimSpace(row[i])
		}
		return ""
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s:%d: %w", f.name, line, fmt.Errorf(format, args...))
	}
	m := Measurement{From: field("from"), To: field("to"), Line: line, Round: field("round"), Time: h.time, Class: field("class")}
	if size := field("size"); size != "" {
		m.Class += " " + size
	}
	if list := field("group"); list != "" {
		if m.From != "" || m.To != "" {
			return fail("both a pair and a group")
		}
		if m.Group, err = hosts.Expand(list); err != nil {
			return fail("%w", err)
		}
		if len(m.Group) < 2 {
			return fail("a group of %d; want at least two members", len(m.Group))
		}
		if m.AllToAll, err = allToAll(field("pattern")); err != nil {
			return fail("%w", err)
		}
	}
	if text := field("rail"); text != "" {
		if m.Rail, err = strconv.Atoi(text); err != nil || m.Rail < 1 || m.Rail > 64 {
			return fail("invalid rail %.20q; want 1, 2, ...", text)
		}
	}
	switch text := strings.ToLower(field("both")); text {
	case "", "no", "false", "0":
	case "yes", "true", "1":
		m.Both = true
	default:
		return fail("invalid value %.20q of the column of both directions; want yes or no", text)
	}
	value := ""
	if h.value < len(row) {
		value = strings.TrimSpace(row[h.value])
	}
	switch {
	case value == "":
		m.State = Empty
	default:
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 && v != -1 {
			return fail("invalid value %.20q; want a number, or 0 or -1 for a pair without a result", value)
		}
		m.Value = v * h.factor
	}
	return f.add(m)
}

// allToAll reports whether a pattern sends from each member to all others; otherwise to the next.
func allToAll(pattern string) (bool, error) {
	switch pattern {
	case "", "ring":
		return false, nil
	case "all-to-all":
		return true, nil
	}
	return false, fmt.Errorf("unknown pattern %.20q; supported: ring, all-to-all", pattern)
}
