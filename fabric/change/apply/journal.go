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
	"hash/crc32"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/format"
	"fabsh/fabric/jsonfile"
	"fabsh/fabric/sa"
	"fabsh/mad"
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
	clock   Clock
	f       journalFile // nil: read-only, or in memory
	next    int         // the number of the next line
	size    int64       // of the lines
}

// journalFile is the file that a journal is written to.
type journalFile interface {
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
}

// ErrJournal reports that the journal could not be written.
var ErrJournal = errors.New("the journal cannot be written")

// Record is a line of a journal. Which fields it has depends on its kind.
type Record struct {
	Kind RecordKind `json:"kind"`
	At   time.Time  `json:"at"`
	// Begin is of KindBegin.
	Begin *Begin `json:"begin,omitempty" when:"kind=begin"`
	// Round is of KindRound: the value that was proven and is sent, by number of the cell.
	certificate.Round
	// Number is the number of the round, in KindRound and KindDone.
	Number int `json:"round,omitempty" when:"kind=round|done"`
	// Rounds is the number of rounds, in KindRound.
	Rounds int `json:"rounds,omitempty" optional:"written before 0.10, or the round restores a link"`
	// Within is of KindApplied: how long the change may wait to be confirmed. Left are the
	// cells that it left unchanged, or restored, because it was stopped.
	Within time.Duration `json:"within,omitempty" optional:"it is reverted at once unless it was confirmed"`
	Left   []int         `json:"left,omitempty" optional:"all cells were written"`
	// Why is the reason, in KindFailed, KindReverting and the kinds that end a change.
	Why string `json:"why,omitempty" optional:"no reason is known, or the kind has none"`
}

// RecordKind is the kind of a record.
type RecordKind string

const (
	KindBegin     RecordKind = "begin"     // the change, before anything is sent
	KindRound     RecordKind = "round"     // a round, before its first Set
	KindDone      RecordKind = "done"      // the round has been read back
	KindApplied   RecordKind = "applied"   // all rounds are done; the change waits to be confirmed
	KindFailed    RecordKind = "failed"    // the change cannot continue; the guard reverts it
	KindReverting RecordKind = "reverting" // the change is being reverted
	KindConfirmed RecordKind = "confirmed" // the end: the change stays
	KindReverted  RecordKind = "reverted"  // the end: all blocks are as before
	KindAbandoned RecordKind = "abandoned" // the end: all blocks stay unchanged
	KindStopped   RecordKind = "stopped"   // not the end: neither continued nor reverted automatically
)

// ends reports whether a record of this kind ends the change.
func (k RecordKind) ends() bool {
	return k == KindConfirmed || k == KindReverted || k == KindAbandoned
}

// Begin is a change, with all that is needed to revert it.
type Begin struct {
	ID      string   `json:"id"`
	Summary string   `json:"summary"` // of the plan, for people
	By      string   `json:"by"`      // the user who applied it
	Port    mad.GUID `json:"port"`    // of this host
	Prefix  uint64   `json:"prefix"`  // of the subnet's GIDs
	// Switches are the switches of the subnet, by which the journal is recognised.
	Switches []Member `json:"switches,omitempty" optional:"written before 0.10: the journal is recognised by the port"`
	// Within is how long it may wait to be confirmed, plus Drains times the time that its
	// rounds wait for packets under way.
	Within time.Duration `json:"within"`
	Drains int           `json:"drains"`
	// Manager is the port GUID of the subnet manager in charge; 0: there was no manager.
	Manager mad.GUID              `json:"manager"`
	Cells   []*certificate.Change `json:"cells"`
	// AcceptCreditLoops is set if the change may be applied, or reverted, even if packets
	// may deadlock.
	AcceptCreditLoops bool `json:"accept_credit_loops,omitempty" optional:"false"`
	// Levels is the path of the file of the service levels in use; "": path records have
	// them.
	Levels string `json:"levels,omitempty" optional:"path records have the service levels"`
	// Links are the ports that were active before, of the switches that the change
	// writes.
	Links []Ports `json:"links,omitempty" optional:"no links were recorded"`
	// Written are the ports whose PortInfo the change writes, and the other ends of their
	// links, that were active before.
	Written []Ports `json:"written,omitempty" optional:"no port was active"`
	// Static are the switches whose adaptive routing the change disables. Its reversal does
	// not restore it.
	Static []mad.GUID `json:"static,omitempty" optional:"adaptive routing stays unchanged"`
	// LinkByLink reports that a subnet manager is in charge that handles the changed links:
	// each is a round of its own, after which its new tables are checked.
	LinkByLink bool `json:"link_by_link,omitempty" optional:"false"`
	// Staged is how OpenSM receives the tables; nil: fabsh sends Sets.
	Staged *Staged `json:"staged,omitempty" optional:"fabsh sends Sets"`
}

