package state

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// Traffic is the traffic of a subnet: flows between its hosts, which move the counters of the
// ports along the paths of the forwarding tables. Its fields are guarded by the subnet's lock.
type Traffic struct {
	// Mark returns how many packets that wait for a port of a switch pass for each one that
	// the switch marks (FECN); 0: it marks none.
	Mark func(sw *Node) float64

	subnet *Subnet
	flows  []flow
	since  time.Time  // when it became stale
	mu     sync.Mutex // held by the reader that makes counters grow by it
	stale  atomic.Bool
}

// NewTraffic returns the traffic of a subnet, initially empty.
func NewTraffic(s *Subnet) *Traffic {
	return &Traffic{subnet: s, Mark: func(*Node) float64 { return 0 }}
}

// Flow is traffic from one port to another.
type Flow struct {
	From, To Cable   // end ports; port 0 of a CA: its first one with a cable
	Rate     float64 // bytes a second
	SL       uint8   // service level
}

// FlowRate is a flow, and how much of it arrives.
type FlowRate struct {
	Flow
	Carried float64 // bytes a second that arrive
	Limit   Cable   // the port whose link limits it; Node 0: none does
	Lost    bool    // nothing arrives: there is no route, or the receiver takes no packets
}

// maxFlows bounds what a change of the routes costs.
const maxFlows = 1 << 20

// flow is a Flow of ports, and its rate on its present way.
type flow struct {
	Flow
	from, to *Port
	carried  float64
	limit    *Port // nil: none
	lost     bool
	part     bool    // of the flow before it
	chosen   []*Port // on its way, where switches route adaptively
}

// Set replaces the traffic of the subnet. It takes the paths of the forwarding tables,
// also after each change of them, and moves the counters of the ports on these paths. A
// link carries no more than its rate: flows through it get less, by the arbitration of its
// port, and the ports before it wait.
func (t *Traffic) Set(flows []Flow) error {
	if len(flows) > maxFlows {
		return fmt.Errorf("%d flows are more than %d", len(flows), maxFlows)
	}
	t.subnet.Lock()
	defer t.subnet.Unlock()
	var list []flow
	nodes := t.subnet.NodesByGUID()
	for _, f := range flows {
		from, err := endPortAt(nodes, f.From)
		if err != nil {
			return err
		}
		to, err := endPortAt(nodes, f.To)
		if err != nil {
			return err
		}
		f.From, f.To = Cable{Node: f.From.Node, Num: int(from.Num)}, Cable{Node: f.To.Node, Num: int(to.Num)}
		list = append(list, t.split(flow{Flow: f, from: from, to: to})...)
	}
	t.Update()
	t.Suspend()
	t.flows = list
	t.stale.Store(len(list) > 0)
	t.since = t.subnet.Now()
	return nil
}

// endPortAt returns the end port that c names.
func endPortAt(nodes map[mad.GUID]*Node, c Cable) (*Port, error) {
	p, err := portOfNode(nodes[c.Node], c.Node, c.Num)
	switch {
	case err != nil:
		return nil, err
	case p.Node.IsSwitch:
		return p.EndPort(), nil
	case c.Num > 0:
		return p, nil
	}
	return p.Node.Attachment(0)
}

// BeforeChange prepares for a change of links, LIDs, or tables. Traffic until now is
// counted on its path, even if no counter was read since the last change; but of many
// changes in a row, each of which would compute all paths again for an instant, only the
// last path counts.
func (t *Traffic) BeforeChange() {
	t.subnet.EnsureTables()
	if t.stale.Load() && t.subnet.Now().Sub(t.since) >= t.waysTake() {
		t.Update()
	}
	t.Suspend()
}

// waysTake is, roughly, ten times as long as Update takes.
func (t *Traffic) waysTake() time.Duration {
	return time.Duration(len(t.flows))*10*time.Microsecond + time.Duration(len(t.subnet.Ports))*time.Microsecond
}

// Suspend counts the traffic until now, and ends it, because routes or links will change:
// the next reader of a counter computes the new paths.
func (t *Traffic) Suspend() {
	if len(t.flows) == 0 || t.stale.Load() {
		return
	}
	now := t.subnet.Now()
	for i := range t.subnet.Ports {
		if p := &t.subnet.Ports[i]; p.Counters.Grows() {
			p.Settle(now)
			p.Counters.StopTraffic()
		}
	}
	t.since = now
	t.stale.Store(true)
}

