package format

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"syscall"

	"fabsh/fabric"
)

// Load reads a topology in any of the formats known, recognized by its
// content, which may be packed by gzip. name is for messages. open opens the files that this one includes;
// nil: it may include none.
func Load(r io.Reader, name string, open Opener) (*fabric.Fabric, error) {
	r, err := unpacked(r, name, maxTopology)
	if err != nil {
		return nil, err
	}
	in, f := sniffFile(r)
	if f == nil {
		f = &ibnetdiscover // a net file of ibsim, written by hand
	}
	if f.load == nil {
		return nil, fmt.Errorf("%s: expected a topology, but this is %s", name, f.about)
	}
	return f.load(in, name, open)
}

// maxTopology is how long a topology may be, in bytes: a line for each port of
// the largest subnet, and as much again.
const maxTopology = 256 << 20

// Bounded is r, limited: an error at once if it is a longer file, and when more
// than max bytes have come of a pipe.
func Bounded(r io.Reader, name string, max int64) (io.Reader, error) {
	b := &bounded{Reader: r, name: name, max: max, left: max}
	if f, ok := r.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if st, err := f.Stat(); err == nil && st.Size() > max {
			return nil, b.tooLong()
		}
	}
	return b, nil
}

type bounded struct {
	io.Reader
	name      string
	max, left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.tooLong()
	}
	return n, err
}

func (b *bounded) tooLong() error {
	return fmt.Errorf("%s: expected at most %d MB", b.name, b.max>>20)
}

// OpenIncluded is OpenRegular as an Opener, with errors in the form of FileError.
func OpenIncluded(name string) (io.ReadCloser, error) {
	f, err := OpenRegular(name)
	if err != nil {
		return nil, FileError(err)
	}
	return f, nil
}

// FileError returns err as "path: cause" where it is about a file, else unchanged.
func FileError(err error) error {
	var pe *fs.PathError
	switch {
	case !errors.As(err, &pe):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file", pe.Path)
	}
	return fmt.Errorf("%s: %w", pe.Path, pe.Err)
}

// Opener opens a file that another includes. name is relative to where the
// including file is.
type Opener func(name string) (io.ReadCloser, error)

// OpenRegular opens a file whose name comes from another file or the system, not from
// the command line, so a stranger may have chosen it. It must be a regular file, or a
// directory to be listed: a pipe could block.
func OpenRegular(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return onlyRegular(f, true)
}

// onlyRegular closes f unless it is a regular file, or a directory where that is allowed.
func onlyRegular(f *os.File, orFolder bool) (*os.File, error) {
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() && !(orFolder && st.IsDir()) {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// rowReader reads a file of tables row by row. An error is the last.
type rowReader[T any] func(r io.Reader, name string) iter.Seq2[T, error]

// How long files of rows may be, in bytes. Rows are read one by one, so length
// is time and no memory.
const (
	// maxTables is for a line of 128 bytes for each of 49,151 LIDs in each of
	// 10,000 switches, or for so many pairs.
	maxTables = 64 << 30
	// maxList is for four lines of 256 bytes for each of 65,536 nodes: their
	// names, roots, ids.
	maxList = 64 << 20
)

// readRows reads a file of at most max bytes with the reader that its format has
// for such rows, else with fallback, which reports what it expected. The file may be a Capture.
func readRows[T any](r io.Reader, name string, max int64, fallback rowReader[T], of func(*fileFormat) rowReader[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		capture, _ := r.(*Capture)
		if capture != nil {
			r = capture.Reader
		}
		r, err := unpacked(r, name, max)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		in, f := sniffFile(r)
		rest := io.Reader(in)
		is := func(f *fileFormat) bool { return of(f) != nil }
		if capture != nil {
			var below *fileFormat
			if rest, below = skipPreamble(in, name, capture.Note, is); below != nil {
				f = below
			}
		}
		read := fallback
		if f != nil && is(f) {
			read = of(f)
			if capture != nil {
				rest = &postamble{in: bufio.NewReaderSize(rest, lineBuffer), name: name, note: capture.Note, is: is}
			}
		}
		read(rest, name)(yield)
	}
}

// sniffFile recognises the format of a file, or nil. The file is
// then read from the reader returned.
func sniffFile(r io.Reader) (*bufio.Reader, *fileFormat) {
	in := bufio.NewReaderSize(r, lineBuffer)
	head, _ := in.Peek(sniffSize) // the next read meets an error again
	if bytes.HasPrefix(head, []byte(byteOrderMark)) {
		in.Discard(len(byteOrderMark))
		head = head[len(byteOrderMark):]
	}
	return in, recognise(head)
}
