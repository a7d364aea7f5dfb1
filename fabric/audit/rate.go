package audit

import (
	"iter"
	"math"
	"math/bits"
	"slices"
	"sync"
	"time"

	"fabsh/fabric"
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

// Whys are the names of all reasons but Known, in their order.
var Whys = []string{"not_supported", "no_answer", "no_earlier_read", "too_short", "replaced", "cleared", "node_reset", "saturated"}

// String returns the name of w; "" for Known.
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

// Window is the time between two reads of a port, and what it counted in that time.
type Window struct {
	before, after PortRead      // before may be unknown
	gap           time.Duration // from the begin of one read to the begin of the other
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

// Groups returns the names of the groups of counters that the agent has, for all its ports.
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

// PerSecond returns the rate.
func (r Rate) PerSecond() float64 { return float64(r.Count) / r.Window.Seconds() }

// Length returns the length of the window of the main attribute; false: unknown, as after the
// clock was set back.
func (w *Window) Length() (time.Duration, bool) {
	if !w.before.Known() {
		return 0, false
	}
	d := w.length(w.before.main(), w.after.main())
	return max(0, d), d > 0
}

// length returns the time from the answer with an attribute to the answer with another.
func (w *Window) length(before, after int) time.Duration {
	return w.gap + w.after.after(after) - w.before.after(before)
}

// Value returns a counter, an index of Counters, at the end of the window, times its
// Scale; false: unknown.
func (w *Window) Value(counter int) (uint64, bool) {
	return w.after.valueOf(counter)
}

// Rate returns the rate of a counter, an index of Counters.
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

// sum returns the sum of the counters that include the counters of a set (wholes); false: the
// set has no such counters, or they are unknown.
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

// wholes returns, for each set, the indices of the counters that include the counters of the set.
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

// Comparison compares a read with earlier ones. Windows of ports are made when they are needed:
// with many earlier reads they would take more memory than the reads.
type Comparison struct {
	earlier []earlierRead // the newest first
}

// earlierRead is a read that another is compared with.
type earlierRead struct {
	read  *Read
	gap   time.Duration // to the begin of the other read
	index []int32       // by port of the other read: its index in this one; -1: it was not read
	falls []fall        // by port of the other read; nil: none fell
}

// fall is what happened to the counters of a port between two reads.
type fall uint8

const (
	notFallen  fall = iota
	portFallen      // a counter has a lower value
	nodeFallen      // and so it is at all ports of its node that had counted something, of which there are several
)

// Add compares r also with an earlier read, which is older than the reads added before. Ports are
// matched by key.
//
// If the clock was set back since a read, the age of older ones is unknown, and they are left
// out.
func (c *Comparison) Add(r, earlier *Read) {
	for i := range c.earlier {
		if c.earlier[i].read.table == earlier.table {
			c.add(r, earlier, c.earlier[i].index)
			return
		}
	}
	index := make([]int32, len(r.table.ids))
	n := r.table.distinct
	same := n == earlier.table.distinct && slices.Equal(r.table.ids[:n], earlier.table.ids[:n])
	for i := range index {
		index[i] = -1
		if same && i < n {
			index[i] = int32(i)
		} else if p := earlier.Port(r.port(i).Key()); p.Known() {
			index[i] = p.at
		}
	}
	c.add(r, earlier, index)
}

// AddPorts is Add for ports of two reads, which are matched by index.
func (c *Comparison) AddPorts(r, earlier *Read, ports, before []PortRead) {
	index := make([]int32, len(r.table.ids))
	for i := range index {
		index[i] = -1
	}
	for i, p := range ports {
		if p.Known() && before[i].Known() {
			index[p.at] = before[i].at
		}
	}
	c.add(r, earlier, index)
}

func (c *Comparison) add(r, earlier *Read, index []int32) {
	if n := len(c.earlier); n > 0 && c.earlier[n-1].gap <= 0 {
		return
	}
	e := earlierRead{read: earlier, gap: r.Began.Sub(earlier.Began), index: index}
	type node struct{ ports, fell int }
	nodes := map[mad.GUID]node{}
	for i, at := range index {
		if at < 0 || !earlier.port(int(at)).counted() {
			continue
		}
		n := nodes[r.table.ids[i].node]
		if n.ports++; fallen(earlier.port(int(at)), r.port(i)) {
			if e.falls == nil {
				e.falls = make([]fall, len(index))
			}
			e.falls[i] = portFallen
			n.fell++
		}
		nodes[r.table.ids[i].node] = n
	}
	for i, f := range e.falls {
		if n := nodes[r.table.ids[i].node]; f != notFallen && n.fell == n.ports && n.ports > 1 {
			e.falls[i] = nodeFallen
		}
	}
	c.earlier = append(c.earlier, e)
}

// Gaps returns the times from the begin of the earlier reads to the begin of the read.
func (c *Comparison) Gaps() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for i := range c.earlier {
			if !yield(c.earlier[i].gap) {
				return
			}
		}
	}
}

