package fabric

import "fabsh/mad"

// alikeEnd has the properties in which the ends of alike links agree.
type alikeEnd struct {
	kind                              NodeKind
	vendor                            uint32
	device                            uint16
	ports                             uint8
	known, fdr10, live                bool
	state                             mad.PortState
	physical                          mad.PortPhysicalState
	width, widthEnabled, widthHas     mad.LinkWidth
	speed, speedEnabled, speedHas     mad.LinkSpeed
	ext, extEnabled, extHas           mad.LinkSpeedExt
	ext2, ext2Enabled, ext2Has        mad.LinkSpeedExt2
	extendedSpeeds, extendedSpeedsTwo bool
	mtu, mtuHas                       mad.MTU
	lanes                             mad.OperationalVLs
	hoqLife, vlStallCount             uint8
}

func (p *Port) alike() (e alikeEnd) {
	n := p.Node()
	e = alikeEnd{kind: n.kind, vendor: n.info.VendorID, device: n.info.DeviceID, ports: n.info.NumPorts, known: p.known, fdr10: p.fdr10, live: n.route != nil}
	if i := p.Info(); i != nil {
		e.state, e.physical = i.PortState, i.PortPhysicalState
		e.width, e.widthEnabled, e.widthHas = i.LinkWidthActive, i.LinkWidthEnabled, i.LinkWidthSupported
		e.speed, e.speedEnabled, e.speedHas = i.LinkSpeedActive, i.LinkSpeedEnabled, i.LinkSpeedSupported
		e.ext, e.extEnabled, e.extHas = i.LinkSpeedExtActive, i.LinkSpeedExtEnabled, i.LinkSpeedExtSupported
		e.ext2, e.ext2Enabled, e.ext2Has = i.LinkSpeedExtActive2, i.LinkSpeedExtEnabled2, i.LinkSpeedExtSupported2
		e.mtu, e.mtuHas, e.lanes = i.NeighborMTU, i.MTUCap, i.OperationalVLs
		e.hoqLife, e.vlStallCount = i.HOQLife, i.VLStallCount
	}
	if caps := p.management().Info(); caps != nil {
		e.extendedSpeeds, e.extendedSpeedsTwo = HasExtendedSpeeds(caps), HasExtendedSpeeds2(caps)
	}
	return e
}

// AlikeLinks groups the links of f, each by its first port: the ends of all links of a group
// have equal kinds and models, equal states, equal widths and speeds in use, supported and
// enabled, and equal MTUs, lanes and time limits. Groups are in the order of their first links.
//
// Time: O(P) for P ports.
func (f *Fabric) AlikeLinks() [][]*Port {
	var x grouping[[2]alikeEnd, *Port]
	for i := range f.ports {
		if p := &f.ports[i]; p.peerAfter() {
			x.add([2]alikeEnd{p.alike(), p.Peer().alike()}, p)
		}
	}
	return x.groups
}

// peerAfter reports whether p has a link, of which p is the first port.
func (p *Port) peerAfter() bool {
	q := p.Peer()
	return q != nil && q.id >= p.id
}

// withoutIdentity returns NodeInfo without what identifies the node.
func (n *Node) withoutIdentity() mad.NodeInfo {
	i := n.info
	i.NodeGUID, i.PortGUID, i.SystemImageGUID, i.LocalPortNum = 0, 0, 0, 0
	return i
}

// AlikeNodes groups the nodes of f: those of a group have the same kind, and the same NodeInfo
// besides GUIDs. Groups are in the order of their first nodes.
func (f *Fabric) AlikeNodes() [][]*Node {
	type alike struct {
		kind NodeKind
		info mad.NodeInfo
	}
	var x grouping[alike, *Node]
	for i := range f.nodes {
		n := &f.nodes[i]
		x.add(alike{n.kind, n.withoutIdentity()}, n)
	}
	return x.groups
}

// alikeEndPort has the properties in which alike end ports agree.
type alikeEndPort struct {
	kind NodeKind
	node mad.NodeInfo // without GUIDs
	port mad.PortInfo // without LID, counters of violations of P_Keys and Q_Keys, and errors; M_Key is 0 or 1
	lid  bool         // it has one
}

// EndPorts are the ports with a LID of their own and known PortInfo: port 0 of switches, and the
// ports with a link of other nodes.
func (f *Fabric) EndPorts() []*Port {
	var out []*Port
	for i := range f.ports {
		p := &f.ports[i]
		if end := p.Node().IsSwitch() && p.num == 0 || !p.Node().IsSwitch() && p.Peer() != nil; end && p.known {
			out = append(out, p)
		}
	}
	return out
}

// AlikeEndPorts groups the end ports of f: those of a group are of nodes of the same kind and
// NodeInfo besides GUIDs, and have the same PortInfo, except for what identifies a port or counts
// events; only M_Key violations count. Groups are in the order of their first ports.
//
// Time: O(P) for P ports.
func (f *Fabric) AlikeEndPorts() [][]*Port {
	var x grouping[alikeEndPort, *Port]
	for _, p := range f.EndPorts() {
		n := p.Node()
		key := alikeEndPort{kind: n.kind, node: n.withoutIdentity(), port: *p.Info(), lid: p.LID() != 0}
		i := &key.port
		i.MKey, i.LID, i.LocalPortNum, i.LinkRoundTripLatency = min(i.MKey, 1), 0, 0, 0
		i.PKeyViolations, i.QKeyViolations, i.LocalPhyErrors, i.OverrunErrors = 0, 0, 0, 0
		x.add(key, p)
	}
	return x.groups
}

// grouping groups nodes or ports by a key. Most are like the one before.
type grouping[K comparable, T any] struct {
	index  map[K]int
	last   K
	at     int // the group of last
	groups [][]T
}

func (x *grouping[K, T]) add(key K, member T) {
	if x.index == nil {
		x.index = map[K]int{}
	} else if key == x.last {
		x.groups[x.at] = append(x.groups[x.at], member)
		return
	}
	g, ok := x.index[key]
	if !ok {
		g = len(x.groups)
		x.index[key] = g
		x.groups = append(x.groups, nil)
	}
	x.last, x.at = key, g
	x.groups[g] = append(x.groups[g], member)
}
