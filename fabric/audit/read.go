package audit

import (
	"cmp"
	"iter"
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
	table  *portTable              // shared with other reads of the same ports
	kind   []uint32                // by port, an index of kinds; shared likewise
	kinds  []portKind              // what ports answered
	after  [numAttributes][]uint32 // by port, from Began to the answer in ticks; nil: no port answered
	counts counts
}

// tick is the unit of Read.after, of which 32 bits hold a day.
const tick = 25 * time.Microsecond

// portTable are ports, the first ones sorted by key. Those from distinct on are not kept for
// the next run: they did not answer, or have no key, or the key of another port.
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
	holdsErrors         // without those of traffic
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

// newLayout is the layout of ports that answered for some sets.
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

// number is the index of a kind in kinds.
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

// PortKey is the key of what is kept of a port: port GUID and number.
type PortKey struct {
	GUID mad.GUID
	Num  uint8
}

// KeyOf is the key of p; false: it cannot be distinguished from another.
func KeyOf(p *fabric.Port) (PortKey, bool) {
	return PortKey{p.GUID(), uint8(p.Num())}, p.GUID() != 0
}

func (k PortKey) compare(x PortKey) int {
	return cmp.Or(cmp.Compare(k.GUID, x.GUID), cmp.Compare(k.Num, x.Num))
}

// Len is the number of ports that are kept.
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

// port is a port by its index.
func (r *Read) port(i int) PortRead { return PortRead{r, int32(i)} }

// Port is the port of that key; the zero PortRead if it was not read.
func (r *Read) Port(k PortKey) PortRead {
	i, ok := sort.Find(r.table.distinct, func(i int) int { return k.compare(r.table.ids[i].key) })
	if !ok {
		return PortRead{}
	}
	return r.port(i)
}

// share uses the columns of an earlier read that are the same.
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

// Join returns the ports of r and of x, which was read later; those of both are x's.
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

// reduced is r with fewer counters.
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
