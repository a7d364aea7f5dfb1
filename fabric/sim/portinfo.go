package sim

import (
	"fabsh/mad"
)

func (r *request) getPortInfo() mad.Status {
	p := r.portOfPortInfo()
	if p == nil {
		return mad.StatusBadValue
	}
	r.readPortInfo(p)
	return mad.StatusOK
}

func (r *request) setPortInfo() mad.Status {
	p := r.portOfPortInfo()
	if p == nil {
		return mad.StatusBadValue
	}
	before := p.state
	status := r.applyPortInfo(p)
	r.readPortInfo(p)
	// The answer is complete: it does not show what the sweep changes.
	if now := p.state; before != now && (min(before, now) == mad.PortStateDown || now == mad.PortStateInitialize) {
		r.linkChanged(p)
	}
	return status
}

// portOfPortInfo is the port that the modifier names; nil: there is none. The
// modifier's top bit says that the requester supports the extended speeds;
// agents show them in any case.
func (r *request) portOfPortInfo() *port {
	const extendedSpeeds = 1 << 31
	return r.portOfModifier(int(r.Modifier &^ extendedSpeeds))
}

// readPortInfo writes p's PortInfo to the answer.
func (r *request) readPortInfo(p *port) {
	copy(r.data, p.info[:])
	portInfoLocalPort.SetUint(r.data, uint64(r.in.num))
	if r.hideKey {
		portInfoKey.SetUint(r.data, 0)
	}
	if r.leaseOver(p) {
		portInfoProtect.SetUint(r.data, 0)
	}
}

// applyPortInfo does what a Set asks for: all of it or, when a part is not
// valid, nothing (IBA 14.2.5.6).
func (r *request) applyPortInfo(p *port) mad.Status {
	var old, next, asked mad.PortInfo
	old.Decode(p.info[:])
	asked.Decode(r.data)
	image := p.info
	applySet(mad.AttrPortInfo, image[:], r.data)
	next.Decode(image[:])
	next.PortState, next.PortPhysicalState = old.PortState, old.PortPhysicalState
	if asked.OperationalVLs == 0 { // no change
		next.OperationalVLs = old.OperationalVLs
	}
	if p != p.endPort() { // fields of end ports only
		next.MKey, next.MKeyProtectBits, next.MKeyLeasePeriod = old.MKey, old.MKeyProtectBits, old.MKeyLeasePeriod
		next.GIDPrefix, next.LID, next.LMC = old.GIDPrefix, old.LID, old.LMC
		next.MasterSMLID, next.MasterSMSL, next.SubnetTimeOut = old.MasterSMLID, old.MasterSMSL, old.SubnetTimeOut
	} else if next.LID == 0 && old.LID != 0 || int(next.LID)+1<<next.LMC-1 > int(mad.MaxUnicastLID) || next.MasterSMLID > mad.MaxUnicastLID {
		return mad.StatusBadValue
	}
	enableSupported(&next)
	switch {
	case next.LinkWidthEnabled&^next.LinkWidthSupported != 0,
		next.LinkSpeedEnabled&^next.LinkSpeedSupported != 0,
		next.LinkSpeedExtEnabled != mad.LinkSpeedExtDisabled && next.LinkSpeedExtEnabled&^next.LinkSpeedExtSupported != 0,
		next.LinkSpeedExtEnabled2&^next.LinkSpeedExtSupported2 != 0,
		next.NeighborMTU == 0 || next.NeighborMTU > next.MTUCap,
		mad.VLs(next.OperationalVLs) > next.VLCap,
		next.LinkDownDefaultState > mad.LinkDownDefaultStatePolling,
		asked.PortPhysicalState > mad.PortPhysicalStateDisabled,
		p.num == 0 && asked.PortPhysicalState != 0:
		return mad.StatusBadValue
	}
	switch asked.PortState {
	case mad.PortStateNoChange, mad.PortStateDown:
	case mad.PortStateArmed:
		if old.PortState != mad.PortStateInitialize && old.PortState != mad.PortStateArmed {
			return mad.StatusBadValue
		}
		next.PortState = asked.PortState
	case mad.PortStateActive:
		if old.PortState != mad.PortStateArmed && old.PortState != mad.PortStateActive {
			return mad.StatusBadValue
		}
		next.PortState = asked.PortState
	default:
		return mad.StatusBadValue
	}

	r.setLID(p, next.LID, next.LMC)
	p.setInfo(&next)
	switch {
	case p.num == 0:
	case asked.PortPhysicalState != 0:
		p.linkDown(asked.PortPhysicalState)
	case asked.PortState == mad.PortStateDown:
		p.linkDown(mad.PortPhysicalState(next.LinkDownDefaultState))
	}
	return 0
}

