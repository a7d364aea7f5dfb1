package traffic

import (
	"time"

	"fabsh/fabric/sim/counter"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// way is the path of a flow: the ports that it leaves through. If it is lost, in is the
// port of the switch that drops it, or out the one that it cannot leave through.
type way struct {
	hops    []hop
	in, out *state.Port
	packet  float64 // bytes
	gone    bool    // the receiver takes no packets
}

// hop is a port that a flow leaves through.
type hop struct {
	out, in  *state.Port // in: where it came in; nil at the sender
	vl       uint8
	weight   float64 // of the lane, in the arbitration of out
	capacity float64 // bytes per second
}

// wayOf returns the way of a flow through the subnet.
func (t *Traffic) wayOf(f flow) (w way) {
	dlid := f.to.EndPort().LID
	at := f.from
	w.packet = 4096
	for range state.MaxLIDHops {
		out, arrived := at.NextHop(dlid, at == f.from)
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
		h.weight = t.weight(out, h.vl)
		w.packet = min(w.packet, float64(mtuBytes(out.MTU)))
		w.hops = append(w.hops, h)
		at = out.Peer
	}
	w.in = at // a loop
	return w
}

// stall limits the last link of a way to a receiver that takes no packets and returns no
// credits: each packet waits for HOQLife at the head of its lane, and is discarded.
func (w *way) stall(to *state.Port) {
	if !to.Dead || to.Node.IsSwitch || len(w.hops) == 0 {
		return
	}
	last := &w.hops[len(w.hops)-1]
	w.gone = true
	info := last.out.PortInfo()
	if last.capacity = 0; info.HOQLife <= maxHOQLife {
		last.capacity = w.packet / (4.096e-6 * float64(uint64(1)<<info.HOQLife))
	}
}

// maxHOQLife is the highest HOQLife that is a time (IBA 14.2.5.6).
const maxHOQLife = 19

// dropLane is the lane of service levels whose packets are dropped (IBA 14.2.5.8).
const dropLane = 15

// lane returns the virtual lane of a service level between two ports.
func (t *Traffic) lane(in, out *state.Port, sl uint8) uint8 {
	port, block := out.EndPort(), uint32(0)
	if out.Node.IsSwitch {
		block = uint32(in.Num)<<8 | uint32(out.Num)
	}
	var m mad.SLtoVLMappingTable
	m.Decode(t.subnet.Block(state.SL2VLBlocks, port, block))
	return m.SLtoVL[sl&15]
}

// weight returns the weight of a lane at a port: the sum of its entries in both tables.
func (t *Traffic) weight(out *state.Port, vl uint8) (sum float64) {
	for _, block := range []uint32{1, 3} { // low and high priority
		var a mad.VLArbitrationTable
		a.Decode(t.subnet.Block(state.VLArbBlocks, out, block))
		for i := range a.VL {
			if a.VL[i] == vl {
				sum += float64(a.Weight[i])
			}
		}
	}
	return sum
}

// trafficCounter makes counters grow.
type trafficCounter struct {
	now   time.Time
	waits map[*state.Port]float64 // share of the time that a port waits

	congested map[*state.Port]bool // ports of switches that mark packets
}

// Counters that traffic moves. PortXmitData and its like count units of 4 bytes.
var (
	xmitKeys    = [...]string{"PortXmitData", "PortXmitPkts", "PortUnicastXmitPkts", "PortXmitDataSL"}
	rcvKeys     = [...]string{"PortRcvData", "PortRcvPkts", "PortUnicastRcvPkts", "PortRcvDataSL"}
	waitKey     = counter.Key{Name: "PortXmitWait", Element: 0}
	discardKey  = counter.Key{Name: "PortXmitDiscards", Element: 0}
	hoqKey      = counter.Key{Name: "PortSwHOQLifetimeLimitDiscards", Element: 0}
	fecnKey     = counter.Key{Name: "PortPktRcvFECN", Element: 0}
	becnKey     = counter.Key{Name: "PortPktRcvBECN", Element: 0}
	congestKey  = counter.Key{Name: "PortXmitTimeCong", Element: 0}
	relayErrKey = counter.Key{Name: "PortRcvSwitchRelayErrors", Element: 0}
)

// trafficUnit is the unit of PortXmitData, and the amount of a tick of PortXmitWait at
// the rate of the link, in bytes.
const trafficUnit = 4

// add counts a flow, which the hop limit, or with -1 none, limits from rate to carried.
func (t *trafficCounter) add(w *way, rate, carried float64, limit int) {
	for i, h := range w.hops {
		if i < limit || w.gone && i < len(w.hops)-1 {
			t.waits[h.out] += (rate - carried) / h.out.Capacity()
		}
		if w.gone && i == len(w.hops)-1 {
			t.waits[h.out] = 1
			h.out.Grow(discardKey, carried/w.packet, true, t.now)
			h.out.Grow(hoqKey, carried/w.packet, true, t.now)
			return
		}
		t.count(h.out, xmitKeys[:], carried, w.packet)
		t.count(h.out.Peer, rcvKeys[:], carried, w.packet)
	}
	switch {
	case w.out != nil && w.out.Num > 0:
		w.out.Grow(discardKey, carried/w.packet, true, t.now)
	case w.in != nil:
		w.in.Grow(relayErrKey, carried/w.packet, true, t.now)
	}
}

// mark counts the packets of a flow that the switch before its bottleneck marks: at the
// receiver, and as notifications at the sender (IBA A10.2).
func (t *trafficCounter) mark(f *flow, packet float64, marks func(sw *state.Node) float64) {
	if !f.limit.Node.IsSwitch {
		return
	}
	if every := marks(f.limit.Node); every > 0 {
		f.to.Grow(fecnKey, f.carried/packet/every, true, t.now)
		f.from.Grow(becnKey, f.carried/packet/every, true, t.now)
		t.congested[f.limit] = true
	}
}

// count makes the counters of a port grow by a flow.
func (t *trafficCounter) count(p *state.Port, names []string, rate, packet float64) {
	for i, name := range names {
		per := packet
		if i == 0 || i == 3 {
			per = trafficUnit
		}
		p.Grow(counter.Key{Name: name, Element: 0}, rate/per, true, t.now)
	}
}

func (t *trafficCounter) addWaits() {
	for p := range t.congested {
		p.Grow(congestKey, p.Capacity()/trafficUnit, true, t.now)
	}
	for p, share := range t.waits {
		p.Grow(waitKey, min(1, share)*p.Capacity()/trafficUnit, true, t.now)
	}
}

// mtuBytes returns the size of an MTU.
func mtuBytes(m mad.MTU) int { return 128 << min(max(m, 1), 5) }
