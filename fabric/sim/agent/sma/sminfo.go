package sma

import (
	"fabsh/fabric/sim/agent/handler"
	"fabsh/mad"
)

// onSM reports whether the request came to the port of a subnet manager.
func onSM(r *Request) bool { return r.SM.RunsAt(r.In.EndPort()) }

func (r *Request) getSMInfo() mad.Status {
	info := r.SM.InfoAt(r.In.EndPort(), !r.HideKey)
	return handler.Answer(r.Data, &info, r.Modifier)
}

// setSMInfo has the subnet manager of the port do what another one asks. The answer
// says what it was before.
func (r *Request) setSMInfo() mad.Status {
	var asker mad.SMInfo
	asker.Decode(r.Data)
	info := r.SM.InfoAt(r.In.EndPort(), !r.HideKey)
	handler.Answer(r.Data, &info, 0)
	if !r.SM.Transition(r.In.EndPort(), r.Modifier, asker.SMState) {
		return mad.StatusBadValue
	}
	return mad.StatusOK
}
