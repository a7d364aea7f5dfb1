package sim

import "fabsh/mad"

const (
	statusBusy                       mad.Status = 0x01
	statusBadVersion                 mad.Status = 0x04
	statusUnsupportedMethod          mad.Status = 0x08
	statusUnsupportedMethodAttribute mad.Status = 0x0c
	statusInvalidField               mad.Status = 0x1c
)
