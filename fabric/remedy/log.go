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
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
)

// Log is the log of a subnet: a file to which runs append. An incomplete last line was being
// written when its writer was killed, and is ignored. Any other line that does not verify is
// damage, and then nothing is written.
type Log struct {
	Entries []Entry
	State   State
	// Recorded is how many bytes of complete lines the file has: it changes with each entry.
	Recorded int64

	path string
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
	f, err := format.OpenRegular(path)
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
	covered := 0
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			return l.torn(line, n)
		}
		e, err := parseLine(line)
		switch {
		case err == nil && e.Kind == KindState && n > 1:
			err = errors.New("a state must be the first line")
		case err == nil && e.Kind == KindState:
			l.State, covered = *e.State, e.Covers
		}
		if err != nil {
			return &damageError{l.path, n, err.Error()}
		}
		l.Recorded += int64(len(line)) + 1
		data = rest
		if e.Kind == KindState {
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
func (l *Log) torn(line []byte, n int) error {
	if len(line) > 0 {
		if _, err := parseLine(line[:len(line)-1]); err == nil { // the newline was changed to another byte
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
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
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
	var text []byte
	for _, e := range entries {
		line, err := e.line()
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	if l.Recorded+int64(len(text)) > maxLog {
		l.add(entries)
		return l.shorten()
	}
	f, err := format.OpenPlain(l.path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !format.IsOwn(st) {
		return errors.Join(err, fmt.Errorf("%s: the log belongs to another user", l.path))
	}
	if err = f.Truncate(l.Recorded); err == nil { // an incomplete last line
		_, err = f.WriteAt(text, l.Recorded)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		_ = f.Truncate(l.Recorded)
		return err
	}
	l.Recorded += int64(len(text))
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

// shorten replaces the file by the state, and the newest entries.
func (l *Log) shorten() error {
	var lines [][]byte
	size := 0
	first := len(l.Entries)
	for first > 0 {
		line, err := l.Entries[first-1].line()
		if err != nil {
			return err
		}
		if size += len(line); size > keptLog {
			break
		}
		lines, first = append(lines, line), first-1
	}
	state := Entry{At: l.Entries[len(l.Entries)-1].At, Kind: KindState, State: &l.State, Covers: len(lines)}
	head, err := state.line()
	if err != nil {
		return err
	}
	err = format.WriteOwn(l.path, func(w io.Writer) error {
		if _, err := w.Write(head); err != nil {
			return err
		}
		for i := len(lines) - 1; i >= 0; i-- {
			if _, err := w.Write(lines[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		l.Entries = l.Entries[first:]
		l.Recorded = int64(len(head) + size)
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
	KindReleased EntryKind = "released" // another enabled a port that fabsh isolated, or disabled one in its test
	KindState    EntryKind = "state"    // the state, where older entries were left out
)

// Entry is a line of the log. Which fields it has depends on its kind.
type Entry struct {
	At   time.Time `json:"at"`
	Kind EntryKind `json:"kind"`
	// Of is set in KindRun: the time of the findings.
	Of time.Time `json:"of,omitzero"`
	// The following are set in decisions and what follows them.
	Remedy  string     `json:"remedy,omitempty"`
	Action  ActionKind `json:"action,omitempty"`
	Port    Place      `json:"port,omitzero"` // of the Set
	Peer    Place      `json:"peer,omitzero"` // the other end
	Subject string     `json:"subject,omitempty"`
	Name    string     `json:"name,omitempty"` // of the link, or of the subject of a ticket; untrusted
	Reason  string     `json:"reason,omitempty"`
	Rule    string     `json:"rule,omitempty"` // by which it is declined; "": it is planned
	Why     string     `json:"why,omitempty"`
	Kept    bool       `json:"kept,omitempty"` // the port passed its test, and is enabled already
	// State and Covers are set in KindState: the state after the next Covers entries.
	State  *State `json:"state,omitempty"`
	Covers int    `json:"covers,omitempty"`
}

// maxText limits a text in the log, in bytes.
const maxText = 400

// bounded returns e with texts of limited length.
func (e Entry) bounded() Entry {
	for _, text := range []*string{&e.Name, &e.Reason, &e.Rule, &e.Why, &e.Remedy, &e.Subject} {
		if len(*text) > maxText {
			*text = strings.ToValidUTF8((*text)[:maxText], "")
		}
	}
	return e
}

// castagnoli is the polynomial of the checksums, CRC32C (RFC 3720, section 12.1).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// line returns the line of e: a checksum, and JSON.
func (e Entry) line() ([]byte, error) {
	text, err := json.Marshal(e.bounded())
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, castagnoli), text), nil
}

// parseLine reads a line without its newline.
func parseLine(line []byte) (e Entry, err error) {
	var sum uint32
	if len(line) < 10 || line[8] != ' ' {
		return e, errors.New("not a line of the log")
	}
	if _, err := fmt.Sscanf(string(line[:8]), "%08x", &sum); err != nil || crc32.Checksum(line[9:], castagnoli) != sum {
		return e, errors.New("checksum does not match")
	}
	if !utf8.Valid(line) {
		return e, errors.New("invalid UTF-8")
	}
	if err := json.Unmarshal(line[9:], &e); err != nil {
		return e, err
	}
	switch {
	case e.At.IsZero():
		return e, errors.New("it has no time")
	case (e.Kind == KindState) != (e.State != nil):
		return e, errors.New("the state is missing")
	case e.State != nil && (slices.Contains(e.State.Ports, nil) || len(e.State.Ports) > 2*maxPorts || len(e.State.Runs) > keptRuns || e.Covers < 0):
		return e, errors.New("the state is invalid")
	}
	return e, nil
}

// Metrics returns metrics of a log: the ports that are isolated in f, and how many actions were
// declined.
func (l *Log) Metrics(f *fabric.Fabric) []audit.Metric {
	return []audit.Metric{
		{Name: "fabsh_isolated_ports", Help: "Ports that remedies isolated, and that are still disabled.", Value: float64(len(l.State.Isolated(f)))},
		{Name: "fabsh_remedy_refused_total", Help: "Actions of remedies that were declined, by their own rules or those of fabsh.", Value: float64(l.State.Refused)},
	}
}
