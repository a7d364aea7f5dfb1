package audit

import (
	"strings"
	"sync"

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

// CounterAttributes are the attributes that are read, in the order of their
// requests.
var CounterAttributes = [...]*mad.Attribute{
	mad.AttrPortCounters, mad.AttrPortCountersExtended, mad.AttrPortRcvErrorDetails, mad.AttrPortXmitDiscardDetails, mad.AttrPortExtendedSpeedsCounters,
}

// numAttributes is their number.
const numAttributes = len(CounterAttributes)

// counterSets declares each set: its attribute, an index of CounterAttributes, the
// variant of its layout, and its fields.
var counterSets = [numSets]struct {
	attr    int
	variant string
	has     func(f *mad.Field) bool
	// partOf are counters of PortCounters that those of the set are a part of (IBA
	// 16.1.4.1, 16.1.4.2): while these are 0 the set is 0, and not read.
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

// setsOf are the sets of an attribute, an index of CounterAttributes.
func setsOf(attr int) SetMask { return setsByAttribute[attr] }

var setsByAttribute = func() (masks [numAttributes]SetMask) {
	for s := range counterSets {
		masks[counterSets[s].attr] |= 1 << s
	}
	return masks
}()

// supported are the sets that ClassPortInfo announces, and those known only from an
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

// Counters are all counters, in the order of their attributes.
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

// newCounter is the counter that element e of f is.
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

// CounterIndex is the index in Counters of the one of that name; or -1.
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

// source is where a port that has answered for some sets shows c; nil: nowhere.
func (c *Counter) source(sets SetMask) *source {
	for i := range c.sources {
		if sets.has(c.sources[i].set) {
			return &c.sources[i]
		}
	}
	return nil
}
