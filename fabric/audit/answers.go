package audit

import (
	"slices"
	"time"

	"fabsh/mad"
)

// Answers are the attributes that ports answered with, which make up a Read.
type Answers struct {
	began  time.Time
	ports  []portAnswers
	kinds  kindSet
	counts counts
	room   []uint64 // for values of a port
}

// portAnswers is what a port answered.
type portAnswers struct {
	id       portID
	answered SetMask
	silent   SetMask
	asked    uint8                 // attributes that it answered with, a mask of indices
	details  uint8                 // attributes with details of what it counted
	after    [numAttributes]uint32 // in ticks
}

// NewAnswers begins a read of some n ports.
func NewAnswers(began time.Time, n int) *Answers {
	return &Answers{began: began, ports: make([]portAnswers, 0, n), counts: counts{start: make([]uint32, 0, n)}}
}

// AddPort adds a port, about which nothing is known yet, and returns its index.
func (a *Answers) AddPort(key PortKey, node, system mad.GUID) int {
	a.ports = append(a.ports, portAnswers{id: portID{key, node, system}})
	a.counts.start = append(a.counts.start, 0)
	return len(a.ports) - 1
}

// addRead adds a port of a read that began later.
func (a *Answers) addRead(p PortRead, later time.Duration) {
	k := p.kind()
	i := a.AddPort(p.id().key, p.id().node, p.id().system)
	x := &a.ports[i]
	x.answered, x.silent = k.answered, k.silent
	for attr := range x.after {
		if k.answered&setsOf(attr) != 0 {
			x.after[attr] = ticks(p.after(attr) + later)
		}
	}
	a.room = a.room[:0]
	for _, counter := range k.layout.counters {
		v, _ := p.value(counter)
		a.room = append(a.room, v)
	}
	a.counts.put(i, a.room)
}

func ticks(d time.Duration) uint32 { return uint32(min(max(0, d/tick), 1<<32-1)) }

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
	p := &a.ports[i]
	attrs = uint(p.asked)
	for attr := range numAttributes {
		if p.silent&setsOf(attr) != 0 {
			attrs |= 1 << attr
		}
	}
	return attrs
}

// Details are the attributes to request from port i then: those with details of
// what it has counted.
func (a *Answers) Details(i int) (attrs uint) { return uint(a.ports[i].details) }

// Answered records that port i answered with an attribute, and when. fec is the FEC of the port
// in use where that is known, which PortExtendedSpeedsCounters depends on.
func (a *Answers) Answered(i, attr int, info *mad.ClassPortInfo, fec *mad.FECMode, data []byte, when time.Time) {
	p := &a.ports[i]
	sets := setsOf(attr) & supported(info)
	switch {
	case fec == nil:
		sets &^= maskOf(setRSFEC, setLanes)
	case *fec == mad.FECModeRS || *fec == mad.FECModeLowLatencyRS || *fec == mad.FECModeRS2:
		sets &^= maskOf(setLanes)
	default:
		sets &^= maskOf(setRSFEC)
	}
	before := a.kinds.layout(p.answered, holdsAll)
	p.answered |= sets
	p.asked |= 1 << attr
	p.after[attr] = ticks(when.Sub(a.began))
	l := a.kinds.layout(p.answered, holdsAll)
	a.room = a.room[:0]
	for at, s := range l.fields {
		v := uint64(0)
		if counterSets[s.set].attr == attr {
			v = s.field.UintAt(data, s.element)
		} else if old := before.position[l.counters[at]]; old >= 0 {
			v = a.counts.at(i, len(before.counters), old)
		}
		a.room = append(a.room, v)
	}
	a.counts.put(i, a.room)
	for set, parts := range wholes() {
		for _, counter := range parts {
			for _, s := range Counters()[counter].sources {
				if counterSets[s.set].attr == attr && p.answered.has(s.set) && s.field.UintAt(data, s.element) > 0 {
					p.details |= 1 << counterSets[set].attr
				}
			}
		}
	}
}

// Silent records that port i did not answer with an attribute.
func (a *Answers) Silent(i, attr int, info *mad.ClassPortInfo) {
	a.ports[i].silent |= setsOf(attr) & supported(info)
}

// Read is the read that the answers make up, and its ports by index. It ends a.
func (a *Answers) Read() (byIndex []PortRead, read *Read) {
	order, distinct := a.order()
	read = &Read{Began: a.began, table: &portTable{make([]portID, len(order)), distinct}, kind: make([]uint32, len(order)), counts: newCounts(len(order))}
	byIndex = make([]PortRead, len(order))
	for to, i := range order {
		p := &a.ports[i]
		byIndex[i] = read.port(to)
		read.table.ids[to] = p.id
		read.kind[to] = a.kinds.number(p.answered, p.silent, holdsAll)
		for attr, when := range p.after {
			if when == 0 {
				continue
			}
			if read.after[attr] == nil {
				read.after[attr] = make([]uint32, len(order))
			}
			read.after[attr][to] = when
		}
		if a.counts.start[i] == 0 {
			continue
		}
		n := len(a.kinds.kinds[read.kind[to]].layout.counters)
		a.room = a.room[:0]
		for at := range n {
			a.room = append(a.room, a.counts.at(int(i), n, at))
		}
		read.counts.put(to, a.room)
	}
	read.kinds = a.kinds.kinds
	*a = Answers{}
	return byIndex, read
}

// order is the order of ports by key. Those from distinct on are not kept: they did not answer,
// or have no key, or the key of another port, which a subnet with a GUID twice has.
func (a *Answers) order() (order []int32, distinct int) {
	var rest []int32
	for i := range a.ports {
		if p := &a.ports[i]; p.answered == 0 || p.id.key.GUID == 0 {
			rest = append(rest, int32(i))
		} else {
			order = append(order, int32(i))
		}
	}
	key := func(i int32) PortKey { return a.ports[i].id.key }
	slices.SortStableFunc(order, func(x, y int32) int { return key(x).compare(key(y)) })
	kept := order[:0]
	for i := 0; i < len(order); {
		end := i + 1
		for end < len(order) && key(order[end]) == key(order[i]) {
			end++
		}
		if end == i+1 {
			kept = append(kept, order[i])
		} else {
			rest = append(rest, order[i:end]...)
		}
		i = end
	}
	return append(kept, rest...), len(kept)
}
