package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// content returns the content of a file; "-": there is no such file.
func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRecordFile: until the end a recording is FILE.part, and an older one at FILE is
// untouched; a session that is killed leaves both; the next one replaces its part.
func TestRecordFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcap")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	check := func(when, whole, part string) {
		t.Helper()
		if got := content(t, path); got != whole {
			t.Errorf("%s: the recording is %q, want %q", when, got, whole)
		}
		if got := content(t, path+partSuffix); got != part {
			t.Errorf("%s: the part is %q, want %q", when, got, part)
		}
	}
	begin := func() *recordFile {
		t.Helper()
		w, err := createRecording(path)
		if err != nil {
			t.Fatal(err)
		}
		r := w.(*recordFile)
		if _, err := r.Write([]byte("packet")); err != nil {
			t.Fatal(err)
		}
		return r
	}
	killed := begin()
	check("while it is written", "old", "packet")
	if _, err := createRecording(path); err == nil || !strings.Contains(err.Error(), "another session is writing") {
		t.Errorf("a second session: %v", err)
	}
	killed.f.Close()
	check("after a kill", "old", "packet")
	r := begin()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	check("at the end", "packet", "-")
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", st.Mode(), err)
	}
	r = begin()
	r.f.Close() // as if the disk was full
	if _, err := r.Write([]byte("more")); err == nil {
		t.Error("a write succeeded on a closed file")
	}
	if err := r.Close(); err == nil || !strings.Contains(err.Error(), "incomplete recording, kept in "+path+partSuffix) {
		t.Errorf("the end of an incomplete recording: %v", err)
	}
	check("after an error", "packet", "packet")
	r = begin()
	r.discard()
	check("after discard", "packet", "-")
}

// TestRecordFileOfOthers: a symbolic link at FILE.part is not followed.
func TestRecordFileOfOthers(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "a.pcap"), filepath.Join(dir, "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o644), os.Symlink(victim, path+partSuffix)); err != nil {
		t.Fatal(err)
	}
	if _, err := createRecording(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	if got := content(t, victim); got != "precious" {
		t.Errorf("the other file is %q", got)
	}
}
