package session

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
)

// TestNotWritten: a full disk is the host's fault (status 3), a wrong name the
// command's (2).
func TestNotWritten(t *testing.T) {
	for cause, host := range map[error]bool{syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EIO: true, syscall.ENOENT: false, syscall.EISDIR: false} {
		err := NotWritten("a.json", &fs.PathError{Op: "write", Path: "/tmp/a.json.1", Err: cause})
		want := "a.json: " + cause.Error()
		if cause == syscall.ENOENT {
			want = "a.json: no such directory"
		}
		if h := new(*HostError); errors.As(err, h) != host || err.Error() != want {
			t.Errorf("%v: %v, the host's fault: %v", cause, err, !host)
		}
	}
}
