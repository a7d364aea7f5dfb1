package remedy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/fabric/jsonfile"
)

// Log is the log of a subnet: a file to which runs append. Its first line is a headLine, and each
// other line has the checksum of the line before it, so that missing lines are noticed. Lines that
// the first line does not cover were being written when their writer was killed: an incomplete one is
// ignored. Any other line that does not verify is damage, and then nothing is written.
type Log struct {
	Entries []Entry
	State   State
	// Recorded is how many bytes of complete lines the file has: it changes with each entry.
	Recorded int64

	path    string
	sum     uint32 // the checksum of the last line; 0: no line
	chained bool   // false: of the older format, without a first line and without these checksums
	partial bool   // the first entry is a state
}

const (
	// maxLog is the size from which the oldest entries are left out, and keptLog what is left
	// then, in bytes.
	maxLog  = 8 << 20
	keptLog = 4 << 20
	// longestLog bounds what is read.
	longestLog = 32 << 20
)

// logName is the file name of a log.
const logName = "remedies"

// LogFile returns where the log of a subnet is, below a directory of states.
func LogFile(dir string, subnet fabric.Subnet) string {
	return filepath.Join(subnet.Folder(dir), logName)
}

// damageError reports a log with a line that does not verify.
type damageError struct {
	Path string
	Line int
	Why  string
}

func (e *damageError) Error() string {
	return fmt.Sprintf("log of remedies %s line %d: %s; the file is unchanged, and no remedy runs without it: restore it, or move it away to forget which ports are isolated", e.Path, e.Line, e.Why)
}

// readLog reads the log at path; a missing file is an empty log. The error may be a
// *damageError.
func readLog(path string) (*Log, error) {
	l := &Log{path: path}
	f, err := format.OpenPlain(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, longestLog+1))
	if err != nil {
		return nil, err
	}
	if len(data) > longestLog {
		return nil, &damageError{path, 1, fmt.Sprintf("the file has more than %d MB", longestLog>>20)}
	}
	return l, l.parse(data)
}

// parse reads all lines.
func (l *Log) parse(data []byte) error {
	var head logHead
	covered := 0
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			return l.torn(line, n, head)
		}
		var e Entry
		var err error
		if n == 1 && bytes.HasPrefix(line, []byte(headMagic)) {
			l.chained = true
			head, err = parseHead(line)
		} else {
			e, err = l.parseLine(line)
		}
		first := n == 1 || n == 2 && l.chained
		switch {
		case err == nil && e.Kind == KindState && !first:
			err = errors.New("a state must be the first line")
		case err == nil && e.Kind == KindState:
			l.State, covered, l.partial = *e.State, e.Covers, true
		}
		if l.Recorded += int64(len(line)) + 1; err == nil && e.Kind != "" && l.Recorded == head.size && l.sum != head.sum {
			err = errors.New("checksum differs from that in the first line")
		}
		if err != nil {
			return &damageError{l.path, n, err.Error()}
		}
		data = rest
		if e.Kind == KindState || e.Kind == "" {
			continue
		}
		l.Entries = append(l.Entries, e)
		if covered > 0 {
			covered--
		} else {
			l.State.Add(&e)
		}
	}
}

// torn checks what follows the last newline.
func (l *Log) torn(line []byte, n int, head logHead) error {
	switch {
	case n == 1 && len(line) == 0:
		return &damageError{l.path, n, "the file is empty"}
	case n == 1:
		return &damageError{l.path, n, "the first line is incomplete"}
	case l.Recorded < head.size:
		return &damageError{l.path, n, fmt.Sprintf("the file was cut: %d of %d bytes are left", l.Recorded+int64(len(line)), head.size)}
	}
	if len(line) > 0 {
		after := *l
		if _, err := after.parseLine(line[:len(line)-1]); err == nil { // the newline was changed to another byte
			return &damageError{l.path, n, "the line does not end with a newline"}
		}
	}
	if bytes.IndexByte(line, 0) >= 0 {
		return &damageError{l.path, n, "the line has zero bytes"}
	}
	return nil
}

