package sim

import "fabsh/mad"

// The queue pair that stands in for another node's performance management, and
// its Q_Key: not those of all agents, so that who does not heed them gets no
// answer.
const (
	standInQP   = 0x42
	standInQKey = 0x11
)

// redirectAll sets up the nodes whose performance management is elsewhere.
func (s *Subnet) redirectAll() {
	for _, r := range s.options.Redirects {
		n, at := &s.nodes[r.Node.ID()], &s.nodes[r.At.ID()]
		n.sentTo, at.standsIn = at, n
	}
}

// reception finds out which agent of performance management p is for, if it is
// for any, and where that one sends it.
func (r *request) reception(p *packet) bool {
	n := r.in.node
	switch {
	case p.QP == 1 && (p.QKey == 0 || p.QKey == mad.GeneralQKey):
		r.about, r.sentTo = n, n.sentTo
	case p.QP == standInQP && p.QKey == standInQKey:
		r.about = n.standsIn
	}
	return r.about != nil
}

// redirect says where the agent of r.about is.
func (r *request) redirect() mad.Status {
	info := mad.ClassPortInfo{BaseVersion: 1, ClassVersion: 1, RespTimeValue: lifeTime,
		RedirectPKey: mad.DefaultPKey, RedirectQP: standInQP, RedirectQKey: standInQKey}
	if r.sentTo == r.about {
		info.RedirectQP, info.RedirectQKey = 1, mad.GeneralQKey
	}
	if ports := r.sentTo.endPorts(); len(ports) > 0 {
		info.RedirectLID, info.RedirectGID = ports[0].lid, mad.MakeGID(gidPrefix, ports[0].guid)
	}
	clear(r.data)
	info.Encode(r.data)
	return mad.StatusRedirect
}
