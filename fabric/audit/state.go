package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fabsh/fabric/format"
)

// State is what one run of a job keeps for the next: reads of counters, and the
// last findings. It is one file. Runs at one time are kept apart by Lock.
type State struct {
	// Anew is why what the file holds does not count; nil: it does, or there
	// was no file. It is to be told.
	Anew error

	path     string
	subnet   string // key
	job      string
	reads    []*Read // the oldest first
	findings []Past
}

// Past is a finding of the last run, without its data.
type Past struct {
	Finding
	Since time.Time // the run from which on it was found each time
}

// OpenState reads the state of a job in a subnet, which is kept below the folder
// dir. A file that cannot be read, or is of another version, is told in Anew, and
// the state is empty; the next Save replaces it.
func OpenState(dir string, s Subnet, job string) (*State, error) {
	if err := checkJob(job); err != nil {
		return nil, err
	}
	if s.Given != "" {
		if err := CheckSubnet(s.Given); err != nil {
			return nil, err
		}
	}
	if s.Key() == (Subnet{}).Key() {
		return nil, errors.New("state is kept by subnet, and which one this is is not known: it has neither a prefix nor a subnet manager")
	}
	st := &State{path: filepath.Join(s.Folder(dir), job+".state"), subnet: s.Key(), job: job}
	st.Read()
	return st, nil
}

// Read reads the file again: what was read before Lock may be old.
func (st *State) Read() {
	st.Anew, st.reads, st.findings = nil, nil, nil
	if err := st.read(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		st.reads, st.findings = nil, nil
		st.Anew = fmt.Errorf("%w; the state begins anew", err)
	}
}

// Lock keeps other runs of the job away until Unlock, or fails with ErrLocked.
func (st *State) Lock() (*Held, error) {
	if err := os.MkdirAll(filepath.Dir(st.path), 0o755); err != nil {
		return nil, err
	}
	return Lock(st.path + ".lock")
}

// checkJob is why text cannot name a job, and a file; nil: it can.
func checkJob(text string) error {
	if text == "" || len(text) > 128 || text[0] == '.' || strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+,", r))
	}) {
		return fmt.Errorf("%q is no name of a job: use up to 128 letters, digits, - _ + , and ., which is not the first", text)
	}
	return nil
}

// read reads the file.
func (st *State) read() error {
	f, err := format.OpenRegular(st.path)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := format.Bounded(f, st.path, maxStateFile)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	return st.decode(data)
}

// Path is where the state is kept.
func (st *State) Path() string { return st.path }

// Last is the newest read; nil: there is none.
func (st *State) Last() *Read {
	if len(st.reads) == 0 {
		return nil
	}
	return st.reads[len(st.reads)-1]
}

// Reads are all that are kept, the newest first. Those but the newest have no
// counters of traffic.
func (st *State) Reads() []*Read {
	list := slices.Clone(st.reads)
	slices.Reverse(list)
	return list
}

// Add keeps a read, and drops what is not needed any more. A read that is not
// newer than the last one, which a clock that was set back makes, begins anew.
func (st *State) Add(r *Read) {
	if last := st.Last(); last != nil && !r.Began.After(last.Began) {
		st.reads = nil
	}
	for i, old := range st.reads {
		st.reads[i] = old.withoutTraffic()
	}
	st.reads = thin(append(st.reads, r), r.Began)
}

// Findings are those of the last run.
func (st *State) Findings() []Past { return st.findings }

// SetFindings keeps what a run found, and since when.
func (st *State) SetFindings(found []Finding, now time.Time) {
	since := map[string]time.Time{}
	for i := range st.findings {
		since[st.findings[i].ID()] = st.findings[i].Since
	}
	st.findings = make([]Past, 0, min(len(found), maxPast))
	for _, f := range found[:min(len(found), maxPast)] {
		f.Data = nil
		p := Past{Finding: f, Since: now}
		if t, ok := since[f.ID()]; ok {
			p.Since = t
		}
		st.findings = append(st.findings, p)
	}
}

// Save replaces the file. Whatever happens meanwhile, the old file or the new one
// is there, and whole.
func (st *State) Save() error {
	data, err := st.encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(st.path), 0o755); err != nil {
		return err
	}
	return format.WriteFile(st.path, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	})
}

// LongestWindow is the longest that is judged: at EDR and faster, 125 minutes
// show a bit error rate of 1e-15.
const LongestWindow = 125 * time.Minute

// maxReads bounds the reads that are kept.
const maxReads = 16

// thin chooses the reads to be kept, whatever the time between runs: the newest
// ones are dense, older ones less so, and one is as old as the longest window. For
// each window there is a read that is at most twice as old, and a run more.
func thin(reads []*Read, now time.Time) []*Read {
	age := func(i int) time.Duration { return now.Sub(reads[i].Began) }
	for len(reads) > 2 && age(1) >= LongestWindow { // a younger one is old enough
		reads = reads[1:]
	}
	for i := len(reads) - 2; i > 0; {
		if age(i-1) <= 2*age(i+1) { // i lies between two that are close
			reads = slices.Delete(reads, i, i+1)
			i = min(i, len(reads)-2)
		}
		i--
	}
	for len(reads) > maxReads { // runs less than a second apart
		reads = slices.Delete(reads, len(reads)-2, len(reads)-1)
	}
	return reads
}
