package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Latest returns what ends the latest change of the fabric that h reaches. It finds the
// journal without a sweep, if at least half of the switches are where they were.
func (h *Host) Latest(ctx context.Context) (*Run, error) {
	if h.inProcess() {
		return nil, errors.New("the fabric is simulated in this process, and ends with it: no change to confirm or revert")
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
		return nil, errors.Join(others...)
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
		if path := unreadableJournal(dir); path != "" {
			return nil, fmt.Errorf("no readable change of this fabric was applied from this host; %s belongs to another user, and only that user can confirm or revert it", path)
		}
		if unreadable != nil {
			return nil, unreadable
		}
		return nil, fmt.Errorf("no change of this fabric was applied from this host (searched below %s; --state DIR selects another directory)", dir)
	case 1:
	default:
		return nil, fmt.Errorf("several journals of this fabric: %s; remove those of changes that have ended", strings.Join(dirs, ", "))
	}
	st, err := os.Stat(JournalIn(dirs[0]))
	if err != nil {
		return nil, err
	}
	if !format.IsOwn(st) {
		return nil, fmt.Errorf("the change was applied by user %d; only that user can confirm or revert it", format.Owner(st))
	}
	return &Run{Host: h, Dir: dirs[0]}, nil
}

// ofSubnet returns the directories whose journals are of the subnet of a local port. others
// are the errors of the rest.
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
	path, b, damaged := openChange(h.State, &port)
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

// openChange is Unended for the subnet of a local port, with the journals below dir.
// path is the journal of b.
func openChange(dir string, port *engine.Port) (path string, b *Begin, damaged []error) {
	for _, at := range Journals(dir) {
		if hasEnded(at) {
			continue
		}
		j, err := ReadJournal(at)
		var damage *DamageError
		switch {
		case errors.As(err, &damage) && j.Begin() == nil:
			if mayBelongTo(at, port) {
				damaged = append(damaged, errors.New(damage.ofUnknown()))
			}
		case err != nil && damage == nil:
			if err := unreadable(err); err != nil {
				damaged = append(damaged, err)
			}
		case !j.Begin().belongsTo(port):
		case damage != nil:
			damaged = append(damaged, damage)
		case b == nil && j.Open() && isUnlocked(at, guardName) && isUnlocked(at, lockName):
			path, b = at, j.Begin()
		}
	}
	return path, b, damaged
}

// unreadable returns the message for a journal that cannot be read; nil: it is gone, or
// belongs to another user (unreadableJournal reports that).
func unreadable(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	return fmt.Errorf("a change may be open; its journal cannot be read: %w", err)
}

// Journals returns the paths of the journals of all subnets with state in dir.
func Journals(dir string) []string { return fabric.StateFiles(dir, journalName) }

// journalsOf returns the directories below dir that contain a journal of the subnet of a
// local port: created from this port, or from a port whose subnet has its GID prefix, unless
// that is the default prefix. unknown are the journals whose first line, which has the port
// and the prefix, is damaged. failed is the first error of journals that cannot be read.
func journalsOf(dir string, port *engine.Port) (found []string, unknown []*DamageError, failed error) {
	for _, path := range Journals(dir) {
		j, err := ReadJournal(path)
		var damage *DamageError
		switch {
		case errors.As(err, &damage) && j.Begin() == nil:
			if mayBelongTo(path, port) {
				unknown = append(unknown, damage)
			}
		case err != nil && damage == nil:
			failed = cmp.Or(failed, unreadable(err))
		case j.Begin().belongsTo(port):
			found = append(found, filepath.Dir(path))
		}
	}
	return found, unknown, failed
}

// portFolder begins the name of a directory of journals of which only the local port is
// known.
const portFolder = "port-"

// mayBelongTo reports whether a journal of an unknown change may belong to the subnet of a
// local port.
func mayBelongTo(path string, port *engine.Port) bool {
	of, ok := strings.CutPrefix(filepath.Base(filepath.Dir(path)), portFolder)
	return !ok || of == port.PortGUID.String()
}

// unreadableJournal returns a journal below dir that belongs to another user and is not readable;
// "": not found.
func unreadableJournal(dir string) string {
	for _, path := range Journals(dir) {
		if f, err := os.Open(path); errors.Is(err, os.ErrPermission) {
			return path
		} else if err == nil {
			f.Close()
		}
	}
	return ""
}

