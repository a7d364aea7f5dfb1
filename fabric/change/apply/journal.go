package apply

import (
	"bufio"
	"bytes"
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

	"fabsh/fabric/audit"
	"fabsh/mad/engine"
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

// NewJournal begins a journal at path, in the place of the one before. With an empty
// path it is kept in memory, for a fabric that ends with this process.
func NewJournal(path string, b *Begin) (*Journal, error) {
	j := &Journal{path: path}
	if path == "" {
		return j, j.Append(Record{Kind: KindBegin, Begin: b})
	}
	// Under its name the journal is whole, or not there at all.
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	j.f = f
	if err = j.Append(Record{Kind: KindBegin, Begin: b}); err == nil {
		if err = os.Rename(path+".new", path); err == nil {
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

// OpenJournal opens the journal at path to append to it. The caller holds the lock.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
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
	f, err := os.Open(path)
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
		line, err := r.ReadBytes('\n')
		if len(line) > maxLine {
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
	j.Records, j.sum, j.size = append(j.Records, rec), sum, j.size+int64(len(line))
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

// view is a journal that another process writes.
type view struct {
	path string
	at   os.FileInfo // of the file that j is
	j    *Journal
}

// read reads the journal, if it is not what it was.
func (v *view) read() (*Journal, error) {
	at, err := os.Stat(v.path)
	if err != nil {
		return nil, err
	}
	if v.at != nil && os.SameFile(at, v.at) && at.Size() == v.at.Size() && at.ModTime().Equal(v.at.ModTime()) {
		return v.j, nil
	}
	if v.j, err = ReadJournal(v.path); err == nil {
		v.at = at
	}
	return v.j, err
}

// Find are the folders below dir with a journal of the subnet of a local port: made
// from this port, or from one of a subnet with the same GID prefix, if that is no
// default.
func Find(dir string, port *engine.Port) (found []string) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*", journalName))
	for _, path := range paths {
		if j, err := ReadJournal(path); err == nil && j.Begin().of(port) {
			found = append(found, filepath.Dir(path))
		}
	}
	return found
}

// Unended is a change of the subnet of a local port whose journal is below dir, that has
// not ended and that nobody is at; nil: there is none.
func Unended(dir string, port *engine.Port) *Begin {
	paths, _ := filepath.Glob(filepath.Join(dir, "*", journalName))
	for _, path := range paths {
		if endedByTail(path) {
			continue
		}
		j, err := ReadJournal(path)
		if err != nil || !j.Open() || !j.Begin().of(port) {
			continue
		}
		if isFree(path, guardName) && isFree(path, lockName) {
			return j.Begin()
		}
	}
	return nil
}

// isFree: nobody holds a lock beside the journal at path.
func isFree(path, name string) bool {
	lock, err := audit.Lock(filepath.Join(filepath.Dir(path), name))
	if err == nil {
		lock.Unlock()
	}
	return err == nil
}

// endedByTail: the last record of the journal says that the change has ended. All of
// it is read, which may be much, only where it does not.
func endedByTail(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	const enough = 1 << 10
	tail := make([]byte, enough)
	st, err := f.Stat()
	if err != nil {
		return true
	}
	n, _ := f.ReadAt(tail, max(0, st.Size()-enough))
	lines := bytes.Split(bytes.TrimSuffix(tail[:n], []byte{'\n'}), []byte{'\n'})
	_, text, _ := bytes.Cut(lines[len(lines)-1], []byte{' '})
	var rec Record
	return json.Unmarshal(text, &rec) == nil && rec.Kind.ends()
}

// of: the change is one of the subnet of a local port, as far as can be told.
func (b *Begin) of(port *engine.Port) bool {
	const defaultPrefix = 0xfe80_0000_0000_0000 // IBA 4.1.1
	return b.Port == port.PortGUID || b.Prefix == port.GIDPrefix && b.Prefix != 0 && b.Prefix != defaultPrefix
}
