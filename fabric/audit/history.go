package audit

import (
	"math/bits"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// History is what the runs of a job have seen of ports: when each was last up and what
// was behind it, and in which of the latest runs its link was up and not active.
type History struct{ ports []portPast }

// portPast is the past of a port.
type portPast struct {
	key      PortKey
	up       int64    // Unix time in seconds when its link was seen up last
	peer     mad.GUID // node that was behind it; 0: unknown
	peerNum  uint8    // and at which of its ports
	toSwitch bool     // that was a switch
	waits    uint16   // bit i: i runs ago its link was up and not active
}

// PastAge is how long a port that is down counts as one that was in use
// (infiniband_exporter of SckyzO, docs/alerts.md: max_over_time over 7 days).
const PastAge = 7 * 24 * time.Hour

// pastRuns is the number of runs for which it is known whether a link was not active (UFM,
// unhealthy ports: 10 sweeps).
const pastRuns = 10

// see adds what a run has seen of f.
func (h *History) see(f *fabric.Fabric, now time.Time) {
	fresh := make([]portPast, 0, len(f.Ports()))
	for i := range f.Ports() {
		p := &f.Ports()[i]
		key, ok := KeyOf(p)
		if !ok || p.Info() == nil || p.Num() == 0 {
			continue
		}
		past := portPast{key: key}
		if p.PhysicalState() == mad.PortPhysicalStateLinkUp {
			past.up = now.Unix()
			if p.Info().PortState != mad.PortStateActive {
				past.waits = 1
			}
			if q := p.Peer(); q != nil {
				past.peer, past.peerNum, past.toSwitch = q.Node().GUID(), uint8(q.Num()), q.Node().IsSwitch()
			}
		}
		fresh = append(fresh, past)
	}
	slices.SortStableFunc(fresh, func(a, b portPast) int { return a.key.compare(b.key) })
	fresh = slices.CompactFunc(fresh, func(a, b portPast) bool { return a.key == b.key }) // a duplicate GUID
	all := make([]portPast, 0, max(len(fresh), len(h.ports)))
	for old := h.ports; len(old)+len(fresh) > 0; {
		var x portPast
		switch {
		case len(fresh) == 0 || len(old) > 0 && old[0].key.compare(fresh[0].key) < 0: // it was not seen
			x, old = old[0], old[1:]
		case len(old) == 0 || fresh[0].key.compare(old[0].key) < 0:
			x, fresh = fresh[0], fresh[1:]
		default:
			x = fresh[0]
			x.waits |= old[0].waits << 1 & (1<<pastRuns - 1)
			if x.up == 0 {
				x.up, x.peer, x.peerNum, x.toSwitch = old[0].up, old[0].peer, old[0].peerNum, old[0].toSwitch
			} else if x.peer == 0 {
				x.peer, x.peerNum, x.toSwitch = old[0].peer, old[0].peerNum, old[0].toSwitch
			}
			old, fresh = old[1:], fresh[1:]
		}
		x.up = min(x.up, now.Unix()) // the clock may have been set back
		if now.Unix()-x.up <= int64(PastAge/time.Second) {
			all = append(all, x)
		}
	}
	h.ports = all
}

func (h *History) of(p *fabric.Port) *portPast {
	key, _ := KeyOf(p)
	i, ok := slices.BinarySearchFunc(h.ports, key, func(x portPast, k PortKey) int { return x.key.compare(k) })
	if !ok {
		return nil
	}
	return &h.ports[i]
}

// Down is a port that was in use, or both ends of a link.
type Down struct {
	Port     *fabric.Port
	Other    *fabric.Port  // the other end, if it is down too; nil: it is not, or is unknown
	For      time.Duration // since it was seen up
	Peer     mad.GUID      // node that was behind it; 0: unknown
	ToSwitch bool          // that was a switch
}

// Down returns the ports of f that are down, and were up in a run of the last seven days, unless
// the port that was connected to them now has another link. Both ends of a link are one entry, at
// the first of them.
func (h *History) Down(f *fabric.Fabric, now time.Time) (list []Down) {
	for i := range f.Ports() {
		p := &f.Ports()[i]
		x := h.wasUp(p, now)
		if x == nil {
			continue
		}
		if x.recabled(f) {
			continue
		}
		q := h.otherEnd(f, p, x, now)
		if q == nil || p.ID() < q.ID() {
			list = append(list, Down{p, q, max(0, now.Sub(time.Unix(x.up, 0)).Truncate(time.Second)), x.peer, x.toSwitch})
		}
	}
	return list
}

// recabled reports whether what was behind the port now has another link: the cable was moved,
// and nothing is missing.
func (x *portPast) recabled(f *fabric.Fabric) bool {
	nodes := f.NodeByGUID(x.peer)
	if x.peer == 0 || len(nodes) != 1 {
		return false
	}
	q := nodes[0].Port(int(x.peerNum))
	return q != nil && q.Peer() != nil
}

// wasUp returns the past of a port that is down, and was up; nil: it is not, or was not.
func (h *History) wasUp(p *fabric.Port, now time.Time) *portPast {
	if p.Info() == nil || p.Num() == 0 || p.PhysicalState() == mad.PortPhysicalStateLinkUp {
		return nil
	}
	if x := h.of(p); x != nil && x.up != 0 && now.Unix()-x.up <= int64(PastAge/time.Second) {
		return x
	}
	return nil
}

// otherEnd returns the port that was connected to p, whose past is x, if it is down as well and
// has not been connected to another port since; else nil.
func (h *History) otherEnd(f *fabric.Fabric, p *fabric.Port, x *portPast, now time.Time) *fabric.Port {
	nodes := f.NodeByGUID(x.peer)
	if x.peer == 0 || len(nodes) != 1 {
		return nil
	}
	q := nodes[0].Port(int(x.peerNum))
	if q == nil || q == p {
		return nil
	}
	if y := h.wasUp(q, now); y == nil || y.peer != p.Node().GUID() || int(y.peerNum) != p.Num() {
		return nil
	}
	return q
}

// Wait is a port whose link was repeatedly up and not active.
type Wait struct {
	Port *fabric.Port
	Runs int // of the latest pastRuns, this one included, in which its link was up and not active
}

// Waits returns the ports of f whose links were up and not active in an earlier run.
func (h *History) Waits(f *fabric.Fabric) (list []Wait) {
	for i := range f.Ports() {
		p := &f.Ports()[i]
		x := h.of(p)
		if x == nil || x.waits == 0 || p.Info() == nil {
			continue
		}
		waits := x.waits << 1 & (1<<pastRuns - 1)
		if p.PhysicalState() == mad.PortPhysicalStateLinkUp && p.Info().PortState != mad.PortStateActive {
			waits |= 1
		}
		if waits != 0 {
			list = append(list, Wait{p, bits.OnesCount16(waits)})
		}
	}
	return list
}
