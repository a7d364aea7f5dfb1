package format

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// WriteFile replaces the file at path by what write writes. It writes a temporary
// file in the same directory, and renames it to path when it is complete, so that
// there is never half a file. After an error the old file is unchanged.
//
// A pipe is written directly. WriteFile waits until ctx ends for a reader that comes
// later, and for what it reads. After that it writes only to a reader that exists.
func WriteFile(ctx context.Context, path string, write func(io.Writer) error) error {
	return replaceFile(ctx, path, write, nil, 0)
}

// WritePrivate is WriteFile of what only its owner may read: mode 0600, even
// where an existing file has another.
func WritePrivate(ctx context.Context, path string, write func(io.Writer) error) error {
	return replaceFile(ctx, path, write, nil, 0o600)
}

// WriteChecked is WriteFile with a check, unless that is nil: check is called with
// the name of the temporary file before the rename. path must then not be a pipe
// or device.
func WriteChecked(path string, write func(io.Writer) error, check func(name string) error) error {
	return replaceFile(context.Background(), path, write, check, 0)
}

// WriteOwn is WriteFile of what only fabsh itself writes, such as its state: no symbolic
// link is followed, and anything but a regular file is kept.
func WriteOwn(path string, write func(io.Writer) error) error {
	mode := os.FileMode(0o644)
	if st, err := os.Lstat(path); err == nil {
		if !st.Mode().IsRegular() {
			return fmt.Errorf("%s: not a regular file; not replaced, move it away", path)
		}
		mode = st.Mode().Perm()
	}
	return rename(path, write, nil, mode)
}

// replaceFile is the others. mode 0: that of the file that is there, else 0644.
func replaceFile(ctx context.Context, path string, write func(io.Writer) error, check func(name string) error, mode os.FileMode) (err error) {
	if path, err = Target(path); err != nil { // a symbolic link stays one
		return err
	}
	if isStream(path) {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
	}
	old := os.FileMode(0o644)
	if st, err := os.Stat(path); err == nil {
		if !st.Mode().IsRegular() && check != nil {
			return fmt.Errorf("%s: not a regular file; cannot be replaced", path)
		}
		if !st.Mode().IsRegular() { // a pipe or device: a rename would remove it
			return writeThrough(ctx, path, st.Mode(), write)
		}
		old = st.Mode().Perm()
	}
	return rename(path, write, check, cmp.Or(mode, old))
}

// rename writes a temporary file beside path, and renames it to that.
func rename(path string, write func(io.Writer) error, check func(name string) error, mode os.FileMode) (err error) {
	f, err := createTemp(path)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok { // its name is another each time
			err = &fs.PathError{Op: pe.Op, Path: filepath.Dir(path), Err: pe.Err}
		}
		return fmt.Errorf("%s: temporary file beside it: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = named(err, f.Name(), path)
		}
	}()
	out := bufio.NewWriterSize(f, 1<<16)
	if err := write(out); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	// Without this, a crash of the machine could leave an empty file.
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if check != nil {
		if err := check(f.Name()); err != nil {
			return err
		}
	}
	return os.Rename(f.Name(), path)
}

// named is err with the name of the file that was to be written, in place of that of the
// temporary one, which is random and means nothing to users.
func named(err error, temp, path string) error {
	if link, ok := errors.AsType[*os.LinkError](err); ok && link.Old == temp {
		return &fs.PathError{Op: link.Op, Path: path, Err: link.Err}
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok && pe.Path == temp {
		return &fs.PathError{Op: pe.Op, Path: path, Err: pe.Err}
	}
	return err
}

// writeThrough writes to the pipe or device at path.
func writeThrough(ctx context.Context, path string, mode os.FileMode, write func(io.Writer) error) error {
	f, err := openThrough(ctx, path, mode)
	if err != nil {
		return err
	}
	if ctx.Err() == nil {
		defer context.AfterFunc(ctx, func() { f.SetWriteDeadline(time.Unix(1, 0)) })()
	}
	err = write(f)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = context.Cause(ctx)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
