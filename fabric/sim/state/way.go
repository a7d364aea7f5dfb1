package state

import (
	"fabsh/mad"
)

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

// maxHOQLife is the highest HOQLife that is a time (IBA 14.2.5.6).
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
		a.limit = unlimited
	default:
		a.limit = max(a.packet, 4096*float64(limit)) // 0: one packet
	}
	return a
}
