package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// State is what one run of a job keeps for the next: reads of counters, the last
// findings, and what was seen of ports. It is one file; the zero value is empty, and
// in memory alone. Runs at one time are kept apart by Lock.
type State struct {
	// Reset is the reason why the content of the file is ignored; nil: it is used, or there
	// was no file. It must be reported.
	Reset error
	// Unstored is why the store could not be read, or written: the file was used; nil: it was, or there is
	// none. It must be reported.
	Unstored error

	path     string // "": there is no file
	subnet   string // key
	job      string
	reads    []*Read   // the oldest first
	findings []Finding // of the last run, without their data
	history  History
	agents   Agents
	at       Moment // all these times are by its clock

	store    Store                // nil: the file alone
	recorded map[string]time.Time // since when a history has findings, by ID
}

// OpenState returns the state of a job in a subnet, which is kept below the directory dir.
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
	if err := st.load(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		st.empty()
		st.Reset = fmt.Errorf("%w; the state starts empty", err)
	}
}

func (st *State) empty() {
	st.reads, st.findings, st.history, st.agents, st.at = nil, nil, History{}, Agents{}, Moment{}
}

// Lock keeps other runs of the job away until Release, or fails with format.ErrLockHeld.
func (st *State) Lock() (*format.FileLock, error) {
	if err := format.MakeDirectory(filepath.Dir(st.path), 0o755); err != nil {
		return nil, err
	}
	return format.AcquireLock(st.path + ".lock")
}

