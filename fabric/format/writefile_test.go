package format_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fabsh/fabric/format"
)

// TestWritePipe: a pipe is written when somebody reads it, and waited for until the
// context ends: for its reader, and for what that does not read.
func TestWritePipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	over := errors.New("over")
	write := func(ctx context.Context, size int) error {
		return format.WriteFile(ctx, path, func(w io.Writer) error {
			_, err := w.Write(make([]byte, size))
			return err
		})
	}
	within := func() (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(t.Context(), 100*time.Millisecond, over)
	}
	ctx, cancel := within()
	defer cancel()
	if err := write(ctx, 1); err != over {
		t.Errorf("nobody reads: got %v", err)
	}

	read := make(chan int)
	go func() {
		b, err := os.ReadFile(path) // waits for the writer
		if err != nil {
			t.Error(err)
		}
		read <- len(b)
	}()
	if err := write(t.Context(), 1<<20); err != nil {
		t.Error(err)
	}
	if got := <-read; got != 1<<20 {
		t.Errorf("%d bytes came", got)
	}

	r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := write(ctx, 1); err != nil {
		t.Errorf("the reader is there, and it is late: got %v", err)
	}
	ctx, cancel = within()
	defer cancel()
	if err := write(ctx, 1<<20); err != over {
		t.Errorf("it does not read: got %v", err)
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tables")
	put := func(text string, fail error) error {
		return format.WriteFile(t.Context(), path, func(w io.Writer) error {
			io.WriteString(w, text)
			return fail
		})
	}
	if err := put("one", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := put("two", broken); err != broken {
		t.Errorf("got %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "one" {
		t.Errorf("after a failure the file holds %q", b)
	}
	if err := put("three", nil); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if b, _ := os.ReadFile(path); string(b) != "three" {
		t.Errorf("the file holds %q", b)
	}
	if all, _ := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
		t.Errorf("left behind: %v", all)
	}
	if err := format.WriteFile(t.Context(), "/dev/null", func(w io.Writer) error { return nil }); err != nil {
		t.Error(err)
	}
	err = format.WriteFile(t.Context(), filepath.Join(path, "x"), func(io.Writer) error { return nil })
	if want := fmt.Sprintf("%s/x: temporary file beside it: open %[1]s: not a directory", path); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	err = format.WriteFile(t.Context(), path, func(io.Writer) error { // the temporary file goes
		all, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
		return os.Remove(all[0])
	})
	if want := "rename " + path + ": no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	err = format.WriteFile(t.Context(), path, func(io.Writer) error { // as where the disk is full
		all, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
		return &fs.PathError{Op: "write", Path: all[0], Err: syscall.ENOSPC}
	})
	if want := "write " + path + ": no space left on device"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
