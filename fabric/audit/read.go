package audit

import (
	"cmp"
	"iter"
	"math"
	"math/bits"
	"slices"
	"sort"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// Read is the counters of ports at one time, in columns by port: programs keep many reads of
// many ports.
type Read struct {
	Began time.Time

	holds  holding
	table  *portTable              // shared with other reads of these ports
	kind   []uint32                // by port, an index of kinds; shared likewise
	kinds  []portKind              // what ports answered
	after  [numAttributes][]uint32 // by port, from Began to the answer in ticks; nil: no port answered
	counts counts
}

// PortKey is the key of what is kept of a port: port GUID and number.
type PortKey struct {
	GUID mad.GUID
	Num  uint8
}

// KeyOf returns the key of p; false: it cannot be distinguished from another.
func KeyOf(p *fabric.Port) (PortKey, bool) {
	return PortKey{p.GUID(), uint8(p.Num())}, p.GUID() != 0
}

func (k PortKey) compare(x PortKey) int {
	return cmp.Or(cmp.Compare(k.GUID, x.GUID), cmp.Compare(k.Num, x.Num))
}

// Len returns the number of ports that are kept.
func (r *Read) Len() int { return r.table.distinct }

// Ports returns the keys of the ports that are kept, and the GUIDs of their nodes.
func (r *Read) Ports() iter.Seq2[PortKey, mad.GUID] {
	return func(yield func(PortKey, mad.GUID) bool) {
		for _, id := range r.table.ids[:r.table.distinct] {
			if !yield(id.key, id.node) {
				return
			}
		}
	}
}

// All returns the ports that are kept, and the GUIDs of their nodes.
func (r *Read) All() iter.Seq2[PortRead, mad.GUID] {
	return func(yield func(PortRead, mad.GUID) bool) {
		for i := range r.table.distinct {
			if !yield(r.port(i), r.table.ids[i].node) {
				return
			}
		}
	}
}

// port returns a port by its index.
func (r *Read) port(i int) PortRead { return PortRead{r, int32(i)} }

// Port returns the port of that key; the zero PortRead if it was not read.
func (r *Read) Port(k PortKey) PortRead {
	i, ok := sort.Find(r.table.distinct, func(i int) int { return k.compare(r.table.ids[i].key) })
	if !ok {
		return PortRead{}
	}
	return r.port(i)
}

// share replaces columns of r that equal columns of an earlier read by these, to save memory.
func (r *Read) share(x *Read) {
	if x == nil || r.table.distinct != x.table.distinct || !slices.Equal(r.table.ids, x.table.ids) {
		return
	}
	r.table = x.table
	alike := func(a, b portKind) bool { return a.answered == b.answered && a.silent == b.silent }
	if slices.EqualFunc(r.kinds, x.kinds, alike) && slices.Equal(r.kind, x.kind) {
		r.kind = x.kind
	}
}

// Join returns the ports of r and of x, which was read later; x has precedence.
func (r *Read) Join(x *Read) *Read {
	a := NewAnswers(r.Began, x.Len()+r.Len())
	for i := range x.Len() {
		a.addRead(x.port(i), x.Began.Sub(r.Began))
	}
	for i := range r.Len() {
		if p := r.port(i); !x.Port(p.Key()).Known() {
			a.addRead(p, 0)
		}
	}
	_, joined := a.Read()
	return joined
}

// reduced returns r with fewer counters.
func (r *Read) reduced(to holding) *Read {
	if r.holds >= to {
		return r
	}
	old := *r
	old.holds, old.kinds = to, slices.Clone(r.kinds)
	layouts := kindSet{}
	for i := range old.kinds {
		old.kinds[i].layout = layouts.layout(old.kinds[i].answered, to)
	}
	old.counts = newCounts(len(r.kind))
	var values []uint64
	for i := range r.kind {
		if r.counts.start[i] == 0 {
			continue
		}
		from, l := r.port(i), old.kinds[r.kind[i]].layout
		values = values[:0]
		for _, counter := range l.counters {
			v, _ := from.value(counter)
			values = append(values, v)
		}
		old.counts.put(i, values)
	}
	return &old
}

// PortRead is the counters of a port in a Read. The zero value is a port that was not read.
type PortRead struct {
	read *Read
	at   int32 // index
}

// Known reports whether the port was read.
func (p PortRead) Known() bool { return p.read != nil }

// Key returns the key of the port.
func (p PortRead) Key() PortKey { return p.id().key }

func (p PortRead) id() *portID { return &p.read.table.ids[p.at] }

func (p PortRead) kind() *portKind { return &p.read.kinds[p.read.kind[p.at]] }

// after returns the time from the begin of the read to the answer with an attribute.
func (p PortRead) after(attr int) time.Duration {
	if column := p.read.after[attr]; column != nil {
		return time.Duration(column[p.at]) * tick
	}
	return 0
}

// main returns the attribute that every port which was read has answered with: PortCounters,
// or PortCountersExtended where it has all counters.
func (p PortRead) main() int {
	if p.kind().answered.has(setBase) {
		return counterSets[setBase].attr
	}
	return counterSets[setWideErrors].attr
}

// value returns a counter as it was read, and where; nil: it was not read.
func (p PortRead) value(counter int) (uint64, *source) {
	l := p.kind().layout
	at := l.position[counter]
	if at < 0 {
		return 0, nil
	}
	return p.read.counts.at(int(p.at), len(l.counters), at), l.fields[at]
}

// Value returns a counter of Counters by name, times its Scale; false: unknown.
func (p PortRead) Value(name string) (uint64, bool) { return p.valueOf(CounterIndex(name)) }

func (p PortRead) valueOf(counter int) (uint64, bool) {
	v, s, _ := p.readOf(counter)
	scale := Counters()[counter].Scale
	if s == nil || v > math.MaxUint64/scale {
		return 0, false
	}
	return v * scale, true
}

// counted reports whether a counter of p is above 0.
func (p PortRead) counted() bool { return p.read.counts.start[p.at] > 0 }

// readOf returns the value of a counter, and where it was read; or where it would have
// been read if it were not known to be 0 without a request (asked is false).
func (p PortRead) readOf(counter int) (v uint64, s *source, asked bool) {
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

// tick is the unit of Read.after, of which 32 bits hold a day.
const tick = 25 * time.Microsecond

// portTable is a list of ports. The first ones are sorted by key; ports from index distinct on
// are not kept for the next run: they did not answer, or have no key, or the key of another port.
type portTable struct {
	ids      []portID
	distinct int
}

// portID is what a port is recognised by.
type portID struct {
	key    PortKey
	node   mad.GUID
	system mad.GUID // SystemImageGUID; 0: unknown
}

// portKind is what a port answered.
type portKind struct {
	answered SetMask
	silent   SetMask // requested, without an answer
	layout   *layout
}

// holding is which counters a read has: the older it is, the fewer are useful.
type holding uint8

const (
	holdsAll    holding = iota
	holdsErrors         // without counters of traffic
	holdsDowns          // LinkDowned alone
)

func (h holding) has(c *Counter) bool {
	switch h {
	case holdsAll:
		return true
	case holdsErrors:
		return !c.Traffic
	}
	return c.Name == "link_downed_counter"
}

// layout has which counters a port shows, and where among its values.
type layout struct {
	counters []int
	position []int // by counter; -1: not there
	fields   []*source
}

// newLayout returns the layout of ports that answered for some sets.
func newLayout(sets SetMask, holds holding) *layout {
	l := new(layout)
	for i := range Counters() {
		c := &Counters()[i]
		s := c.source(sets)
		if s == nil || !holds.has(c) {
			l.position = append(l.position, -1)
			continue
		}
		l.position = append(l.position, len(l.counters))
		l.counters = append(l.counters, i)
		l.fields = append(l.fields, s)
	}
	return l
}

// kindSet numbers kinds of ports.
type kindSet struct {
	kinds   []portKind
	index   map[[2]SetMask]uint32
	layouts map[SetMask]*layout
}

func (k *kindSet) layout(answered SetMask, holds holding) *layout {
	l := k.layouts[answered]
	if l == nil {
		if k.layouts == nil {
			k.layouts = map[SetMask]*layout{}
		}
		l = newLayout(answered, holds)
		k.layouts[answered] = l
	}
	return l
}

// number returns the index of a kind in kinds, and adds it if it is new.
func (k *kindSet) number(answered, silent SetMask, holds holding) uint32 {
	i, ok := k.index[[2]SetMask{answered, silent}]
	if !ok {
		if k.index == nil {
			k.index = map[[2]SetMask]uint32{}
		}
		i = uint32(len(k.kinds))
		k.index[[2]SetMask{answered, silent}] = i
		k.kinds = append(k.kinds, portKind{answered, silent, k.layout(answered, holds)})
	}
	return i
}

// counts are the values of counters by port. Zeros, as most values are, take no memory.
type counts struct {
	start  []uint32   // by port, where its words begin in pieces; 0: all values are 0
	pieces [][]uint64 // a bit for each value that is not 0, from the lowest, then these values
}

// pieceBits is how much room is made at a time, in words, as a power of 2.
const pieceBits = 12

func newCounts(ports int) counts { return counts{start: make([]uint32, ports)} }

// put replaces the values of a port.
func (c *counts) put(port int, values []uint64) {
	words := maskWords(len(values))
	for _, v := range values {
		if v > 0 {
			words++
		}
	}
	if c.start[port] = 0; words == maskWords(len(values)) {
		return
	}
	last := len(c.pieces) - 1
	if last < 0 || len(c.pieces[last])+words > 1<<pieceBits {
		c.pieces = append(c.pieces, make([]uint64, 0, 1<<pieceBits))
		if last++; last == 0 {
			c.pieces[0] = append(c.pieces[0], 0) // no port begins at 0
		}
	}
	piece := c.pieces[last]
	begin := len(piece)
	c.start[port] = uint32(last<<pieceBits | begin)
	piece = piece[:begin+words]
	next := begin + maskWords(len(values))
	for i, v := range values {
		if v > 0 {
			piece[begin+i/64] |= 1 << (i % 64)
			piece[next] = v
			next++
		}
	}
	c.pieces[last] = piece
}

// at returns value i of n of a port.
func (c *counts) at(port, n, i int) uint64 {
	start := c.start[port]
	if start == 0 {
		return 0
	}
	words := c.pieces[start>>pieceBits][start&(1<<pieceBits-1):]
	bit := uint64(1) << (i % 64)
	if words[i/64]&bit == 0 {
		return 0
	}
	before := bits.OnesCount64(words[i/64] & (bit - 1))
	for _, w := range words[:i/64] {
		before += bits.OnesCount64(w)
	}
	return words[maskWords(n)+before]
}

func maskWords(n int) int { return (n + 63) / 64 }