// enableSupported replaces the values that mean all that is supported.
func enableSupported(i *mad.PortInfo) {
	if i.LinkWidthEnabled == mad.LinkWidthSupported {
		i.LinkWidthEnabled = i.LinkWidthSupported
	}
	if i.LinkSpeedEnabled == mad.LinkSpeedSupported {
		i.LinkSpeedEnabled = i.LinkSpeedSupported
	}
	if i.LinkSpeedExtEnabled == mad.LinkSpeedExtSupported {
		i.LinkSpeedExtEnabled = i.LinkSpeedExtSupported
	}
}

// setLID gives p another LID in the table of LIDs; its PortInfo follows.
func (s *Subnet) setLID(p *port, lid mad.LID, lmc uint8) {
	if p != p.endPort() || p.lid == lid && p.lmc == lmc {
		return
	}
	for i, q := range s.lids[p.lid : int(p.lid)+1<<p.lmc] {
		if q == p {
			s.lids[int(p.lid)+i] = nil
		}
	}
	if lid &^= 1<<lmc - 1; lid == 0 {
		return
	}
	for i := int(lid); i < int(lid)+1<<lmc && i < len(s.lids); i++ {
		if s.lids[i] == nil { // of two ports with one LID, packets reach the first
			s.lids[i] = p
		}
	}
}

// setInfo sets p's PortInfo.
func (p *port) setInfo(info *mad.PortInfo) {
	info.Encode(p.info[:])
	p.state, p.lid, p.lmc = info.PortState, info.LID&^(1<<info.LMC-1), info.LMC
	p.mtu, p.rate = info.NeighborMTU, activeRate(info)
	p.mkey, p.keyLevel = info.MKey, info.MKeyProtectBits
}

// linkDown takes the link at p down, and p into physical state phys; the other
// end polls. If p polls too, the link trains again.
func (p *port) linkDown(phys mad.PortPhysicalState) {
	p.setDown(phys)
	if p.peer != nil && p.peer != p && p.peer.up {
		p.peer.setDown(mad.PortPhysicalStatePolling)
	}
	if p.peer != nil {
		p.train()
	}
}

// setDown takes one end of a link down.
func (p *port) setDown(phys mad.PortPhysicalState) {
	var info mad.PortInfo
	info.Decode(p.info[:])
	info.PortState, info.PortPhysicalState = mad.PortStateDown, phys
	p.setInfo(&info)
	p.up = false
	p.node.setStateChange()
}

// train brings the link at p up, to Initialize, if both ends poll and have a
// width and a speed in common.
func (p *port) train() {
	var a, b mad.PortInfo
	a.Decode(p.info[:])
	b.Decode(p.peer.info[:])
	if p.unplugged || p.node.off || p.peer.node.off || a.PortPhysicalState != mad.PortPhysicalStatePolling || b.PortPhysicalState != mad.PortPhysicalStatePolling {
		return
	}
	width := widest(a.LinkWidthEnabled & b.LinkWidthEnabled)
	speed := highest(a.LinkSpeedEnabled & b.LinkSpeedEnabled)
	ext := highest(extEnabled(&a) & extEnabled(&b))
	ext2 := highest(a.LinkSpeedExtEnabled2 & b.LinkSpeedExtEnabled2)
	if width == 0 || speed|mad.LinkSpeed(ext)|mad.LinkSpeed(ext2) == 0 {
		return
	}
	for _, end := range []struct {
		p    *port
		info *mad.PortInfo
	}{{p, &a}, {p.peer, &b}} {
		end.info.LinkWidthActive, end.info.LinkSpeedActive = width, speed
		end.info.LinkSpeedExtActive, end.info.LinkSpeedExtActive2 = ext, ext2
		end.info.PortState, end.info.PortPhysicalState = mad.PortStateInitialize, mad.PortPhysicalStateLinkUp
		end.p.setInfo(end.info)
		end.p.up = true
		end.p.node.setStateChange()
	}
}

func extEnabled(i *mad.PortInfo) mad.LinkSpeedExt {
	if i.LinkSpeedExtEnabled == mad.LinkSpeedExtDisabled {
		return 0
	}
	return i.LinkSpeedExtEnabled
}

// widest is the width with the most lanes of a mask.
func widest(set mad.LinkWidth) mad.LinkWidth {
	for _, w := range []mad.LinkWidth{mad.LinkWidth12x, mad.LinkWidth8x, mad.LinkWidth4x, mad.LinkWidth2x, mad.LinkWidth1x} {
		if set&w != 0 {
			return w
		}
	}
	return 0
}

// highest is the highest bit of a mask.
func highest[T ~uint8](set T) T {
	var bit T
	for ; set != 0; set &= set - 1 {
		bit = set & -set
	}
	return bit
}

// setStateChange sets SwitchInfo.PortStateChange.
func (n *node) setStateChange() {
	if n.isSwitch {
		switchInfoStateChange.SetUint(n.sw[:], 1)
	}
}
