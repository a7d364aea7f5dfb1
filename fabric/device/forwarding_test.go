package device_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// linear is a change of a linear forwarding table.
func linear(d fabric.Dest, entries map[mad.LID]uint8, replace bool) *device.Table {
	t := &device.Table{Dest: d}
	if !replace {
		device.EditLinear(t, entries)
		return t
	}
	row := bytes.Repeat([]byte{mad.NoPort}, int(slices.Max(slices.Collect(maps.Keys(entries))))+1)
	for lid, port := range entries {
		row[lid] = port
	}
	device.ReplaceLinear(t, row)
	return t
}

// edit applies a change of a table.
func edit(t *testing.T, e *engine.Engine, edited *device.Table) error {
	t.Helper()
	if err := device.WriteTables(t.Context(), e, edited); err != nil {
		t.Fatal(err)
	}
	return edited.Err
}

// TestLFTChange: only blocks that change are written, and LinearFDBTop last,
// only ever upwards.
func TestLFTChange(t *testing.T) {
	onTap(t, nil, func(t *testing.T, e *engine.Engine, tap *tap) {
		sets := func() (list [][2]uint32) {
			for _, s := range tap.sets {
				list = append(list, [2]uint32{uint32(s.Attr), s.Modifier})
			}
			tap.sets = nil
			return list
		}
		lft, si := uint32(mad.AttrLinearForwardingTable.ID), uint32(mad.AttrSwitchInfo.ID)
		for _, test := range []struct {
			name    string
			entries map[mad.LID]uint8
			replace bool
			want    [][2]uint32
			top     int
		}{
			{"raise", map[mad.LID]uint8{300: 2, 70: 1}, false, [][2]uint32{{lft, 1}, {lft, 4}, {si, 0}}, 300},
			{"same again", map[mad.LID]uint8{300: 2}, false, nil, 300},
			{"one block", map[mad.LID]uint8{300: mad.NoPort}, false, [][2]uint32{{lft, 4}}, 300},
			{"replace", map[mad.LID]uint8{1: 1}, true, [][2]uint32{{lft, 0}, {lft, 1}}, 300},
		} {
			c := linear(leaf, test.entries, test.replace)
			if err := edit(t, e, c); err != nil {
				t.Fatal(test.name, err)
			}
			if diff := cmp.Diff(test.want, sets()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.name, diff)
			}
			read, err := device.ReadLFTs(t.Context(), e, []fabric.Dest{leaf})
			if err != nil || read[0].Err != nil {
				t.Fatal(err, read[0].Err)
			}
			if diff := cmp.Diff(read[0].Entries, device.LinearEntries(c)); diff != "" || len(read[0].Entries) != test.top+1 {
				t.Errorf("%s: the table ends at %d and differs from what is read:\n%s", test.name, len(read[0].Entries)-1, diff)
			}
			for lid, port := range test.entries {
				if c.Data[lid] != port {
					t.Errorf("%s: LID %d has port %d", test.name, lid, c.Data[lid])
				}
			}
		}
	})
}

// TestLFTChangeTopTooHigh: where LinearFDBTop is no unicast LID, the
// table ends with the last unicast LID.
func TestLFTChangeTopTooHigh(t *testing.T) {
	answer := func(h mad.Header, data []byte) {
		if h.Attribute == mad.AttrSwitchInfo.ID {
			mad.AttrSwitchInfo.Field("linear_fdb_top").SetUint(data, 0xffff)
		}
	}
	onTap(t, func(tap *tap) { tap.answer = answer }, func(t *testing.T, e *engine.Engine, tap *tap) {
		c := linear(leaf, map[mad.LID]uint8{9: 1}, false)
		if err := edit(t, e, c); err != nil {
			t.Fatal(err)
		}
		if len(device.LinearEntries(c)) != int(mad.MaxUnicastLID)+1 || len(tap.sets) != 1 {
			t.Errorf("%d entries, %d Sets", len(device.LinearEntries(c)), len(tap.sets))
		}
	})
}

// TestLFTChangeRefused: what the switch cannot take is not written.
func TestLFTChangeRefused(t *testing.T) {
	answer := func(h mad.Header, data []byte) {
		if h.Attribute == mad.AttrSwitchInfo.ID {
			binary.BigEndian.PutUint16(data, 128) // LinearFDBCap
		}
	}
	onTap(t, func(tap *tap) { tap.answer = answer }, func(t *testing.T, e *engine.Engine, tap *tap) {
		for _, test := range []struct {
			dest    fabric.Dest
			entries map[mad.LID]uint8
			want    string
		}{
			{leaf, map[mad.LID]uint8{128: 1}, "LID 128: the switch's table holds LIDs up to 127"},
			{leaf, map[mad.LID]uint8{5: 9, 7: 8}, "LID 5: no port 9; the switch has ports 0..3"},
			{fabric.Dest{Route: mad.DirectedRoute{0}}, map[mad.LID]uint8{1: 1}, "it is a ca; only switches have forwarding tables"},
		} {
			if err := edit(t, e, linear(test.dest, test.entries, false)); err == nil || err.Error() != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
		}
		if len(tap.sets) > 0 {
			t.Errorf("%d Sets went out", len(tap.sets))
		}
	})
}
