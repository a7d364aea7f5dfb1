package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// Counter is a counter of ports, whichever attribute shows it. PortCounters and
// PortCountersExtended have many in common: these are merged, and the wider one
// counts.
type Counter struct {
	Name    string // "symbol_error_counter"
	Doc     string
	Traffic bool // it moves on a healthy link
	Scale   uint64

	sources []source // the widest first
}

// source is where a counter is read.
type source struct {
	set     CounterSet
	field   *mad.Field
	element int // of an array
}

// CounterSet is a group of counters that an agent has or lacks as a whole, as the
// capability masks of its ClassPortInfo, or the answer, show.
type CounterSet uint8

const (
	setBase       CounterSet = iota // PortCounters
	setWait                         // its PortXmitWait
	setQP1                          // its QP1Dropped
	setWide                         // PortCountersExtended: data and packets
	setCast                         // its unicast and multicast packets
	setWideErrors                   // its errors
	setRcvErrors                    // PortRcvErrorDetails
	setDiscards                     // PortXmitDiscardDetails
	setBlocks                       // PortExtendedSpeedsCounters, whatever the FEC
	setRSFEC                        // its counters with Reed-Solomon code
	setLanes                        // its counters without
	numSets
)

// SetMask is a set of CounterSets, bit by bit.
type SetMask uint16

// CounterAttributes are the attributes that are read, in the order of their
// requests.
var CounterAttributes = [...]*mad.Attribute{
	mad.AttrPortCounters, mad.AttrPortCountersExtended, mad.AttrPortRcvErrorDetails, mad.AttrPortXmitDiscardDetails, mad.AttrPortExtendedSpeedsCounters,
}

// Counters returns all counters, in the order of their attributes.
var Counters = sync.OnceValue(func() []Counter {
	var list []Counter
	index := map[string]int{}
	for _, set := range preference {
		declared := &counterSets[set]
		attr := CounterAttributes[declared.attr]
		if declared.variant != "" {
			attr = attr.WithVariant(declared.variant)
		}
		for i := range attr.Flat() {
			f := &attr.Flat()[i]
			if f.Type != mad.FieldTypeUint || strings.HasSuffix(f.Script, "_select") || strings.HasSuffix(f.Script, "_select2") || declared.has != nil && !declared.has(f) {
				continue
			}
			for e := range f.Count {
				c := newCounter(f, e)
				at, ok := index[c.Name]
				if !ok {
					at = len(list)
					index[c.Name] = at
					list = append(list, c)
				}
				list[at].sources = append(list[at].sources, source{set, f, e})
			}
		}
	}
	return list
})

// CounterIndex returns the index in Counters of the counter of that name; -1: none.
func CounterIndex(name string) int {
	if i, ok := counterIndex()[name]; ok {
		return i
	}
	return -1
}

var counterIndex = sync.OnceValue(func() map[string]int {
	index := map[string]int{}
	for i, c := range Counters() {
		index[c.Name] = i
	}
	return index
})

// source returns where a port that has answered for some sets shows c; nil: nowhere.
func (c *Counter) source(sets SetMask) *source {
	for i := range c.sources {
		if sets.has(c.sources[i].set) {
			return &c.sources[i]
		}
	}
	return nil
}

// setNames are the words for the sets that agents have or lack. Details are only shown by
// ports that have counted the errors which they detail.
var setNames = [numSets]string{
	setBase: "PortCounters", setWait: "PortXmitWait", setQP1: "QP1Dropped", setWide: "PortCountersExtended",
	setCast: "unicast and multicast packets", setWideErrors: "errors of 64 bits", setBlocks: "PortExtendedSpeedsCounters",
}

func (m SetMask) has(s CounterSet) bool { return m>>s&1 != 0 }

func maskOf(sets ...CounterSet) (m SetMask) {
	for _, s := range sets {
		m |= 1 << s
	}
	return m
}

// numAttributes is the number of CounterAttributes.
const numAttributes = len(CounterAttributes)

// counterSets declares each set: its attribute, an index of CounterAttributes, the
// variant of its layout, and its fields.
var counterSets = [numSets]struct {
	attr    int
	variant string
	has     func(f *mad.Field) bool
	// partOf are the counters of PortCounters that include the counters of the set (IBA
	// 16.1.4.1, 16.1.4.2): while they are 0 the set is 0, and not read.
	partOf []string
}{
	setBase:       {attr: 0, has: func(f *mad.Field) bool { return f.Select2 == 0 }},
	setWait:       {attr: 0, has: named("port_xmit_wait")},
	setQP1:        {attr: 0, has: named("qp1_dropped")},
	setWide:       {attr: 1, has: func(f *mad.Field) bool { return f.Select2 == 0 && !isCast(f) }},
	setCast:       {attr: 1, has: isCast},
	setWideErrors: {attr: 1, has: func(f *mad.Field) bool { return f.Select2 > 0 }},
	setRcvErrors:  {attr: 2, partOf: []string{"port_rcv_errors", "port_rcv_switch_relay_errors"}},
	setDiscards:   {attr: 3, partOf: []string{"port_xmit_discards"}},
	setBlocks:     {attr: 4},
	setRSFEC:      {attr: 4, variant: "rs_fec", has: func(f *mad.Field) bool { return f.Offset >= fecOffset }},
	setLanes:      {attr: 4, variant: "lanes", has: func(f *mad.Field) bool { return f.Offset >= fecOffset }},
}

// fecOffset is where the layout of PortExtendedSpeedsCounters begins to depend on
// the FEC, in bits.
const fecOffset = 160

func named(name string) func(*mad.Field) bool {
	return func(f *mad.Field) bool { return f.Script == name }
}

