// Package bm is the agent of baseboard management of a simulated node: ClassPortInfo, and
// the B_Key. There is no board behind it to send commands to.
//
//	bm.go  Request, and the attributes that the agent has; the B_Key
package bm

import (
	"bytes"

	"fabsh/fabric/sim/agent/handler"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Settings are what was Set: the BKeyInfo of end ports. The subnet's lock guards it.
type Settings map[*state.Port][]byte

// Request is a Get or Set at the agent.
type Request struct {
	Settings Settings
	At       *state.Port // the end port that it came to
	Modifier uint32
	MAD      []byte // all of it
	Data     []byte // the attribute; afterwards that of the answer
}

// Handlers are the attributes of baseboard management (IBA 16.2.3).
var Handlers = handler.Table[*Request]{
	{Attr: mad.AttrBMClassPortInfo, Get: (*Request).getClassPortInfo},
	{Attr: mad.AttrBKeyInfo, Get: (*Request).getBKey, Set: (*Request).setBKey},
}

func (r *Request) getClassPortInfo() mad.Status {
	return handler.Answer(r.Data, handler.ClassPortInfo(mad.ClassBM), r.Modifier)
}

// getBKey returns the key to requesters that have it (IBA 16.2.4).
func (r *Request) getBKey() mad.Status {
	clear(r.Data)
	copy(r.Data, r.Settings[r.At])
	if !r.hasKey() {
		clear(bKey.Bytes(r.Data))
	}
	return handler.CheckModifier(r.Modifier)
}

// setBKey changes the key, for requesters that have the current one.
func (r *Request) setBKey() mad.Status {
	if r.Modifier != 0 || !r.hasKey() {
		r.getBKey()
		return mad.StatusBadValue
	}
	r.Settings[r.At] = bytes.Clone(r.Data)
	return mad.StatusOK
}

// hasKey reports whether the request has the B_Key, or none is set.
func (r *Request) hasKey() bool {
	key := bKey.Bytes(r.Settings[r.At])
	return len(bytes.Trim(key, "\x00")) == 0 || bytes.Equal(key, r.MAD[mad.SMPKeyOffset:][:len(key)])
}

var bKey = mad.AttrBKeyInfo.Field("b_key")
