// Package run runs unmodified InfiniBand programs on a simulated subnet. A supervisor
// answers their system calls that touch /dev/infiniband and /sys/class/infiniband*; all
// else they do natively. It needs neither privileges nor a library, and is a view, not a
// sandbox.
//
// Start starts a command and returns it as Running. The kernel reports calls by seccomp user
// notification: a filter selects them, and a listener receives them for the supervisor, which
// answers one after the other. A host has the devices that a program sees: a file tree with the
// text of its files, and umad ports with the rules of the kernel's ib_umad. Two further
// processes of this program, the keeper and the starter (Become), start the command and end all
// that is left of it.
//
// The methods of Running may be called from any goroutine.
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
	// Program is the name of this program, as processes show it. It calls Become
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

// NodeError is the error of an unknown ProgramOptions.Node.
type NodeError struct{ error }

// ErrUnsupported is the error of a host that cannot run programs this way.
var ErrUnsupported = errors.New("this host cannot supervise programs: that needs Linux 5.14 or newer, and a container that allows seccomp user notification and has no listener of its own (nor an enclosing --run)")
