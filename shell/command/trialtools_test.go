package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tool writes a program.
func tool(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRunTool: a tool has nothing of this process' environment, and its output and time are
// limited, those of its children too.
func TestRunTool(t *testing.T) {
	t.Setenv("FABSHTEST_SECRET", "1")
	t.Setenv("LD_PRELOAD_X", "1")
	if out, ok := runFile(t.Context(), tool(t, "env | sort; pwd"), time.Minute); !ok || out != "HOME=/\nLC_ALL=C\nPATH=/usr/sbin:/usr/bin:/sbin:/bin\nPWD=/\n/\n" {
		t.Errorf("%v, %q", ok, out)
	}
	if out, ok := runFile(t.Context(), tool(t, "while :; do echo 0123456789012345678901234567890123456789; done"), time.Minute); ok {
		t.Errorf("%d bytes without a limit", len(out))
	}
	began := time.Now()
	if _, ok := runFile(t.Context(), tool(t, "sleep 1000 & sleep 1000"), 50*time.Millisecond); ok || time.Since(began) > 10*time.Second {
		t.Errorf("ended %v, after %v", ok, time.Since(began))
	}
	if _, ok := runFile(t.Context(), tool(t, "echo half; exit 1"), time.Minute); ok {
		t.Error("a tool that failed has an output")
	}
}

// TestFindTool: only a program that only root can change is run.
func TestFindTool(t *testing.T) {
	folder := t.TempDir()
	for name, mode := range map[string]os.FileMode{"good": 0o755, "writable": 0o777, "plain": 0o644} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	for _, name := range []string{"good", "writable", "plain", "missing"} {
		if path, ok := findTool(name, folder); ok {
			found = append(found, strings.TrimPrefix(path, folder))
		}
	}
	want := "/good"
	if os.Geteuid() != 0 {
		want = "" // the file is not root's
	}
	if got := strings.Join(found, " "); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}
