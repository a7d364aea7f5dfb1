package agent

import (
	"encoding/binary"
	"time"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

var (
	portInfoViolations = mad.AttrPortInfo.Field("m_key_violations")
	portInfoLease      = mad.AttrPortInfo.Field("m_key_lease_period")
)

// mkeyAccess is what the M_Key of an SMP permits.
type mkeyAccess struct {
	Denied   bool // the M_Key is wrong: there is no answer
	HideKey  bool // the requester may not read the M_Key
	EndLease bool // the M_Key is right, and its lease was running out
}

// checkMKey returns what an SMP with a key is permitted at an end port: its M_Key is
// right, or the port's protection level allows the method without it (IBA 14.2.4).
func checkMKey(s *state.Subnet, p *state.Port, m mad.Method, key uint64) mkeyAccess {
	if p.MKey == 0 || key == p.MKey {
		return mkeyAccess{EndLease: !p.LeaseEnd.IsZero()}
	}
	level := p.KeyLevel
	if leaseOver(s, p) {
		level = 0
	}
	return mkeyAccess{Denied: m != mad.MethodGet || level >= 2, HideKey: level > 0}
}

// leaseOver reports whether the lease of p's M_Key has expired, so that every requester
// may read it (IBA 14.2.4.2).
func leaseOver(s *state.Subnet, p *state.Port) bool {
	return !p.LeaseEnd.IsZero() && !s.Now().Before(p.LeaseEnd)
}

// checkedSMP is an SMP whose M_Key was checked.
type checkedSMP struct {
	Header mad.Header
	MAD    []byte
	LID    mad.LID // that it was sent to
	From   *state.Port
}

// afterMKey updates the lease of an end port's M_Key: a wrong M_Key starts it, and a
// right one, while the lease runs, ends it. It needs the lock for changes.
func afterMKey(s *state.Subnet, n *state.Notices, end *state.Port, a mkeyAccess, m checkedSMP) {
	if leaseOver(s, end) { // PortInfo then shows it
		end.ChangeInfo(func(info *mad.PortInfo) { info.MKeyProtectBits = 0 })
		end.LeaseEnd = time.Time{}
	}
	if a.EndLease {
		end.LeaseEnd = time.Time{}
		return
	}
	end.CountViolation(portInfoViolations)
	if lease := portInfoLease.Uint(end.Info[:]); lease > 0 && end.LeaseEnd.IsZero() && end.KeyLevel > 0 {
		end.LeaseEnd = s.Now().Add(time.Duration(lease) * time.Second)
	}
	details := m.notice()
	n.Trap(end, mad.NoticeTypeSecurity, 256, &details)
}

// notice returns trap 256 for an SMP with a wrong M_Key.
func (m *checkedSMP) notice() mad.NoticeBadMKey {
	r := m.Header
	details := mad.NoticeBadMKey{
		Method: uint8(r.Method), AttributeID: uint16(r.Attribute), AttributeModifier: r.Modifier,
		MKey: binary.BigEndian.Uint64(m.MAD[mad.SMPKeyOffset:]),
	}
	if r.Class == mad.ClassSubnDirected {
		hops := int(m.MAD[mad.HopCountOffset])
		details.DrSLID, _ = state.DRLIDs(m.MAD)
		details.DRNotice, details.DRPathTruncated = true, hops > len(details.DRNoticeReturnPath)
		details.LIDAddr = mad.PermissiveLID
		if m.LID != mad.PermissiveLID {
			details.LIDAddr = m.From.EndPort().LID
		}
		path := m.MAD[mad.SMPReturnPathOffset+1:][:min(hops, len(details.DRNoticeReturnPath))]
		details.DRHopCount = uint8(copy(details.DRNoticeReturnPath[:], path))
	} else {
		details.LIDAddr = m.From.EndPort().LID
	}
	return details
}
