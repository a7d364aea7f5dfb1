package audit

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// Read is the counters of ports at one time.
type Read struct {
	Began time.Time
	Ports []PortRead // sorted by Key once the read is complete

	holds   holding
	layouts map[SetMask]*layout
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

// PortRead is the counters of a port.
type PortRead struct {
	Key    PortKey
	Node   mad.GUID
	System mad.GUID // SystemImageGUID; 0: unknown

	answered SetMask
	silent   SetMask                      // requested, without an answer
	after    [numAttributes]time.Duration // from Read.Began to the answer
	layout   *layout
	values   []uint64 // by layout
}

// layout has which counters a port shows, and where in PortRead.values.
type layout struct {
	counters []int
	position []int // by counter; -1: not there
	fields   []*source
	zeros    []uint64 // values of a port that has counted nothing; they are shared
}

// layoutOf is the layout of ports that answered for some sets.
func (r *Read) layoutOf(sets SetMask) *layout {
	if l := r.layouts[sets]; l != nil {
		return l
	}
	l := new(layout)
	for i := range Counters() {
		c := &Counters()[i]
		s := c.source(sets)
		if s == nil || !r.holds.has(c) {
			l.position = append(l.position, -1)
			continue
		}
		l.position = append(l.position, len(l.counters))
		l.counters = append(l.counters, i)
		l.fields = append(l.fields, s)
	}
	l.zeros = make([]uint64, len(l.counters))
	if r.layouts == nil {
		r.layouts = map[SetMask]*layout{}
	}
	r.layouts[sets] = l
	return l
}

// sort sorts the ports by key; of two with one key, which a subnet with a GUID
// twice has, both are dropped: they cannot be distinguished.
func (r *Read) sort() {
	slices.SortStableFunc(r.Ports, func(a, b PortRead) int { return a.Key.compare(b.Key) })
	kept := r.Ports[:0]
	for i := 0; i < len(r.Ports); {
		end := i + 1
		for end < len(r.Ports) && r.Ports[end].Key == r.Ports[i].Key {
			end++
		}
		if end == i+1 {
			kept = append(kept, r.Ports[i])
		}
		i = end
	}
	r.Ports = kept
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

// Port is the port of that key; nil if it was not read.
func (r *Read) Port(k PortKey) *PortRead {
	// By index: slices.BinarySearchFunc would copy each port that it compares.
	i, ok := sort.Find(len(r.Ports), func(i int) int { return k.compare(r.Ports[i].Key) })
	if !ok {
		return nil
	}
	return &r.Ports[i]
}

// Join adds the ports of x, which was read later, in place of those of r.
func (r *Read) Join(x *Read) {
	ports := slices.Clone(x.Ports)
	for i := range ports {
		for attr := range ports[i].after {
			ports[i].after[attr] += x.Began.Sub(r.Began)
		}
	}
	for _, p := range r.Ports {
		if x.Port(p.Key) == nil {
			ports = append(ports, p)
		}
	}
	r.Ports = ports
	r.sort()
}

// main is the attribute that every port which was read has answered with: PortCounters,
// or PortCountersExtended where that has all of it.
func (p *PortRead) main() int {
	if p.answered.has(setBase) {
		return counterSets[setBase].attr
	}
	return counterSets[setWideErrors].attr
}

// value is a counter as it was, and where it was read; or nil.
func (p *PortRead) value(counter int) (uint64, *source) {
	at := p.layout.position[counter]
	if at < 0 {
		return 0, nil
	}
	return p.values[at], p.layout.fields[at]
}

// reduced is r with fewer counters.
func (r *Read) reduced(to holding) *Read {
	if r.holds >= to {
		return r
	}
	old := &Read{Began: r.Began, holds: to, Ports: slices.Clone(r.Ports)}
	for i := range old.Ports {
		p := &old.Ports[i]
		from := p.layout
		p.layout = old.layoutOf(p.answered)
		values := p.values
		p.values = p.layout.zeros
		for at, counter := range p.layout.counters {
			if v := values[from.position[counter]]; v > 0 {
				if &p.values[0] == &p.layout.zeros[0] {
					p.values = slices.Clone(p.layout.zeros)
				}
				p.values[at] = v
			}
		}
	}
	return old
}

// Answers are the attributes that ports answered with, which make up a Read.
type Answers struct {
	read Read
	data [][numAttributes][]byte
}

// NewAnswers begins a read of some n ports.
func NewAnswers(began time.Time, n int) *Answers {
	return &Answers{read: Read{Began: began, Ports: make([]PortRead, 0, n)}, data: make([][numAttributes][]byte, 0, n)}
}

// AddPort adds a port, about which nothing is known yet, and returns its index.
func (a *Answers) AddPort(key PortKey, node, system mad.GUID) int {
	a.read.Ports = append(a.read.Ports, PortRead{Key: key, Node: node, System: system})
	a.data = append(a.data, [numAttributes][]byte{})
	return len(a.read.Ports) - 1
}

// Wanted are the attributes to request from agents with that ClassPortInfo, as
// a mask of indices of CounterAttributes: all but details. lacks are those that the
// agent has refused. PortCounters is left out where PortCountersExtended has all of it.
func Wanted(info *mad.ClassPortInfo, lacks uint) (attrs uint) {
	sets := supported(info)
	for s := range numSets {
		if sets.has(s) && counterSets[s].partOf == nil {
			attrs |= 1 << counterSets[s].attr
		}
	}
	if attrs &^= lacks; sets.has(setWideErrors) && attrs>>counterSets[setWideErrors].attr&1 != 0 {
		attrs &^= 1 << counterSets[setBase].attr
	}
	return attrs
}

// Asked are the attributes that port i has answered with, or failed to answer.
func (a *Answers) Asked(i int) (attrs uint) {
	p := &a.read.Ports[i]
	for attr, data := range a.data[i] {
		if data != nil || p.silent != 0 && p.silent&setsOf(attr) != 0 {
			attrs |= 1 << attr
		}
	}
	return attrs
}

// Details are the attributes to request from port i then: those with details of
// what it has counted.
func (a *Answers) Details(i int) (attrs uint) {
	if a.read.Ports[i].answered == 0 {
		return 0
	}
	for s := range numSets {
		for _, name := range counterSets[s].partOf {
			if a.counted(i, name) {
				attrs |= 1 << counterSets[s].attr
			}
		}
	}
	return attrs
}

// counted reports whether a counter of port i is not 0 in any attribute.
func (a *Answers) counted(i int, name string) bool {
	for _, s := range Counters()[CounterIndex(name)].sources {
		if a.read.Ports[i].answered.has(s.set) && s.field.UintAt(a.data[i][counterSets[s.set].attr], s.element) > 0 {
			return true
		}
	}
	return false
}

// Answered records that port i answered with an attribute, and when. fec is the FEC of the port
// in use where that is known, which PortExtendedSpeedsCounters depends on.
func (a *Answers) Answered(i, attr int, info *mad.ClassPortInfo, fec *mad.FECMode, data []byte, when time.Time) {
	p := &a.read.Ports[i]
	sets := setsOf(attr) & supported(info)
	switch {
	case fec == nil:
		sets &^= maskOf(setRSFEC, setLanes)
	case *fec == mad.FECModeRS || *fec == mad.FECModeLowLatencyRS || *fec == mad.FECModeRS2:
		sets &^= maskOf(setLanes)
	default:
		sets &^= maskOf(setRSFEC)
	}
	p.answered |= sets
	p.after[attr] = max(0, when.Sub(a.read.Began))
	a.data[i][attr] = slices.Clone(data)
}

// Silent records that port i did not answer with an attribute.
func (a *Answers) Silent(i, attr int, info *mad.ClassPortInfo) {
	a.read.Ports[i].silent |= setsOf(attr) & supported(info)
}

// Read is the read that the answers make up: of ports by index, and the same to
// be kept, by key.
func (a *Answers) Read() (byIndex []*PortRead, read *Read) {
	byIndex = make([]*PortRead, len(a.read.Ports))
	for i := range a.read.Ports {
		p := &a.read.Ports[i]
		p.layout = a.read.layoutOf(p.answered)
		p.values = make([]uint64, len(p.layout.counters))
		for at, s := range p.layout.fields {
			p.values[at] = s.field.UintAt(a.data[i][counterSets[s.set].attr], s.element)
		}
		byIndex[i] = p
	}
	kept := a.read
	kept.Ports = slices.Clone(a.read.Ports)
	kept.Ports = slices.DeleteFunc(kept.Ports, func(p PortRead) bool { return p.answered == 0 || p.Key.GUID == 0 })
	kept.sort()
	a.data = nil
	return byIndex, &kept
}
