package audit

import (
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// Agents are the capabilities that agents of performance management reported, which
// only other firmware changes: they need not be read in each run.
type Agents struct {
	asked time.Time    // when the first of them was
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

// maxAgentAge is how long they count. New firmware restarts its counters, so that
// its agents are forgotten before; unless they had counted nothing.
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

// Of is the ClassPortInfo of the agent that answers for p, of which the capabilities
// are known; nil: it must be read.
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

func (w *stateWriter) agents(a *Agents) {
	w.int(a.asked.Unix())
	w.uint(uint64(len(a.list)))
	column := columnsOf(a.list)
	last := mad.GUID(0)
	column(func(x *knownAgent) { w.uint(uint64(x.key.GUID - last)); last = x.key.GUID })
	column(func(x *knownAgent) { w.b = append(w.b, x.key.Num) })
	column(func(x *knownAgent) { w.int(int64(x.model.node - x.key.GUID)) })
	column(func(x *knownAgent) { w.uint(x.model.device) })
	column(func(x *knownAgent) { w.uint(uint64(x.model.revision)) })
	column(func(x *knownAgent) { w.uint(uint64(x.caps)) })
	column(func(x *knownAgent) { w.uint(uint64(x.caps2)) })
}

func (r *stateReader) agents(a *Agents) {
	a.asked = time.Unix(r.int("a time"), 0)
	n := int(r.uint("a number of agents", uint64(len(r.b)/7))) // of which each has seven bytes or more
	if r.keep(n, 48); r.err != nil {
		return
	}
	a.list = make([]knownAgent, n)
	column := columnsOf(a.list)
	last := mad.GUID(0)
	column(func(x *knownAgent) { x.key.GUID = last + mad.GUID(r.uint("a port GUID", any64)); last = x.key.GUID })
	column(func(x *knownAgent) { x.key.Num = r.byte("a port number") })
	column(func(x *knownAgent) { x.model.node = x.key.GUID + mad.GUID(r.int("a node GUID")) })
	column(func(x *knownAgent) { x.model.device = r.uint("a device", 1<<48-1) })
	column(func(x *knownAgent) { x.model.revision = uint32(r.uint("a revision", 1<<32-1)) })
	column(func(x *knownAgent) { x.caps = uint16(r.uint("capabilities", 1<<16-1)) })
	column(func(x *knownAgent) { x.caps2 = uint32(r.uint("capabilities", 1<<32-1)) })
	if !slices.IsSortedFunc(a.list, func(x, y knownAgent) int { return x.key.compare(y.key) }) {
		r.fail("agents by GUID and port number")
	}
}
