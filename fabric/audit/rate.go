package audit

import (
	"math"
	"slices"
	"sync"
	"time"

	"fabsh/mad"
)

// Why is the reason why the rate of a counter is unknown.
type Why uint8

const (
	Known         Why = iota
	NotSupported      // the agent does not have the counter
	NoAnswer          // no answer, now or then
	NoEarlierRead     // the port was not read before, or not that counter
	TooShort          // the reads are closer together than agents renew counters
	Replaced          // another device has the port GUID now
	Cleared           // it fell, or, where others of the port fell, it was and is 0
	NodeReset         // the counters of all ports of the node fell: it was rebooted, or cleared as a whole
	Saturated         // it stands at its largest value
)

// Whys are the words of all but Known, in this order.
var Whys = []string{"not_supported", "no_answer", "no_earlier_read", "too_short", "replaced", "cleared", "node_reset", "saturated"}

// String is the word of w; "" of Known.
func (w Why) String() string {
	if w == Known {
		return ""
	}
	return Whys[w-1]
}

// refresh is the shortest window that rates are computed for. The specification does
// not specify how often an agent updates its counters; some do so seldom (kernel
// documentation, sysfs-class-infiniband, hw_counters/lifespan).
const refresh = time.Second

// MinWindow is the shortest window for rates.
const MinWindow = 2 * refresh

// Window is what lies between two reads of a port.
type Window struct {
	before, after *PortRead
	gap           time.Duration // from the begin of the one read to that of the other
	fell          bool          // a counter of the port fell
	reset         bool          // and so it is at all ports of its node
}

// NewWindow is the window of a port between two reads; before is nil where the
// port was not read. fell is what Fallen found.
func NewWindow(before, after *PortRead, gap time.Duration, fell map[mad.GUID]NodeFall) Window {
	w := Window{before: before, after: after, gap: gap}
	if before != nil {
		w.fell = fallen(before, after)
		n := fell[after.Node]
		w.reset = w.fell && n.fell == n.ports && n.ports > 1
	}
	return w
}

// replaced reports whether another device has the port GUID.
func (w *Window) replaced() bool {
	return w.before != nil && (w.before.System != w.after.System && w.before.System != 0 && w.after.System != 0 || w.before.Node != w.after.Node)
}

// Fell reports whether a counter of the port fell, because it was cleared, or
// the node was rebooted; and whether counters fell at all ports of a node that has
// several. Counters of another device do not count.
func (w *Window) Fell() (fell, all bool) {
	if w.replaced() {
		return false, false
	}
	return w.fell, w.reset
}

// Groups are the words for the groups of counters that the agent has, which it has of
// all ports.
func (w *Window) Groups() (names []string) {
	for s, name := range setNames {
		if name != "" && w.after.has(CounterSet(s)) {
			names = append(names, name)
		}
	}
	return names
}

// NodeFall counts ports of a node that had counted something: at how many of them
// counters fell.
type NodeFall struct{ ports, fell int }

// AddFall counts a port for NewWindow.
func AddFall(m map[mad.GUID]NodeFall, before, after *PortRead) {
	if before == nil || !before.counted() {
		return
	}
	n := m[after.Node]
	n.ports++
	if fallen(before, after) {
		n.fell++
	}
	m[after.Node] = n
}

// counted reports whether a counter of p is above 0.
func (p *PortRead) counted() bool {
	return slices.ContainsFunc(p.values, func(v uint64) bool { return v > 0 })
}

// fallen reports whether a counter has a lower value than before.
func fallen(before, after *PortRead) bool {
	for _, counter := range after.layout.counters {
		v, s := after.value(counter)
		if old, from := before.value(counter); from != nil && from.set == s.set && v < old {
			return true
		}
	}
	return false
}

// Rate is how fast a counter counted.
type Rate struct {
	Why    Why           // Known, or why neither Count nor PerSecond are
	Count  uint64        // in the counter's unit, times Scale
	Window time.Duration // 0: unknown
}

