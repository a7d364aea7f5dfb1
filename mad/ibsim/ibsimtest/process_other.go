//go:build !linux

package ibsimtest

import "os/exec"

// dieWithParent: only Linux can. ibsim runs nowhere else.
func dieWithParent(*exec.Cmd) {}
