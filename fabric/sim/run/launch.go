//go:build linux && (amd64 || arm64)

package run

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A command runs under the seccomp filter, and all processes that descend from it are ended.
// This program executes itself twice. The keeper is the parent of the command and, as
// their subreaper, of all processes that lose their parent. It ends them when the command
// has ended, or when the supervisor dies, and removes the files. The starter becomes the
// command: Go cannot run code between fork and exec.

// commandOptions are what to start.
type commandOptions struct {
	// Program is this program, which calls Become at its start.
	Program string
	// Path is the command's file, Args its arguments from its name on.
	Path string
	Args []string
	// IoctlType is the type of the ioctl requests to report.
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
	control, controlEnd, err := socketPair("control")
	if err != nil {
		return nil, err
	}
	defer controlEnd.Close()
	pass, passEnd, err := socketPair("listener")
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
	// Not os.NewFile(0, ""): the garbage collector closes the descriptor of such a file.
	keeper, err := os.StartProcess("/proc/self/exe", args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, controlEnd, passEnd}})
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

// socketPair returns a pair of sockets of messages.
func socketPair(name string) (a, b *os.File, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(p[0]), name), os.NewFile(uintptr(p[1]), name), nil
}

// receiveListener returns the descriptor that the starter sends, or the error that it sends.
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

// killAll is what Kill sends the keeper in place of a signal.
const killAll = 0

// Kill kills the command and all its descendants, whatever they ignore.
func (c *command) Kill() { c.control.Write([]byte{killAll}) }

// Wait waits until the command and all its descendants have ended, and returns the exit
// status of the command: as of a shell, 128 and the number of the signal that ended it.
func (c *command) Wait() (status int, err error) {
	defer c.control.Close()
	var b [1]byte
	n, _ := c.control.Read(b[:])
	c.keeper.Wait()
	if n != 1 { // the keeper was killed
		var kill atomic.Bool
		kill.Store(true)
		endDescendants(os.Getpid(), &kill)
		return 0, errors.New("the process that waits for the command was killed")
	}
	return int(b[0]), nil
}

// The roles: the first argument of this program when it executes itself.
const (
	keeperRole  = "__sim-run-keeper"
	starterRole = "__sim-run-starter"
)

// unsupported is what the starter sends for errNoListener.
const unsupported = "unsupported"

// Descriptors of keeper and starter.
const (
	controlFD  = 3
	listenerFD = 4
)

// Become turns this process into the keeper or the starter of a command that Start starts, if
// args, the program's arguments, say so. Otherwise it returns.
func Become(args []string) {
	if len(args) < 6 {
		return
	}
	switch args[1] {
	case keeperRole:
		os.Exit(runKeeper(args[0], args[2:]))
	case starterRole:
		runStarter(args[3:])
	}
}

// runStarter turns this process into the command. The exit statuses are as of a shell.
func runStarter(args []string) {
	runtime.LockOSThread()
	path, argv := args[1], args[2:]
	ioctlType, _ := strconv.ParseUint(args[0], 10, 8)
	environment := syscall.Environ()
	unix.CloseOnExec(controlFD) // another copy of it
	unix.CloseOnExec(listenerFD)
	listener, err := installFilter(uint8(ioctlType))
	if err != nil {
		text := err.Error()
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EPERM) {
			text = unsupported
		}
		unix.Sendmsg(listenerFD, []byte(text), nil, nil, 0)
		os.Exit(127)
	}
	// From here to exec this thread opens nothing: nothing answers yet.
	if unix.Sendmsg(listenerFD, []byte("ok"), unix.UnixRights(listener), nil, 0) != nil {
		os.Exit(127)
	}
	err = syscall.Exec(path, argv, environment)
	unix.Write(2, []byte("fabsh: "+argv[0]+": "+err.Error()+"\n"))
	if errors.Is(err, unix.ENOENT) {
		os.Exit(127)
	}
	os.Exit(126)
}

// terminationTime is how long processes have, after SIGTERM, before they are killed.
const terminationTime = 3 * time.Second