// PerSecond is the rate.
func (r Rate) PerSecond() float64 { return float64(r.Count) / r.Window.Seconds() }

// Length is the window of what all ports have; false without one, as when the clock was set
// back.
func (w *Window) Length() (time.Duration, bool) {
	if w.before == nil {
		return 0, false
	}
	d := w.length(w.before.main(), w.after.main())
	return max(0, d), d > 0
}

// length is the time from the answer with an attribute to that with another.
func (w *Window) length(before, after int) time.Duration {
	return w.gap + w.after.after[after] - w.before.after[before]
}

// Value is a counter, an index of Counters, at the end of the window, times its
// Scale; false: unknown.
func (w *Window) Value(counter int) (uint64, bool) {
	v, s, _ := w.after.read(counter)
	scale := Counters()[counter].Scale
	if s == nil || v > math.MaxUint64/scale {
		return 0, false
	}
	return v * scale, true
}

// Rate is that of a counter, an index of Counters.
func (w *Window) Rate(counter int) Rate {
	c := &Counters()[counter]
	v, s, _ := w.after.read(counter)
	if s == nil {
		if w.after.lacks(c) {
			return Rate{Why: NoAnswer}
		}
		return Rate{Why: NotSupported}
	}
	if w.before == nil {
		return Rate{Why: NoEarlierRead}
	}
	old, from, asked := w.before.read(counter)
	r := Rate{}
	attr := counterSets[s.set].attr
	if !asked || w.after.answered&setsOf(attr) == 0 {
		r.Window, _ = w.Length()
		if sum, _ := w.after.sum(s.set); !asked && v > sum { // it was not 0: only the sum was cleared
			from = nil
		}
	} else {
		r.Window = w.length(attr, attr)
	}
	switch {
	case w.replaced():
		r.Why = Replaced
	case (from == nil || from.set != s.set) && (w.before.lacks(c) || w.after.lacks(c)):
		r.Why = NoAnswer
	case from == nil, from.set != s.set: // another width counts from another value
		r.Why = NoEarlierRead
	case r.Window < refresh:
		r.Why = TooShort
	case w.reset:
		r.Why = NodeReset
	case v < old, w.fell && old == 0: // 0: its value when it was cleared is unknown
		r.Why = Cleared
	case v == s.field.Max(), v-old > math.MaxUint64/c.Scale:
		r.Why = Saturated
	}
	if r.Why == Known {
		r.Count = (v - old) * c.Scale
	}
	return r
}

// read is the value of a counter, and where it was read; or where it would have
// been, had it not been known to be 0 without a request.
func (p *PortRead) read(counter int) (v uint64, s *source, asked bool) {
	if v, s = p.value(counter); s != nil {
		return v, s, true
	}
	c := &Counters()[counter]
	if p.lacks(c) {
		return 0, nil, true
	}
	s = &c.sources[0]
	if sum, ok := p.sum(s.set); !ok || sum > 0 {
		return 0, nil, true
	}
	return 0, s, false
}

// sum is what the counters come to that those of a set are a part of; false: they
// are part of none, or that is unknown.
func (p *PortRead) sum(set CounterSet) (sum uint64, ok bool) {
	for _, i := range wholes()[set] {
		v, s := p.value(i)
		if s == nil {
			return 0, false
		}
		sum, ok = sum+min(v, math.MaxUint64-sum), true
	}
	return sum, ok
}

// wholes are the indices of the counters that those of each set are a part of.
var wholes = sync.OnceValue(func() (list [numSets][]int) {
	for set := range counterSets {
		for _, name := range counterSets[set].partOf {
			list[set] = append(list[set], CounterIndex(name))
		}
	}
	return list
})

// has reports whether the agent has the set, even if it was not read.
func (p *PortRead) has(s CounterSet) bool {
	return p.answered.has(s) || p.answered.has(setWideErrors) && (s == setBase || s == setWait || s == setQP1)
}

// lacks reports whether c was requested, without an answer.
func (p *PortRead) lacks(c *Counter) bool {
	return c.source(p.silent) != nil
}
