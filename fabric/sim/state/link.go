package state

import "fabsh/mad"

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

// LinkDown takes the link at p down, and p into physical state phys; the other
// end polls. If p polls too, the link trains again.
func (p *Port) LinkDown(phys mad.PortPhysicalState) {
	p.SetDown(phys)
	if p.Peer != nil && p.Peer != p && p.Peer.Up {
		p.Peer.SetDown(mad.PortPhysicalStatePolling)
	}
	if p.Peer != nil {
		p.Train()
	}
}

// SetDown takes one end of a link down.
func (p *Port) SetDown(phys mad.PortPhysicalState) {
	if p.State != mad.PortStateDown { // IBA 14.2.5.4: a change of PortState, not of its physical state
		p.Node.SetStateChange()
	}
	p.ChangeInfo(func(info *mad.PortInfo) { info.PortState, info.PortPhysicalState = mad.PortStateDown, phys })
	p.Up = false
}

// Train brings the link at p up, to Initialize, if both ends poll and have a
// width and a speed in common.
func (p *Port) Train() {
	a, b := p.PortInfo(), p.Peer.PortInfo()
	if p.Unplugged || p.Node.Off || p.Peer.Node.Off || a.PortPhysicalState != mad.PortPhysicalStatePolling || b.PortPhysicalState != mad.PortPhysicalStatePolling {
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
		p    *Port
		info *mad.PortInfo
	}{{p, &a}, {p.Peer, &b}} {
		end.info.LinkWidthActive, end.info.LinkSpeedActive = width, speed
		end.info.LinkSpeedExtActive, end.info.LinkSpeedExtActive2 = ext, ext2
		end.info.PortState, end.info.PortPhysicalState = mad.PortStateInitialize, mad.PortPhysicalStateLinkUp
		end.p.SetInfo(end.info)
		end.p.Up = true
		end.p.Node.SetStateChange()
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
