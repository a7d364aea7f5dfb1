package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad/engine"
)

// Latest returns what ends the latest change of the fabric that h reaches. It finds the
// journal without a sweep, if at least half of the switches are where they were.
func (h *Host) Latest(ctx context.Context) (*Run, error) {
	if h.inProcess() {
		return nil, errors.New("change: the fabric is simulated in this process, and ends with it: no change to confirm or revert")
	}
	dir, port, err := h.place()
	if err != nil {
		return nil, err
	}
	dirs, unknown, unreadable := journalsOf(dir, &port)
	dirs, others, err := h.ofSubnet(ctx, dirs, &port)
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 && len(others) > 0 {
		return nil, fmt.Errorf("change: %w", errors.Join(others...))
	}
	for _, other := range others {
		h.log(other.Error())
	}
	if len(dirs) == 0 {
		for _, damage := range unknown {
			dirs = append(dirs, filepath.Dir(damage.Path))
		}
	} else {
		for _, damage := range unknown {
			h.log(damage.ofUnknown())
		}
	}
	switch len(dirs) {
	case 0:
		if path := hidden(dir); path != "" {
			return nil, fmt.Errorf("change: no readable change of this fabric was applied from this host; %s belongs to another user, and only that user can confirm or revert it", path)
		}
		if unreadable != nil {
			return nil, fmt.Errorf("change: %w", unreadable)
		}
		return nil, fmt.Errorf("change: no change of this fabric was applied from this host (searched below %s; --state DIR selects another directory)", dir)
	case 1:
	default:
		return nil, fmt.Errorf("change: several journals of this fabric: %s; remove those of changes that have ended", strings.Join(dirs, ", "))
	}
	st, err := os.Stat(JournalIn(dirs[0]))
	if err != nil {
		return nil, err
	}
	if !format.IsOwn(st) {
		return nil, fmt.Errorf("change: applied by user %d; only that user can confirm or revert it", format.Owner(st))
	}
	return &Run{Host: h, Dir: dirs[0]}, nil
}

// ofSubnet returns the directories whose journals are of the current subnet, that of a
// local port. others are the errors of the rest.
func (h *Host) ofSubnet(ctx context.Context, dirs []string, port *engine.Port) (own []string, others []error, err error) {
	for _, dir := range dirs {
		j, err := ReadJournal(JournalIn(dir))
		if damage := new(DamageError); err != nil && !errors.As(err, &damage) {
			return nil, nil, err
		}
		err = h.checkSubnetOf(ctx, dir, j.Begin(), port)
		switch {
		case err == nil:
			own = append(own, dir)
		case errors.As(err, new(*fabric.OtherSubnetError)):
			others = append(others, err)
		default:
			return nil, nil, err
		}
	}
	return own, others, nil
}

// Unended returns an open change of the fabric that h reaches on which no process works;
// nil: not found. damaged are the errors of damaged journals that may belong to such a
// change, and the error of an open change that may be of another subnet.
func (h *Host) Unended(ctx context.Context) (b *Begin, damaged []error) {
	if h.State == "" || h.inProcess() {
		return nil, nil
	}
	port, err := h.Engine.Port()
	if err != nil {
		return nil, nil // the operation that needs the port reports it
	}
	path, b, damaged := unended(h.State, &port)
	if b == nil {
		return nil, damaged
	}
	here, err := b.present(ctx, h.Engine, &port)
	if err == nil && len(b.Switches) > 0 && !here.HasHalf(b.subnet()) { // without a sweep, not certain
		recorded := b.subnet()
		err = fmt.Errorf("its journal %s may be of another subnet: %d of its %d switches are where they were; fabsh change status searches for them", path, here.Common(recorded), len(recorded.Switches))
	}
	if err != nil {
		return nil, append(damaged, fmt.Errorf("interrupted change %q: %w", b.Summary, err))
	}
	return b, damaged
}

// unended is Unended for the subnet of a local port, with the journals below dir.
// path is the journal of b.
func unended(dir string, port *engine.Port) (path string, b *Begin, damaged []error) {
	for _, at := range Journals(dir) {
		if hasEnded(at) {
			continue
		}
		j, err := ReadJournal(at)
		var damage *DamageError
		switch {
		case errors.As(err, &damage) && j.Begin() == nil:
			if mayBeOf(at, port) {
				damaged = append(damaged, errors.New(damage.ofUnknown()))
			}
		case err != nil && damage == nil:
			if err := unreadable(err); err != nil {
				damaged = append(damaged, err)
			}
		case !j.Begin().of(port):
		case damage != nil:
			damaged = append(damaged, damage)
		case b == nil && j.Open() && isFree(at, guardName) && isFree(at, lockName):
			path, b = at, j.Begin()
		}
	}
	return path, b, damaged
}

// ofUnknown returns the message for a damaged journal of an unknown change.
func (e *DamageError) ofUnknown() string {
	return "a change of this fabric may be open and hidden: " + e.Error()
}

// unreadable returns the message for a journal that cannot be read; nil: it is gone, or
// belongs to another user (hidden reports those).
func unreadable(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	return fmt.Errorf("a change may be open; its journal cannot be read: %w", err)
}

// Journals returns the paths of the journals of all subnets with state in dir.
func Journals(dir string) []string { return fabric.StateFiles(dir, journalName) }

// journalsOf returns the directories below dir that contain a journal of the subnet of a
// local port: created from this port, or from one of a subnet with the same GID prefix,
// unless that is the default prefix. unknown are the journals whose first line, which has
// the port and the prefix, is damaged. failed is the first error of journals that cannot be
// read.
func journalsOf(dir string, port *engine.Port) (found []string, unknown []*DamageError, failed error) {
	for _, path := range Journals(dir) {
		j, err := ReadJournal(path)
		var damage *DamageError
		switch {
		case errors.As(err, &damage) && j.Begin() == nil:
			if mayBeOf(path, port) {
				unknown = append(unknown, damage)
			}
		case err != nil && damage == nil:
			failed = cmp.Or(failed, unreadable(err))
		case j.Begin().of(port):
			found = append(found, filepath.Dir(path))
		}
	}
	return found, unknown, failed
}

// portFolder begins the name of a directory of journals of which only the local port is
// known.
const portFolder = "port-"

// mayBeOf reports whether a journal of an unknown change may belong to the subnet of a
// local port.
func mayBeOf(path string, port *engine.Port) bool {
	of, ok := strings.CutPrefix(filepath.Base(filepath.Dir(path)), portFolder)
	return !ok || of == port.PortGUID.String()
}

// hidden returns a journal below dir that belongs to another user and is not readable;
// "": not found.
func hidden(dir string) string {
	for _, path := range Journals(dir) {
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
	held, err := format.AcquireLock(filepath.Join(filepath.Dir(path), name))
	held.Release()
	return err == nil
}

// hasEnded reports whether the journal verifies and its change has ended. It decodes only
// the last record, because there may be many.
func hasEnded(path string) bool {
	f, err := format.OpenPlain(path, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	r := reader{path: path}
	var last Record
	var text []byte
	for text = range r.records(f) {
	}
	return r.damage == nil && json.Unmarshal(text, &last) == nil && last.Kind.ends()
}

// of reports whether the change belongs to the subnet of a local port, as far as can be
// known.
func (b *Begin) of(port *engine.Port) bool {
	return b.Port == port.PortGUID || b.Prefix == port.GIDPrefix && b.Prefix != 0 && b.Prefix != fabric.DefaultPrefix
}