// Update finds the paths of the traffic, if they have changed.
func (t *Traffic) Update() {
	if !t.stale.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stale.Load() {
		return
	}
	ways := make([]way, len(t.flows))
	load := t.loadsOf()
	for i := range t.flows {
		ways[i] = t.chooseWay(i, load)
	}
	demands := make([]float64, len(ways))
	for i := range ways {
		demands[i] = t.flows[i].Rate
	}
	allowed, waits := creditRates(demands, ways)
	rates, limits := carriedRates(allowed, ways)
	c := newTrafficCounter(t.since)
	for i := range ways {
		f, w := &t.flows[i], &ways[i]
		f.carried, f.limit, f.lost = rates[i], nil, w.gone || w.in != nil || w.out != nil
		credit := limits[i] < 0 && waits[i] >= 0
		if credit {
			limits[i] = waits[i]
		}
		c.add(f, w, limits[i], credit)
		if limits[i] >= 0 {
			f.limit = w.hops[limits[i]].out
			if !credit { // a port that waits itself is no root of congestion (IBA A10.2.1)
				c.mark(f, w, limits[i], t.Mark)
			}
		}
		if f.lost {
			f.carried = 0
		}
	}
	c.addTimes()
	t.stale.Store(false)
}

// Flows returns the flows, with their rates on their present ways.
func (t *Traffic) Flows() []FlowRate {
	t.subnet.RLock()
	defer t.subnet.RUnlock()
	t.subnet.EnsureTables()
	t.Update()
	list := make([]FlowRate, 0, len(t.flows))
	for i := range t.flows {
		f := &t.flows[i]
		if !f.part {
			list = append(list, FlowRate{Lost: true, Flow: f.Flow})
		} else {
			list[len(list)-1].Rate += f.Rate
		}
		all := &list[len(list)-1]
		all.Carried += f.carried
		all.Lost = all.Lost && f.lost
		if f.limit != nil {
			all.Limit = Cable{Node: f.limit.Node.Origin, Num: int(f.limit.Num)}
		}
	}
	return list
}

// HostPairs pairs each CA's first port that has a cable with the first such port of the CA that
// is half of all CAs further on.
func (t *Traffic) HostPairs(rate float64) (flows []Flow) {
	t.subnet.RLock()
	defer t.subnet.RUnlock()
	var hosts []Cable
	for i := range t.subnet.Nodes {
		if n := &t.subnet.Nodes[i]; !n.IsSwitch && n.Kind != fabric.KindAggregation {
			if ports := n.EndPorts(); len(ports) > 0 {
				hosts = append(hosts, Cable{Node: n.Origin, Num: int(ports[0].Num)})
			}
		}
	}
	for i, h := range hosts {
		if to := hosts[(i+len(hosts)/2)%len(hosts)]; to != h {
			flows = append(flows, Flow{From: h, To: to, Rate: rate})
		}
	}
	return slices.Clip(flows)
}

// ChangePort changes a port by a function, with the lock held.
func (t *Traffic) ChangePort(node mad.GUID, num int, change func(*Port)) error {
	return t.Change(func() (*Port, error) { return t.subnet.PortByGUID(node, num) }, func(p *Port) error {
		change(p)
		return nil
	})
}

// Change calls change with the port that find returns, with the lock held.
func (t *Traffic) Change(find func() (*Port, error), change func(*Port) error) error {
	t.subnet.Lock()
	defer t.subnet.Unlock()
	p, err := find()
	if err != nil {
		return err
	}
	t.BeforeChange()
	return change(p)
}

// way is the path of a flow: the ports that it leaves through. If it is lost, in is the
// port of the switch that drops it, or out the one that it cannot leave through.
type way struct {
	hops    []hop
	in, out *Port
	packet  float64 // bytes
	gone    bool    // the receiver takes no packets
}

// hop is a port that a flow leaves through.
type hop struct {
	out, in     *Port // in: where it came in; nil at the sender
	vl          uint8
	arbitration arbitration // of the lane, at out
	capacity    float64     // bytes per second
}

