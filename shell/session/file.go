package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"fabsh/builtins/lang"
	"fabsh/fabric/format"
)

// OpenNamed returns open for files that the command line names, until ctx ends.
func OpenNamed(ctx context.Context, open func(context.Context, string) (*lang.File, error)) format.Opener {
	return func(path string) (io.ReadCloser, error) {
		f, err := open(ctx, path)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
}

// WriteNamed writes the file that the command line names, completely or not at all. It
// waits for the reader of a pipe until ctx ends.
func WriteNamed(ctx context.Context, path string, write func(io.Writer) error) error {
	return NotWritten(path, format.WriteFile(ctx, path, write))
}

// NotWritten returns err with the name that the user knows, not that of the temporary
// file.
func NotWritten(path string, err error) error {
	var pe *fs.PathError
	if !errors.As(err, &pe) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such directory", path)
	}
	err = format.FileError(&fs.PathError{Op: pe.Op, Path: path, Err: pe.Err})
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EIO} {
		if errors.Is(err, cause) {
			return &HostError{err} // not a usage error
		}
	}
	return err
}

// OpenRegular opens a file that the command line does not name. It must be a regular
// file, so that the program never waits for a writer.
func OpenRegular(path string) (*os.File, error) {
	f, err := format.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("is a directory")}
	}
	return f, nil
}

// MaxOwn is the maximum length of the program's own files, in bytes: settings, startup
// statements, and history.
const MaxOwn = 16 << 20

// ReadOwn reads one of the program's own files completely.
func ReadOwn(path string) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := format.Bounded(f, path, MaxOwn)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Secrets are the key files that were read. Scripts and other files cannot open them.
type Secrets []fs.FileInfo

// Open opens a file that another file names, unless it contains keys.
func (s Secrets) Open(path string) (io.ReadCloser, error) {
	f, err := format.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && slices.ContainsFunc(s, func(secret fs.FileInfo) bool { return os.SameFile(secret, st) }) {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("contains keys")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
