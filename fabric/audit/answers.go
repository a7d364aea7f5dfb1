package audit

import (
	"errors"
	"slices"
	"time"

	"fabsh/fabric"
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

// Wanted returns the attributes to request from agents with that ClassPortInfo, as
// a mask of indices of CounterAttributes: all but details. lacks is the mask of attributes that
// the agent has refused. PortCounters is left out where PortCountersExtended has all of it.
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

// Requested returns the attributes that port i has answered with, or failed to answer.
func (a *Answers) Requested(i int) (attrs uint) {
	p := &a.ports[i]
	attrs = uint(p.asked)
	for attr := range numAttributes {
		if p.silent&setsOf(attr) != 0 {
			attrs |= 1 << attr
		}
	}
	return attrs
}

// Details returns the attributes to request from port i next: details of the errors that it has
// counted.
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

// Read returns the read that the answers make up, and its ports by index. a is empty afterwards.
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

// order returns the indices of ports, sorted by key. Ports from distinct on are not kept: they
// did not answer, or have no key, or the key of another port, as in a subnet with a duplicate GUID.
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

// Agents are the capabilities that agents of performance management reported, which
// only other firmware changes: they need not be read in each run.
type Agents struct {
	asked time.Time    // when the first of them was queried
	list  []knownAgent // sorted by key
}

// knownAgent is an agent by the port whose LID it has.
type knownAgent struct {
	key   PortKey
	model agentModel
	caps  uint16 // ClassPortInfo.CapabilityMask
	caps2 uint32
}

// agentModel is what the sweep shows of the identity of an agent.
type agentModel struct {
	node     mad.GUID
	device   uint64 // vendor ID and device ID
	revision uint32
}

// maxAgentAge is how long capabilities are used. New firmware restarts the counters, so that
// its agents are forgotten earlier, unless they had counted nothing.
const maxAgentAge = 24 * time.Hour

func agentOf(p *fabric.Port) (PortKey, agentModel) {
	info := p.Node().Info()
	key := PortKey{GUID: p.GUID()}
	if !p.Node().IsSwitch() {
		key.Num = uint8(p.Num())
	}
	return key, agentModel{p.Node().GUID(), uint64(info.VendorID)<<16 | uint64(info.DeviceID), info.Revision}
}

func (a *Agents) find(key PortKey) (int, bool) {
	return slices.BinarySearchFunc(a.list, key, func(x knownAgent, k PortKey) int { return x.key.compare(k) })
}

// Of returns the ClassPortInfo of the agent that answers for p, with its capabilities alone; nil:
// it must be read.
func (a *Agents) Of(p *fabric.Port, now time.Time) *mad.ClassPortInfo {
	if age := now.Sub(a.asked); age < 0 || age > maxAgentAge {
		return nil
	}
	key, model := agentOf(p)
	i, ok := a.find(key)
	if !ok || key.GUID == 0 || a.list[i].model != model {
		return nil
	}
	return &mad.ClassPortInfo{CapabilityMask: a.list[i].caps, CapabilityMask2: a.list[i].caps2}
}

// AgentAnswer is the answer of the agent of a port.
type AgentAnswer struct {
	Port *fabric.Port
	Info *mad.ClassPortInfo
}

// Keep keeps the answers of agents that were queried now.
func (a *Agents) Keep(answers []AgentAnswer, now time.Time) {
	if age := now.Sub(a.asked); age < 0 || age > maxAgentAge {
		*a = Agents{asked: now}
	}
	for _, x := range answers {
		if key, model := agentOf(x.Port); key.GUID != 0 {
			a.list = append(a.list, knownAgent{key, model, x.Info.CapabilityMask, x.Info.CapabilityMask2})
		}
	}
	// The newest answer first: of a duplicate GUID, another model's agent is read again.
	slices.Reverse(a.list)
	slices.SortStableFunc(a.list, func(x, y knownAgent) int { return x.key.compare(y.key) })
	a.list = slices.CompactFunc(a.list, func(x, y knownAgent) bool { return x.key == y.key })
}

// Forget drops the answers of agents of ports, so that they are read again.
func (a *Agents) Forget(ports []*fabric.Port) {
	if len(ports) == 0 {
		return
	}
	gone := map[PortKey]bool{}
	for _, p := range ports {
		key, _ := agentOf(p)
		gone[key] = true
	}
	a.list = slices.DeleteFunc(a.list, func(x knownAgent) bool { return gone[x.key] })
}

// ReadOf returns the read that the answers in a file make up. The error is the reason why there is
// none.
func ReadOf(f *fabric.Fabric) (*Read, error) {
	a := NewAnswers(f.CountersRead(), len(f.Ports()))
	for i := range f.Nodes() {
		a.addNode(&f.Nodes()[i], f.AnswersOf(i))
	}
	switch _, read := a.Read(); {
	case read.Len() == 0:
		return nil, errors.New("the file has no counters; write it with snapshot FILE --all")
	case read.Began.IsZero():
		return nil, errors.New("the file has no time of its counters; write it with snapshot FILE --all")
	default:
		return read, nil
	}
}

// addNode adds the ports of a node, whose answers are list.
func (a *Answers) addNode(n *fabric.Node, list []fabric.Answer) {
	agents, modes := map[int16]*mad.ClassPortInfo{}, map[int16]*mad.FECMode{}
	for _, x := range list {
		switch {
		case len(x.Data) == 0:
		case x.Class == mad.ClassPerf && x.ID == mad.AttrPerfClassPortInfo.ID:
			agents[x.Port] = new(mad.ClassPortInfo)
			agents[x.Port].Decode(sized(x.Data, mad.AttrPerfClassPortInfo))
		case x.Class == mad.ClassSubn && x.ID == mad.AttrPortInfoExtended.ID:
			var info mad.PortInfoExtended
			info.Decode(sized(x.Data, mad.AttrPortInfoExtended))
			if info.CapabilityMask&mad.ExtendedCapabilityMaskIsFECModeSupported != 0 {
				modes[int16(x.Modifier&0xff)] = &info.FECModeActive
			}
		}
	}
	index := map[int16]int{}
	for _, x := range list {
		attr := slices.IndexFunc(CounterAttributes[:], func(attr *mad.Attribute) bool { return attr.ID == x.ID })
		p := n.Port(int(x.Port))
		if x.Class != mad.ClassPerf || attr < 0 || p == nil {
			continue
		}
		agent := x.Port
		if n.IsSwitch() {
			agent = 0
		}
		info := agents[agent]
		if info == nil {
			info = new(mad.ClassPortInfo)
		}
		i, ok := index[x.Port]
		if !ok {
			key, _ := KeyOf(p)
			i = a.AddPort(key, n.GUID(), n.Info().SystemImageGUID)
			index[x.Port] = i
		}
		if len(x.Data) == 0 {
			a.Silent(i, attr, info)
			continue
		}
		a.Answered(i, attr, info, modes[x.Port], sized(x.Data, CounterAttributes[attr]), a.began)
	}
}

// sized returns data with the size of attr: files may have less.
func sized(data []byte, attr *mad.Attribute) []byte {
	if len(data) >= attr.Size {
		return data
	}
	return append(slices.Clone(data), make([]byte, attr.Size-len(data))...)
}
