package umad

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPermit: a device of a group says which to join; any other how to make one.
func TestPermit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "umad0")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const daemon = 1 // a group of every Debian, and of most others
	if os.Chown(name, -1, daemon) != nil {
		t.Skip("needs root, to give a file to a group")
	}
	for _, c := range []struct {
		mode  os.FileMode
		own   []int
		group string
	}{
		{0o660, []int{1000}, "daemon"},
		{0o660, []int{1000, daemon}, ""}, // it is something else that forbids
		{0o600, []int{1000}, ""},
		{0o640, []int{1000}, ""},
	} {
		if err := os.Chmod(name, c.mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Sys().(*syscall.Stat_t).Gid != daemon {
			t.Skip("this file system keeps no groups")
		}
		if got := groupIn(info, c.own); got != c.group {
			t.Errorf("mode %v, groups %v: got %q, want %q", c.mode, c.own, got, c.group)
		}
	}
	if got := permit("rdma"); !strings.Contains(got, `sudo usermod -aG rdma "$USER"`) || !strings.Contains(got, "run as root") {
		t.Errorf("of a group: %s", got)
	}
	if got := permit(""); !strings.Contains(got, `GROUP="rdma"`) || !strings.Contains(got, "udevadm trigger") {
		t.Errorf("of none: %s", got)
	}
}

// TestDenied: what owner, group and mode allow, a policy forbids.
func TestDenied(t *testing.T) {
	name := filepath.Join(t.TempDir(), "umad0")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const policy = "permission denied although its mode allows it; the host's security policy (SELinux) forbids it; allow it there (ausearch -m avc shows what was forbidden), or run as root"
	if got := denied(name, syscall.EACCES); got != policy {
		t.Errorf("owner: %s", got)
	}
	if err := os.Chmod(name, 0o400); err != nil {
		t.Fatal(err)
	}
	if got := denied(name, syscall.EACCES); !strings.HasPrefix(got, "permission denied; run as root") {
		t.Errorf("mode: %s", got)
	}
}