// isUnlocked reports whether no process holds a lock beside the journal at path.
func isUnlocked(path, name string) bool {
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
	r := lineReader{path: path}
	var text []byte
	for text = range r.records(f) {
	}
	return r.damage == nil && kindOf(text).ends()
}

// belongsTo reports whether the change belongs to the subnet of a local port, as far as can
// be known.
func (b *Begin) belongsTo(port *engine.Port) bool {
	return b.Port == port.PortGUID || b.Prefix == port.GIDPrefix && b.Prefix != 0 && b.Prefix != fabric.DefaultPrefix
}

// Member is a switch of the subnet of a change, and its directed route at that time. By its
// members the subnet of a journal is recognised, because a host can be moved to another
// subnet, and different simulated fabrics have equal GUIDs. The rule is fabric.Subnet.Is:
// switches that are missing are an outage, in which an open change must be found.
type Member struct {
	GUID  mad.GUID          `json:"guid"`
	Route mad.DirectedRoute `json:"route,omitempty" optional:"no route is known"`
}

// membersOf returns the switches of f, with routes that do not cross ports that cells
// disable, where these exist.
func membersOf(f *fabric.Fabric, cells []*certificate.Change) []Member {
	var members []Member
	nodes := f.Nodes()
	others := routesAroundCells(f, cells)
	for i := range nodes {
		if n := &nodes[i]; n.IsSwitch() {
			route := n.Route()
			if others != nil && others[i] != nil {
				route = others[i]
			}
			members = append(members, Member{n.GUID(), route})
		}
	}
	return members
}

// subnet returns the subnet of the change.
func (b *Begin) subnet() fabric.Subnet {
	s := fabric.Subnet{Prefix: b.Prefix}
	for _, m := range b.Switches {
		s.Switches = append(s.Switches, m.GUID)
	}
	slices.Sort(s.Switches)
	return s
}

// checkSubnet returns a *fabric.OtherSubnetError if the journal in dir, of the change b,
// is not of the current subnet. It is nil for a journal without switches, which an older
// version wrote.
func (b *Begin) checkSubnet(dir string, current fabric.Subnet) error {
	recorded := b.subnet()
	if len(recorded.Switches) == 0 || current.Is(recorded) {
		return nil
	}
	return &fabric.OtherSubnetError{
		Path: JournalIn(dir), Recorded: recorded.String(), Current: current.String(), Found: current.Common(recorded), Of: len(recorded.Switches),
		Remedy: "give --state DIR for the changes of this subnet",
	}
}

// present returns the subnet of a local port as far as the recorded routes of b lead to
// switches of b: without a sweep.
func (b *Begin) present(ctx context.Context, e *engine.Engine, port *engine.Port) (fabric.Subnet, error) {
	here := fabric.Subnet{Prefix: port.GIDPrefix}
	a := newAccess(e, nil)
	var calls []exchange
	for _, m := range b.Switches {
		if len(m.Route) > 0 {
			calls = append(calls, exchange{cell: len(a.cells)})
			a.cells = append(a.cells, &certificate.Change{Node: m.GUID, Routes: []mad.DirectedRoute{m.Route}, PortGUID: m.GUID})
		}
	}
	if err := a.do(ctx, mad.MethodGet, mad.AttrNodeInfo, calls); err != nil {
		return here, err
	}
	for _, x := range calls {
		if x.err == nil {
			var info mad.NodeInfo
			info.Decode(x.data)
			here.Switches = append(here.Switches, info.NodeGUID)
		}
	}
	slices.Sort(here.Switches)
	here.Switches = slices.Compact(here.Switches)
	return here, nil
}

// checkSubnetOf checks the journal in dir: by the recorded routes to its switches, and if
// these do not lead to half of them, by a sweep.
func (h *Host) checkSubnetOf(ctx context.Context, dir string, b *Begin, port *engine.Port) error {
	if len(b.Switches) == 0 {
		return nil
	}
	here, err := b.present(ctx, h.Engine, port)
	if err != nil || here.HasHalf(b.subnet()) {
		return err
	}
	f, err := discover.Sweep(ctx, h.Engine, h.Sweep)
	if err != nil {
		return fmt.Errorf("discover: %w", err)
	}
	return b.checkSubnet(dir, fabric.SubnetOf(f, ""))
}
