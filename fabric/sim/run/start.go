//go:build linux && (amd64 || arm64)

package run

import (
	"errors"
	"runtime"
	"sync"
	"syscall"
)

// Become turns this process into one of those that Start starts, if its arguments say so.
// Otherwise it returns.
func Become(args []string) { becomeRole(args) }

// Supported reports whether this host can run programs on a subnet.
func Supported() bool {
	done := make(chan bool)
	go func() { // on a thread that has the filter until it ends, with this function
		runtime.LockOSThread()
		fd, err := installFilter(umadIoctlType)
		if err == nil {
			_, err = newListener(fd)
		}
		done <- err == nil
	}()
	return <-done
}

// Running is a command that runs, and all that it started. Its methods may be called from
// any goroutine.
type Running struct {
	command *command
	hosts   *hosts
}

// Start starts a command.
func Start(o ProgramOptions) (*Running, error) {
	h, err := newHosts(o)
	if err != nil {
		return nil, err
	}
	c, err := startCommand(commandOptions{Program: o.Program, Path: o.Path, Args: o.Args, IoctlType: umadIoctlType, Folder: h.folder})
	if errors.Is(err, errNoListener) {
		err = ErrUnsupported
	}
	if err != nil {
		h.close()
		return nil, err
	}
	s := &supervisor{listener: c.Listener, hosts: h, files: map[uint64]*file{}, texts: map[string]int{}, pidfds: map[uint32]int{}}
	go c.Listener.Serve(s.handle)
	return &Running{command: c, hosts: h}, nil
}

// Signal sends the command a signal.
func (r *Running) Signal(sig syscall.Signal) { r.command.Signal(sig) }

// Wait waits until the command has ended, and all that it started, which is terminated
// then. It returns the command's exit status: that of a shell.
func (r *Running) Wait() (status int, err error) {
	status, err = r.command.Wait()
	r.command.Listener.Close()
	r.hosts.close()
	return status, err
}

// supervisor answers the calls that come. They come one after the other.
type supervisor struct {
	*listener
	hosts *hosts
	texts map[string]int // files that have been opened, by their text

	pidfd  sync.Mutex     // guards pidfds
	pidfds map[uint32]int // of the processes of threads

	mu    sync.Mutex // guards files
	files map[uint64]*file
}
