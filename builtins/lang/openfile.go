package lang

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/afero"
)

// OpenNamed opens a file that the command line names, which may be a pipe. Opening and
// reading wait for the writer until ctx ends.
func OpenNamed(ctx context.Context, path string) (*File, error) {
	type opened struct {
		f   *os.File
		err error
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ch := make(chan opened, 1)
	go func() { // opening a pipe waits for its other end
		f, err := os.Open(path)
		ch <- opened{f, err}
	}()
	select {
	case o := <-ch:
		if o.err != nil {
			return nil, shortError(renamePath(o.err, path))
		}
		if st, err := o.f.Stat(); err == nil && st.IsDir() {
			o.f.Close()
			return nil, fmt.Errorf("%s: is a directory", path)
		}
		return newFile(ctx, o.f), nil
	case <-ctx.Done():
		go func() {
			if o := <-ch; o.err == nil {
				o.f.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// File is an open file that is read until a context ends.
type File struct {
	afero.File // an interface, which hides other read methods
	ctx        context.Context
	release    func() // of ctx
}

// alsoRelease arranges for fn to be called when the file is closed.
func (f *File) alsoRelease(fn func()) *File {
	release := f.release
	f.release = func() { release(); fn() }
	return f
}

func newFile(ctx context.Context, f afero.File) *File {
	pipe, ok := f.(interface{ SetReadDeadline(time.Time) error })
	if !ok {
		return &File{f, ctx, func() {}}
	}
	stop := context.AfterFunc(ctx, func() { pipe.SetReadDeadline(time.Unix(1, 0)) })
	return &File{f, ctx, func() { stop() }}
}

// Read reads until the context ends.
func (f *File) Read(p []byte) (int, error) {
	if f.ctx.Err() != nil {
		return 0, context.Cause(f.ctx)
	}
	n, err := f.File.Read(p)
	if err != nil && f.ctx.Err() != nil {
		err = context.Cause(f.ctx)
	}
	return n, err
}

// Close closes the file.
func (f *File) Close() error {
	f.release()
	return f.File.Close()
}

// maxWhole is the maximum length of a file that is read as a whole, in bytes.
const maxWhole = 64 << 20

// readWhole reads a file and closes it. Errors call it shown.
func readWhole(f *File, shown string) ([]byte, error) {
	defer f.Close()
	tooLong := fmt.Errorf("%s: longer than %d MB, too long to read as a whole", shown, maxWhole>>20)
	if st, err := f.Stat(); err == nil && st.Size() > maxWhole {
		return nil, tooLong
	}
	data, err := io.ReadAll(io.LimitReader(f, maxWhole+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxWhole:
		return nil, tooLong
	}
	return data, nil
}