// lane is a virtual lane of a port.
type lane struct {
	out *Port
	vl  uint8
}

func (h *hop) lane() lane { return lane{h.out, h.vl} }

// last returns the last hop.
func (w *way) last() *hop { return &w.hops[len(w.hops)-1] }

// wayOf returns the way of a flow through the subnet; l are the loads of other flows, nil
// where no switch routes adaptively.
func (t *Traffic) wayOf(f flow, l loads) (w way) {
	dlid := f.to.EndPort().LID
	at := f.from
	w.packet = 4096
	for range MaxLIDHops {
		out, arrived := f.nextHop(at, dlid, l)
		switch {
		case arrived:
			w.stall(f.to)
			return w
		case out == nil:
			w.in = at
			return w
		case !out.Active():
			w.out = out
			return w
		}
		h := hop{out: out, capacity: out.Capacity()}
		if len(w.hops) > 0 {
			h.in = at
		}
		if h.vl = t.lane(at, out, f.SL); h.vl == dropLane {
			w.out = out
			return w
		}
		h.arbitration = t.arbitration(out, h.vl)
		w.packet = min(w.packet, float64(mtuBytes(out.MTU)))
		w.hops = append(w.hops, h)
		at = out.Peer
	}
	w.in = at // a loop
	return w
}

// stall limits the last link of a way to a receiver that takes no packets and returns no
// credits: each packet waits for HOQLife at the head of its lane, and is discarded.
func (w *way) stall(to *Port) {
	if !to.Dead || to.Node.IsSwitch || len(w.hops) == 0 {
		return
	}
	last := w.last()
	w.gone = true
	info := last.out.PortInfo()
	if last.capacity = 0; info.HOQLife <= maxHOQLife {
		last.capacity = w.packet / (4.096e-6 * float64(uint64(1)<<info.HOQLife))
	}
}

// maxHOQLife is the highest HOQLife that stands for a time (IBA 14.2.5.6).
const maxHOQLife = 19

// dropLane is the lane of service levels whose packets are dropped (IBA 14.2.5.8).
const dropLane = 15

// lane returns the virtual lane of a service level between two ports.
func (t *Traffic) lane(in, out *Port, sl uint8) uint8 {
	port, block := out.EndPort(), uint32(0)
	if out.Node.IsSwitch {
		block = uint32(in.Num)<<8 | uint32(out.Num)
	}
	var m mad.SLtoVLMappingTable
	m.Decode(t.subnet.Block(SL2VLBlocks, port, block))
	return m.SLtoVL[sl&15]
}

// arbitration returns how a port serves a lane.
func (t *Traffic) arbitration(out *Port, vl uint8) arbitration {
	sum := func(block uint32) (sum float64) {
		var table mad.VLArbitrationTable
		table.Decode(t.subnet.Block(VLArbBlocks, out, block))
		for i := range table.VL {
			if table.VL[i] == vl {
				sum += float64(table.Weight[i])
			}
		}
		return sum
	}
	a := arbitration{high: sum(VLArbHigh), low: sum(VLArbLow), packet: float64(mtuBytes(out.MTU))}
	switch limit := out.PortInfo().VLHighLimit; limit {
	case 255:
		a.limit = unlimitedWeight
	default:
		a.limit = max(a.packet, 4096*float64(limit)) // 0: one packet
	}
	return a
}

// Choice of ports: where switches route adaptively, a flow is one of RC. It takes the port of
// the group with the least load, of the flows so far, in relation to its capacity; of equal ones the lowest.
// Secondary sub-groups are taken if the ports of the sub-groups before are down, or full: how real
// switches compare them is not public. A bounded flow keeps its ports while they may be
// chosen: its packets follow each other. A free one is split into parts, each of which
// chooses for itself, as its packets do.

// freeFlowParts is the number of parts of a free flow.
const freeFlowParts = 16

// split returns a flow, or the parts of a free one.
func (t *Traffic) split(f flow) []flow {
	if a := t.subnet.Adaptive; a == nil || a.State != adaptive.Free {
		return []flow{f}
	}
	parts := make([]flow, freeFlowParts)
	f.Rate /= freeFlowParts
	for i := range parts {
		parts[i] = f
		parts[i].part = i > 0
	}
	return parts
}

