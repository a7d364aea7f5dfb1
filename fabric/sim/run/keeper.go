//go:build linux && (amd64 || arm64)

package run

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how long processes have, after SIGTERM, before they are killed.
const grace = 3 * time.Second

// keep is the keeper: it starts the command, waits for it, ends its descendants, and
// removes the folder.
func keep(program string, args []string) int {
	runtime.LockOSThread()
	folder := args[0]
	defer os.RemoveAll(folder)
	unix.CloseOnExec(controlFD)
	unix.CloseOnExec(listenerFD)
	// What the terminal sends is for the command, and what the supervisor gets it passes on.
	// A handler, not SIG_IGN, which the command would inherit.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fail("subreaper: " + err.Error())
	}
	argv := append([]string{program, starterRole, ""}, args[1:]...)
	command, err := syscall.ForkExec("/proc/self/exe", argv, &syscall.ProcAttr{
		Env: syscall.Environ(), Files: []uintptr{0, 1, 2, listenerFD, listenerFD},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, // of this thread: if the supervisor is killed too, nothing else ends it
	})
	if err != nil {
		return fail(err.Error())
	}
	unix.Close(listenerFD)

	var mu sync.Mutex // while it is held, the command is not reaped
	running := true
	go func() {
		for {
			var b [1]byte
			n, err := unix.Read(controlFD, b[:])
			if err == unix.EINTR {
				continue
			}
			if n != 1 || err != nil { // the supervisor has died, and no call is answered
				endAll(os.Getpid(), 0)
				os.RemoveAll(folder)
				os.Exit(137)
			}
			mu.Lock()
			if running {
				unix.Kill(command, syscall.Signal(b[0]))
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
	endAll(os.Getpid(), grace)
	os.RemoveAll(folder)
	unix.Write(controlFD, []byte{byte(status)})
	return 0
}

func fail(text string) int {
	unix.Sendmsg(listenerFD, fmt.Appendf(nil, "start: %s", text), nil, nil, 0)
	return 127
}
