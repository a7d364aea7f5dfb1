package state

import (
	"time"

	"fabsh/mad"
)

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