// loads are the rates of flows by port.
type loads map[*Port]float64

func (l loads) add(ports []*Port, rate float64) {
	for _, p := range ports {
		l[p] += rate
	}
}

// loadsOf are the loads of the flows on the ports that they have chosen before.
func (t *Traffic) loadsOf() loads {
	if t.subnet.Adaptive == nil {
		return nil
	}
	l := loads{}
	for i := range t.flows {
		l.add(t.flows[i].chosen, t.flows[i].Rate)
	}
	return l
}

// chooseWay returns the way of flow i, whose load moves to the ports that it chooses.
func (t *Traffic) chooseWay(i int, l loads) way {
	f := &t.flows[i]
	if l == nil {
		return t.wayOf(*f, nil)
	}
	l.add(f.chosen, -f.Rate)
	w := t.wayOf(*f, l)
	f.chosen = make([]*Port, len(w.hops))
	for h := range w.hops {
		f.chosen[h] = w.hops[h].out
	}
	l.add(f.chosen, f.Rate)
	return w
}

// nextHop returns where a packet of the flow goes, as Port.NextHop.
func (f *flow) nextHop(at *Port, dlid mad.LID, l loads) (out *Port, arrived bool) {
	n := at.Node
	n.Subnet.EnsureTables()
	if l == nil || !n.IsSwitch || !n.Adaptive.Active() {
		return at.NextHop(dlid, at == f.from)
	}
	c := n.Choose(adaptive.Packet{In: at.Num, SL: f.SL, LID: dlid, Transport: adaptive.RC}, (*Port).Active)
	switch {
	case c.Adaptive:
		return n.Leave(f.leastLoaded(n, &c, l), dlid)
	case c.Hashed:
		return n.Leave(n.Hash(&c, uint64(f.from.EndPort().LID)<<32|uint64(dlid)<<8|uint64(f.SL)), dlid)
	case c.Ports.Has(c.Port) || c.Ports.Empty():
		return n.Leave(c.Port, dlid)
	}
	return n.Leave(c.Ports.First(), dlid) // fast recovery
}

// leastLoaded is the port that an adaptively routed flow takes at a switch.
func (f *flow) leastLoaded(n *Node, c *adaptive.Choice, l loads) uint8 {
	for _, p := range f.chosen {
		if p.Node == n && c.State == adaptive.Bounded && c.Ports.Has(p.Num) {
			return p.Num
		}
	}
	best, least := uint8(mad.NoPort), 0.0
	for _, group := range c.SubGroups {
		for num := range group.All() {
			if !c.Ports.Has(num) || int(num) >= len(n.Ports) {
				continue
			}
			p := &n.Ports[num]
			if load := l[p] / max(p.Capacity(), 1); best == mad.NoPort || load < least-1e-9 { // sums of rates are not exact
				best, least = num, load
			}
		}
		if best != mad.NoPort && least < 1 {
			return best
		}
	}
	return best
}

// trafficCounter makes counters grow.
type trafficCounter struct {
	now       time.Time
	waits     map[lane]float64 // share of the time that a lane waits
	busy      map[lane]float64 // share of the time that a lane sends
	congested map[lane]bool    // lanes of switches that mark packets
}

func newTrafficCounter(now time.Time) *trafficCounter {
	return &trafficCounter{now: now, waits: map[lane]float64{}, busy: map[lane]float64{}, congested: map[lane]bool{}}
}

// Counters that traffic moves. PortXmitData and its like count units of 4 bytes.
var (
	xmitKeys    = [...]string{"PortXmitData", "PortXmitPkts", "PortUnicastXmitPkts", "PortXmitDataSL"}
	rcvKeys     = [...]string{"PortRcvData", "PortRcvPkts", "PortUnicastRcvPkts", "PortRcvDataSL"}
	waitKey     = CounterKey{Name: "PortXmitWait", Element: 0}
	discardKey  = CounterKey{Name: "PortXmitDiscards", Element: 0}
	hoqKey      = CounterKey{Name: "PortSwHOQLifetimeLimitDiscards", Element: 0}
	fecnKey     = CounterKey{Name: "PortPktRcvFECN", Element: 0}
	becnKey     = CounterKey{Name: "PortPktRcvBECN", Element: 0}
	congestKey  = CounterKey{Name: "PortXmitTimeCong", Element: 0}
	relayErrKey = CounterKey{Name: "PortRcvSwitchRelayErrors", Element: 0}
)