// fallen reports whether a counter has a lower value than before.
func fallen(before, after PortRead) (fell bool) {
	if before.alike(after) {
		eachValue(before, after, func(_ int, old, v uint64) { fell = fell || v < old })
		return fell
	}
	for _, counter := range after.kind().layout.counters {
		v, s := after.value(counter)
		if old, from := before.value(counter); from != nil && from.set == s.set && v < old {
			return true
		}
	}
	return false
}

// alike reports whether p and q have the same counters, read from the same attributes.
func (p PortRead) alike(q PortRead) bool {
	return p.kind().answered == q.kind().answered && p.read.holds == q.read.holds
}

// eachValue calls f with the place in the layout of each counter that is not 0 in one of two reads that
// are alike, and its values.
func eachValue(before, after PortRead, f func(at int, old, v uint64)) {
	n := maskWords(len(after.kind().layout.counters))
	was, is := before.words(), after.words()
	i, j := n, n // the next value of each
	for word := range n {
		var a, b uint64
		if was != nil {
			a = was[word]
		}
		if is != nil {
			b = is[word]
		}
		for left := a | b; left != 0; left &= left - 1 {
			var old, v uint64
			bit := left & -left
			if a&bit != 0 {
				old = was[i]
				i++
			}
			if b&bit != 0 {
				v = is[j]
				j++
			}
			f(64*word+bits.TrailingZeros64(left), old, v)
		}
	}
}

// words returns the values of the port as counts keeps them; nil: all are 0.
func (p PortRead) words() []uint64 {
	start := p.read.counts.start[p.at]
	if start == 0 {
		return nil
	}
	return p.read.counts.pieces[start>>pieceBits][start&(1<<pieceBits-1):]
}

// Windows returns the windows of a port of the read, the newest first; one without rates, if there
// is no earlier read of the port.
func (c *Comparison) Windows(p PortRead) iter.Seq[Window] {
	return func(yield func(Window) bool) {
		found := false
		for i := range c.earlier {
			w, ok := c.earlier[i].window(p)
			if !ok {
				continue
			}
			if found = true; !yield(w) {
				return
			}
		}
		if !found {
			yield(Window{after: p})
		}
	}
}

// window returns the window of a port from the read on; false: the read does not have it.
func (e *earlierRead) window(p PortRead) (w Window, ok bool) {
	at := e.index[p.at]
	if at < 0 {
		return w, false
	}
	w = Window{before: e.read.port(int(at)), after: p, gap: e.gap}
	if e.falls != nil {
		w.fall = e.falls[p.at]
	}
	return w, true
}

// Newest returns the newest window of a port.
func (c *Comparison) Newest(p PortRead) (newest Window) {
	for w := range c.Windows(p) {
		return w
	}
	return newest
}

