package prompt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "fabsh", "history")
	h := openHistory(path)
	h.add("a")
	h.add("b")
	checkMode(t, path)
	if diff := cmp.Diff([]string{"a", "b"}, openHistory(path).statements); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	h.add("b") // once
	h.add("def f():\n    smp_set('PortInfo', 1, m_key=0x1234)")
	want := []string{"a", "b", "def f():\n    smp_set('PortInfo', 1, m_key=...)"}
	if diff := cmp.Diff(want, openHistory(path).statements); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i := range historyLimit {
		h.add(fmt.Sprint(i))
	}
	if got := openHistory(path).statements; len(got) != historyLimit || got[0] != "0" {
		t.Errorf("got %d lines from %q on", len(got), got[0])
	}
	checkMode(t, path)

	// The editor writes to the terminal what is in its line.
	if err := os.WriteFile(path, []byte("print('\x1b]0;x\a\u202e\u009b')\nif x:\u2028\ty\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want = []string{`print('\x1b]0;x\a\u202e\u009b')`, "if x:\n\ty"}
	if diff := cmp.Diff(want, openHistory(path).statements); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	os.Remove(path)
	os.Mkdir(path, 0o700) // nothing can be written: a session goes on without
	openHistory(path).add("a")
	openHistory("").add("a")
}

// TestHistoryLeftovers: what a session that was killed has left is removed.
func TestHistoryLeftovers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history")
	old := filepath.Join(dir, ".history.fabsh-1")
	long := time.Now().Add(-time.Hour)
	for name, text := range map[string]string{path: strings.Repeat("x\n", historyLimit+1), old: "half"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(openHistory(path).statements); got != historyLimit {
		t.Errorf("got %d lines", got)
	}
	if left := filesIn(dir); len(left) != 1 {
		t.Errorf("there is %s", left)
	}
	checkMode(t, path)
}

func checkMode(t *testing.T, path string) {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Mode().Perm(); got != 0o600 {
		t.Errorf("%s has mode %o, want 600", path, got)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", 90 * time.Second: "1m", 5 * time.Hour: "5h", 49 * time.Hour: "2d"} {
		if got := age(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

// TestHistoryPipe: a pipe in the place of the file holds nobody up.
func TestHistoryPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	openHistory(path).add("x")
}

// filesIn are the names in a folder.
func filesIn(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