func isCast(f *mad.Field) bool {
	return strings.Contains(f.Script, "unicast") || strings.Contains(f.Script, "multicast")
}

// setsOf returns the sets of an attribute, an index of CounterAttributes.
func setsOf(attr int) SetMask { return setsByAttribute[attr] }

var setsByAttribute = func() (masks [numAttributes]SetMask) {
	for s := range counterSets {
		masks[counterSets[s].attr] |= 1 << s
	}
	return masks
}()

// supported returns the sets that ClassPortInfo announces, and the sets known only from an
// answer: details.
func supported(info *mad.ClassPortInfo) SetMask {
	caps, caps2 := mad.PerfCapabilityMask(info.CapabilityMask), mad.PerfCapabilityMask2(info.CapabilityMask2)
	m := maskOf(setBase, setRcvErrors, setDiscards)
	if caps&mad.PerfCapabilityMaskPortCountersXmitWaitSupported != 0 {
		m |= maskOf(setWait)
	}
	if caps&mad.PerfCapabilityMaskIsQP1DroppedSupported != 0 {
		m |= maskOf(setQP1)
	}
	if caps&(mad.PerfCapabilityMaskIsExtendedWidthSupported|mad.PerfCapabilityMaskIsExtendedWidthSupportedNoIETF) != 0 {
		m |= maskOf(setWide)
		if caps&mad.PerfCapabilityMaskIsExtendedWidthSupported != 0 {
			m |= maskOf(setCast)
		}
		if caps2&mad.PerfCapabilityMask2IsAdditionalPortCountersExtendedSupported != 0 {
			m |= maskOf(setWideErrors)
		}
	}
	if caps&mad.PerfCapabilityMaskIsRSFECModeSupported != 0 {
		m |= setsOf(4)
	}
	return m
}

// preference is the order of the sets in which a counter is looked for, and the
// order of the counters.
var preference = [numSets]CounterSet{setWideErrors, setWide, setCast, setBase, setWait, setQP1, setRcvErrors, setDiscards, setBlocks, setRSFEC, setLanes}

// newCounter returns the counter that element e of f is.
func newCounter(f *mad.Field, e int) Counter {
	c := Counter{Name: f.Script, Doc: strings.TrimSuffix(f.Doc, "."), Scale: 1}
	if f.Count > 1 {
		c.Name += "_" + string(rune('0'+e/10)) + string(rune('0'+e%10))
	}
	// On PAM4 some symbols are always corrected.
	c.Traffic = strings.HasSuffix(c.Name, "_pkts") || c.Name == "port_xmit_wait" || strings.Contains(c.Name, "correct")
	if base, ok := strings.CutSuffix(c.Name, "_data"); ok {
		// The counter's unit is 4 bytes, which is often overlooked.
		c.Name, c.Traffic, c.Scale = base+"_bytes", true, 4
		c.Doc = strings.TrimSuffix(c.Doc, ", in units of 4 bytes") + ", in bytes"
	}
	if strings.Contains(c.Name, "uncorrect") {
		c.Traffic = false
	}
	return c
}

// Threshold is how often a counter may count: more is reported.
type Threshold struct {
	Counter string // its name in Counters
	Count   uint64
	Per     time.Duration // 0: in the window
}

// maxThresholds is how long a file of thresholds may be, in bytes.
const maxThresholds = 1 << 20

// ReadThresholds reads a file of thresholds, as infiniband-diags has it
// (etc/error_thresholds; ibqueryerrors.c, set_thresholds): NAME=NUMBER in a line,
// # begins a comment, and of two with one name the second counts. There a number limits
// the count since the counter was cleared; here the count in a
// window, or in the time that may follow: 5/min, 100/s, 3/h. Names of scripts are
// accepted, too. path is for messages.
func ReadThresholds(r io.Reader, path string) ([]Threshold, error) {
	in, err := format.Bounded(r, path, maxThresholds)
	if err != nil {
		return nil, err
	}
	var list []Threshold
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		t, err := parseThreshold(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		list = append(list, t)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s: a line is longer than %d bytes", path, bufio.MaxScanTokenSize)
	} else if err != nil {
		return nil, err
	}
	return list, nil
}

// per are the units of time that may follow a number.
var per = map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour}

func parseThreshold(line string) (t Threshold, err error) {
	name, value, ok := strings.Cut(line, "=")
	if !ok {
		return t, fmt.Errorf("expected NAME=NUMBER, got %.40q", line)
	}
	name = strings.TrimSpace(name)
	if t.Counter, err = thresholdCounter(name); err != nil {
		return t, err
	}
	number, unit, rated := strings.Cut(strings.TrimSpace(value), "/")
	if t.Count, err = strconv.ParseUint(strings.TrimSpace(number), 0, 64); err != nil {
		return t, fmt.Errorf("%s: expected a number, or one per time such as 5/min, got %.40q", t.Counter, value)
	}
	if t.Per = per[strings.TrimSpace(unit)]; rated && t.Per == 0 {
		return t, fmt.Errorf("%s: a number may be per s, min or h, got %.40q", t.Counter, value)
	}
	return t, nil
}

// thresholdCounter returns the counter of a name, as the specification or as scripts spell it.
func thresholdCounter(name string) (string, error) {
	var names []string
	for _, c := range Counters() {
		if c.Traffic && c.Name != "port_xmit_wait" {
			continue
		}
		if c.Name == name || c.Name == mad.SnakeName(name) {
			return c.Name, nil
		}
		names = append(names, c.Name)
	}
	return "", fmt.Errorf("unknown error counter %.40q%s", name, fabric.DidYouMean(mad.SnakeName(name[:min(len(name), 64)]), names))
}
