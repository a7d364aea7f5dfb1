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
	outs    []*state.Port
	in, out *state.Port
}

func wayOf(f flow) (w way) {
	dlid := f.to.EndPort().LID
	at := f.from
	for range state.MaxLIDHops {
		out, arrived := at.NextHop(dlid, at == f.from)
		switch {
		case arrived:
			return w
		case out == nil:
			w.in = at
			return w
		case !out.Active():
			w.out = out
			return w
		}
		w.outs = append(w.outs, out)
		at = out.Peer
	}
	w.in = at // a loop
	return w
}

// trafficCounter makes counters grow.
type trafficCounter struct {
	now   time.Time
	waits map[*state.Port]float64 // share of the time that a port waits
}

// Counters that traffic moves. PortXmitData and its like count units of 4 bytes.
var (
	xmitKeys    = [...]string{"PortXmitData", "PortXmitPkts", "PortUnicastXmitPkts", "PortXmitDataSL"}
	rcvKeys     = [...]string{"PortRcvData", "PortRcvPkts", "PortUnicastRcvPkts", "PortRcvDataSL"}
	waitKey     = counter.Key{Name: "PortXmitWait", Element: 0}
	discardKey  = counter.Key{Name: "PortXmitDiscards", Element: 0}
	relayErrKey = counter.Key{Name: "PortRcvSwitchRelayErrors", Element: 0}
)

// trafficUnit is the unit of PortXmitData, and the amount of a tick of PortXmitWait at
// the rate of the link, in bytes.
const trafficUnit = 4

// add counts a flow of a rate, which the links on its path may not be able to carry.
func (t *trafficCounter) add(w *way, rate float64, load map[*state.Port]float64) {
	share, bottleneck := 1.0, -1
	packet := 4096.0
	for i, out := range w.outs {
		if c := out.Capacity(); load[out] > c && c/load[out] < share {
			share, bottleneck = c/load[out], i
		}
		packet = min(packet, float64(mtuBytes(out.MTU)))
	}
	carried := rate * share
	for i, out := range w.outs {
		t.count(out, xmitKeys[:], carried, packet)
		t.count(out.Peer, rcvKeys[:], carried, packet)
		if i < bottleneck {
			t.waits[out] += (rate - carried) / out.Capacity()
		}
	}
	switch {
	case w.out != nil && w.out.Num > 0:
		w.out.Grow(discardKey, carried/packet, true, t.now)
	case w.in != nil:
		w.in.Grow(relayErrKey, carried/packet, true, t.now)
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
	for p, share := range t.waits {
		p.Grow(waitKey, min(1, share)*p.Capacity()/trafficUnit, true, t.now)
	}
}

// mtuBytes returns the size of an MTU.
func mtuBytes(m mad.MTU) int { return 128 << min(max(m, 1), 5) }
