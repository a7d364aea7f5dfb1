package format

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLock: one run at a time; the lock goes with its holder.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(path, nil, 0o644); err != nil { // of an older version
		t.Fatal(err)
	}
	held, err := AcquireLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := AcquireLock(path); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d holds", os.Getpid())) {
		t.Errorf("the second lock: %v", err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	child, err := syscall.Dup(int(held.f.Fd())) // as a process has that is just starting
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(child)
	held.Release()
	again, err := AcquireLock(path)
	if err != nil {
		t.Fatal(err)
	}
	held.Release() // does nothing
	if _, err := AcquireLock(path); !errors.Is(err, ErrLockHeld) {
		t.Errorf("released twice: %v", err)
	}
	again.Release()
}

// TestLockOfOthers: what a stranger has put at the place of a lock is not emptied, and
// nobody waits for it.
func TestLockOfOthers(t *testing.T) {
	for what, put := range map[string]func(path, victim string) error{
		"symbolic link": func(path, victim string) error { return os.Symlink(victim, path) },
		"hard link":     func(path, victim string) error { return os.Link(victim, path) },
		"pipe":          func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		dir := t.TempDir()
		path, victim := filepath.Join(dir, "lock"), filepath.Join(dir, "victim")
		if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o644), put(path, victim)); err != nil {
			t.Fatal(err)
		}
		if _, err := AcquireLock(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
		}
		text, err := os.ReadFile(victim)
		if st, e := os.Stat(victim); err != nil || e != nil || string(text) != "precious" || st.Mode().Perm() != 0o644 {
			t.Errorf("%s: the other file is %q, %v, %v", what, text, err, e)
		}
	}
}

// TestLeftovers: what a killed writer left goes when the next one comes; what is
// being written stays, and so does what only looks like it.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lfts")
	var keep []string
	make := func(name string, age time.Duration) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(p, time.Now().Add(-age), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	left := make(".lfts.fabsh-123", time.Hour)
	keep = append(keep, make(".lfts.123", time.Hour), make(".lfts.fabsh-new", 0), make(".other.fabsh-1", time.Hour))
	busy, err := createTemp(path)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if err := os.Chtimes(busy.Name(), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	make(".lfts.fabsh-123", time.Hour)
	if err := WriteFile(t.Context(), path, func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(keep, busy.Name(), path) {
		if _, err := os.Lstat(p); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(left); err == nil {
		t.Errorf("%s is left", left)
	}
}
