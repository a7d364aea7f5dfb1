package session

import (
	"time"

	"fabsh/builtins/lang"
)

// machineClock is the machine's time, with the time since its boot.
type machineClock struct{ lang.RealClock }

func (machineClock) Uptime() (boot string, up time.Duration) { return uptime() }
