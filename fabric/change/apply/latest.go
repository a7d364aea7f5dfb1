package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/lock"
	"fabsh/mad/engine"
)

// Latest returns what ends the latest change of the fabric that h reaches, whose journal
// is found without a sweep.
func (h *Host) Latest() (*Run, error) {
	if h.inProcess() {
		return nil, errors.New("change: a fabric that is simulated in this process ends with it: there is no change to be confirmed or taken back")
	}
	dir, port, err := h.place()
	if err != nil {
		return nil, err
	}
	dirs := journalsOf(dir, &port)
	switch len(dirs) {
	case 0:
		if path := hidden(dir); path != "" {
			return nil, fmt.Errorf("change: no change of this fabric that you may read has been made from here, and %s is another user's, who alone may confirm it or take it back", path)
		}
		return nil, fmt.Errorf("change: no change of this fabric has been made from here (looked below %s; --state DIR names another folder)", dir)
	case 1:
	default:
		return nil, fmt.Errorf("change: there are several journals of this fabric: %s; remove what is not needed", strings.Join(dirs, ", "))
	}
	st, err := os.Stat(JournalIn(dirs[0]))
	if err != nil {
		return nil, err
	}
	if !format.IsOwn(st) {
		return nil, fmt.Errorf("change: user %d made it, and only they may confirm it or take it back", format.Owner(st))
	}
	return &Run{Host: h, Dir: dirs[0]}, nil
}

// Unended returns a change of the fabric that h reaches that has not ended and that no
// process works on; nil: there is none.
func (h *Host) Unended() *Begin {
	if h.State == "" || h.inProcess() {
		return nil
	}
	port, err := h.Engine.Port()
	if err != nil {
		return nil // whatever needs the port reports it
	}
	return unended(h.State, &port)
}

// unended returns a change that has not ended and that no process works on, among those
// of the subnet of a local port whose journals are below dir.
func unended(dir string, port *engine.Port) *Begin {
	for _, path := range journalsBelow(dir) {
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

// journalsBelow returns the journals in the folders of dir.
func journalsBelow(dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, "*", journalName))
	return paths
}

// journalsOf returns the folders below dir with a journal of the subnet of a local port:
// made from this port, or from one of a subnet with the same GID prefix, if that is not
// the default one.
func journalsOf(dir string, port *engine.Port) (found []string) {
	for _, path := range journalsBelow(dir) {
		if j, err := ReadJournal(path); err == nil && j.Begin().of(port) {
			found = append(found, filepath.Dir(path))
		}
	}
	return found
}

// hidden returns a journal below dir that this user cannot read, for it is another
// user's; "": there is none.
func hidden(dir string) string {
	for _, path := range journalsBelow(dir) {
		if f, err := os.Open(path); errors.Is(err, os.ErrPermission) {
			return path
		} else if err == nil {
			f.Close()
		}
	}
	return ""
}

// isFree reports whether no process holds a lock beside the journal at path.
func isFree(path, name string) bool {
	held, err := lock.Acquire(filepath.Join(filepath.Dir(path), name))
	held.Release()
	return err == nil
}

// endedByTail reports whether the last record of the journal says that the change has
// ended. The whole journal, which may be long, is read only where it does not.
func endedByTail(path string) bool {
	f, err := format.OpenPlain(path, os.O_RDONLY)
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

// of reports whether the change is one of the subnet of a local port, as far as can be
// known.
func (b *Begin) of(port *engine.Port) bool {
	return b.Port == port.PortGUID || b.Prefix == port.GIDPrefix && b.Prefix != 0 && b.Prefix != fabric.DefaultPrefix
}
