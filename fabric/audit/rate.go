package audit

import (
	"math"
	"sync"
	"time"
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
	before, after PortRead      // before may be unknown
	gap           time.Duration // from the begin of the one read to that of the other
	fall          fall
}

// replaced reports whether another device has the port GUID.
func (w *Window) replaced() bool {
	if !w.before.Known() {
		return false
	}
	old, now := w.before.id(), w.after.id()
	return old.system != now.system && old.system != 0 && now.system != 0 || old.node != now.node
}

// Fell reports whether a counter of the port fell, because it was cleared, or
// the node was rebooted; and whether counters fell at all ports of a node that has
// several. Counters of another device do not count.
func (w *Window) Fell() (fell, all bool) {
	if w.replaced() {
		return false, false
	}
	return w.fall != notFallen, w.fall == nodeFallen
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
	if !w.before.Known() {
		return 0, false
	}
	d := w.length(w.before.main(), w.after.main())
	return max(0, d), d > 0
}

// length is the time from the answer with an attribute to that with another.
func (w *Window) length(before, after int) time.Duration {
	return w.gap + w.after.after(after) - w.before.after(before)
}

// Value is a counter, an index of Counters, at the end of the window, times its
// Scale; false: unknown.
func (w *Window) Value(counter int) (uint64, bool) {
	return w.after.valueOf(counter)
}

// Rate is that of a counter, an index of Counters.
func (w *Window) Rate(counter int) Rate {
	c := &Counters()[counter]
	v, s, _ := w.after.readOf(counter)
	if s == nil {
		if w.after.lacks(c) {
			return Rate{Why: NoAnswer}
		}
		return Rate{Why: NotSupported}
	}
	if !w.before.Known() {
		return Rate{Why: NoEarlierRead}
	}
	old, from, asked := w.before.readOf(counter)
	r := Rate{}
	attr := counterSets[s.set].attr
	if !asked || w.after.kind().answered&setsOf(attr) == 0 {
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
	case w.fall == nodeFallen:
		r.Why = NodeReset
	case v < old, w.fall != notFallen && old == 0: // 0: its value when it was cleared is unknown
		r.Why = Cleared
	case v == s.field.Max(), v-old > math.MaxUint64/c.Scale:
		r.Why = Saturated
	}
	if r.Why == Known {
		r.Count = (v - old) * c.Scale
	}
	return r
}

// sum is what the counters come to that those of a set are a part of; false: they
// are part of none, or that is unknown.
func (p PortRead) sum(set CounterSet) (sum uint64, ok bool) {
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
func (p PortRead) has(s CounterSet) bool {
	return p.kind().answered.has(s) || p.kind().answered.has(setWideErrors) && (s == setBase || s == setWait || s == setQP1)
}

// lacks reports whether c was requested, without an answer.
func (p PortRead) lacks(c *Counter) bool {
	return c.source(p.kind().silent) != nil
}