// update appends the entries that change returns for the log at path, while no other process
// does. An error leaves the file unchanged; it may be format.ErrLockHeld.
func update(path string, change func(*Log) ([]Entry, error)) (*Log, error) {
	if err := format.MakeDirectory(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	held, err := format.AcquireLock(path + ".lock")
	if err != nil {
		return nil, err
	}
	defer held.Release()
	l, err := readLog(path)
	if err != nil {
		return nil, err
	}
	entries, err := change(l)
	if err != nil || len(entries) == 0 {
		return l, err
	}
	return l, l.append(entries)
}

// append writes entries to the file, and adds them to l.
func (l *Log) append(entries []Entry) error {
	text, sum, err := lines(l.sum, entries)
	if err != nil {
		return err
	}
	if !l.chained || l.Recorded+int64(len(text)) > maxLog {
		l.add(entries)
		return l.rewrite()
	}
	f, err := format.OpenPlain(l.path, os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !format.IsOwn(st) {
		return errors.Join(err, fmt.Errorf("%s: the log belongs to another user", l.path))
	}
	write := func(b []byte, at int64) {
		if err == nil {
			_, err = f.WriteAt(b, at)
		}
		if err == nil {
			err = f.Sync()
		}
	}
	// The first line covers only lines that are on the disk.
	size := l.Recorded + int64(len(text))
	if err = f.Truncate(l.Recorded); err == nil { // an incomplete last line
		write(text, l.Recorded)
		write(headLine(size, sum), 0)
	}
	if err != nil {
		_, _ = f.WriteAt(headLine(l.Recorded, l.sum), 0)
		_ = f.Truncate(l.Recorded)
		return err
	}
	l.Recorded, l.sum = size, sum
	l.add(entries)
	return nil
}

// add adds entries to l.
func (l *Log) add(entries []Entry) {
	for _, e := range entries {
		e = e.bounded()
		l.Entries = append(l.Entries, e)
		l.State.Add(&e)
	}
}

// rewrite replaces the file: by all entries, or by the state and the newest ones if some are not in
// the file or are too many.
func (l *Log) rewrite() error {
	if st, err := os.Lstat(l.path); err == nil && !format.IsOwn(st) {
		return fmt.Errorf("%s: the log belongs to another user", l.path)
	}
	first, size := len(l.Entries), 0
	for first > 0 {
		text, _, err := lines(0, l.Entries[first-1:first])
		if err != nil {
			return err
		}
		if size += len(text); size > keptLog {
			break
		}
		first--
	}
	kept := l.Entries[first:]
	written := kept
	if l.partial = l.partial || first > 0; l.partial {
		state := Entry{At: l.Entries[len(l.Entries)-1].At, Kind: KindState, State: &l.State, Covers: len(kept)}
		written = append([]Entry{state}, kept...)
	}
	text, sum, err := lines(0, written)
	if err != nil {
		return err
	}
	recorded := int64(headLength + len(text))
	err = format.WriteOwn(l.path, 0o644, func(w io.Writer) error {
		_, err := w.Write(append(headLine(recorded, sum), text...))
		return err
	})
	if err == nil {
		l.Entries, l.Recorded, l.sum, l.chained = kept, recorded, sum, true
	}
	return err
}

// Current returns the log at path with what the journals of changes below dir have confirmed
// since: it changes no file.
func Current(path, dir string) (*Log, error) {
	l, err := readLog(path)
	if err == nil {
		l.add(confirmedEntries(l, dir))
	}
	return l, err
}

// Open is Current with entries for the ports that are released on f (State.Released).
func Open(path, dir string, f *fabric.Fabric, now time.Time) (*Log, error) {
	l, err := Current(path, dir)
	if err == nil {
		l.add(l.State.Released(f, now))
	}
	return l, err
}

// Keep appends decisions, and the entries that Open has added to l, to the file of l. It is an
// error if another run has appended since.
func (l *Log) Keep(dir string, f *fabric.Fabric, decisions []Decision, now, of time.Time) error {
	_, err := update(l.path, func(is *Log) ([]Entry, error) {
		if is.Recorded != l.Recorded {
			return nil, errors.New("another run of remedies has ended meanwhile; run it again")
		}
		entries := confirmedEntries(is, dir)
		entries = append(entries, is.State.With(entries).Released(f, now)...)
		return append(entries, Entries(decisions, now, of)...), nil
	})
	return err
}

// Record appends what the journals of changes below dir have confirmed to the logs, before
// another change replaces the journals. It does nothing for a subnet without a log.
func Record(dir string) error {
	if dir == "" {
		return nil
	}
	var failed []error
	for _, path := range fabric.StateFiles(dir, logName) {
		_, err := update(path, func(l *Log) ([]Entry, error) { return confirmedEntries(l, dir), nil })
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// EntryKind is the kind of an entry of the log.
type EntryKind string

// The kinds of entries.
const (
	KindRun      EntryKind = "run"      // a run of remedies; its decisions follow
	KindDecision EntryKind = "decision" // an action, planned or declined
	KindApplied  EntryKind = "applied"  // a planned action was applied and confirmed
	KindStep     EntryKind = "step"     // a step of repair was done
	KindReleased EntryKind = "released" // another enabled a port that fabsh isolated, or disabled one in its test
	KindState    EntryKind = "state"    // the state, where older entries were left out
)

// Entry is a line of the log. Which fields it has depends on its kind.
type Entry struct {
	At   time.Time `json:"at"`
	Kind EntryKind `json:"kind"`
	// Of is set in KindRun: the time of the findings.
	Of time.Time `json:"of,omitzero" when:"kind=run"`
	// The following are set in decisions and what follows them.
	Remedy  string     `json:"remedy,omitempty" optional:"not known to which remedy the action belongs"`
	Action  ActionKind `json:"action,omitempty" when:"kind=decision|applied"`
	Port    Place      `json:"port,omitzero" when:"kind=applied|released|step"`               // of the Set, or of a step; other tickets have none
	Peer    Place      `json:"peer,omitzero" optional:"no link, or its other end is unknown"` // the other end
	Subject string     `json:"subject,omitempty" optional:"the subject is the port"`
	Name    string     `json:"name,omitempty" optional:"unnamed"`           // of the link, or of the subject of a ticket; untrusted
	Step    Step       `json:"step,omitempty" when:"kind=step"`             // of a ticket, or that was done
	By      string     `json:"by,omitempty" optional:"it is not known who"` // did the step
	Reason  string     `json:"reason,omitempty" optional:"no reason was recorded"`
	Rule    string     `json:"rule,omitempty" optional:"the action is planned"` // by which it is declined
	Why     string     `json:"why,omitempty" optional:"no further reason"`
	Kept    bool       `json:"kept,omitempty" optional:"false"` // the port passed its test, and is enabled already
	// State and Covers are set in KindState: the state after the next Covers entries.
	State  *State `json:"state,omitempty" when:"kind=state"`
	Covers int    `json:"covers,omitempty" when:"kind=state"`
}

// maxText limits a text in the log, in bytes.
const maxText = 400

// bounded returns e with texts of limited length.
func (e Entry) bounded() Entry {
	for _, text := range []*string{&e.Name, &e.Reason, &e.Rule, &e.Why, &e.Remedy, &e.Subject, &e.By} {
		if len(*text) > maxText {
			*text = strings.ToValidUTF8((*text)[:maxText], "")
		}
	}
	return e
}

// castagnoli is the polynomial of the checksums, CRC32C (RFC 3720, section 12.1).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// lines returns the lines of entries, and the checksum of the last one. before is the checksum of the
// line before them. A line is a checksum of all that follows it, the checksum of the line before, and
// JSON.
func lines(before uint32, entries []Entry) (text []byte, sum uint32, err error) {
	sum = before
	for _, e := range entries {
		j, err := json.Marshal(e.bounded())
		if err != nil {
			return nil, 0, err
		}
		rest := fmt.Appendf(nil, "%08x %s", sum, j)
		sum = crc32.Checksum(rest, castagnoli)
		text = fmt.Appendf(text, "%08x %s\n", sum, rest)
	}
	return text, sum, nil
}

// parseLine reads a line without its newline, which follows the last line of l.
func (l *Log) parseLine(line []byte) (e Entry, err error) {
	sum, rest, err := cutSum(line)
	if err != nil {
		return e, err
	}
	if crc32.Checksum(rest, castagnoli) != sum {
		return e, errors.New("checksum does not match")
	}
	text := rest
	if l.chained || len(rest) > 0 && rest[0] != '{' {
		var before uint32
		if before, text, err = cutSum(rest); err != nil {
			return e, err
		}
		if !l.chained || before != l.sum {
			return e, errors.New("lines before it are missing")
		}
	}
	if !utf8.Valid(text) {
		return e, errors.New("invalid UTF-8")
	}
	if err := entryFormat().Unmarshal(text, &e); err != nil {
		return e, err
	}
	l.sum = sum
	switch {
	case e.Kind == "":
		return e, errors.New("it has no kind")
	case e.At.IsZero():
		return e, errors.New("it has no time")
	case (e.Kind == KindState) != (e.State != nil):
		return e, errors.New("the state is missing")
	case e.State != nil && (len(e.State.Ports) > 2*maxPorts || len(e.State.Steps) > 2*maxPorts || len(e.State.Runs) > keptRuns):
		return e, errors.New("the state is invalid")
	}
	return e, nil
}

// cutSum returns the checksum at the beginning of a text, and what follows it.
func cutSum(text []byte) (sum uint32, rest []byte, err error) {
	if len(text) < 10 || text[8] != ' ' {
		return 0, nil, errors.New("not a line of the log")
	}
	n, err := strconv.ParseUint(string(text[:8]), 16, 32)
	if err != nil || fmt.Sprintf("%08x", n) != string(text[:8]) {
		return 0, nil, errors.New("checksum does not match")
	}
	return uint32(n), text[9:], nil
}

// logHead is the first line: how long the file was, and the checksum of its last line, after the
// last complete write. Its length is fixed, because it is replaced in the file.
type logHead struct {
	size int64
	sum  uint32
}

const (
	headMagic  = "fabsh remedies 2 "
	headLength = len(headMagic) + 10 + 1 + 8 + 1 + 8 + 1
)

func headLine(size int64, sum uint32) []byte {
	text := fmt.Appendf(nil, "%s%010d %08x ", headMagic, size, sum)
	return fmt.Appendf(text, "%08x\n", crc32.Checksum(text, castagnoli))
}

// parseHead reads a headLine without its newline.
func parseHead(line []byte) (head logHead, err error) {
	if len(line) == headLength-1 {
		text := line[len(headMagic):]
		size, _ := strconv.ParseInt(string(text[:10]), 10, 64)
		sum, _ := strconv.ParseUint(string(text[11:19]), 16, 32)
		head = logHead{size, uint32(sum)}
	}
	if string(headLine(head.size, head.sum)) != string(line)+"\n" {
		return logHead{}, errors.New("checksum does not match")
	}
	return head, nil
}

// entryFormat is the format of the JSON in a line. Later versions may write other members: the
// checksum shows damage.
var entryFormat = sync.OnceValue(func() *jsonfile.Format[Entry] {
	return jsonfile.New[Entry](jsonfile.Limits{Unknown: true, Null: true})
})

// Metrics returns metrics of a log: the ports that are isolated in f, and how many actions were
// declined.
func (l *Log) Metrics(f *fabric.Fabric) []audit.Metric {
	return []audit.Metric{
		{Name: "fabsh_isolated_ports", Help: "Ports that remedies isolated, and that are still disabled.", Value: float64(len(l.State.Isolated(f)))},
		{Name: "fabsh_remedy_refused_total", Help: "Actions of remedies that were declined, by their own rules or those of fabsh.", Value: float64(l.State.Refused)},
	}
}
