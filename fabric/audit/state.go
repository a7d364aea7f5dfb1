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
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
)

// State is what one run of a job keeps for the next: reads of counters, the last
// findings, and what was seen of ports. It is one file; the zero value is empty, and
// in memory alone. Runs at one time are kept apart by Lock.
type State struct {
	// Reset is the reason why the content of the file is ignored; nil: it is used, or there
	// was no file. It must be reported.
	Reset error

	path     string // "": there is no file
	subnet   string // key
	job      string
	reads    []*Read   // the oldest first
	findings []Finding // of the last run, without their data
	history  History
	agents   Agents
	at       Moment // by its clock are the times of all of these
}

// OpenState is the state of a job in a subnet, which is kept below the directory dir.
// It is empty until Read.
func OpenState(dir string, s fabric.Subnet, job string) (*State, error) {
	if err := CheckJob(job); err != nil {
		return nil, err
	}
	if s.Given != "" {
		if err := fabric.CheckSubnetName(s.Given); err != nil {
			return nil, err
		}
	}
	if !s.IsKnown() {
		return nil, errors.New("state is kept by subnet, and this one is unknown: it has neither a prefix nor a subnet manager")
	}
	return &State{path: filepath.Join(s.Folder(dir), job+".state"), subnet: s.Key(), job: job}, nil
}

// Read reads the file. If it cannot be read, or is of another version, Reset has the
// reason, and the state is empty; the next Save replaces it.
func (st *State) Read() {
	st.empty()
	st.Reset = nil
	if err := st.read(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		st.empty()
		st.Reset = fmt.Errorf("%w; the state starts empty", err)
	}
}

func (st *State) empty() {
	st.reads, st.findings, st.history, st.agents, st.at = nil, nil, History{}, Agents{}, Moment{}
}

// Lock keeps other runs of the job away until Release, or fails with format.ErrLockHeld.
func (st *State) Lock() (*format.FileLock, error) {
	if err := os.MkdirAll(filepath.Dir(st.path), 0o755); err != nil {
		return nil, err
	}
	return format.AcquireLock(st.path + ".lock")
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

// InFile reports whether Save writes a file.
func (st *State) InFile() bool { return st.path != "" }

// Last is the newest read; or nil.
func (st *State) Last() *Read {
	if len(st.reads) == 0 {
		return nil
	}
	return st.reads[len(st.reads)-1]
}

// Reads are all that are kept, the newest first. Those but the newest have no
// counters of traffic, and the oldest only LinkDowned.
func (st *State) Reads() []*Read {
	list := slices.Clone(st.reads)
	slices.Reverse(list)
	return list
}

// Add keeps a read, and drops reads that are too old. A read that is not
// newer than the last one, which a clock that was set back makes, starts again.
func (st *State) Add(r *Read) {
	if last := st.Last(); last != nil && !r.Began.After(last.Began) {
		st.reads = nil
	}
	for i, old := range st.reads {
		st.reads[i] = old.reduced(holdsErrors)
		if r.Began.Sub(old.Began) > 2*bitWindow {
			st.reads[i] = old.reduced(holdsDowns)
		}
	}
	r.share(st.Last())
	st.reads = thin(append(st.reads, r), r.Began)
}

// SetFindings keeps what a run found, records in found since when each has existed,
// and returns what the run before found and this one has not. Where the run is not
// complete nothing is known to be gone, and it is kept; so are findings of checks that
// were not done.
func (st *State) SetFindings(found []Finding, complete bool, unjudged []Unjudged, now time.Time) (gone []Finding) {
	since, here := map[string]time.Time{}, map[string]bool{}
	for i := range st.findings {
		since[st.findings[i].ID()] = st.findings[i].Since
	}
	for i := range found {
		found[i].Since = now
		for _, id := range append(found[i].ids(), found[i].Absorbed...) {
			if t, ok := since[id]; ok && t.Before(found[i].Since) { // else the clock was set back
				found[i].Since = t
			}
			here[id] = true
		}
	}
	undone := map[[2]string]bool{}
	for _, u := range unjudged {
		undone[[2]string{u.Audit, u.Check}] = true
	}
	some := map[string]bool{} // findings of which a subject still has the fault
	for i := range st.findings {
		if f := &st.findings[i]; here[f.ID()] {
			some[f.whole()] = true
		}
	}
	var kept []Finding
	for _, f := range st.findings {
		switch {
		case here[f.ID()]:
		case !complete || undone[[2]string{f.Audit, f.Check}]:
			kept = append(kept, f)
		case f.isMember() && !some[f.Cause]: // gone with the finding
		default:
			gone = append(gone, f)
		}
	}
	st.findings = nil
	for _, f := range found {
		members := f.Members
		f.Data, f.Members, f.Merged = nil, nil, nil
		st.findings = append(st.findings, f)
		for _, m := range members {
			if !f.Subject.Covers(m) {
				st.findings = append(st.findings, f.member(m))
			}
		}
	}
	st.findings = append(st.findings, kept...)
	st.findings = st.findings[:min(len(st.findings), maxPast)]
	return gone
}

// LastRun returns what the last run found, without figures, and when it ended; the time is zero
// without a run.
func (st *State) LastRun() (found []Finding, at time.Time) {
	return slices.Clone(st.findings), st.at.Time
}

// History is what runs before have seen of ports.
func (st *State) History() *History { return &st.history }

// Agents are the answers of agents of performance management.
func (st *State) Agents() *Agents { return &st.agents }

// See keeps what a run has seen of the ports of f.
func (st *State) See(f *fabric.Fabric, now time.Time) { st.history.see(f, now) }

// Save replaces the file. Whatever happens, the old file or the new one
// exists, and is complete.
func (st *State) Save() error {
	if st.path == "" {
		return nil
	}
	data, err := st.encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(st.path), 0o755); err != nil {
		return err
	}
	return format.WriteOwn(st.path, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	})
}

// LongestWindow is the longest that is judged: links that go down are counted over 12
// hours (gpud).
const LongestWindow = 12 * time.Hour

// bitWindow is the longest for other errors: at EDR and faster it shows a bit error rate
// of 1e-15.
const bitWindow = 125 * time.Minute

// maxReads bounds the reads that are kept.
const maxReads = 20

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
