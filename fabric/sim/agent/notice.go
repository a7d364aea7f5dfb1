package agent

import (
	"fabsh/mad"
)

// getNotice reads the latest notice, whether or not its trap was received.
func (r *smaRequest) getNotice() mad.Status {
	kept := r.Notices.Kept(r.In.EndPort())
	var data [noticeSize]byte
	kept.Encode(data[:])
	copy(r.Data, data[:])
	return checkModifier(r.Modifier)
}

// setNotice clears the notice that has the toggle of the request.
func (r *smaRequest) setNotice() mad.Status {
	if r.Modifier == 0 {
		r.Notices.Clear(r.In.EndPort(), noticeToggle.Uint(r.Data) != 0)
	}
	return r.getNotice()
}

// noticeSize is the size of a Notice with the issuer's GID, which an SMP lacks, in bytes.
const noticeSize = 80

var noticeToggle = mad.AttrSubnNotice.Field("notice_toggle")