// Errors returns the counters of errors that need attention, as indices of Counters: counters that
// counted (moving), counters at their largest value (saturated), and counters, also of traffic,
// without an answer (silent). Most ports have none.
func (w *Window) Errors() (moving, saturated, silent []int) {
	consider := func(i int) {
		switch x := w.Rate(i); {
		case x.Why == Saturated:
			saturated = append(saturated, i)
		case x.Why == Known && x.Count > 0:
			moving = append(moving, i)
		}
	}
	all := Counters()
	for _, i := range w.after.kind().layout.counters {
		if all[i].Traffic {
			continue
		}
		v, s := w.after.value(i)
		if !w.before.Known() && v == s.field.Max() { // whatever it was
			saturated = append(saturated, i)
			continue
		}
		if w.before.Known() && v != s.field.Max() {
			if old, from := w.before.value(i); from != nil && from.set == s.set && old == v {
				continue // as at most ports
			}
		}
		consider(i)
	}
	if w.after.kind().silent != 0 || w.before.Known() && w.before.kind().silent != 0 {
		for i := range all {
			if w.Rate(i).Why == NoAnswer {
				silent = append(silent, i)
			}
		}
	}
	return moving, saturated, silent
}

// Grown returns the counters of errors that counted, as indices of Counters.
func (w *Window) Grown() (list []int) {
	if !w.before.Known() || !w.before.counted() && !w.after.counted() {
		return nil
	}
	all, counters := Counters(), w.after.kind().layout.counters
	consider := func(i int) {
		if all[i].Traffic {
			return
		}
		if x := w.Rate(i); x.Why == Known && x.Count > 0 {
			list = append(list, i)
		}
	}
	if w.before.alike(w.after) {
		eachValue(w.before, w.after, func(at int, old, v uint64) {
			if v != old {
				consider(counters[at])
			}
		})
		return list
	}
	for _, i := range counters {
		consider(i)
	}
	return list
}

// FEC reports whether counters of symbols that FEC corrected are known.
func (w *Window) FEC() bool {
	return w.before.Known() && w.before.kind().answered&w.after.kind().answered&maskOf(setRSFEC, setLanes) != 0
}

// Use returns what a port sent as a share of the capacity of its link, in bits per second; false:
// unknown.
func (w *Window) Use(bits float64) (share float64, known bool) {
	sent := w.Rate(CounterIndex("port_xmit_bytes"))
	if sent.Why != Known || !(bits > 0) {
		return 0, false
	}
	return sent.PerSecond() * 8 / bits, true
}

// WaitShare returns the share of waiting for credits (PortXmitWait) in waiting and sending.
// A tick is assumed to last as long as 4 bytes take: devices differ. False: unknown.
func (w *Window) WaitShare() (share float64, known bool) {
	sent, wait := w.Traffic()
	return WaitShare(sent, wait)
}

// Traffic returns the rates of bytes sent and of waiting for credits (PortXmitWait).
func (w *Window) Traffic() (sent, wait Rate) {
	i := trafficCounters()
	return w.Rate(i[0]), w.Rate(i[1])
}

var trafficCounters = sync.OnceValue(func() [2]int {
	return [2]int{CounterIndex("port_xmit_bytes"), CounterIndex("port_xmit_wait")}
})

// WaitShare is Window.WaitShare of rates.
func WaitShare(sent, wait Rate) (share float64, known bool) {
	if sent.Why != Known || wait.Why != Known {
		return 0, false
	}
	if wait.Count == 0 {
		return 0, true
	}
	return wait.PerSecond() / (sent.PerSecond()/4 + wait.PerSecond()), true
}

// BitErrorRate returns symbol errors divided by the bits that a link of so many bits a second
// carried in the window: an estimate, and 0 where none was counted, which means little for a short
// window (JudgeBER). False: unknown.
func (w *Window) BitErrorRate(bits float64) (rate float64, known bool) {
	errors := w.Rate(CounterIndex("symbol_error_counter"))
	if errors.Why != Known || !(bits > 0) {
		return 0, false
	}
	return float64(errors.Count) / (bits * errors.Window.Seconds()), true
}

// ErrorRates returns the rates of the error counters that counted; false: whether any did is
// unknown, because a counter fell, or none is known.
func (w *Window) ErrorRates() (rates []Rate, known bool) {
	moving, saturated, silent := w.Errors()
	if fell, _ := w.Fell(); fell || len(moving) == 0 && len(saturated)+len(silent) > 0 {
		return nil, false
	}
	for _, i := range moving {
		rates = append(rates, w.Rate(i))
	}
	return rates, true
}

