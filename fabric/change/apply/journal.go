package apply

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fabsh/fabric/format"
)

// Journal is the file of a change. Whoever makes the change, takes it back or
// confirms it holds the lock beside it, reads it, and appends to it; that, and the
// fabric, is all that they know of each other. Each may be killed at any time.
//
// A line is a digest of the lines before it and of its record, and the record in
// JSON. What follows the last line that is whole was being written when its writer
// was killed, and counts for nothing.
type Journal struct {
	Records []Record
	path    string
	f       file // nil: read only, or in memory
	sum     [sha256.Size]byte
	size    int64
}

// file is what a journal is written to.
type file interface {
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
}

// ErrJournal: the journal could not be written.
var ErrJournal = errors.New("the journal cannot be written")

// NewJournal begins a journal at path, in the place of the one before, which is kept
// until something is sent. With an empty path it is kept in memory, for a fabric that
// ends with this process.
func NewJournal(path string, b *Begin) (*Journal, error) {
	j := &Journal{path: path}
	if path == "" {
		return j, j.Append(Record{Kind: KindBegin, Begin: b})
	}
	// Under its name the journal is whole, or not there at all. What is there under the
	// other one a killed writer has left, or a stranger: it is not written through.
	os.Remove(path + ".new")
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	j.f = f
	if err = j.Append(Record{Kind: KindBegin, Begin: b}); err == nil {
		if err = j.keepBefore(); err == nil {
			err = os.Rename(path+".new", path)
		}
		if err == nil {
			err = syncFolder(filepath.Dir(path))
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrJournal, err)
		}
	}
	if err != nil {
		f.Close()
		os.Remove(path + ".new")
		return nil, err
	}
	return j, nil
}

// OpenJournal opens the journal at path to append to it, which must be the user's own:
// what it says is written to the fabric. The caller holds the lock.
func OpenJournal(path string) (*Journal, error) {
	f, err := format.OpenPlain(path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !format.IsOwn(st) {
		f.Close()
		return nil, cmp.Or(err, fmt.Errorf("%s is a journal of another user", path))
	}
	j := &Journal{path: path, f: f}
	if err := j.load(f); err != nil {
		f.Close()
		return nil, err
	}
	// What a killed writer has left; that it cannot be cut off shows when the next
	// record is written.
	_ = f.Truncate(j.size)
	_, err = f.Seek(j.size, io.SeekStart)
	if err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

// ReadJournal reads the journal at path, which another process may be writing.
func ReadJournal(path string) (*Journal, error) {
	f, err := format.OpenPlain(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	j := &Journal{path: path}
	return j, j.load(f)
}

// maxLine is how long a line may be: all tables of 48k LIDs on 2,000 switches.
const maxLine = 1 << 30

// load reads all lines that are whole.
func (j *Journal) load(f *os.File) error {
	r := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := readLine(r)
		if errors.Is(err, errLong) {
			return fmt.Errorf("%s is no journal: a line has more than %d bytes", j.path, maxLine)
		}
		if err == nil {
			err = j.take(line)
		}
		if err != nil { // the last, which is not whole, or the end
			if len(j.Records) == 0 || j.Records[0].Begin == nil {
				return fmt.Errorf("%s is no journal of a change", j.path)
			}
			return nil
		}
	}
}

// errLong: a line is longer than a record can be.
var errLong = errors.New("too long")

// readLine reads a line. It goes on no further than a zero byte, which no text has and
// all of a file without contents, however long that is.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case len(line) > maxLine:
			return nil, errLong
		case !errors.Is(err, bufio.ErrBufferFull) || bytes.IndexByte(part, 0) >= 0:
			return nil, err
		}
	}
}

// take takes a line, unless its digest is wrong.
func (j *Journal) take(line []byte) error {
	digest, text, ok := bytes.Cut(bytes.TrimSuffix(line, []byte{'\n'}), []byte{' '})
	sum := j.next(text)
	if !ok || hex.EncodeToString(sum[:8]) != string(digest) {
		return errors.New("not whole")
	}
	var rec Record
	if err := json.Unmarshal(text, &rec); err != nil {
		return err
	}
	if err := j.check(&rec); err != nil {
		return err
	}
	j.Records, j.sum, j.size = append(j.Records, rec), sum, j.size+int64(len(line))
	return nil
}

