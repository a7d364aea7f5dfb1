//go:build linux && (amd64 || arm64)

// Package launch starts a command under the filter of package notify, and ends all
// processes that descend from it.
//
//	launch.go       Start; Command: its signals, its end
//	role.go         the roles in which this program executes itself
//	keeper.go       the parent of all descendants
//	descendants.go  the descendants of a process
//
// This program executes itself twice. The keeper is the parent of the command and, as
// their subreaper, of all processes that lose their parent. It ends them when the command
// has ended, or when the supervisor dies, and removes the files. The starter becomes the
// command: Go cannot run code between fork and exec.

package run

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// commandOptions are what to start.
type commandOptions struct {
	// Program is this program, which calls Become at its start.
	Program string
	// Path is the command's file, Args its arguments from its name on.
	Path string
	Args []string
	// umadIoctlType is that of the ioctl requests to report.
	IoctlType uint8
	// Folder is removed at the end, whoever ends first.
	Folder string
}

// command is a command that runs. It is safe for concurrent use.
type command struct {
	Listener *listener
	keeper   *os.Process
	control  *os.File
}

// startCommand starts the command. The descriptors 0, 1 and 2 are the caller's.
func startCommand(o commandOptions) (*command, error) {
	control, controlEnd, err := pair("control")
	if err != nil {
		return nil, err
	}
	defer controlEnd.Close()
	pass, passEnd, err := pair("listener")
	if err != nil {
		control.Close()
		return nil, err
	}
	defer pass.Close()
	defer passEnd.Close()
	// Descendants that lose the keeper too come here.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		control.Close()
		return nil, fmt.Errorf("subreaper: %w", err)
	}
	args := append([]string{o.Program, keeperRole, o.Folder, strconv.Itoa(int(o.IoctlType)), o.Path}, o.Args...)
	keeper, err := os.StartProcess("/proc/self/exe", args, &os.ProcAttr{Files: []*os.File{os.NewFile(0, ""), os.NewFile(1, ""), os.NewFile(2, ""), controlEnd, passEnd}})
	if err != nil {
		control.Close()
		return nil, err
	}
	passEnd.Close()
	controlEnd.Close()
	c := &command{keeper: keeper, control: control}
	fd, err := receiveListener(pass)
	if err == nil {
		c.Listener, err = newListener(fd)
	}
	if err != nil {
		control.Close() // the keeper ends
		keeper.Wait()
		return nil, err
	}
	return c, nil
}

// pair returns a pair of sockets of messages.
func pair(name string) (a, b *os.File, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(p[0]), name), os.NewFile(uintptr(p[1]), name), nil
}

// receiveListener returns the descriptor that the starter sends, or the error that it does.
func receiveListener(f *os.File) (fd int, err error) {
	var b [512]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := unix.Recvmsg(int(f.Fd()), b[:], oob, unix.MSG_CMSG_CLOEXEC)
	switch {
	case err != nil:
		return -1, fmt.Errorf("start: %w", err)
	case n == 0:
		return -1, errors.New("start: the process that was to become the command has ended")
	case oobn == 0 && string(b[:n]) == unsupported:
		return -1, errNoListener
	case oobn == 0:
		return -1, errors.New(string(b[:n]))
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		return -1, errors.New("start: malformed message")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.New("start: malformed message")
	}
	return fds[0], nil
}

// Signal sends the command a signal; not once it has ended.
func (c *command) Signal(sig syscall.Signal) { c.control.Write([]byte{byte(sig)}) }

// Wait waits until the command and all its descendants have ended, and returns the exit
// status of the command: that of a shell, 128 and the number of the signal that ended it.
func (c *command) Wait() (status int, err error) {
	defer c.control.Close()
	var b [1]byte
	n, _ := c.control.Read(b[:])
	c.keeper.Wait()
	if n != 1 { // somebody has killed the keeper
		endAll(os.Getpid(), 0)
		return 0, errors.New("the process that waits for the command was killed")
	}
	return int(b[0]), nil
}
