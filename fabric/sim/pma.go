package sim

import "fabsh/mad"

type counters struct{}

func (r *request) perf() mad.Status { return statusUnsupportedMethodAttribute }
