// Package run runs unmodified InfiniBand programs on a simulated subnet. A supervisor
// answers their system calls that touch /dev/infiniband and /sys/class/infiniband*; all
// else they do natively. It needs neither privileges nor a library, and is a view, not a
// sandbox.
//
//	run.go       Options
//	start.go     Start; Running: a command, and what it started
//	other.go     other systems
//	host.go      which host a program is on, and its devices
//	calls.go     the calls that name files
//	inject.go    the files that programs get
//	socket.go    the sockets that umad files are
//	umad.go      reads, writes and requests of umad files
//
// It is made of these packages: notify has the kernel report the calls; launch starts the
// command and ends all that is left of it; tree has the text of the files; device has the
// rules of ib_umad.
package run

import (
	"errors"

	"fabsh/fabric"
	"fabsh/fabric/sim"
)

// ProgramOptions are what to run, and where.
type ProgramOptions struct {
	Subnet *sim.Subnet
	Fabric *fabric.Fabric // of which the subnet was made
	// Node is the node of programs without SIM_HOST in their environment: by a name, a
	// GUID, a host's name; "": the first host without a subnet manager.
	Node string
	// Program is the name of this program, as processes show it. It calls becomeRole
	// at its start.
	Program string
	// Path is the command's file, Args its arguments from its name on.
	Path string
	Args []string
	// Folder is where files are made; "": the system's for temporary files.
	Folder string
	// Log reports programs that name an unknown node. Nil: no log.
	Log func(text string)
}

// NodeError is the error of an unknown Options.Node.
type NodeError struct{ error }

// errNoListener is the error of a host that cannot run programs this way.
var ErrUnsupported = errors.New("this host cannot supervise programs: that needs Linux 5.14 or newer, and a container that allows seccomp user notification and has no listener of its own (nor an enclosing --run)")
