package sim

import "fabsh/mad"

// The queue pair of a redirected agent of performance management, and its Q_Key.
// They differ from those of all other agents, so that a requester that does not
// use them gets no answer.
const (
	redirectQP   = 0x42
	redirectQKey = 0x11
)

// setRedirects sets up the nodes whose performance management is on another one.
func (s *Subnet) setRedirects() {
	for _, r := range s.options.Redirects {
		n, at := &s.nodes[r.Node.ID()], &s.nodes[r.At.ID()]
		n.redirectTo, at.redirectedHere = at, n
	}
}

// selectPerfAgent finds the agent of performance management that p is for, and
// where it redirects p; false if there is none.
func (r *request) selectPerfAgent(p *packet) bool {
	n := r.in.node
	switch {
	case p.QP == 1 && (p.QKey == 0 || p.QKey == mad.GeneralQKey):
		r.perfNode, r.redirectTo = n, n.redirectTo
	case p.QP == redirectQP && p.QKey == redirectQKey:
		r.perfNode = n.redirectedHere
	}
	return r.perfNode != nil
}

// redirect answers with the address of the agent of r.perfNode (IBA 13.4.7).
func (r *request) redirect() mad.Status {
	info := mad.ClassPortInfo{BaseVersion: 1, ClassVersion: 1, RespTimeValue: lifeTime,
		RedirectPKey: mad.DefaultPKey, RedirectQP: redirectQP, RedirectQKey: redirectQKey}
	if r.redirectTo == r.perfNode {
		info.RedirectQP, info.RedirectQKey = 1, mad.GeneralQKey
	}
	if ports := r.redirectTo.endPorts(); len(ports) > 0 {
		info.RedirectLID, info.RedirectGID = ports[0].lid, mad.MakeGID(gidPrefix, ports[0].guid)
	}
	clear(r.data)
	info.Encode(r.data)
	return mad.StatusRedirect
}
