package sim

import (
	"fmt"
	"slices"
	"time"

	"fabsh/mad"
)

// Flow is traffic from one port to another.
type Flow struct {
	From, To Cable   // end ports; port 0 of a CA: its first one with a cable
	Rate     float64 // bytes a second
}

// maxFlows bounds what a change of the routes costs.
const maxFlows = 1 << 20

// flow is a Flow of ports.
type flow struct {
	from, to *port
	rate     float64
}

// SetTraffic replaces the traffic of the subnet. It goes the way that the
// forwarding tables say, now and after each change of them, and moves the counters
// of the ports on it. A link carries no more than its rate: flows through it get
// less, each the same share, and the ports before it wait.
func (s *Subnet) SetTraffic(flows []Flow) error {
	if len(flows) > maxFlows {
		return fmt.Errorf("%d flows are more than %d", len(flows), maxFlows)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []flow
	nodes := make(map[mad.GUID]*node, len(s.nodes))
	for i := range s.nodes {
		if n := &s.nodes[i]; nodes[n.guid()] == nil { // the first one, as nodeByGUID
			nodes[n.guid()] = n
		}
	}
	for _, f := range flows {
		from, err := endPortAt(nodes, f.From)
		if err != nil {
			return err
		}
		to, err := endPortAt(nodes, f.To)
		if err != nil {
			return err
		}
		list = append(list, flow{from, to, f.Rate})
	}
	s.startTraffic()
	s.stopTraffic()
	s.flows = list
	s.trafficStale.Store(len(list) > 0)
	s.trafficSince = s.now()
	return nil
}

// endPortAt is the end port that c names.
func endPortAt(nodes map[mad.GUID]*node, c Cable) (*port, error) {
	p, err := portOfNode(nodes[c.Node], c.Node, c.Num)
	switch {
	case err != nil:
		return nil, err
	case p.node.isSwitch:
		return p.endPort(), nil
	case c.Num > 0:
		return p, nil
	}
	return p.node.attachment(0)
}

// beforeChange makes ready for a change of links, LIDs, or tables. What went until
// now is counted on the way that it had, also if nobody has looked since the last
// change; but of many changes in a row, each of which would find all ways again for
// an instant, the last way counts.
func (s *Subnet) beforeChange() {
	s.tables()
	if s.trafficStale.Load() && s.now().Sub(s.trafficSince) >= s.waysTake() {
		s.startTraffic()
	}
	s.stopTraffic()
}

// waysTake is, roughly, ten times as long as startTraffic takes.
func (s *Subnet) waysTake() time.Duration {
	return time.Duration(len(s.flows))*10*time.Microsecond + time.Duration(len(s.ports))*time.Microsecond
}

// stopTraffic counts the traffic until now, and ends it, because routes or links are
// about to change: the next who reads a counter finds out how it goes on.
func (s *Subnet) stopTraffic() {
	if len(s.flows) == 0 || s.trafficStale.Load() {
		return
	}
	now := s.now()
	for i := range s.ports {
		if p := &s.ports[i]; p.growth != nil {
			p.settle(now)
			p.stopGrowing(func(g *growingCounter) bool { return g.traffic })
		}
	}
	s.trafficSince = now
	s.trafficStale.Store(true)
}

// startTraffic finds the ways of the traffic, if they have changed.
func (s *Subnet) startTraffic() {
	if !s.trafficStale.Load() {
		return
	}
	s.trafficMu.Lock()
	defer s.trafficMu.Unlock()
	if !s.trafficStale.Load() {
		return
	}
	ways := make([]way, len(s.flows))
	load := map[*port]float64{} // bytes a second out of a port, if all got what they want
	for i, f := range s.flows {
		ways[i] = wayOf(f)
		for _, out := range ways[i].outs {
			load[out] += f.rate
		}
	}
	t := &trafficCounter{now: s.trafficSince, waits: map[*port]float64{}}
	for i := range ways {
		t.add(&ways[i], s.flows[i].rate, load)
	}
	t.addWaits()
	s.trafficStale.Store(false)
}

// way is the way of a flow: the ports that it leaves through. Where it is lost, in
// is the port of the switch that drops it, or out the one that it cannot leave
// through.
type way struct {
	outs    []*port
	in, out *port
}

func wayOf(f flow) (w way) {
	dlid := f.to.endPort().lid
	at := f.from
	for range maxLIDHops {
		out, arrived := at.nextHop(dlid, at == f.from)
		switch {
		case arrived:
			return w
		case out == nil:
			w.in = at
			return w
		case !out.active():
			w.out = out
			return w
		}
		w.outs = append(w.outs, out)
		at = out.peer
	}
	w.in = at // a loop
	return w
}

// trafficCounter makes counters grow.
type trafficCounter struct {
	now   time.Time
	waits map[*port]float64 // share of the time that a port waits
}

// Counters that traffic moves. PortXmitData and its like count units of 4 bytes.
var (
	xmitKeys    = [...]string{"PortXmitData", "PortXmitPkts", "PortUnicastXmitPkts", "PortXmitDataSL"}
	rcvKeys     = [...]string{"PortRcvData", "PortRcvPkts", "PortUnicastRcvPkts", "PortRcvDataSL"}
	waitKey     = counterKey{"PortXmitWait", 0}
	discardKey  = counterKey{"PortXmitDiscards", 0}
	relayErrKey = counterKey{"PortRcvSwitchRelayErrors", 0}
)

// trafficUnit is the unit of PortXmitData, and what a tick of PortXmitWait takes at
// the rate of the link, in bytes.
const trafficUnit = 4

// add counts a flow of a rate, which the links on its way may not have room for.
func (t *trafficCounter) add(w *way, rate float64, load map[*port]float64) {
	share, bottleneck := 1.0, -1
	packet := 4096.0
	for i, out := range w.outs {
		if c := out.capacity(); load[out] > c && c/load[out] < share {
			share, bottleneck = c/load[out], i
		}
		packet = min(packet, float64(mtuBytes(out.mtu)))
	}
	carried := rate * share
	for i, out := range w.outs {
		t.count(out, xmitKeys[:], carried, packet)
		t.count(out.peer, rcvKeys[:], carried, packet)
		if i < bottleneck {
			t.waits[out] += (rate - carried) / out.capacity()
		}
	}
	switch {
	case w.out != nil && w.out.num > 0:
		w.out.grow(discardKey, carried/packet, true, t.now)
	case w.in != nil:
		w.in.grow(relayErrKey, carried/packet, true, t.now)
	}
}

// count makes the counters of a port grow by a flow.
func (t *trafficCounter) count(p *port, names []string, rate, packet float64) {
	for i, name := range names {
		per := packet
		if i == 0 || i == 3 {
			per = trafficUnit
		}
		p.grow(counterKey{name, 0}, rate/per, true, t.now)
	}
}

func (t *trafficCounter) addWaits() {
	for p, share := range t.waits {
		p.grow(waitKey, min(1, share)*p.capacity()/trafficUnit, true, t.now)
	}
}

// capacity is what p's link carries, in bytes a second.
func (p *port) capacity() float64 { return float64(p.rate) * 0.5e9 / 8 }

// mtuBytes is the size of an MTU.
func mtuBytes(m mad.MTU) int { return 128 << min(max(m, 1), 5) }

// HostPairs pairs each CA's first port that has a cable with that of the CA half of
// them further on.
func (s *Subnet) HostPairs(rate float64) (flows []Flow) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var hosts []Cable
	for i := range s.nodes {
		if n := &s.nodes[i]; !n.isSwitch {
			if ports := n.endPorts(); len(ports) > 0 {
				hosts = append(hosts, Cable{n.guid(), int(ports[0].num)})
			}
		}
	}
	for i, h := range hosts {
		if to := hosts[(i+len(hosts)/2)%len(hosts)]; to != h {
			flows = append(flows, Flow{h, to, rate})
		}
	}
	return slices.Clip(flows)
}
