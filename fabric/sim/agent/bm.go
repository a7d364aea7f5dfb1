package agent

import (
	"bytes"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// BMSettings are what was Set: the BKeyInfo of end ports. The subnet's lock guards it.
type BMSettings map[*state.Port][]byte

// bmRequest is a Get or Set at the agent of baseboard management: classPortInfo, and the B_Key.
// There is no board behind it to send commands to.
type bmRequest struct {
	Settings BMSettings
	At       *state.Port // the end port that it came to
	Modifier uint32
	MAD      []byte // all of it
	Data     []byte // the attribute; afterwards of the answer
}

// bmHandlers are the attributes of baseboard management (IBA 16.2.3).
var bmHandlers = handlerTable[*bmRequest]{
	{Attr: mad.AttrBMClassPortInfo, Get: (*bmRequest).getClassPortInfo},
	{Attr: mad.AttrBKeyInfo, Get: (*bmRequest).getBKey, Set: (*bmRequest).setBKey},
}

func (r *bmRequest) getClassPortInfo() mad.Status {
	return encodeAnswer(r.Data, classPortInfo(mad.ClassBM), r.Modifier)
}

// getBKey returns the key to requesters that have it (IBA 16.2.4).
func (r *bmRequest) getBKey() mad.Status {
	clear(r.Data)
	copy(r.Data, r.Settings[r.At])
	if !r.hasKey() {
		clear(bKey.Bytes(r.Data))
	}
	return checkModifier(r.Modifier)
}

// setBKey changes the key, for requesters that have the current one.
func (r *bmRequest) setBKey() mad.Status {
	if r.Modifier != 0 || !r.hasKey() {
		r.getBKey()
		return mad.StatusBadValue
	}
	r.Settings[r.At] = bytes.Clone(r.Data)
	return mad.StatusOK
}

// hasKey reports whether the request has the B_Key, or none is set.
func (r *bmRequest) hasKey() bool {
	key := bKey.Bytes(r.Settings[r.At])
	return len(bytes.Trim(key, "\x00")) == 0 || bytes.Equal(key, r.MAD[mad.SMPKeyOffset:][:len(key)])
}

var bKey = mad.AttrBKeyInfo.Field("b_key")
