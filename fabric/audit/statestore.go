package audit

import (
	"os"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// Store keeps the states of the jobs of a subnet in place of their files: a history.
type Store interface {
	// Jobs returns the names of the jobs that have a state.
	Jobs() ([]string, error)
	// Load returns what Save got last for a job, and when; nil without a state.
	Load(job string) (data []byte, saved time.Time, err error)
	// Save replaces the state of a job.
	Save(job string, data []byte) error
}

// UseStore makes Read and Save use a store. The file of the job is read until the store has a state, and is
// not changed: versions of fabsh without a store go on with it. It is written only if the store fails. Nil
// means the file alone.
func (st *State) UseStore(s Store) {
	if st.path != "" {
		st.store = s
	}
}

// load reads the later of the states in the store and in the file. An error of the store is in Unstored.
func (st *State) load() error {
	st.Unstored = nil
	if st.store == nil {
		return st.read()
	}
	data, saved, err := st.store.Load(st.job)
	if err == nil && data != nil {
		err = st.decode(data)
	}
	if err != nil || data == nil {
		st.empty()
		st.Unstored = err
		return st.read()
	}
	// Another version, or a run that could not use the store, may have written the file since.
	info, err := os.Lstat(st.path)
	if err != nil || info.ModTime().Unix() <= saved.Unix() {
		return nil
	}
	file := &State{path: st.path, subnet: st.subnet, job: st.job}
	if file.read() == nil && file.at.Time.After(st.at.Time) {
		st.reads, st.findings, st.history, st.agents, st.at = file.reads, file.findings, file.history, file.agents, file.at
	}
	return nil
}

// keep saves data in the store, and reports whether that succeeded. An error is in Unstored.
func (st *State) keep(data []byte) bool {
	if st.store == nil {
		return false
	}
	st.Unstored = st.store.Save(st.job, data)
	return st.Unstored == nil
}

// Seen is when a history has seen the link of a port last, and what was at its other end.
type Seen struct {
	Up       time.Time
	Peer     mad.GUID // node
	PeerNum  int
	ToSwitch bool
}

// Merge adds what a history has seen of ports of f that are down: it may have seen their links later than
// the runs of the job, or at all.
func (h *History) Merge(f *fabric.Fabric, seen func(*fabric.Port) (Seen, bool)) {
	var more []portPast
	for i := range f.Ports() {
		p := &f.Ports()[i]
		key, ok := KeyOf(p)
		if !ok || p.Info() == nil || p.Num() == 0 || p.PhysicalState() == mad.PortPhysicalStateLinkUp {
			continue
		}
		s, ok := seen(p)
		if !ok {
			continue
		}
		x := h.of(p)
		if x == nil {
			more = append(more, portPast{key: key})
			x = &more[len(more)-1]
		}
		if s.Up.Unix() > x.up {
			x.up, x.peer, x.peerNum, x.toSwitch = s.Up.Unix(), s.Peer, uint8(s.PeerNum), s.ToSwitch
		}
	}
	if len(more) == 0 {
		return
	}
	h.ports = append(h.ports, more...)
	slices.SortStableFunc(h.ports, func(a, b portPast) int { return a.key.compare(b.key) })
	h.ports = slices.CompactFunc(h.ports, func(a, b portPast) bool { return a.key == b.key }) // a duplicate GUID
}

// SetRecorded gives the state the times since when findings exist by a history, by ID: SetFindings takes the
// earlier of these and its own.
func (st *State) SetRecorded(since map[string]time.Time) { st.recorded = since }