// read reads the file.
func (st *State) read() error {
	f, err := format.OpenPlain(st.path, os.O_RDONLY)
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

// Last returns the newest read; nil: none.
func (st *State) Last() *Read {
	if len(st.reads) == 0 {
		return nil
	}
	return st.reads[len(st.reads)-1]
}

// Reads returns all reads that are kept, the newest first. All but the newest lack the
// counters of traffic, and the oldest have only LinkDowned.
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
// and returns the findings of the run before that are gone. After an incomplete run no
// finding is known to be gone, and all are kept; so are findings of checks that
// were not done.
func (st *State) SetFindings(found []Finding, complete bool, unjudged []Unjudged, now time.Time) (gone []Finding) {
	since, here := map[string]time.Time{}, map[string]bool{}
	for i := range st.findings {
		since[st.findings[i].ID()] = st.findings[i].Since
	}
	for id, t := range st.recorded {
		if own, ok := since[id]; !ok || t.Before(own) {
			since[id] = t
		}
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

// History returns what earlier runs have seen of ports.
func (st *State) History() *History { return &st.history }

// Agents returns the answers of agents of performance management.
func (st *State) Agents() *Agents { return &st.agents }

// See keeps what a run has seen of the ports of f.
func (st *State) See(f *fabric.Fabric, now time.Time) { st.history.see(f, now) }

// Save replaces the state in the store, or the file without one or if the store fails. Whatever
// happens, the old file or the new one exists, and is complete.
func (st *State) Save() error {
	if st.path == "" {
		return nil
	}
	data, err := st.encode()
	if err != nil {
		return err
	}
	if st.keep(data) {
		return nil
	}
	if err := format.MakeDirectory(filepath.Dir(st.path), 0o755); err != nil {
		return err
	}
	return format.WriteOwn(st.path, 0o644, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	})
}

// longestWindow is the longest window that is judged: that of links that go down.
const longestWindow = FlapWindow

// bitWindow is the longest for other errors: at EDR and faster it shows a bit error rate
// of 1e-15.
const bitWindow = BERUptime

// maxReads bounds the reads that are kept.
const maxReads = 20

// thin chooses the reads to be kept, whatever the time between runs: the newest
// ones are dense, older ones less so, and one is as old as the longest window. For
// each window there is a read that is at most twice as old, and a run more.
func thin(reads []*Read, now time.Time) []*Read {
	age := func(i int) time.Duration { return now.Sub(reads[i].Began) }
	for len(reads) > 2 && age(1) >= longestWindow { // a younger one is old enough
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

// Moment is a time by the clock of the machine, which may be set, and by the time since the
// machine booted, which is not.
type Moment struct {
	Time   time.Time
	Boot   string        // identifies the boot; "": unknown
	Uptime time.Duration // since the boot, suspension included
}

// jump returns by how much the clock was set between m and now; false: unknown, as after
// another boot.
func (m Moment) jump(now Moment) (by time.Duration, ok bool) {
	passed := now.Uptime - m.Uptime
	if m.Boot == "" || m.Boot != now.Boot || passed <= 0 { // an image of the machine may have been restored
		return 0, false
	}
	return now.Time.Round(0).Sub(m.Time.Round(0)) - passed, true
}

// Align moves the times in the state by as much as the clock was set since the previous
// Align, in this run or an earlier one, so that they compare with now. If that is unknown,
// they are unchanged.
func (st *State) Align(now Moment) {
	jump, ok := st.at.jump(now)
	st.at = now
	if !ok {
		return
	}
	for i, r := range st.reads {
		moved := *r
		moved.Began = r.Began.Round(0).Add(jump) // the monotonic reading would ignore the jump
		st.reads[i] = &moved
	}
	// Whole seconds: the two times of a Moment are read one after the other.
	jump = jump.Round(time.Second)
	for i := range st.findings {
		st.findings[i].Since = st.findings[i].Since.Add(jump)
	}
	for i := range st.history.ports {
		if p := &st.history.ports[i]; p.up != 0 {
			p.up += int64(jump / time.Second)
		}
	}
	st.agents.asked = st.agents.asked.Add(jump)
}

// JobOf returns the name of a job made of texts. Characters that do not belong in a file name
// become _, and a name that would be too long ends in a digest of the whole.
func JobOf(texts ...string) string {
	whole := strings.Join(texts, "+")
	name := strings.Map(func(r rune) rune {
		if CheckJob("x"+string(r)) != nil {
			return '_'
		}
		return r
	}, whole)
	if strings.HasPrefix(name, ".") {
		name = "_" + name[1:]
	}
	if len(name) > maxJob {
		h := fnv.New64a()
		h.Write([]byte(whole))
		name = fmt.Sprintf("%s-%016x", name[:maxJob-17], h.Sum64())
	}
	return name
}

// maxJob is how long the name of a job may be, in bytes.
const maxJob = 128

// CheckJob returns nil if text is valid as the name of a job and of a file.
func CheckJob(text string) error {
	if text == "" || len(text) > maxJob || text[0] == '.' || strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+,", r))
	}) {
		return fmt.Errorf("invalid job name %q; use up to %d letters, digits, - _ + , and . (not first)", text, maxJob)
	}
	return nil
}

// LatestJob returns the job of s whose state below dir, or in a store, is to be used for what a covers:
// the job whose last run found it; else the job that ran last. "": there is no readable state. The store may
// be nil.
func LatestJob(dir string, s fabric.Subnet, store Store, a *Ack) (job string) {
	var latest time.Time
	found := false
	for _, st := range States(dir, s, store) {
		covers := a.CountOf(st.findings) > 0
		if job == "" || covers && !found || covers == found && st.at.Time.After(latest) {
			job, latest, found = st.job, st.at.Time, covers
		}
	}
	return job
}

// subnetHeader begins the file "subnet" beside acks and states, which records their subnet: a
// directory is named after a subnet manager or by an administrator, and two subnets may
// have one name. Its lines are
//
//	prefix 0xfe80000000000000
//	switch 0x0002c90300100000
const subnetHeader = "# The subnet of which this directory keeps acknowledgements and state.\n"

// subnetFile returns the path of the file.
func subnetFile(dir string, s fabric.Subnet) string { return filepath.Join(s.Folder(dir), "subnet") }

// CheckSubnet returns a *fabric.OtherSubnetError if the directory of s below dir belongs to
// another subnet.
func CheckSubnet(dir string, s fabric.Subnet) error {
	if _, err := os.Stat(s.Folder(dir)); err != nil { // nothing is kept
		return nil
	}
	path := subnetFile(dir, s)
	recorded, err := readSubnet(path)
	if err != nil || recorded == nil || s.Is(*recorded) {
		return err
	}
	return &fabric.OtherSubnetError{
		Path: s.Folder(dir), Recorded: recorded.String(), Current: s.String(), Found: s.Common(*recorded), Of: len(recorded.Switches),
		Remedy: "use --subnet NAME or --state DIR, or remove " + path + " if the subnet is the same",
	}
}

// RecordSubnet records that the directory of s below dir belongs to s. Recorded switches that s
// lacks stay, unless complete is set and s has half of them: in an outage most are missing.
func RecordSubnet(dir string, s fabric.Subnet, complete bool) error {
	path := subnetFile(dir, s)
	recorded, err := readSubnet(path)
	if err != nil {
		return err
	}
	switches := s.Switches
	if recorded != nil && s.Prefix == 0 {
		s.Prefix = recorded.Prefix
	}
	if recorded != nil && (!complete || !s.HasHalf(*recorded)) {
		switches = slices.Concat(switches, recorded.Switches)
		slices.Sort(switches)
		switches = slices.Compact(switches)
	}
	if recorded != nil && recorded.Prefix == s.Prefix && slices.Equal(switches, recorded.Switches) {
		return nil
	}
	return format.WriteOwn(path, 0o644, func(w io.Writer) error {
		out := bufio.NewWriter(w)
		fmt.Fprintf(out, "%sprefix 0x%016x\n", subnetHeader, s.Prefix)
		for _, g := range switches {
			fmt.Fprintf(out, "switch %v\n", g)
		}
		return out.Flush()
	})
}

// KeptBefore returns the directories below dir that belong to the switches of s under another name: that of
// an earlier subnet manager, where the subnet has neither a name nor a prefix of its own.
func KeptBefore(dir string, s fabric.Subnet) (folders []string) {
	for _, path := range fabric.StateFiles(dir, filepath.Base(subnetFile(dir, s))) {
		folder := filepath.Dir(path)
		if folder == s.Folder(dir) {
			continue
		}
		if recorded, err := readSubnet(path); err == nil && recorded != nil && len(recorded.Switches) > 0 && s.HasHalf(*recorded) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// readSubnet reads the file; nil: it does not exist.
func readSubnet(path string) (*fabric.Subnet, error) {
	text, err := readSmall(path)
	if err != nil || text == "" {
		return nil, err
	}
	s, err := parseSubnet(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to record the subnet again", path, err)
	}
	return s, nil
}

// parseSubnet reads the lines of the file.
func parseSubnet(text string) (*fabric.Subnet, error) {
	s := new(fabric.Subnet)
	at := 0
	for line := range strings.Lines(text) {
		at++
		word, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "" || word[0] == '#' {
			continue
		}
		n, err := strconv.ParseUint(number, 0, 64)
		switch {
		case err == nil && word == "prefix":
			s.Prefix = n
		case err == nil && word == "switch":
			s.Switches = append(s.Switches, mad.GUID(n))
		default:
			return nil, fmt.Errorf("line %d: want prefix or switch, and a number", at)
		}
	}
	slices.Sort(s.Switches)
	s.Switches = slices.Compact(s.Switches)
	return s, nil
}

// States returns the states of all jobs of a subnet below dir, or in a store, that can be read, by name. The
// store may be nil.
func States(dir string, s fabric.Subnet, store Store) (list []*State) {
	var names []string
	files, _ := os.ReadDir(s.Folder(dir))
	for _, file := range files {
		if name, ok := strings.CutSuffix(file.Name(), ".state"); ok {
			names = append(names, name)
		}
	}
	if store != nil {
		stored, _ := store.Jobs() // an error is reported where a state is read
		names = append(names, stored...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if st, err := OpenState(dir, s, name); err == nil {
			st.UseStore(store)
			if st.Read(); st.Reset == nil {
				list = append(list, st)
			}
		}
	}
	return list
}

// Job returns the name of the job.
func (st *State) Job() string { return st.job }
