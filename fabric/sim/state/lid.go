package state

import (
	"iter"
	"slices"

	"fabsh/mad"
)

// hasLID reports whether lid is one of p's 2^LMC LIDs, or that of a virtual port.
func (p *Port) hasLID(lid mad.LID) bool {
	return p.LID != 0 && (lid&^(1<<p.LMC-1) == p.LID || p.hasVirtual(lid))
}

// SetLID gives p another LID in the table of LIDs; its PortInfo follows.
func (s *Subnet) SetLID(p *Port, lid mad.LID, lmc uint8) {
	if p != p.EndPort() || p.LID == lid && p.LMC == lmc {
		return
	}
	for i, q := range s.LIDs[p.LID : int(p.LID)+1<<p.LMC] {
		if q == p {
			s.LIDs[int(p.LID)+i] = nil
		}
	}
	if lid &^= 1<<lmc - 1; lid == 0 {
		return
	}
	for i := int(lid); i < int(lid)+1<<lmc && i < len(s.LIDs); i++ {
		if s.LIDs[i] == nil { // of two ports with one LID, packets reach the first
			s.LIDs[i] = p
		}
	}
}

// ReserveLIDs gives p its LIDs; false if they are not valid, or another port has
// one of them.
func (s *Subnet) ReserveLIDs(p *Port) bool {
	last := int(p.LID) + 1<<p.LMC - 1
	if p.LID == 0 || p.LID&(1<<p.LMC-1) != 0 || last >= len(s.LIDs) {
		return false
	}
	mine := s.LIDs[p.LID : last+1]
	if slices.ContainsFunc(mine, func(q *Port) bool { return q != nil }) {
		return false
	}
	for i := range mine {
		mine[i] = p
	}
	return true
}

// topLID returns the highest LID in use.
func (s *Subnet) topLID() mad.LID {
	top := mad.LID(0)
	for i := range s.Ports { // the table of LIDs is mostly empty, and large
		if p := &s.Ports[i]; p.LID != 0 && p == p.EndPort() {
			top = max(top, p.LID+1<<p.LMC-1)
			for _, v := range p.Virtual {
				top = max(top, v.LID)
			}
		}
	}
	return top
}

// EndPortByGUID returns the port with that GUID that the latest sweep reached, or nil.
func (s *Subnet) EndPortByGUID(guid mad.GUID) *Port {
	for _, p := range s.LIDs {
		if p != nil && p.InService && p.GUID == guid {
			return p
		}
	}
	return nil
}

// EndPortsWith lists the end ports that the latest sweep reached, and for which ok
// holds, by LID.
func (s *Subnet) EndPortsWith(ok func(*Port) bool) (ports []*Port) {
	for p := range EndPorts(s.LIDs) {
		if p.InService && ok(p) {
			ports = append(ports, p)
		}
	}
	return ports
}

// EndPorts returns the end ports of a part of the table of LIDs, each once.
func EndPorts(lids []*Port) iter.Seq[*Port] {
	return func(yield func(*Port) bool) {
		var before *Port
		for _, p := range lids {
			if p != nil && p != before && !yield(p) {
				return
			}
			before = p
		}
	}
}

// HasGID reports whether an end port has the GID.
func (s *Subnet) HasGID(gid mad.GID) bool {
	return slices.ContainsFunc(s.LIDs, func(p *Port) bool { return p != nil && p.GID() == gid })
}
