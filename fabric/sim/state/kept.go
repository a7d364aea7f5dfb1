package state

import (
	"fabsh/mad"
)

// An agent that announces IsNoticeSupported keeps its latest notice, for programs that
// poll it by Get(Notice), until a Set(Notice) with the toggle of that notice clears it
// (IBA 13.4.9).

// keptNotice is what the agent of an end port keeps.
type keptNotice struct {
	notice mad.Notice
	count  uint16 // since the last was cleared
	toggle bool
}

const maxCount = 1<<15 - 1 // of NoticeCount

// keep stores a notice in the agent of an end port.
func (n *Notices) keep(at *Port, notice *mad.Notice) {
	k := n.kept[at]
	if k == nil {
		k = new(keptNotice)
		n.kept[at] = k
	}
	k.notice = *notice
	if k.count < maxCount {
		k.count++
	}
}

// Kept returns the notice that the agent of an end port keeps, or one of type "empty".
func (n *Notices) Kept(at *Port) mad.Notice {
	k := n.kept[at]
	if k == nil || k.count == 0 {
		empty := mad.Notice{IsGeneric: true, Type: mad.NoticeTypeEmpty, IssuerLID: at.LID}
		if k != nil {
			empty.NoticeToggle = k.toggle
		}
		return empty
	}
	notice := k.notice
	notice.NoticeToggle, notice.NoticeCount = k.toggle, k.count
	return notice
}

// Clear drops the notice with that toggle from the agent of an end port.
func (n *Notices) Clear(at *Port, toggle bool) {
	if k := n.kept[at]; k != nil && k.count > 0 && k.toggle == toggle {
		k.count, k.toggle = 0, !k.toggle
	}
}
