package tour

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestState: where the tour was left comes back, and what is no state is told.
func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "tour")
	if at, err := load(path); at != 0 || err != nil {
		t.Errorf("no file: %d, %v", at, err)
	}
	for _, at := range []int{0, 3, len(steps)} {
		if err := save(path, at); err != nil {
			t.Fatal(err)
		}
		if got, err := load(path); got != at || err != nil {
			t.Errorf("%d: %d, %v", at, got, err)
		}
	}
	for _, text := range []string{"", "{", `{"schema":"fabsh.tour/1","step":0}`, `{"schema":"fabsh.tour/1","step":10}`, `{"schema":"fabsh.tour/2","step":1}`, strings.Repeat("[", 1<<20)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if at, err := load(path); at != 0 || err == nil {
			t.Errorf("%.40q: %d, %v", text, at, err)
		}
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(pipe); err == nil {
		t.Error("a pipe is read")
	}
	if err := save(pipe, 1); err == nil {
		t.Error("a pipe is written")
	}
	if err := save(filepath.Join("/proc/none", "tour"), 1); err == nil {
		t.Error("/proc is written")
	}
	if err := save("", 1); err == nil {
		t.Error("nowhere is written")
	}
}
