package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// The queue pair of a redirected agent of performance management, and its Q_Key.
// They differ from those of all other agents, so that a requester that does not
// use them gets no answer.
const (
	RedirectQP   = 0x42
	RedirectQKey = 0x11
)

// agentAt returns the node whose agent answers requests that come to node n at a queue
// pair, and the node that this agent redirects them to, if any; nil: no such agent.
func performanceAgentAt(n *state.Node, qp, qkey uint32) (about, redirectTo *state.Node) {
	switch {
	case qp == 1 && (qkey == 0 || qkey == mad.GeneralQKey):
		return n, n.RedirectTo
	case qp == RedirectQP && qkey == RedirectQKey:
		return n.RedirectedHere, nil
	}
	return nil, nil
}

// redirect answers with the address of the agent that node about is redirected to (IBA
// 13.4.7).
func redirectPerformance(about, to *state.Node, data []byte) mad.Status {
	info := mad.ClassPortInfo{BaseVersion: 1, ClassVersion: 1, RespTimeValue: state.LifeTime,
		RedirectPKey: mad.DefaultPKey, RedirectQP: RedirectQP, RedirectQKey: RedirectQKey}
	if to == about {
		info.RedirectQP, info.RedirectQKey = 1, mad.GeneralQKey
	}
	if ports := to.EndPorts(); len(ports) > 0 {
		info.RedirectLID, info.RedirectGID = ports[0].LID, mad.MakeGID(state.GIDPrefix, ports[0].GUID)
	}
	encodeAnswer(data, &info, 0)
	return mad.StatusRedirect
}
