package ibsimtest

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends c even if the test is killed.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