// trafficUnit is the unit of PortXmitData, and the amount of a tick of PortXmitWait at
// the rate of the link, in bytes.
const trafficUnit = 4

// add counts a flow, which the hop limit, or with -1 none, limits; credit: because it
// waits for credits.
func (t *trafficCounter) add(f *flow, w *way, limit int, credit bool) {
	rate := f.carried
	for i := range w.hops {
		h := &w.hops[i]
		switch {
		case i < limit && !credit:
			t.waits[h.lane()] += (f.Rate - rate) / h.out.Capacity()
		case i <= limit: // full, or with others between its packets
			t.waits[h.lane()] = 1
		}
		if w.gone && i == len(w.hops)-1 {
			h.out.Grow(discardKey, rate/w.packet, true, t.now)
			h.out.Grow(hoqKey, rate/w.packet, true, t.now)
			return
		}
		t.busy[h.lane()] += rate / h.out.Capacity()
		t.count(h.out, xmitKeys[:], f.SL, rate, w.packet)
		t.count(h.out.Peer, rcvKeys[:], f.SL, rate, w.packet)
	}
	switch {
	case w.out != nil && w.out.Num > 0:
		w.out.Grow(discardKey, rate/w.packet, true, t.now)
	case w.in != nil:
		w.in.Grow(relayErrKey, rate/w.packet, true, t.now)
	}
}

// mark counts the packets of a flow that the switch before its bottleneck marks: at the
// receiver, and as notifications at the sender (IBA A10.2).
func (t *trafficCounter) mark(f *flow, w *way, limit int, marks func(sw *Node) float64) {
	if !f.limit.Node.IsSwitch {
		return
	}
	every := marks(f.limit.Node)
	if every <= 0 {
		return
	}
	for _, at := range []struct {
		*Port
		all  CounterKey
		bySL string
	}{{f.to, fecnKey, "PortSLRcvFECN"}, {f.from, becnKey, "PortSLRcvBECN"}} {
		at.Grow(at.all, f.carried/w.packet/every, true, t.now)
		at.Grow(CounterKey{Name: at.bySL, Element: int(f.SL)}, f.carried/w.packet/every, true, t.now)
	}
	t.congested[w.hops[limit].lane()] = true
}

// count makes the counters of a port grow by a flow.
func (t *trafficCounter) count(p *Port, names []string, sl uint8, rate, packet float64) {
	for i, name := range names {
		key, per := CounterKey{Name: name}, packet
		if i == 0 || i == 3 {
			per = trafficUnit
		}
		if i == 3 {
			key.Element = int(sl)
		}
		p.Grow(key, rate/per, true, t.now)
	}
}

// addTimes makes the counters of ticks grow. A port waits while a lane waits and none sends;
// it is congested while a lane is.
func (t *trafficCounter) addTimes() {
	busy, waits, congested := map[*Port]float64{}, map[*Port]float64{}, map[*Port]bool{}
	for l, share := range t.busy {
		busy[l.out] += share
	}
	for l, share := range t.waits {
		waits[l.out] += share
		t.ticks(l.out, CounterKey{Name: "PortVLXmitWait", Element: int(l.vl)}, min(share, 1-t.busy[l]))
	}
	for l := range t.congested {
		congested[l.out] = true
		t.ticks(l.out, CounterKey{Name: "PortVLXmitTimeCong", Element: int(l.vl)}, 1)
	}
	for p, share := range waits {
		t.ticks(p, waitKey, min(share, 1-busy[p]))
	}
	for p := range congested {
		t.ticks(p, congestKey, 1)
	}
}

// ticks makes a counter of ticks grow during a share of the time.
func (t *trafficCounter) ticks(p *Port, key CounterKey, share float64) {
	p.Grow(key, max(0, share)*p.Capacity()/trafficUnit, true, t.now)
}

// mtuBytes returns the size of an MTU.
func mtuBytes(m mad.MTU) int { return 128 << min(max(m, 1), 5) }
