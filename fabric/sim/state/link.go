package state

import (
	"fmt"
	"math"

	"fabsh/mad"
)

// Limit is the fastest speed and the widest width that a cable carries, whatever the ports at
// its ends have enabled.
type Limit struct {
	Speed string // such as "edr"; "": any
	Width string // such as "2x"; "": any
	Once  bool   // it ends when the link has trained
}

// linkDowned is the counter of links that went down, linkErrorRecovery that of links that
// recovered from errors before.
var (
	linkDowned        = CounterKey{Name: "LinkDownedCounter", Element: 0}
	linkErrorRecovery = CounterKey{Name: "LinkErrorRecoveryCounter", Element: 0}
)

// Recover has the link at p recover from errors without going down. Both ends count it (IBA
// 16.1.3.5).
func (p *Port) Recover() error {
	if !p.Up {
		return fmt.Errorf("the link at port %d of %s is down", p.Num, p.Node.Label)
	}
	p.count(linkErrorRecovery)
	p.Peer.count(linkErrorRecovery)
	return nil
}

// LinkDown takes the link at p down, and p into physical state phys; the other
// end polls. If p polls too, the link trains again. Both ends count it.
func (p *Port) LinkDown(phys mad.PortPhysicalState) {
	p.SetDown(phys)
	if p.Peer != nil && p.Peer != p && p.Peer.Up {
		p.Peer.SetDown(mad.PortPhysicalStatePolling)
	}
	if p.Peer != nil {
		p.Train()
	}
}

// SetDown takes one end of a link down. A port whose link was trained counts LinkDowned (IBA
// 16.1.3.5).
func (p *Port) SetDown(phys mad.PortPhysicalState) {
	if p.State != mad.PortStateDown { // IBA 14.2.5.4: a change of PortState, not of its physical state
		p.Node.SetStateChange()
	}
	if p.Up {
		p.count(linkDowned)
	}
	p.ChangeInfo(func(info *mad.PortInfo) { info.PortState, info.PortPhysicalState = mad.PortStateDown, phys })
	p.Up = false
}

// count adds 1 to a counter.
func (p *Port) count(key CounterKey) {
	now := p.Node.Subnet.Now()
	p.Settle(now)
	if v := p.Counters.Value(key, now); v < math.MaxUint64 {
		p.Counters.Set(key, v+1)
	}
}

// Train brings the link at p up, to Initialize, if both ends poll and have a
// width and a speed in common that the cable carries.
func (p *Port) Train() {
	a, b := p.PortInfo(), p.Peer.PortInfo()
	if p.Unplugged || p.Ethernet || p.Peer.Ethernet || p.Node.Off || p.Peer.Node.Off || a.PortPhysicalState != mad.PortPhysicalStatePolling || b.PortPhysicalState != mad.PortPhysicalStatePolling {
		return
	}
	carried := p.Limit.carried()
	width := widest(a.LinkWidthEnabled & b.LinkWidthEnabled & carried.width)
	speed := highest(a.LinkSpeedEnabled & b.LinkSpeedEnabled & carried.speed)
	ext := highest(extEnabled(&a) & extEnabled(&b) & carried.ext)
	ext2 := highest(a.LinkSpeedExtEnabled2 & b.LinkSpeedExtEnabled2 & carried.ext2)
	if width == 0 || speed|mad.LinkSpeed(ext)|mad.LinkSpeed(ext2) == 0 {
		return
	}
	if p.Limit != nil && p.Limit.Once {
		p.Limit, p.Peer.Limit = nil, nil
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

// linkSet is a set of widths and speeds.
type linkSet struct {
	width mad.LinkWidth
	speed mad.LinkSpeed
	ext   mad.LinkSpeedExt
	ext2  mad.LinkSpeedExt2
}

// linkSetOf returns the codes of a speed and a width.
func linkSetOf(speed, width string) linkSet {
	return linkSet{
		width: mad.LinkWidth(mad.WordsLinkWidth.Code()[width]),
		speed: mad.LinkSpeed(mad.WordsLinkSpeed.Code()[speed]),
		ext:   mad.LinkSpeedExt(mad.WordsLinkSpeedExt.Code()[speed]),
		ext2:  mad.LinkSpeedExt2(mad.WordsLinkSpeedExt2.Code()[speed]),
	}
}

// carried returns the widths and speeds of which the cable is capable.
func (l *Limit) carried() linkSet {
	set := linkSet{width: math.MaxUint8, speed: math.MaxUint8, ext: math.MaxUint8, ext2: math.MaxUint8}
	if l == nil {
		return set
	}
	top := linkSetOf(l.Speed, l.Width)
	switch {
	case top.ext2 != 0:
		set.ext2 = upTo(top.ext2)
	case top.ext != 0:
		set.ext, set.ext2 = upTo(top.ext), 0
	case top.speed != 0:
		set.speed, set.ext, set.ext2 = upTo(top.speed), 0, 0
	}
	if top.width != 0 {
		set.width = 0
		for _, word := range mad.Widths() { // the codes are not in the order of the lanes
			set.width |= linkSetOf("", word).width
			if word == l.Width {
				break
			}
		}
	}
	return set
}

// Support has a port support and enable a speed and a width, beside what it has; "": none.
func (p *Port) Support(speed, width string) {
	more := linkSetOf(speed, width)
	p.ChangeInfo(func(i *mad.PortInfo) {
		i.LinkWidthSupported |= more.width
		i.LinkWidthEnabled |= more.width
		i.LinkSpeedSupported |= more.speed
		i.LinkSpeedEnabled |= more.speed
		i.LinkSpeedExtSupported |= more.ext
		if more.ext != 0 {
			i.LinkSpeedExtEnabled = extEnabled(i) | more.ext
		}
		i.LinkSpeedExtSupported2 |= more.ext2
		i.LinkSpeedExtEnabled2 |= more.ext2
	})
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

// upTo is the mask of a bit and all lower ones.
func upTo[T ~uint8](bit T) T { return bit | (bit - 1) }
