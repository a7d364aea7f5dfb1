//go:build linux && (amd64 || arm64)

package run

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// endAll ends all descendants of this process, its subreaper, and waits for them: by
// SIGTERM, and those that are left after a time by SIGKILL.
func endAll(self int, after time.Duration) {
	asked := map[int]bool{}
	deadline := time.Now().Add(after)
	for {
		for { // those that have ended
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err == unix.ECHILD {
				return
			} else if pid <= 0 && err != unix.EINTR {
				break
			}
		}
		kill := !time.Now().Before(deadline)
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