// coexistence returns how the change, or its reversal (back), goes with a running subnet
// manager.
func (b *Begin) coexistence(back bool) coexistence {
	return coexistenceOf(b.Cells, b.Staged != nil, back)
}

// manager returns the subnet manager that was in charge; nil: there was no manager.
func (b *Begin) manager() *sa.SM {
	if b.Manager == 0 {
		return nil
	}
	return &sa.SM{Info: &mad.SMInfo{GUID: b.Manager}}
}

// Unrestored describes the adaptive routing that the change has disabled, and that its
// reversal does not restore; "": none.
func (b *Begin) Unrestored() string {
	if b == nil {
		return ""
	}
	return change.Unrestored(len(b.Static))
}

// NewJournal begins a journal at path that replaces the previous one, which is kept until
// DropPrevious. With an empty path the journal is in memory, for a fabric simulated in this
// process.
func NewJournal(path string, b *Begin, clock Clock) (*Journal, error) {
	return newJournal(path, Record{Kind: KindBegin, Begin: b}, clock)
}

// newJournal is NewJournal with the first record.
func newJournal(path string, begin Record, clock Clock) (*Journal, error) {
	j := &Journal{path: path, clock: clock, next: 1}
	if path == "" {
		return j, j.Append(begin)
	}
	// Under its name the journal is either complete or missing. A file named .new was left
	// by a killed writer, or placed by someone else: it is not written through.
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
func OpenJournal(path string, clock Clock) (*Journal, error) {
	f, err := format.OpenPlain(path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !format.IsOwn(st) {
		f.Close()
		return nil, cmp.Or(err, fmt.Errorf("%s is a journal of another user", path))
	}
	j := &Journal{path: path, clock: clock, f: f}
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

// load reads all lines. The error is a *DamageError if a line does not verify: then only
// records that verify are kept, and none if the first line does not.
func (j *Journal) load(f io.Reader) error {
	r := lineReader{path: j.path}
	at := 0
	for text := range r.records(f) {
		at++
		var rec Record
		err := recordFormat().Unmarshal(text, &rec)
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
	r.damage.Last = kindOf(r.last)
	return r.damage
}

// recordFormat is the format of a line. Later versions may write other members: the checksum shows
// damage.
var recordFormat = sync.OnceValue(func() *jsonfile.Format[Record] {
	return jsonfile.New[Record](jsonfile.Limits{Unknown: true, Null: true})
})

// kindOf returns the kind of a record; "": it is invalid.
func kindOf(text []byte) RecordKind {
	var rec Record
	if err := recordFormat().Unmarshal(text, &rec); err != nil {
		return ""
	}
	return rec.Kind
}

// check returns an error if rec cannot follow the records before it.
func (j *Journal) check(rec *Record) error {
	if first := len(j.Records) == 0; first != (rec.Begin != nil) {
		return errors.New("the change must be in the first record and in no other")
	} else if first {
		if len(rec.Writes) > 0 {
			return errors.New("the first record has writes")
		}
		return nil
	}
	cells := j.Begin().Cells
	for _, w := range rec.Writes {
		if w.Change < 0 || w.Change >= len(cells) || len(w.Data) != len(cells[w.Change].Old) {
			return errors.New("a write has an unknown cell or another size")
		}
	}
	return nil
}

// Append writes a record, and returns when it is on the disk.
func (j *Journal) Append(rec Record) error {
	if rec.At.IsZero() { // otherwise it is from a damaged journal
		rec.At = j.clock.Now().UTC()
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
	return nil
}

// DropPrevious removes the journal of the previous change, which can no longer be reverted
// when something of this one is sent.
func (j *Journal) DropPrevious() {
	if j.path != "" {
		os.Remove(j.before())
	}
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

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// journalView is a journal that another process writes. It shows one change: the next change has a
// new file under this name.
type journalView struct {
	f  *os.File
	at os.FileInfo // of f when j was read
	j  *Journal
}

func newJournalView(path string) (*journalView, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &journalView{f: f}, nil
}

func (v *journalView) close() { v.f.Close() }

// read reads the journal if it has changed. With an error it returns the previous
// contents.
func (v *journalView) read() (*Journal, error) {
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

// maxLine is the length of the longest line in bytes: all tables of 48k LIDs on 2,000
// switches.
const maxLine = 1 << 30

// castagnoli is the polynomial of the checksums, CRC32C (RFC 3720, section 12.1).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// formatLine returns line n of a journal: the number, the checksum of number and record,
// and the record.
func formatLine(n int, text []byte) []byte {
	number := strconv.Itoa(n) + " "
	sum := crc32.Update(crc32.Checksum([]byte(number), castagnoli), castagnoli, text)
	line := make([]byte, 0, len(number)+len(text)+10)
	return append(append(fmt.Appendf(append(line, number...), "%08x ", sum), text...), '\n')
}

// cutLine returns the number and the record of a line that verifies.
func cutLine(line []byte) (n int, text []byte, ok bool) {
	number, rest, _ := bytes.Cut(line, []byte{' '})
	_, text, ok = bytes.Cut(bytes.TrimSuffix(rest, []byte{'\n'}), []byte{' '})
	n, err := strconv.Atoi(string(number))
	return n, text, ok && err == nil && n > 0 && bytes.Equal(line, formatLine(n, text))
}

// lineReader reads the lines of a journal.
type lineReader struct {
	path string
	// size is the offset where the lines end that verify without a gap from the first;
	// next is the expected number of the line there.
	size int64
	next int
	// damage is the first line that does not verify; nil: all lines verify.
	damage *DamageError
	// last is the record of the last line, if that is complete and verifies.
	last []byte
	// sum is the digest of the lines of the older format, which end where the first line
	// of the current format begins: the SHA-256 of the previous digest and the record. A
	// line begins with 8 bytes of it in hexadecimal.
	sum   [sha256.Size]byte
	newer bool
}

// records returns the records of all lines that verify, including those behind the
// damage.
func (r *lineReader) records(f io.Reader) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		r.next = 1
		in := bufio.NewReaderSize(f, 1<<16)
		for at := 1; ; at++ {
			line, err := readLine(in)
			if err != nil {
				r.end(at, line, err)
				return
			}
			text, why := r.verify(line)
			r.last = text
			if why != "" {
				r.damaged(at, why)
				continue
			}
			if r.damage == nil {
				r.size += int64(len(line))
			}
			if !yield(text) {
				return
			}
		}
	}
}

// damaged notes the first damage.
func (r *lineReader) damaged(at int, why string) {
	if r.damage == nil {
		r.damage = &DamageError{Path: r.path, Line: at, Why: why}
	}
}

// verify returns the record of a line, or the reason that it does not verify.
func (r *lineReader) verify(line []byte) (text []byte, why string) {
	n, text, ok := cutLine(line)
	if !ok {
		if text, ok = r.verifyOlder(line); ok {
			r.next++
			return text, ""
		}
		return nil, "checksum does not match"
	}
	r.newer = true
	if n != r.next {
		if n > r.next && r.damage != nil { // lines are missing, which has been reported
			r.next = n + 1
			return text, ""
		}
		return nil, fmt.Sprintf("the line has number %d, want %d", n, r.next)
	}
	r.next++
	return text, ""
}

// verifyOlder is verify for a line of the older format.
func (r *lineReader) verifyOlder(line []byte) (text []byte, ok bool) {
	if r.newer || r.damage != nil {
		return nil, false
	}
	digest, text, ok := bytes.Cut(bytes.TrimSuffix(line, []byte{'\n'}), []byte{' '})
	sum := sha256.Sum256(append(r.sum[:len(r.sum):len(r.sum)], text...))
	if !ok || hex.EncodeToString(sum[:8]) != string(digest) {
		return nil, false
	}
	r.sum = sum
	return text, true
}

// end judges the bytes behind the last newline; err is the reason that no newline ends
// them. The first line of a journal is always complete: NewJournal renames the file
// afterwards.
func (r *lineReader) end(at int, tail []byte, err error) {
	switch {
	case !errors.Is(err, io.EOF):
		r.last = nil
		r.damaged(at, err.Error())
	case at == 1 && len(tail) == 0:
		r.damaged(at, "the file is empty")
	case at == 1:
		r.damaged(at, "the first line is incomplete")
	case len(tail) > 0:
		r.last = nil
		if _, _, whole := cutLine(append(bytes.Clone(tail[:len(tail)-1]), '\n')); whole { // the newline was changed to another byte
			r.damaged(at, "the line does not end with a newline")
		}
	}
}

// errLong reports a line that is longer than any record; errZero reports a line with zero
// bytes, which no record has, as in a file whose contents were lost.
var (
	errLong = fmt.Errorf("the line has more than %d bytes", maxLine)
	errZero = errors.New("the line has zero bytes")
)

// readLine reads a line. At the end of the file it returns what is left, and io.EOF. It
// ends at a zero byte in a long line, because a file whose contents were lost may have
// any length.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case len(line) > maxLine:
			return nil, errLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		case bytes.IndexByte(part, 0) >= 0:
			return nil, errZero
		}
	}
}
