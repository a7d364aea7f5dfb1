package audit

import "time"

// Moment is a time by the clock of the machine, which may be set, and by the time since the
// machine booted, which is not.
type Moment struct {
	Time   time.Time
	Boot   string        // identifies the boot; "": unknown
	Uptime time.Duration // since the boot, suspension included
}

// jump returns by how much the clock was set between m and now; false: unknown, as after
// another boot.
func (m Moment) jump(now Moment) (by time.Duration, ok bool) {
	passed := now.Uptime - m.Uptime
	if m.Boot == "" || m.Boot != now.Boot || passed <= 0 { // an image of the machine may have been restored
		return 0, false
	}
	return now.Time.Round(0).Sub(m.Time.Round(0)) - passed, true
}

// Align moves the times in the state by as much as the clock was set since the previous
// Align, in this run or an earlier one, so that they compare with now. If that is unknown,
// they are unchanged.
func (st *State) Align(now Moment) {
	jump, ok := st.at.jump(now)
	st.at = now
	if !ok {
		return
	}
	for i, r := range st.reads {
		moved := *r
		moved.Began = r.Began.Round(0).Add(jump) // the monotonic reading would ignore the jump
		st.reads[i] = &moved
	}
	// Whole seconds: the two times of a Moment are read one after the other.
	jump = jump.Round(time.Second)
	for i := range st.findings {
		st.findings[i].Since = st.findings[i].Since.Add(jump)
	}
	for i := range st.history.ports {
		if p := &st.history.ports[i]; p.up != 0 {
			p.up += int64(jump / time.Second)
		}
	}
	st.agents.asked = st.agents.asked.Add(jump)
}