// runKeeper is the keeper: it starts the command, waits for it, ends its descendants, and
// removes the folder.
func runKeeper(program string, args []string) int {
	runtime.LockOSThread()
	folder := args[0]
	defer os.RemoveAll(folder)
	unix.CloseOnExec(controlFD)
	unix.CloseOnExec(listenerFD)
	// What the terminal sends is for the command, and what the supervisor gets it passes on.
	// A handler, not SIG_IGN, which the command would inherit.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return failStart("subreaper: " + err.Error())
	}
	argv := append([]string{program, starterRole, ""}, args[1:]...)
	command, err := syscall.ForkExec("/proc/self/exe", argv, &syscall.ProcAttr{
		Env: syscall.Environ(), Files: []uintptr{0, 1, 2, listenerFD, listenerFD},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, // of this thread: if the supervisor is killed too, nothing else ends it
	})
	if err != nil {
		return failStart(err.Error())
	}
	unix.Close(listenerFD)

	var mu sync.Mutex // while it is held, the command is not reaped
	running := true
	var kill atomic.Bool // no process has time to end
	go func() {
		for {
			var b [1]byte
			n, err := unix.Read(controlFD, b[:])
			if err == unix.EINTR {
				continue
			}
			if n != 1 || err != nil { // the supervisor has died, and no call is answered
				kill.Store(true)
				endDescendants(os.Getpid(), &kill)
				os.RemoveAll(folder)
				os.Exit(137)
			}
			sig := syscall.Signal(b[0])
			if b[0] == killAll {
				kill.Store(true)
				sig = unix.SIGKILL
			}
			mu.Lock()
			if running {
				unix.Kill(command, sig)
			}
			mu.Unlock()
		}
	}()
	status := 0
	for {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil && err != unix.EINTR {
			break
		}
		var ws unix.WaitStatus
		mu.Lock()
		pid, _ := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		if pid == command {
			running = false
		}
		mu.Unlock()
		if pid == command {
			status = ws.ExitStatus()
			if ws.Signaled() {
				status = 128 + int(ws.Signal())
			}
			break
		}
	}
	endDescendants(os.Getpid(), &kill)
	os.RemoveAll(folder)
	unix.Write(controlFD, []byte{byte(status)})
	return 0
}

func failStart(text string) int {
	unix.Sendmsg(listenerFD, fmt.Appendf(nil, "start: %s", text), nil, nil, 0)
	return 127
}

// endDescendants ends all descendants of this process, its subreaper, and waits for them: by
// SIGTERM, and the ones that are left after a time, or once kill is set, by SIGKILL.
func endDescendants(self int, kill *atomic.Bool) {
	asked := map[int]bool{}
	deadline := time.Now().Add(terminationTime)
	for {
		for { // reaps the ones that have ended
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err == unix.ECHILD {
				return
			} else if pid <= 0 && err != unix.EINTR {
				break
			}
		}
		kill := kill.Load() || !time.Now().Before(deadline)
		for _, pid := range descendants(self) {
			switch {
			case kill:
				unix.Kill(pid, unix.SIGKILL)
			case !asked[pid]:
				asked[pid] = true
				unix.Kill(pid, unix.SIGTERM)
				unix.Kill(pid, unix.SIGCONT) // it may be stopped
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// descendants returns the living descendants of a process.
func descendants(root int) (list []int) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range names {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, zombie := parentOf(e.Name()); !zombie {
			children[parent] = append(children[parent], pid)
		}
	}
	list = slices.Clone(children[root])
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

// parentOf reads /proc/PID/stat: PID (NAME) STATE PARENT; the name may have any bytes.
func parentOf(pid string) (parent int, zombie bool) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	end := bytes.LastIndexByte(b, ')')
	if err != nil || end < 0 {
		return 0, true
	}
	words := bytes.Fields(b[end+1:])
	if len(words) < 2 {
		return 0, true
	}
	parent, _ = strconv.Atoi(string(words[1]))
	return parent, words[0][0] == 'Z'
}
