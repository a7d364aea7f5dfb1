package lang

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.starlark.net/starlark"
)

// tree makes files in a new folder, which it returns.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestConfine: what a script in a file may read, and what code from elsewhere.
func TestConfine(t *testing.T) {
	dir := tree(t, map[string]string{"cwd/a": "a", "script/s.star": "", "script/b": "b", "inc/c": "c", "out/d": "d", "else/roots": "r", "cwd/sub/e": "e"})
	for _, tt := range []struct {
		name    string
		include []string
		script  string // folder
		read    string // those that can be
	}{
		{"code", nil, "", "cwd/a cwd/sub/e out/d else/roots"},
		{"code and -I", []string{"../inc"}, "", "cwd/a cwd/sub/e inc/c out/d else/roots"},
		{"script", []string{"../inc"}, "../script", "script/b inc/c out/d else/roots"},
		{"script and -I .", []string{"."}, "../script", "cwd/a cwd/sub/e script/b out/d else/roots"},
		{"script in the working directory", nil, ".", "cwd/a cwd/sub/e out/d else/roots"},
		{"script below the working directory", nil, "sub", "cwd/sub/e out/d else/roots"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := NewFiles(nil, filepath.Join(dir, "cwd"), tt.include, "../out")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if tt.script != "" {
				if err := f.Confine(tt.script); err != nil {
					t.Fatal(err)
				}
			}
			f.Allow(starlark.String("../else/roots"))
			var read []string
			for _, name := range []string{"cwd/a", "cwd/sub/e", "script/b", "inc/c", "out/d", "else/roots"} {
				if _, err := f.Read(context.Background(), filepath.Join(dir, name)); err == nil {
					read = append(read, name)
				}
			}
			if got := strings.Join(read, " "); got != tt.read {
				t.Errorf("got  %s\nwant %s", got, tt.read)
			}
		})
	}
}

