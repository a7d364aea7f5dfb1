package format_test

import (
	"context"
	"errors"
	"io"
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
