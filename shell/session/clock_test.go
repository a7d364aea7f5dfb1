//go:build linux

package session

import (
	"testing"
	"time"

	"fabsh/builtins/lang"
)

// TestUptime: the session's clock has the time since boot.
func TestUptime(t *testing.T) {
	var clock lang.Clock = machineClock{}
	c, ok := clock.(lang.UptimeClock)
	if !ok {
		t.Fatal("no time since boot")
	}
	boot, before := c.Uptime()
	again, after := c.Uptime()
	if len(boot) != 36 || boot != again || before <= 0 || after < before || after-before > time.Minute {
		t.Errorf("%q %v, then %q %v", boot, before, again, after)
	}
}
