package engine

import "fabsh/mad"

// Answers reports whether answer, which came from that address, may be the answer to
// request, which went to that one. Only the headers of both are compared. A matching
// transaction ID is not enough: a stranger may guess it, and an old answer may come late.
// So an answer to a request without a directed route comes from a LID of the port that
// was asked, and where the modifier selects a port or a block, both select the same.
//
// An answer comes from the queue pair of the request; where a redirection named that, it
// may also come from queue pair 1, of the agent that redirected. It has the base and class
// version of the request, unless its status is that the agent does not support that one.
//
// A redirection may have the attribute ID of ClassPortInfo; an answer with records of
// another attribute has the ID of that one (IBA 15.2.5.20). lmc is that of the port
// that the request went to; MaxLMC if it is unknown.
func Answers(request, answer []byte, to, from *Address, lmc uint8) bool {
	asked, h := mad.ParseHeader(request), mad.ParseHeader(answer)
	sameVersion := answer[mad.BaseVersionOffset] == request[mad.BaseVersionOffset] && h.ClassVersion == asked.ClassVersion
	switch {
	case h.Class != asked.Class:
		return false
	case !sameVersion && !h.Status.IsBadVersion():
		return false
	case from.QP != to.QP && (to.QP <= 1 || from.QP != 1):
		return false
	case h.Class != mad.ClassSubnDirected && !to.SamePort(from, lmc):
		return false
	case h.Status&mad.StatusRedirect != 0 && h.Attribute == mad.AttrPerfClassPortInfo.ID:
		return true
	case h.Attribute == asked.Attribute && h.Modifier == asked.Modifier:
		return true
	}
	a := mad.LookupVersion(h.Class, h.ClassVersion, asked.Attribute)
	switch {
	case h.Attribute != asked.Attribute:
		return a != nil && a.Answer != nil && a.Answer.ID == h.Attribute
	case a == nil:
		return true // its modifier is unknown
	}
	return (h.Modifier^asked.Modifier)&a.Place() == 0
}

// SamePort reports whether from may be another address of the port at a, which has that
// LMC. With a global route header the GIDs are compared, otherwise the LIDs. Any port
// receives requests to the permissive LID.
func (a *Address) SamePort(from *Address, lmc uint8) bool {
	switch {
	case a.HasGRH && from.HasGRH:
		return a.GID == from.GID
	case a.LID == from.LID, a.LID == mad.PermissiveLID:
		return true
	}
	return a.LID != 0 && from.LID != 0 && (a.LID^from.LID)>>lmc == 0
}

// answers reports whether d may be the answer to c.
func (r *receiver) answers(d *Datagram, c *Call) bool {
	return Answers(c.MAD[:], d.MAD, &c.s.to, &d.Address, r.lmcs.of(c.s.to.LID))
}
