package device

import (
	"context"
	"fmt"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// LinearKind is the linear forwarding table of a switch, a byte for each LID.
var LinearKind = &TableKind{
	Attr:     mad.AttrLinearForwardingTable,
	onSwitch: true,
	blank:    mad.NoPort,
	layout: func(t *Table) ([]uint32, error) {
		if t.Rows > int(t.Switch.LinearFDBCap) {
			return nil, unsupported("LID %d: the switch's table holds LIDs up to %d", t.Rows-1, int(t.Switch.LinearFDBCap)-1)
		}
		modifiers := make([]uint32, (max(linearTop(t)+1, t.Rows)+mad.LFTBlock-1)/mad.LFTBlock)
		for i := range modifiers {
			modifiers[i] = uint32(i)
		}
		return modifiers, nil
	},
	used: func(t *Table) int { return linearTop(t) + 1 },
	row:  func(t *Table, i int) (string, int, int) { return fmt.Sprintf("LID %d", i), i, 1 },
	text: func(b []byte) string {
		if b[0] == mad.NoPort {
			return "dropped"
		}
		return fmt.Sprintf("port %d", b[0])
	},
	// The top is raised when the entries below it are written, and never
	// lowered: that would hide entries that the change does not name.
	after: func(t *Table) *Set {
		if t.Rows <= linearTop(t)+1 {
			return nil
		}
		return t.raise("linear_fdb_top", t.Rows-1)
	},
}

// linearTop is the highest LID that the switch forwards: LinearFDBTop, or the last
// unicast LID where that is lower.
func linearTop(t *Table) int { return int(min(t.Switch.LinearFDBTop, uint16(mad.MaxUnicastLID))) }

// LinearEntries are the entries of a linear forwarding table by LID, up to
// LinearFDBTop.
func LinearEntries(t *Table) []byte { return t.Data[:linearTop(t)+1] }

// EditLinear makes t a change of a linear forwarding table, into which entries are
// merged.
func EditLinear(t *Table, entries map[mad.LID]uint8) {
	t.Kind = LinearKind
	for lid, port := range entries {
		if port != mad.NoPort {
			t.Rows = max(t.Rows, int(lid)+1)
		}
	}
	t.Edit = func(t *Table) error {
		wrong := mad.LID(0) // the lowest
		for lid, port := range entries {
			if port != mad.NoPort && port > t.Node.NumPorts && (wrong == 0 || lid < wrong) {
				wrong = lid
			}
			if int(lid) < len(t.Data) {
				t.Data[lid] = port
			}
		}
		if wrong > 0 {
			return t.noPort(wrong, entries[wrong])
		}
		return nil
	}
}

// ReplaceLinear makes t a change of a whole linear forwarding table: LID i has entry
// i, and those beyond entries are dropped.
func ReplaceLinear(t *Table, entries []uint8) {
	t.Kind, t.Whole = LinearKind, true
	for t.Rows = len(entries); t.Rows > 0 && entries[t.Rows-1] == mad.NoPort; t.Rows-- {
	}
	t.Edit = func(t *Table) error {
		for i := range t.Data {
			t.Data[i] = mad.NoPort
		}
		copy(t.Data, entries)
		for lid, port := range entries {
			if port != mad.NoPort && port > t.Node.NumPorts {
				return t.noPort(mad.LID(lid), port)
			}
		}
		return nil
	}
}

// noPort returns an error if an entry names a port that the switch does not have.
func (t *Table) noPort(lid mad.LID, port uint8) error {
	return unsupported("LID %d: no port %d; the switch has ports 0..%d", lid, port, t.Node.NumPorts)
}

// LFT is the linear forwarding table of a switch, or the reason why it could not be read.
type LFT struct {
	Entries []byte // ports by LID, up to LinearFDBTop
	Err     error
}

// ReadLFTs reads the whole linear forwarding tables of many switches at once.
// The error is the end of ctx.
func ReadLFTs(ctx context.Context, e *engine.Engine, dests []fabric.Dest) ([]LFT, error) {
	tables := make([]*Table, len(dests))
	for i, d := range dests {
		tables[i] = &Table{Kind: LinearKind, Dest: d}
	}
	if err := ReadTables(ctx, e, tables...); err != nil {
		return nil, err
	}
	lfts := make([]LFT, len(tables))
	for i, t := range tables {
		if lfts[i].Err = t.Err; t.Err == nil {
			lfts[i].Entries = LinearEntries(t)
		}
	}
	return lfts, nil
}
