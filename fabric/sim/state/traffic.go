// Package traffic moves the counters of a simulated subnet's ports by flows between its
// hosts, along the paths of the forwarding tables.
//
//	traffic.go  Traffic: the flows, and when their ways are found again
//	choose.go   the ports that adaptively routed flows choose
//	way.go      the way of a flow
//	credit.go   how much of it passes the buffers before receivers that are gone
//	fill.go     how much of it the links carry
//	share.go    how a link shares its rate
//	count.go    the counters on its way

package state

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// Traffic is the traffic of a subnet. Its fields are guarded by the subnet's lock.
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
	nodes := make(map[mad.GUID]*Node, len(t.subnet.Nodes))
	for i := range t.subnet.Nodes {
		if n := &t.subnet.Nodes[i]; nodes[n.GUID()] == nil { // the first one, as nodeByGUID
			nodes[n.GUID()] = n
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

// waysTake is, roughly, ten times as long as startTraffic takes.
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
	allowed, waits := byCredits(demands, ways)
	rates, limits := carried(allowed, ways)
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
			all.Limit = Cable{Node: f.limit.Node.GUID(), Num: int(f.limit.Num)}
		}
	}
	return list
}

// HostPairs pairs each CA's first port that has a cable with that of the CA half of them
// further on.
func (t *Traffic) HostPairs(rate float64) (flows []Flow) {
	t.subnet.RLock()
	defer t.subnet.RUnlock()
	var hosts []Cable
	for i := range t.subnet.Nodes {
		if n := &t.subnet.Nodes[i]; !n.IsSwitch && n.Kind != fabric.KindAggregation {
			if ports := n.EndPorts(); len(ports) > 0 {
				hosts = append(hosts, Cable{Node: n.GUID(), Num: int(ports[0].Num)})
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

// Change is ChangePort for the port that find finds.
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
