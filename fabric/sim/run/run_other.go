//go:build !linux || !(amd64 || arm64)

package run

import (
	"syscall"
)

// Running is a command that runs.
type Running struct{}

// Start returns ErrUnsupported.
func Start(ProgramOptions) (*Running, error) { return nil, ErrUnsupported }

// Signal does nothing.
func (*Running) Signal(syscall.Signal) {}

// Kill does nothing.
func (*Running) Kill() {}

// Wait returns ErrUnsupported.
func (*Running) Wait() (status int, err error) { return 0, ErrUnsupported }

// Supported reports whether this host can run programs on a subnet.
func Supported() bool { return false }

// Become does nothing: this program has no other roles on this system.
func Become([]string) {}
