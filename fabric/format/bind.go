package format

import (
	"fmt"
	"io"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// ReadLFTs reads the forwarding tables of a file into those of f's switches,
// which row gives by LID; it is asked once a switch. Tables of switches for
// which there is none are passed over. What the file does not say is
// mad.NoPort.
//
// As OpenSM's engine file does, entries go to the LIDs that their ports have in
// f, where the file says whose a LID was, and a port that the switch does not
// have is an error. Notes are what a person should know of how file and fabric
// match; they are no obstacle.
func ReadLFTs(r io.Reader, name string, f *fabric.Fabric, row func(sw *fabric.Node) []byte) (notes []string, err error) {
	b := binder{f: f, row: row, read: make([]bool, len(f.Nodes()))}
	for t, err := range LFTs(r, name) {
		if err != nil {
			return nil, err
		}
		if err := b.bind(t); err != nil {
			return nil, err
		}
	}
	return b.notes(name), nil
}

// binder brings tables of a file to the switches of a fabric.
type binder struct {
	f   *fabric.Fabric
	row func(*fabric.Node) []byte

	read    []bool // switches, by node id
	unknown []string
	twice   []string
	owner   []mad.GUID // by LID of the file, for which to and state hold
	to      []mad.LID
	state   []uint8
	moved   int // LIDs
	further int // LIDs
	stale   int // entries
	beyond  int // entries
}

// What became of the port that had a LID of the file.
const (
	portHere  = 1 // it has the LID still, or the file does not say whose the LID was
	portMoved = 2 // it has another now
	portGone  = 3 // it is not in the fabric
	portStale = 4 // nor that, and the LID is another's now
	portAlso  = 5 // it has it beside its first, by an LMC that the fabric does not know
)

func (b *binder) bind(t *LFT) error {
	n, err := b.find(t)
	if n == nil || err != nil {
		return err
	}
	if b.read[n.ID()] {
		b.twice = append(b.twice, n.Label())
	}
	b.read[n.ID()] = true
	row := b.row(n)
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
		to, state := b.where(lid, t.Owners)
		switch {
		case state == portStale:
			b.stale++
		case int(to) >= len(row):
			b.beyond++
		default:
			row[to] = port
		}
	}
	return nil
}

// find is the switch of a table, or nil where f has none.
func (b *binder) find(t *LFT) (*fabric.Node, error) {
	var switches []*fabric.Node
	for _, n := range b.f.NodeByGUID(t.GUID) {
		if n.IsSwitch() {
			switches = append(switches, n)
		}
	}
	switch len(switches) {
	case 0:
		b.unknown = append(b.unknown, t.GUID.String())
		return nil, nil
	case 1:
		return switches[0], nil
	}
	return nil, fmt.Errorf("%s: expected the GUID of one switch, but %s is that of %s", t.Position(), t.GUID, labels(switches))
}

// where is the LID that an entry for lid goes to.
func (b *binder) where(lid int, owners []mad.GUID) (mad.LID, uint8) {
	owner := owners[lid]
	if b.state == nil {
		b.owner, b.to, b.state = make([]mad.GUID, unicastLIDCount), make([]mad.LID, unicastLIDCount), make([]uint8, unicastLIDCount)
	}
	if b.state[lid] == 0 || b.owner[lid] != owner {
		b.owner[lid] = owner
		b.to[lid], b.state[lid] = b.resolve(mad.LID(lid), owners)
		switch b.state[lid] {
		case portMoved:
			b.moved++
		case portAlso:
			b.further++
		}
	}
	return b.to[lid], b.state[lid]
}

func (b *binder) resolve(lid mad.LID, owners []mad.GUID) (mad.LID, uint8) {
	owner := owners[lid]
	if owner == 0 {
		return lid, portHere
	}
	ports := b.f.PortByGUID(owner)
	for _, p := range ports {
		if p.LID() <= lid && int(lid) < int(p.LID())+1<<p.LMC() {
			return lid, portHere
		}
	}
	switch {
	case len(ports) == 1 && isFurther(lid, ports[0].LID(), owners):
		return lid, portAlso
	case len(ports) == 1 && ports[0].LID() != 0:
		return ports[0].LID() + lid&(1<<ports[0].LMC()-1), portMoved
	case b.f.PortByLID(lid) != nil:
		return lid, portStale
	}
	return lid, portGone
}

// isFurther: in the file a port has its first LID still, and lid too. OpenSM's
// opensm-subnet.lst says nothing of LMC, which has three bits.
func isFurther(lid, first mad.LID, owners []mad.GUID) bool {
	return 0 < first && first < lid && lid < first+128 && owners[first] == owners[lid]
}

func (b *binder) notes(name string) []string {
	var notes []string
	note := func(format string, args ...any) {
		notes = append(notes, fmt.Sprintf("%s: %s", name, fmt.Sprintf(format, args...)))
	}
	if len(b.unknown) > 0 {
		note("%d of its switches are not in the fabric: %s", len(b.unknown), some(b.unknown))
	}
	var missing []string
	for i := range b.f.Nodes() {
		if n := &b.f.Nodes()[i]; n.IsSwitch() && !b.read[i] {
			missing = append(missing, n.Label())
		}
	}
	if len(missing) > 0 {
		note("it has no table of %d switches of the fabric: %s", len(missing), some(missing))
	}
	if len(b.twice) > 0 {
		note("it has two tables of %s; the last counts", some(b.twice))
	}
	if b.moved > 0 {
		note("%d LIDs have changed since it was written; their entries went with the ports, by port GUID", b.moved)
	}
	if b.further > 0 {
		note("%d LIDs are further ones of their ports (LMC), which the fabric does not tell: paths to these are not judged; a topology of ibnetdiscover tells", b.further)
	}
	if b.stale > 0 {
		note("%d entries are left out: their ports are not in the fabric, and their LIDs belong to others now", b.stale)
	}
	if b.beyond > 0 {
		note("%d entries are left out: their LIDs are above the last of the fabric", b.beyond)
	}
	return notes
}

// some are the first few of names.
func some(names []string) string {
	const few = 3
	if len(names) > few {
		return strings.Join(names[:few], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
