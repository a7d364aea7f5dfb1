package format

import (
	"fmt"
	"io"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// ReadLFTs reads the forwarding tables of a file into those of f's switches. For
// each table of the file row returns that of the switch, ports by LID; where it
// is nil the table of the file is skipped. LIDs for which the file has no entry
// get mad.NoPort.
//
// As in OpenSM's engine file, an entry whose owner the file has goes to the LID
// that this port has in f, and a port number that the switch does not have is an
// error. Notes are the differences between file and fabric, as texts.
func ReadLFTs(r io.Reader, name string, f *fabric.Fabric, row func(sw *fabric.Node) []byte) (notes []string, err error) {
	m := lftMatcher{f: f, row: row, read: make([]bool, len(f.Nodes()))}
	for t, err := range LFTs(r, name) {
		if err != nil {
			return nil, err
		}
		if err := m.match(t); err != nil {
			return nil, err
		}
	}
	return m.notes(name), nil
}

// lftMatcher matches tables of a file with the switches of a fabric.
type lftMatcher struct {
	f   *fabric.Fabric
	row func(*fabric.Node) []byte

	read    []bool      // by node id: the file has a table of the switch
	unknown []string    // switches of the file that are not in the fabric
	twice   []string    // switches with two tables
	owner   []mad.GUID  // by LID of the file: for which to and state hold
	to      []mad.LID   // by LID of the file: where its entries go
	state   []portState // by LID of the file
	moved   int         // LIDs whose port has another now
	further int         // LIDs that ports have by an LMC unknown to the fabric
	stale   int         // entries left out: the LID is another port's now
	beyond  int         // entries left out: the LID is above the last of the fabric
}

// portState is what has become of the port that had a LID of the file.
type portState uint8

const (
	portUnresolved portState = iota
	portSame                 // it still has the LID, or the file lacks the owner
	portMoved                // it has another LID
	portGone                 // it is not in the fabric, and neither is the LID
	portStale                // it is not in the fabric, and the LID is another port's
	portFurther              // it has the LID beside its first one, by an LMC that is missing in the fabric
)

// match copies the entries of a table to the row of its switch.
func (m *lftMatcher) match(t *LFT) error {
	n, err := m.node(t)
	if n == nil || err != nil {
		return err
	}
	if m.read[n.ID()] {
		m.twice = append(m.twice, n.Label())
	}
	m.read[n.ID()] = true
	row := m.row(n)
	for i := range row {
		row[i] = mad.NoPort
	}
	if row == nil {
		return nil
	}
	for lid, port := range t.Entries {
		if port == mad.NoPort {
			continue
		}
		if int(port) > n.NumPorts() {
			return fmt.Errorf("%s: expected a port from 0 to %d, which %s has, for LID %d, not %d", pos{t.File, int(t.lines[lid])}, n.NumPorts(), n.Label(), lid, port)
		}
		switch to, state := m.resolve(lid, t.Owners); {
		case state == portStale:
			m.stale++
		case int(to) >= len(row):
			m.beyond++
		default:
			row[to] = port
		}
	}
	return nil
}

// node is the switch of a table, or nil where f has none.
func (m *lftMatcher) node(t *LFT) (*fabric.Node, error) {
	var switches []*fabric.Node
	for _, n := range m.f.NodeByGUID(t.GUID) {
		if n.IsSwitch() {
			switches = append(switches, n)
		}
	}
	switch len(switches) {
	case 0:
		m.unknown = append(m.unknown, t.GUID.String())
		return nil, nil
	case 1:
		return switches[0], nil
	}
	return nil, fmt.Errorf("%s: expected the GUID of one switch, but %s is that of %s", t.Position(), t.GUID, labels(switches))
}

// resolve is the LID that entries for a LID of the file go to. Dumps have the
// same owners in all tables, so each LID is looked up once.
func (m *lftMatcher) resolve(lid int, owners []mad.GUID) (mad.LID, portState) {
	if m.state == nil {
		m.owner, m.to, m.state = make([]mad.GUID, unicastLIDCount), make([]mad.LID, unicastLIDCount), make([]portState, unicastLIDCount)
	}
	if m.state[lid] == portUnresolved || m.owner[lid] != owners[lid] {
		m.owner[lid] = owners[lid]
		m.to[lid], m.state[lid] = m.find(mad.LID(lid), owners)
		switch m.state[lid] {
		case portMoved:
			m.moved++
		case portFurther:
			m.further++
		}
	}
	return m.to[lid], m.state[lid]
}

// find is the LID in the fabric of the port that had a LID in the file.
func (m *lftMatcher) find(lid mad.LID, owners []mad.GUID) (mad.LID, portState) {
	owner := owners[lid]
	if owner == 0 {
		return lid, portSame
	}
	ports := m.f.PortByGUID(owner)
	for _, p := range ports {
		if p.LID() <= lid && int(lid) < int(p.LID())+1<<p.LMC() {
			return lid, portSame
		}
	}
	switch {
	case len(ports) == 1 && isFurther(lid, ports[0].LID(), owners):
		return lid, portFurther
	case len(ports) == 1 && ports[0].LID() != 0:
		return ports[0].LID() + lid&(1<<ports[0].LMC()-1), portMoved
	case m.f.PortByLID(lid) != nil:
		return lid, portStale
	}
	return lid, portGone
}

// isFurther reports whether in the file a port has the first LID that it has in
// the fabric, and lid too: then it has an LMC, which opensm-subnet.lst does not
// contain. LMC has three bits, so that a port has at most 128 LIDs.
func isFurther(lid, first mad.LID, owners []mad.GUID) bool {
	return 0 < first && first < lid && lid < first+128 && owners[first] == owners[lid]
}

// notes are the differences between file and fabric.
func (m *lftMatcher) notes(name string) []string {
	var notes []string
	note := func(format string, args ...any) {
		notes = append(notes, fmt.Sprintf("%s: %s", name, fmt.Sprintf(format, args...)))
	}
	if len(m.unknown) > 0 {
		note("%d of its switches are not in the fabric: %s", len(m.unknown), some(m.unknown))
	}
	var missing []string
	for i := range m.f.Nodes() {
		if n := &m.f.Nodes()[i]; n.IsSwitch() && !m.read[i] {
			missing = append(missing, n.Label())
		}
	}
	if len(missing) > 0 {
		note("no table of %s of the fabric: %s", plural.Count(len(missing), "switch", "switches"), some(missing))
	}
	if len(m.twice) > 0 {
		note("it has two tables of %s; the last counts", some(m.twice))
	}
	if m.moved > 0 {
		note("%d LIDs have changed since the file was written; their entries follow the ports, by port GUID", m.moved)
	}
	if m.further > 0 {
		note("%d LIDs are additional LIDs of their ports (LMC), which the fabric does not have: paths to these are not judged; a topology of ibnetdiscover has them", m.further)
	}
	if m.stale > 0 {
		note("%s left out: ports that are not in the fabric, and LIDs that now belong to others", plural.Count(m.stale, "entry is", "entries are"))
	}
	if m.beyond > 0 {
		note("%s left out: LIDs above the last of the fabric", plural.Count(m.beyond, "entry is", "entries are"))
	}
	return notes
}

// some is the first few of names, with commas between.
func some(names []string) string {
	const few = 3
	if len(names) > few {
		return strings.Join(names[:few], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
