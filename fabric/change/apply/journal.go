package apply

import (
	"cmp"
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

// Journal is the file of a change. A process that applies, reverts or confirms the change
// holds the lock beside it, reads it, and appends to it. Processes share nothing else but
// the fabric, and each may be killed at any time.
//
// A line is its number, a checksum, and a record in JSON. An incomplete last line was
// being written when its writer was killed, and is ignored; any other line that does not
// verify is damage, and then nothing is written to the file.
type Journal struct {
	Records []Record
	path    string
	f       file  // nil: read-only, or in memory
	next    int   // the number of the next line
	size    int64 // of the lines
}

// file is the file that a journal is written to.
type file interface {
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
}

// ErrJournal reports that the journal could not be written.
var ErrJournal = errors.New("the journal cannot be written")

// NewJournal begins a journal at path that replaces the previous one, which is kept until
// something is sent. With an empty path the journal is in memory, for a fabric simulated
// in this process.
func NewJournal(path string, b *Begin) (*Journal, error) {
	return newJournal(path, Record{Kind: KindBegin, Begin: b})
}

// newJournal is NewJournal with the first record.
func newJournal(path string, begin Record) (*Journal, error) {
	j := &Journal{path: path, next: 1}
	if path == "" {
		return j, j.Append(begin)
	}
	// Under its name the journal is either complete or missing. A file with the other
	// name was left by a killed writer, or placed by someone else: it is not written
	// through.
	os.Remove(path + ".new")
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	j.f = f
	if err = j.Append(begin); err == nil {
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

// OpenJournal opens the journal at path to append to it. The file must be the user's own,
// because its contents are written to the fabric. The caller holds the lock.
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
	// An incomplete last line. If it cannot be cut off, the next Append fails.
	_ = f.Truncate(j.size)
	return j, nil
}

// ReadJournal reads the journal at path, which another process may be writing. With a
// *DamageError it also returns a journal of the lines that verify.
func ReadJournal(path string) (*Journal, error) {
	f, err := format.OpenPlain(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	j := &Journal{path: path}
	return j, j.load(f)
}

// load reads all lines. The error is a *DamageError if a line does not verify: the
// records are then those that verify, or empty if the first line does not.
func (j *Journal) load(f io.Reader) error {
	r := reader{path: j.path}
	at := 0
	for text := range r.records(f) {
		at++
		var rec Record
		err := json.Unmarshal(text, &rec)
		if err == nil {
			err = j.check(&rec)
		}
		if err != nil {
			r.damaged(at, err.Error())
			continue
		}
		j.Records = append(j.Records, rec)
	}
	j.size, j.next = r.size, r.next
	if r.damage == nil {
		return nil
	}
	var last Record
	if json.Unmarshal(r.last, &last) == nil {
		r.damage.Last = last.Kind
	}
	return r.damage
}

// check returns an error if rec cannot follow the records before it.
func (j *Journal) check(rec *Record) error {
	if first := len(j.Records) == 0; first != (rec.Begin != nil) {
		return errors.New("the change must be in the first record and in no other")
	} else if first {
		if slices.Contains(rec.Begin.Cells, nil) || len(rec.Steps) > 0 {
			return errors.New("a cell is missing")
		}
		return nil
	}
	cells := j.Begin().Cells
	for _, s := range rec.Steps {
		if s.Cell < 0 || s.Cell >= len(cells) || len(s.Data) != len(cells[s.Cell].Old) {
			return errors.New("a step has an unknown cell or another size")
		}
	}
	return nil
}

// Append writes a record, and returns when it is on the disk.
func (j *Journal) Append(rec Record) error {
	if rec.At.IsZero() { // otherwise it is from a damaged journal
		rec.At = time.Now().UTC()
	}
	if j.f == nil {
		j.Records = append(j.Records, rec)
		return nil
	}
	text, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	line := formatLine(j.next, text)
	_, err = j.f.WriteAt(line, j.size)
	if err == nil {
		err = j.f.Sync()
	}
	if err != nil {
		_ = j.f.Truncate(j.size)
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	j.Records, j.next, j.size = append(j.Records, rec), j.next+1, j.size+int64(len(line))
	if rec.Kind == KindRound {
		os.Remove(j.before())
	}
	return nil
}

// NothingSent ends a journal of a change of which nothing has been sent: the previous
// change, if any, is the latest again. It returns an error if this could not be written.
func (j *Journal) NothingSent(why string) error {
	err := j.Append(Record{Kind: KindReverted, Why: why})
	if j.path == "" {
		return err
	}
	switch e := os.Rename(j.before(), j.path); {
	case e == nil:
		return nil
	case err != nil: // it would look like an open change
		os.Remove(j.path)
	}
	return err
}

// before returns where the journal of the previous change is while nothing of this one is
// sent.
func (j *Journal) before() string { return j.path + ".before" }

// keepBefore keeps the journal of the previous change, which may still have to be
// reverted.
func (j *Journal) keepBefore() error {
	if err := os.Remove(j.before()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Link(j.path, j.before()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Close closes the file.
func (j *Journal) Close() error {
	if j.f == nil {
		return nil
	}
	return j.f.Close()
}

// Begin returns the change; nil: the first line does not verify.
func (j *Journal) Begin() *Begin {
	if len(j.Records) == 0 {
		return nil
	}
	return j.Records[0].Begin
}

// Last returns the latest record of one of the kinds; nil: not found.
func (j *Journal) Last(kinds ...RecordKind) *Record {
	for i := range slices.Backward(j.Records) {
		if slices.Contains(kinds, j.Records[i].Kind) {
			return &j.Records[i]
		}
	}
	return nil
}

// Open reports whether the change has not ended: it was not confirmed, reverted or
// abandoned since it, or its reversal, was last begun.
func (j *Journal) Open() bool { return !j.Records[len(j.Records)-1].Kind.ends() }

// ends reports whether a record of this kind ends the change.
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

// view is a journal that another process writes. It remains that of one change: the next
// change has a new file under the same name.
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

// read reads the journal if it has changed. With an error it returns the previous
// contents.
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
		return v.j, err
	}
	v.j, v.at = j, at
	return j, nil
}
