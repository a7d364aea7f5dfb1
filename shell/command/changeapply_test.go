//go:build linux

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fabsh/shell/session"
)

// TestGuardUnit: where systemd runs, the guard is a transient unit; where that fails, and
// elsewhere, a process in a session of its own.
func TestGuardUnit(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	program := script("program", fmt.Sprintf("read work; echo program $* $work >> %s; echo ready; cat > /dev/null", log))
	for _, c := range []struct {
		what, systemdRun string
		systemd          systemd
		want             string
	}{
		{"a unit", "echo $1 $2 $3 $4 >> " + log + "; while [ $1 != -- ]; do shift; done; shift; exec \"$@\"", systemd{dir, dir},
			"--quiet --collect --pipe --unit\nprogram change guard work\n"},
		{"no unit is made", "echo refused >> " + log + "; exit 1", systemd{dir, dir}, "refused\nprogram change guard work\n"},
		{"no systemd", "echo called >> " + log, systemd{filepath.Join(dir, "none"), dir}, "program change guard work\n"},
	} {
		os.Remove(log)
		script("systemd-run", c.systemdRun)
		if os.Geteuid() != 0 {
			script(session.Login(), "") // lingers
		}
		g, err := runFirst(t.Context(), c.systemd.guardCommands(program), []byte("work\n"))
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		g.Release()
		<-g.Done()
		said, _ := os.ReadFile(log)
		if got := string(said); got != c.want {
			t.Errorf("%s: %q, expected %q", c.what, got, c.want)
		}
	}
	script("systemd-run", "exit 1")
	if _, err := runFirst(t.Context(), systemd{dir, dir}.guardCommands(script("program", "exit 1")), []byte("work\n")); err == nil || !strings.Contains(err.Error(), "it has ended") {
		t.Errorf("none starts: %v", err)
	}
}
