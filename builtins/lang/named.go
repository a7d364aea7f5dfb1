package lang

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// OpenNamed opens a file that the command line names, which may be a pipe. It
// waits for who writes it, and for what they write, until ctx ends or the deadline.
func OpenNamed(ctx context.Context, path string) (_ *NamedFile, err error) {
	ctx, cancel := untilDeadline(ctx)
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	type opened struct {
		f   *os.File
		err error
	}
	ch := make(chan opened, 1)
	go func() { // a pipe opens when its other end does
		f, err := os.Open(path)
		ch <- opened{f, err}
	}()
	select {
	case o := <-ch:
		if o.err != nil {
			return nil, tidy(rename(o.err, path))
		}
		if st, err := o.f.Stat(); err == nil && st.IsDir() {
			o.f.Close()
			return nil, fmt.Errorf("%s: is a folder", path)
		}
		stop := context.AfterFunc(ctx, func() { o.f.SetReadDeadline(time.Unix(1, 0)) })
		return &NamedFile{o.f, ctx, func() { stop(); cancel() }}, nil
	case <-ctx.Done():
		go func() {
			if o := <-ch; o.err == nil {
				o.f.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// NamedFile is a file that the command line names.
type NamedFile struct {
	*os.File
	ctx  context.Context
	stop func()
}

// Read reads until the context ends.
func (f *NamedFile) Read(p []byte) (int, error) {
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
func (f *NamedFile) Close() error {
	f.stop()
	return f.File.Close()
}

// maxWhole is how long a file may be that is read as a whole, in bytes.
const maxWhole = 64 << 20

// readWhole reads the file r, whose size is known unless it is a pipe.
func readWhole(r io.Reader, size int64, name string) ([]byte, error) {
	tooLong := fmt.Errorf("%s: more than %d MB, too long to be read as a whole", name, maxWhole>>20)
	if size > maxWhole {
		return nil, tooLong
	}
	data, err := io.ReadAll(io.LimitReader(r, maxWhole+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxWhole:
		return nil, tooLong
	}
	return data, nil
}
