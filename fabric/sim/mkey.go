package sim

import (
	"encoding/binary"
	"time"

	"fabsh/mad"
)

// checkMKey: the M_Key of an SMP is right, or the port's protection level allows
// the method without (IBA 14.2.4).
func (r *request) checkMKey() bool {
	p := r.in.endPort()
	if p.mkey == 0 || binary.BigEndian.Uint64(r.mad[mad.SMPKeyOffset:]) == p.mkey {
		r.endLease = !p.leaseEnd.IsZero()
		return true
	}
	level := p.keyLevel
	if r.leaseOver(p) {
		level = 0
	}
	r.hideKey = level > 0
	return r.Method == mad.MethodGet && level < 2
}

// leaseOver: the lease of p's M_Key ran out, so that everybody may read it (IBA
// 14.2.4.2).
func (s *Subnet) leaseOver(p *port) bool { return !p.leaseEnd.IsZero() && !s.now().Before(p.leaseEnd) }

// afterMKey does what follows from a wrong M_Key, and from a right one while the
// lease runs out: the lease begins with a wrong one, and ends with a right one.
func (r *request) afterMKey(p *packet) {
	end := r.in.endPort()
	if r.leaseOver(end) { // PortInfo shows it from now on
		var info mad.PortInfo
		info.Decode(end.info[:])
		info.MKeyProtectBits = 0
		end.setInfo(&info)
		end.leaseEnd = time.Time{}
	}
	if r.endLease {
		end.leaseEnd = time.Time{}
		return
	}
	countViolation(end, portInfoViolations)
	if lease := portInfoLease.Uint(end.info[:]); lease > 0 && end.leaseEnd.IsZero() && end.keyLevel > 0 {
		end.leaseEnd = r.now().Add(time.Duration(lease) * time.Second)
	}
	r.mkeyTrap(end, p)
}

// countViolation counts an SMP with a wrong M_Key, or a packet with a wrong key.
func countViolation(p *port, counter *mad.Field) {
	if n := counter.Uint(p.info[:]); n < counter.Max() {
		counter.SetUint(p.info[:], n+1)
	}
}

// mkeyTrap sends trap 256 of a request with a wrong M_Key.
func (r *request) mkeyTrap(end *port, p *packet) {
	details := mad.NoticeBadMKey{
		Method: uint8(r.Method), AttributeID: uint16(r.Attribute), AttributeModifier: r.Modifier,
		MKey: binary.BigEndian.Uint64(r.mad[mad.SMPKeyOffset:]),
	}
	if r.Class == mad.ClassSubnDirected {
		hops := int(r.mad[mad.HopCountOffset])
		details.DrSLID, _ = drLIDs(r.mad)
		details.DRNotice, details.DRPathTruncated = true, hops > len(details.DRNoticeReturnPath)
		details.LIDAddr = mad.PermissiveLID
		if p.LID != mad.PermissiveLID {
			details.LIDAddr = r.from.endPort().lid
		}
		path := r.mad[mad.SMPReturnPathOffset+1:][:min(hops, len(details.DRNoticeReturnPath))]
		details.DRHopCount = uint8(copy(details.DRNoticeReturnPath[:], path))
	} else {
		details.LIDAddr = r.from.endPort().lid
	}
	r.trap(end, mad.NoticeTypeSecurity, 256, &details)
}
