//go:build !linux

package ibsimtest

import "os/exec"

// dieWithParent does nothing: only Linux supports it, and ibsim runs nowhere else.
func dieWithParent(*exec.Cmd) {}
