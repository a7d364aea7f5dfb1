package history_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the CPU time that this process has used.
func cpuTime() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