// TestSecrets: a file of keys is refused by whatever name, also where the
// command line names it.
func TestSecrets(t *testing.T) {
	dir := tree(t, map[string]string{"keys": "m_key 1", "plain": ""})
	for name, make := range map[string]func(old, new string) error{"hard": os.Link, "soft": os.Symlink} {
		if err := make(filepath.Join(dir, "keys"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := NewFiles(nil, dir, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := os.Stat(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	f.Forbid(st)
	f.Allow(starlark.String("soft"))
	for _, name := range []string{"keys", "hard", "soft", "./keys"} {
		if data, err := f.Read(context.Background(), name); err == nil || !strings.HasSuffix(err.Error(), "contains keys; scripts may not read it") {
			t.Errorf("%s: got %q, %v", name, data, err)
		}
	}
	if _, err := f.Read(context.Background(), "plain"); err != nil {
		t.Error(err)
	}
}

// TestRegularOnly: pipes and devices are refused at once, and so is what is too
// long to be read as a whole.
func TestRegularOnly(t *testing.T) {
	dir := tree(t, map[string]string{"sparse": ""})
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "sparse"), 1<<30); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"fifo":      "fifo: is not a regular file; scripts may read only regular files",
		"/dev/zero": "/dev/zero: is not a regular file; scripts may read only regular files",
		"sparse":    "sparse: longer than 64 MB, too long to read as a whole",
	} {
		done := make(chan error, 1)
		go func() {
			f, err := NewFiles(nil, dir, []string{"/dev"}, "")
			if err == nil {
				defer f.Close()
				_, err = f.Read(context.Background(), name)
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: it waits", name)
		}
	}
}

// TestOpenNamed: a pipe that the command line names is read as long as the
// context lasts: one that nobody opens, one that nobody writes, and an endless one.
func TestOpenNamed(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	over := errors.New("over")
	read := func(after time.Duration) error {
		ctx, cancel := context.WithTimeoutCause(context.Background(), after, over)
		defer cancel()
		f, err := OpenNamed(ctx, fifo)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Read(make([]byte, 10))
		return err
	}
	if err := read(10 * time.Millisecond); err != over {
		t.Errorf("nobody opens it: %v", err)
	}
	// The one that was given up is still opening.
	w, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := read(10 * time.Millisecond); err != over {
		t.Errorf("nobody writes it: %v", err)
	}
	w.WriteString("x")
	if err := read(time.Minute); err != nil {
		t.Errorf("it was written: %v", err)
	}
}

// TestNamed: what the command line names may be endless, and is read no further
// than it may be; to ask whether it is there does not read a pipe.
func TestNamed(t *testing.T) {
	f, err := NewFiles(nil, t.TempDir(), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const want = "/dev/zero: longer than 64 MB, too long to read as a whole"
	f.Allow(starlark.String("/dev/zero"))
	for name, read := range map[string]func(context.Context, string) ([]byte, error){"by the command line": f.ReadNamed, "by a script": f.Read} {
		if _, err := read(t.Context(), "/dev/zero"); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(f.Cwd, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Allow(starlark.String("fifo"))
	f.Allow(starlark.String("absent"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := f.exists(ctx, "fifo"); err != nil {
		t.Error(err)
	}
	if err := f.exists(ctx, "absent"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestLeftovers: what a killed writer left goes when the next one comes.
func TestLeftovers(t *testing.T) {
	dir := tree(t, map[string]string{"out/sub/.x.fabsh-OLD": "", "out/sub/.x.OTHER": "", "out/sub/.x.fabsh-NEW": ""})
	long := time.Now().Add(-time.Hour)
	for _, name := range []string{".x.fabsh-OLD", ".x.OTHER"} {
		if err := os.Chtimes(filepath.Join(dir, "out/sub", name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	f, err := NewFiles(nil, dir, nil, "out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write("sub/x", []byte("new")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "out/sub"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), ".x.OTHER .x.fabsh-NEW x"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestWriteLinks: files are not written through a directory that is a link of another user, even one
// that leads to a directory below that of --out.
func TestWriteLinks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make links of others")
	}
	dir := tree(t, map[string]string{"out/mine/a": "old"})
	for name, to := range map[string]string{"own": "mine", "theirs": "mine", "chain": "theirs"} {
		if err := os.Symlink(to, filepath.Join(dir, "out", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Lchown(filepath.Join(dir, "out/theirs"), 12345, -1); err != nil {
		t.Fatal(err)
	}
	f, err := NewFiles(nil, dir, nil, "out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const refused = "theirs is a symbolic link of another user; choose another directory"
	for path, want := range map[string]string{
		"own/b": "", "own/new/b": "", "theirs/a": "out/theirs/a: " + refused, "theirs/new/a": "out/theirs/new/a: " + refused, "chain/a": "out/chain/a: " + refused, "theirs": "",
	} {
		got := ""
		if _, err := f.Write(path, []byte("x")); err != nil {
			got = err.Error()
		}
		if path == "theirs" { // the link is not a regular file
			want = "out/theirs: is not a regular file, so it cannot be replaced"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "out/mine/a")); err != nil || string(text) != "old" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// TestOpenDirectory: a script reads the files of a directory as it reads others: without those with keys, and without
// links that lead out of it.
func TestOpenDirectory(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "run")
	for name, text := range map[string]string{"run/net.txt": "net", "run/below/keys": "secret", "outside": "outside"} {
		path := filepath.Join(top, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outside", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	f, err := NewFiles(nil, top, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	keys, err := os.Stat(filepath.Join(dir, "below/keys"))
	if err != nil {
		t.Fatal(err)
	}
	f.Forbid(keys)
	if d, err := f.OpenDirectory("run/net.txt"); d != nil || err != nil {
		t.Errorf("a file: %v, %v", d, err)
	}
	if d, err := f.OpenDirectory(".."); d != nil || err != nil {
		t.Errorf("a directory that scripts may not read: %v, %v", d, err)
	}
	d, err := f.OpenDirectory("run")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if data, err := fs.ReadFile(d, "net.txt"); err != nil || string(data) != "net" {
		t.Errorf("%q, %v", data, err)
	}
	for _, name := range []string{"below/keys", "link", "../outside"} {
		if data, err := fs.ReadFile(d, name); err == nil {
			t.Errorf("%s: read %q", name, data)
		}
	}
}

// TestSeal: after Seal only the directories of -I can be read, by relative names too, whatever else
// the command line names.
func TestSeal(t *testing.T) {
	dir := tree(t, map[string]string{"cwd/a": "a", "script/s.star": "", "one/b": "b", "two/b": "2", "two/keys": "secret", "two/sub/c": "c", "else/d": "d"})
	if err := os.Symlink(filepath.Join(dir, "else/d"), filepath.Join(dir, "one/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b", filepath.Join(dir, "one/within")); err != nil {
		t.Fatal(err)
	}
	f, err := NewFiles(nil, filepath.Join(dir, "cwd"), []string{"../one", filepath.Join(dir, "two")}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Allow(starlark.String("a"))
	f.Seal(func(beginning []byte) bool { return strings.HasPrefix(string(beginning), "secret") })
	f.Allow(starlark.String(filepath.Join(dir, "else/d")))
	if err := f.Confine(filepath.Join(dir, "script")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"b": "b", "sub/c": "c", "within": "b", filepath.Join(dir, "two/b"): "2", filepath.Join(dir, "one/../two/b"): "2",
		"a": "", "../cwd/a": "", filepath.Join(dir, "cwd/a"): "", "keys": "", "link": "", "s.star": "", filepath.Join(dir, "script/s.star"): "", filepath.Join(dir, "else/d"): "", "/etc/passwd": "", "": "", ".": "",
	} {
		for how, read := range map[string]func(context.Context, string) ([]byte, error){"scripts": f.Read, "the command line": f.ReadNamed} {
			if got, err := read(t.Context(), name); string(got) != want || (err == nil) != (want != "") {
				t.Errorf("%s, %s: got %q, %v", name, how, got, err)
			}
		}
	}
	if f.MayRead(filepath.Join(dir, "script")) || !f.MayRead(filepath.Join(dir, "two/sub")) || !f.Sealed() {
		t.Error("which directories may be read")
	}
	if _, err := f.Write("x", nil); err == nil {
		t.Error("a file was written")
	}
}