// check says why rec is not what comes next; nil: it may be.
func (j *Journal) check(rec *Record) error {
	if first := len(j.Records) == 0; first != (rec.Begin != nil) {
		return errors.New("the first record, and no other, is that of the change")
	} else if first {
		if slices.Contains(rec.Begin.Cells, nil) || len(rec.Steps) > 0 {
			return errors.New("a cell is not there")
		}
		return nil
	}
	cells := j.Begin().Cells
	for _, s := range rec.Steps {
		if s.Cell < 0 || s.Cell >= len(cells) || len(s.Data) != len(cells[s.Cell].Old) {
			return errors.New("a step is of no cell, or has another size")
		}
	}
	return nil
}

// next is the digest after one more record.
func (j *Journal) next(text []byte) [sha256.Size]byte {
	return sha256.Sum256(slices.Concat(j.sum[:], text))
}

// Append writes a record, and returns when the disk has it.
func (j *Journal) Append(rec Record) error {
	rec.At = time.Now().UTC()
	if j.f == nil {
		j.Records = append(j.Records, rec)
		return nil
	}
	text, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	sum := j.next(text)
	line := slices.Concat([]byte(hex.EncodeToString(sum[:8])), []byte{' '}, text, []byte{'\n'})
	_, err = j.f.WriteAt(line, j.size)
	if err == nil {
		err = j.f.Sync()
	}
	if err != nil {
		_ = j.f.Truncate(j.size)
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	j.Records, j.sum, j.size = append(j.Records, rec), sum, j.size+int64(len(line))
	if rec.Kind == KindRound {
		os.Remove(j.before())
	}
	return nil
}

// NothingSent ends a journal of which nothing has been sent: the latest change is the one
// before, if there was one. The error is that this could not be written.
func (j *Journal) NothingSent(why string) error {
	err := j.Append(Record{Kind: KindReverted, Why: why})
	if j.path == "" {
		return err
	}
	switch e := os.Rename(j.before(), j.path); {
	case e == nil:
		return nil
	case err != nil: // it would look like a change that has begun
		os.Remove(j.path)
	}
	return err
}

// before is where the journal of the change before is, while nothing of this one is sent.
func (j *Journal) before() string { return j.path + ".before" }

// keepBefore keeps the journal of the change before, which may have to be taken back yet.
func (j *Journal) keepBefore() error {
	if err := os.Remove(j.before()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Link(j.path, j.before()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Close gives the file back.
func (j *Journal) Close() error {
	if j.f == nil {
		return nil
	}
	return j.f.Close()
}

// Begin is the change.
func (j *Journal) Begin() *Begin { return j.Records[0].Begin }

// Last is the latest record of one of the kinds; nil: there is none.
func (j *Journal) Last(kinds ...RecordKind) *Record {
	for i := range slices.Backward(j.Records) {
		if slices.Contains(kinds, j.Records[i].Kind) {
			return &j.Records[i]
		}
	}
	return nil
}

// Open: the change has not ended: it was neither confirmed nor taken back nor abandoned
// since it was last begun, or begun to be taken back.
func (j *Journal) Open() bool { return !j.Records[len(j.Records)-1].Kind.ends() }

// ends: the change has ended with such a record.
func (k RecordKind) ends() bool {
	return k == KindConfirmed || k == KindReverted || k == KindAbandoned
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// view is a journal that another process writes. It stays that of one change: when that
// has ended, the next one has a file of its own in its place.
type view struct {
	f  *os.File
	at os.FileInfo // of f when j was read
	j  *Journal
}

func newView(path string) (*view, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &view{f: f}, nil
}

func (v *view) close() { v.f.Close() }

// read reads the journal, if it is not what it was.
func (v *view) read() (*Journal, error) {
	at, err := v.f.Stat()
	if err != nil {
		return nil, err
	}
	if v.at != nil && at.Size() == v.at.Size() && at.ModTime().Equal(v.at.ModTime()) {
		return v.j, nil
	}
	if _, err := v.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	j := &Journal{path: v.f.Name()}
	if err := j.load(v.f); err != nil {
		return nil, err
	}
	v.j, v.at = j, at
	return j, nil
}
