package format

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTarget: of links to files and to directories, at any place of a path and at the end of other
// links, only those are followed that no one else can have made.
func TestTarget(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of others")
	}
	const other = 12345
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []struct {
		name  string
		mode  os.FileMode
		owner int
	}{{"home", 0o755, 0}, {"tmp", 0o777 | os.ModeSticky, 0}, {"group", 0o775, 0}, {"theirs", 0o755, other}} {
		if err := errors.Join(os.Mkdir(at(d.name), 0o700), os.Chmod(at(d.name), d.mode), os.Chown(at(d.name), d.owner, -1)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string, owner int) {
		if err := errors.Join(os.WriteFile(at(name), []byte("old"), 0o644), os.Chown(at(name), owner, -1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range []struct {
		name, to string
		owner    int
	}{
		{"own", "home/mine", 0}, {"planted", "home/mine", other}, {"out", "theirs/x", 0}, {"new", "home/new", 0},
		{"tmp/planted", "../home/mine", other}, {"tmp/chain", "planted", 0}, {"home/far", "../tmp/chain", 0},
		{"tmp/dir", "../home", other}, {"group/dir", "../home", other}, {"theirs/dir", "../home", other}, {"home/dir", "../home", other},
		{"tmp/owndir", at("home"), 0}, {"home/up", "../tmp/dir", 0}, {"home/within", "../tmp/dir/mine", 0},
		{"home/loop", "loop", 0}, {"home/out", "/dev/stdout", 0},
	} {
		if err := errors.Join(os.Symlink(l.to, at(l.name)), os.Lchown(at(l.name), l.owner, -1)); err != nil {
			t.Fatal(err)
		}
	}
	const ofOther = "symbolic link of another user; write to the path that it leads to, or to another"
	is := func(link string) string { return at(link) + ": " + ofOther }
	for name, want := range map[string]string{
		"own": "", "new": "", "absent": "", "home/mine": "", "home/dir/mine": "", "tmp/owndir/mine": "", "tmp/file": "", "home/out": "",
		"planted":         ofOther,
		"tmp/planted":     ofOther,
		"tmp/chain":       is("tmp/planted"),
		"home/far":        is("tmp/planted"),
		"out":             "symbolic link to a file of another user, " + at("theirs/x") + "; write to that file itself",
		"tmp/dir/mine":    is("tmp/dir"),
		"tmp/dir/new":     is("tmp/dir"),
		"tmp/dir/no/such": is("tmp/dir"),
		"group/dir/mine":  is("group/dir"),
		"theirs/dir/mine": is("theirs/dir"),
		"home/up/mine":    is("tmp/dir"),
		"home/within":     is("tmp/dir"),
		"home/loop":       "too many levels of symbolic links",
	} {
		write("home/mine", 0)
		write("theirs/x", other)
		if want != "" {
			want = at(name) + ": " + want
		}
		text := func(err error) string {
			if err != nil {
				return err.Error()
			}
			return ""
		}
		err := WriteFile(t.Context(), at(name), func(w io.Writer) error { return nil })
		if got := text(err); got != want {
			t.Errorf("WriteFile %s: got %q, want %q", name, got, want)
		}
		f, err := Create(at(name), os.O_WRONLY)
		if got := text(err); got != want {
			t.Errorf("Create %s: got %q, want %q", name, got, want)
		}
		f.Close()
		for _, name := range []string{"home/mine", "theirs/x"} {
			if got, err := os.ReadFile(at(name)); want != "" && (err != nil || string(got) != "old") {
				t.Errorf("%s: %s has %q, %v", name, name, got, err)
			}
		}
	}
	if _, err := Create("-", os.O_RDWR); err == nil || err.Error() != "-: ambiguous; use /dev/stdout for standard output, ./- for a file of that name" {
		t.Errorf("-: %v", err)
	}
	f, err := Create("/dev/stdout", os.O_RDWR)
	if err != nil {
		t.Error(err)
	}
	f.Close()
}

// TestOwnFiles: files of fabsh itself are never opened through a link, of whomever, nor found
// through a directory that is a link of another user.
func TestOwnFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	precious := func() string {
		text, err := os.ReadFile(at("state/precious"))
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	if err := errors.Join(os.Mkdir(at("state"), 0o755), os.WriteFile(at("state/precious"), []byte("precious"), 0o644),
		os.Symlink("precious", at("state/link")), os.Symlink("missing", at("state/dangling")), os.Symlink("state", at("own"))); err != nil {
		t.Fatal(err)
	}
	type result struct{ what, path, want string }
	list := []result{
		{"a link", "state/link", "symbolic link|not a regular file"},
		{"a link to nothing", "state/dangling", "symbolic link|not a regular file"},
		{"an own directory", "own/file", ""},
		{"a link in it", "own/link", "symbolic link|not a regular file"},
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Mkdir(at("tmp"), 0o700), os.Chmod(at("tmp"), 0o777|os.ModeSticky), os.Symlink("../state", at("tmp/dir")), os.Lchown(at("tmp/dir"), 12345, -1)); err != nil {
			t.Fatal(err)
		}
		list = append(list, result{"a directory of others", "tmp/dir/file", regexp.QuoteMeta(at("tmp/dir")) + ": symbolic link of another user"})
	}
	for _, x := range list {
		for name, do := range map[string]func(path string) error{
			"OpenPlain": func(path string) error {
				f, err := OpenPlain(path, os.O_RDWR|os.O_CREATE)
				f.Close()
				return err
			},
			"AcquireLock": func(path string) error {
				held, err := AcquireLock(path)
				held.Release()
				return err
			},
			"WriteOwn": func(path string) error { return WriteOwn(path, 0o600, func(io.Writer) error { return nil }) },
		} {
			err := do(at(x.path))
			ok := err == nil
			if x.want != "" {
				ok = err != nil && regexp.MustCompile(x.want).MatchString(err.Error())
			}
			if !ok {
				t.Errorf("%s, %s: got %v, want %q", x.what, name, err, x.want)
			}
			if got := precious(); got != "precious" {
				t.Fatalf("%s, %s: the other file is %q", x.what, name, got)
			}
		}
	}
	for _, made := range []string{"own/a/b", "state/a/c"} {
		if err := MakeDirectory(at(made), 0o755); err != nil {
			t.Error(err)
		}
	}
	if os.Geteuid() == 0 {
		if err := MakeDirectory(at("tmp/dir/a"), 0o755); err == nil || !strings.HasPrefix(err.Error(), at("tmp/dir/a")+": "+at("tmp/dir")+": symbolic link of another user; ") {
			t.Errorf("MakeDirectory: %v", err)
		}
	}
}
