//go:build linux

package shell

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChangeDamaged: with a damaged journal each command and each session names the file
// and the line, nothing is written, and what is reported of the fabric was just read.
func TestChangeDamaged(t *testing.T) {
	t.Parallel()
	s := serveForChange(t, "fattree:k=4")
	file, old := filepath.Join(s.dir, "new.plan"), s.tables()
	want := func(status string, texts []string, args ...string) {
		t.Helper()
		got := outcome(s.fabsh(args...))
		for _, text := range texts {
			if !strings.Contains(got, text) || !strings.HasSuffix(got, "[exit status "+status+"]\n") {
				t.Errorf("%v: no %q in\n%s", args, text, got)
			}
		}
	}
	want("0", nil, "change", "plan", "--exact", "--routes", "updn", "--out", file)
	made := s.made(file, old)
	for _, line := range []int{2, 1} {
		cmd := s.fabsh("--write", "change", "apply", file, "--confirm-within", "10m")
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "applied;") {
				want("0", []string{"ok: the change is confirmed\n"}, "change", "confirm")
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		found, _ := filepath.Glob(filepath.Join(s.dir, "*", "change.journal"))
		path := found[0]
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		if line == 2 {
			at = bytes.IndexByte(text, '\n') + 1
		}
		text[at+40] ^= 4
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		damage := "journal " + path + " line " + string('0'+rune(line)) + ": checksum does not match; the file is unchanged"
		want("3", []string{damage, "and copied to " + path + ".damaged-"}, "--write", "change", "revert")
		want("3", []string{damage}, "--write", "change", "resume")
		want("3", []string{damage}, "change", "confirm")
		want("3", []string{damage}, "--write", "change", "apply", file)
		want("0", []string{"warning: ", damage}, "-c", "1")
		revert := []string{"--write", "change", "revert", "--from-fabric"}
		if line == 2 {
			want("3", []string{damage, "in the fabric: " + s.states(old, made)}, "change", "status")
		} else {
			want("3", []string{damage}, "change", "status")
			want("2", []string{"name the plan that was applied"}, revert...)
			revert = append(revert, file)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, text) || s.tables() != made {
			t.Errorf("line %d: the journal or the fabric was written (%v)", line, err)
		}
		want("0", []string{"reverted: the fabric is as before the change\n"}, revert...)
		if s.tables() != old {
			t.Errorf("line %d: not reverted", line)
		}
		want("0", []string{"in the fabric: " + s.states(old, made)}, "change", "status")
	}
	// A journal that cannot be read does not mean that there is no change.
	found, _ := filepath.Glob(filepath.Join(s.dir, "*", "change.journal"))
	if err := errors.Join(os.Remove(found[0]), os.Symlink(file, found[0])); err != nil {
		t.Fatal(err)
	}
	const unreadable = "a change may be open; its journal cannot be read: open "
	want("2", []string{"change: " + unreadable + found[0]}, "change", "status")
	want("2", []string{"change: " + unreadable + found[0]}, "--write", "change", "revert")
	want("2", []string{"warning: " + unreadable + found[0]}, "--write", "change", "apply", file)
}