// BER is the judgement of a link's bit errors by a target, such as 1e-15: how
// many there were in a window, and how many the target allows.
type BER struct {
	Verdict BERVerdict
	Errors  uint64
	Allowed float64       // rate x seconds x target
	Window  time.Duration // 0: unknown
	Needs   time.Duration // from when on no error is enough to pass; 0: unknown
}

// BERVerdict is the outcome of JudgeBER.
type BERVerdict string

// The verdicts. Unknown is never OK.
const (
	BEROK       BERVerdict = "ok"
	BERExceeded BERVerdict = "exceeded"
	BERTooShort BERVerdict = "window_too_short"
	BERUnknown  BERVerdict = "unknown" // the link's rate, or the errors, are unknown
)

const (
	// enough events that a target allows make the count itself the test.
	enough = 3
	// Below, the test is how likely so many events are at the target: less than
	// this is not chance. One event is never enough.
	unlikely = 1e-3
)

// JudgeBER judges errors of a link of bits per second in a window.
func JudgeBER(errors uint64, window time.Duration, bits, target float64) BER {
	b := BER{Errors: errors, Window: window, Allowed: bits * window.Seconds() * target}
	if seconds := enough / (bits * target); seconds < math.MaxInt64/float64(time.Second) {
		b.Needs = time.Duration(seconds * float64(time.Second))
	}
	switch {
	case !(bits > 0) || !(target > 0):
		return BER{Verdict: BERUnknown, Errors: errors, Window: window}
	case b.Allowed >= enough && float64(errors) <= b.Allowed:
		b.Verdict = BEROK
	case b.Allowed >= enough, errors > 1 && atLeast(errors, b.Allowed) < unlikely:
		b.Verdict = BERExceeded
	default:
		b.Verdict = BERTooShort
	}
	return b
}

// atLeast returns the probability of n events or more where mean are expected
// (Poisson).
func atLeast(n uint64, mean float64) float64 {
	term, below := math.Exp(-mean), 0.0
	for k := uint64(0); k < n && k < 1000; k++ {
		below += term
		term *= mean / float64(k+1)
	}
	return max(0, 1-below)
}

// dataGbps is the data rate of a lane in Gb/s: the signalling rate without what
// the line code takes (IBA volume 2: 8b/10b up to QDR, 64b/66b up to EDR, then
// 64b/66b transcoded, with RS-FEC).
var dataGbps = map[string]float64{
	"sdr": 2, "ddr": 4, "qdr": 8, "fdr10": 10, "fdr": 14.0625 * 64 / 66, "edr": 25, "hdr": 50, "ndr": 100, "xdr": 200,
}

// LinkBits returns the data rate of a link in bits per second; 0: unknown.
func LinkBits(width, speed string) float64 {
	return float64(mad.WidthLanes(width)) * dataGbps[speed] * 1e9
}

// PortRates is what a run read of the counters of a port. A port that did not answer has no
// Read.
type PortRates struct {
	Port     *fabric.Port
	Read     PortRead
	Since    *Comparison // with earlier reads
	TimedOut bool        // the agent timed out; else it refused to answer
}

// Answered reports whether the counters were read.
func (r *PortRates) Answered() bool { return r.Read.Known() }

// Windows returns the windows to earlier reads, the newest first; one without rates if there is no
// earlier read; none for a port that did not answer.
func (r *PortRates) Windows() iter.Seq[Window] {
	if !r.Answered() {
		return func(func(Window) bool) {}
	}
	return r.Since.Windows(r.Read)
}

// Newest returns the first of Windows. The port must have answered.
func (r *PortRates) Newest() Window { return r.Since.Newest(r.Read) }

// BER returns the bit error rate of the port's link in the longest window that is known;
// false: no such window, or the link's rate is unknown.
func (r *PortRates) BER() (rate float64, window time.Duration, ok bool) {
	if r.Port.PhysicalState() != mad.PortPhysicalStateLinkUp { // then PortInfo says anything
		return 0, 0, false
	}
	bits := LinkBits(r.Port.Width(), r.Port.Speed())
	counter := CounterIndex("symbol_error_counter")
	for w := range r.Windows() {
		if one, known := w.BitErrorRate(bits); known && w.Rate(counter).Window > window {
			rate, window, ok = one, w.Rate(counter).Window, true
		}
	}
	return rate, window, ok
}
