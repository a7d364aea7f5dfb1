package apply

import (
	"bytes"
	"context"
	"encoding/binary"

	"fabsh/mad"
)

// Ordered returns the order of all kinds of cells: first those that add paths, then
// linear forwarding tables and SL2VL, ordered by tables, then those that remove paths,
// ordered by rank; nil: in one round.
func Ordered(cells []*Cell, tables func(ctx context.Context, now, want [][]byte) ([]Round, error), rank func(*Cell) int) func(context.Context, [][]byte, [][]byte) ([]Round, error) {
	return func(ctx context.Context, now, want [][]byte) ([]Round, error) {
		var first, broken, last Round
		routed := false
		for i, c := range cells {
			if bytes.Equal(now[i], want[i]) {
				routed = routed || c.rewrites()
				continue
			}
			step := Step{i, want[i]}
			switch {
			case c.routed():
				routed = true
			case c.Attr == mad.AttrMulticastForwardingTable:
				// Between two trees packets could circulate: branches are removed before
				// new ones are added.
				if both := common(now[i], want[i]); !bytes.Equal(both, now[i]) {
					broken.Steps = append(broken.Steps, Step{i, both})
				}
				last.Steps = append(last.Steps, step)
			case c.Attr == mad.AttrVLArbitrationTable:
				// A lane without an entry sends nothing: entries are added before the
				// packets use them, and removed afterwards.
				if both := merged(now[i], want[i]); !bytes.Equal(both, now[i]) {
					first.Steps = append(first.Steps, Step{i, both})
					if bytes.Equal(both, want[i]) {
						continue
					}
				}
				last.Steps = append(last.Steps, step)
			case c.trains() || c.takes(now[i], want[i]):
				last.Steps = append(last.Steps, step)
			default:
				first.Steps = append(first.Steps, step)
			}
		}
		var rounds []Round
		add := func(r ...Round) {
			for _, r := range r {
				if len(r.Steps) > 0 {
					rounds = append(rounds, r)
				}
			}
		}
		add(first)
		if routed {
			middle, err := tables(ctx, now, want)
			if err != nil {
				return nil, err
			}
			add(middle...)
		}
		add(broken)
		add(lastRounds(cells, last.Steps, rank)...)
		return rounds, nil
	}
}

// common returns the ports that both entries of a multicast forwarding table have.
func common(a, b []byte) []byte {
	both := make([]byte, len(a))
	for at := 0; at < len(a); at += 2 {
		binary.BigEndian.PutUint16(both[at:], binary.BigEndian.Uint16(a[at:])&binary.BigEndian.Uint16(b[at:]))
	}
	return both
}

// merged returns a block of a VL arbitration table, pairs of a lane and its weight, with
// which all lanes send that now or want serve: want, and the lanes of now that have no
// weight in want. If there is no room for both it returns want.
func merged(now, want []byte) []byte {
	both := bytes.Clone(want)
	for at := 0; at+1 < len(both); at += 2 {
		if both[at+1] == 0 {
			copy(both[at:at+2], now[at:at+2])
		}
	}
	if sends(both)&sends(now) != sends(now) {
		return want
	}
	return both
}

// sends returns a bit for each lane with a weight.
func sends(block []byte) (lanes uint16) {
	for at := 0; at+1 < len(block); at += 2 {
		if block[at+1] > 0 {
			lanes |= 1 << (block[at] & 15)
		}
	}
	return lanes
}

// takes reports whether the step removes something that tables may still use: a port, the
// last entries of a forwarding table, or partitions.
func (c *Cell) takes(now, want []byte) bool {
	for _, name := range c.Fields {
		f := c.Attr.Field(name)
		from, to := f.Uint(now), f.Uint(want)
		switch {
		case name == "port_physical_state" && mad.PortPhysicalState(to) == mad.PortPhysicalStateDisabled,
			name == "linear_fdb_top" && to < from, name == "multicast_fdb_top" && to < from:
			return true
		}
	}
	return c.Attr == mad.AttrPKeyTable
}
