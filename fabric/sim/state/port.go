package state

import (
	"encoding/binary"
	"time"

	"fabsh/mad"
)

// Port is the state of a port: PortInfo as on the wire, and of it what forwarding
// needs, decoded.
type Port struct {
	Node      *Node
	Peer      *Port  // at the cable's other end; nil: no cable
	Limit     *Limit // of the cable, the same at both ends; nil: none
	Num       uint8
	Dead      bool
	FDR10     bool // what PortInfo shows as QDR is FDR10
	FNM       bool // for the management of the network: it links planes
	Unplugged bool // the cable is not plugged in
	Ethernet  bool // the port is of an Ethernet network: it trains with no port of InfiniBand
	InService bool // of an end port: reached by the last sweep
	Up        bool // the link is trained; then there is a peer
	State     mad.PortState
	LMC       uint8
	KeyLevel  uint8   // PortInfo.M_KeyProtectBits
	MTU       mad.MTU // PortInfo.NeighborMTU
	Rate      uint16  // of the link, in units of half a Gb/s
	LID       mad.LID
	MKey      uint64
	LeaseEnd  time.Time // of the M_Key, if a wrong one was sent
	GUID      mad.GUID
	Info      [SMPSize]byte
	Light     bool // LedInfo.LedMask
	Counters  Counters
	Loss      *Loss // nil: it loses nothing
	Virtual   []VirtualPort
}

// EndPort is the port that has p's LID: of a switch port 0, else p itself.
func (p *Port) EndPort() *Port {
	if p.Node.IsSwitch {
		return &p.Node.Ports[0]
	}
	return p
}

// SetInfo sets p's PortInfo.
func (p *Port) SetInfo(info *mad.PortInfo) {
	info.Encode(p.Info[:])
	p.State, p.LID, p.LMC = info.PortState, info.LID&^(1<<info.LMC-1), info.LMC
	p.MTU, p.Rate = info.NeighborMTU, activeRate(info)
	p.MKey, p.KeyLevel = info.MKey, info.MKeyProtectBits
}

// PortInfo returns the port's PortInfo.
func (p *Port) PortInfo() (info mad.PortInfo) {
	info.Decode(p.Info[:])
	return info
}

// ChangeInfo changes fields of the port's PortInfo.
func (p *Port) ChangeInfo(change func(info *mad.PortInfo)) {
	info := p.PortInfo()
	change(&info)
	p.SetInfo(&info)
}

// CountViolation counts a packet with a wrong key, in a counter of PortInfo.
func (p *Port) CountViolation(counter *mad.Field) {
	if n := counter.Uint(p.Info[:]); n < counter.Max() {
		counter.SetUint(p.Info[:], n+1)
	}
}

// EditInfo changes what the port's agent reports. Packets still reach the port by its old
// LIDs.
func (p *Port) EditInfo(change func(*mad.PortInfo)) {
	lid, lmc := p.LID, p.LMC
	p.ChangeInfo(change)
	p.LID, p.LMC = lid, lmc
}

// Settle counts what has grown until now.
func (p *Port) Settle(now time.Time) {
	if m := p.Node.Measurement; m != nil && m.Of == &p.Counters {
		m.Record(now)
	}
	p.Counters.Settle(now)
}

// Grow adds to the rate of a counter, from now on.
func (p *Port) Grow(key CounterKey, rate float64, traffic bool, now time.Time) {
	if m := p.Node.Measurement; m != nil && m.Of == &p.Counters {
		m.Record(now)
	}
	p.Counters.Grow(key, rate, traffic, now)
}

// SetCapability2 sets bits of PortInfo.CapabilityMask2.
func (p *Port) SetCapability2(bits mad.CapabilityMask2) {
	p.ChangeInfo(func(info *mad.PortInfo) { info.CapabilityMask2 |= bits })
}

// SetCapability sets or clears bits of PortInfo.CapabilityMask.
func (p *Port) SetCapability(bits mad.CapabilityMask, on bool) {
	p.ChangeInfo(func(info *mad.PortInfo) {
		info.CapabilityMask &^= bits
		if on {
			info.CapabilityMask |= bits
		}
	})
}

var (
	nodeInfoPortGUID  = mad.AttrNodeInfo.Field("port_guid")
	nodeInfoLocalPort = mad.AttrNodeInfo.Field("local_port_num")
)

// ReadNodeInfo writes the NodeInfo that a request through p reads.
func (p *Port) ReadNodeInfo(data []byte) {
	copy(data, p.Node.Info[:])
	binary.BigEndian.PutUint64(data[nodeInfoPortGUID.Offset/8:], uint64(p.EndPort().GUID))
	data[nodeInfoLocalPort.Offset/8] = p.Num
}

// SetGUID gives an adapter's port another GUID, or the node: of a switch, all ports have one, and
// port 0 of an adapter stands for the node. It need not be unique.
func (p *Port) SetGUID(guid mad.GUID) {
	if p.Num > 0 && !p.Node.IsSwitch {
		p.GUID = guid
		return
	}
	NodeInfoGUID.SetUint(p.Node.Info[:], uint64(guid))
	if p.Node.IsSwitch {
		p.Node.Ports[0].GUID = guid
	}
}

// GID is the GID of an end port.
func (p *Port) GID() mad.GID { return mad.MakeGID(GIDPrefix, p.GUID) }

// ManagedPorts returns the ports that end port p answers for: all ports of a switch.
func (p *Port) ManagedPorts() []Port {
	if p.Node.IsSwitch {
		return p.Node.Ports
	}
	return p.Node.Ports[p.Num : p.Num+1]
}

// activeRate is the rate of a port's link, in units of half a Gb/s, by the
// speed's name, not its signalling rate: HDR on 4 lanes is 200 Gb/s.
func activeRate(i *mad.PortInfo) uint16 {
	return LaneRate(mad.ActiveSpeed(i)) * uint16(mad.WidthLanes(mad.ActiveWidth(i)))
}

// LaneRate returns the rate of a lane by the name of its speed, in units of half a Gb/s; 0: the
// speed is unknown.
func LaneRate(speed string) uint16 {
	switch speed {
	case "sdr":
		return 5
	case "ddr":
		return 10
	case "qdr":
		return 20
	case "fdr":
		return 28
	case "edr":
		return 50
	case "hdr":
		return 100
	case "ndr":
		return 200
	case "xdr":
		return 400
	}
	return 0
}

// Capacity returns the capacity of p's link, in bytes per second.
func (p *Port) Capacity() float64 { return float64(p.Rate) * 0.5e9 / 8 }

// Loss is what a port loses of the MADs that cross its link.
type Loss struct {
	Share    float64         // the probability that a MAD is lost
	Arriving bool            // only MADs that come in through the port; else also MADs that leave through it
	Attr     mad.AttributeID // only requests of that attribute, which end at the port; 0: all
}

// Neighbour returns the port at the other end of p's cable; nil if the link is down, or
// one of its ends loses all MADs.
func (p *Port) Neighbour() *Port {
	if !p.Up || p.Dead || p.Peer.Dead {
		return nil
	}
	return p.Peer
}

// Active reports whether the link at p is active, and carries data.
func (p *Port) Active() bool {
	return p.Up && p.State == mad.PortStateActive && p.Peer.State == mad.PortStateActive
}
