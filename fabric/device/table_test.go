package device_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// edits are a change of each kind of table, at two places that are far apart.
var edits = []struct {
	name string
	port int
	edit func(t *device.Table)
	// The Sets that go out.
	modifiers []uint32
	// The error for a node that loses bits of byte at of the first block.
	at       int
	mismatch string
}{
	{"lft", device.NoPortNumber, func(t *device.Table) { device.EditLinear(t, map[mad.LID]uint8{66: 1, 200: 2}) },
		[]uint32{1, 3}, 2, "LID 66 reads back as port 14, but port 1 was written"},
	{"mft", device.NoPortNumber, func(t *device.Table) {
		device.EditMulticast(t, map[mad.LID][]uint8{0xc021: {1, 9, 20}, 0xcfff: {34}}, false)
	}, []uint32{0x1000_0001, 1, 0x2000_007f}, 3, "multicast LID 0xc021 at ports 0 to 15 reads back as mask 0x020d, but mask 0x0202 was written"},
	{"sl2vl", 3, func(t *device.Table) {
		device.EditLanes(t, func(_ *device.Table, lanes [][16]uint8) error {
			lanes[2][3], lanes[34][15] = 5, 0
			return nil
		})
	}, []uint32{0x0203, 0x2203}, 1, "from port 2 to port 3, service level 2 and the next reads back as lanes 2 and 10, but lanes 2 and 5 was written"},
	{"vlarb", 3, func(t *device.Table) {
		device.EditVLArb(t, func(low, high []device.VLWeight) error {
			low[2], high[7] = device.VLWeight{VL: 1, Weight: 9}, device.VLWeight{VL: 3, Weight: 255}
			return nil
		})
	}, []uint32{0x0001_0003, 0x0003_0003}, 5, "entry 2 of the low-priority table reads back as lane 1, weight 6, but lane 1, weight 9 was written"},
	{"pkeys", 3, func(t *device.Table) { device.EditPKeys(t, map[int]uint16{1: 0x8001, 31: 0x12}, false) },
		[]uint32{0x0003_0000}, 3, "entry 1 reads back as 0x800e, but 0x8001 was written"},
	{"guids", device.NoPortNumber, func(t *device.Table) { device.EditGUIDs(t, map[int]mad.GUID{2: 0x77}, false) },
		[]uint32{0}, 23, "entry 2 reads back as 0x0000000000000078, but 0x0000000000000077 was written"},
}

// wide is a ring whose switches have 34 ports: masks take three blocks.
const wide = "ring:n=2,hosts=32"

// TestTables: the blocks that change are written, no others, and the table reads
// back as it was written.
func TestTables(t *testing.T) {
	for _, test := range edits {
		t.Run(test.name, func(t *testing.T) {
			onTapOf(t, wide, nil, func(t *testing.T, e *engine.Engine, tap *tap) {
				for _, again := range []bool{false, true} {
					tap.sets = nil
					c := &device.Table{Dest: leaf, Port: test.port}
					test.edit(c)
					if err := edit(t, e, c); err != nil {
						t.Fatal(err)
					}
					got := map[uint32]bool{}
					for _, s := range tap.sets {
						if s.Attr == c.Kind.Attr.ID {
							got[s.Modifier] = true
						}
					}
					want := map[uint32]bool{}
					for _, m := range test.modifiers {
						want[m] = !again
					}
					if again {
						clear(want)
					}
					if diff := cmp.Diff(want, got); diff != "" || len(c.Written) != len(want) {
						t.Errorf("again: %v; %d written (-want +got):\n%s", again, len(c.Written), diff)
					}
					read := &device.Table{Kind: c.Kind, Dest: leaf, Port: test.port}
					if err := device.ReadTables(t.Context(), e, read); err != nil || read.Err != nil {
						t.Fatal(err, read.Err)
					}
					if diff := cmp.Diff(c.Data, read.Data); diff != "" {
						t.Errorf("what is read differs from what was read back:\n%s", diff)
					}
				}
			})
		})
	}
}

// TestTableCompares: a table that reads back otherwise is an error.
func TestTableCompares(t *testing.T) {
	for _, test := range edits {
		t.Run(test.name, func(t *testing.T) {
			onTapOf(t, wide, nil, func(t *testing.T, e *engine.Engine, tap *tap) {
				c := &device.Table{Dest: leaf, Port: test.port}
				test.edit(c)
				first := test.modifiers[0]
				if test.name == "mft" {
					first = test.modifiers[1]
				}
				tap.answer = func(h mad.Header, data []byte) {
					if h.Attribute == c.Kind.Attr.ID && h.Modifier == first && len(tap.sets) > 0 {
						data[test.at] ^= 15
					}
				}
				if err := edit(t, e, c); err == nil || err.Error() != test.mismatch {
					t.Errorf("%v, want %s", err, test.mismatch)
				}
			})
		})
	}
}

// TestTableUnused: of a block that was not in use the answer to the Set is compared, and
// where it differs LinearFDBTop is not raised.
func TestTableUnused(t *testing.T) {
	onTap(t, nil, func(t *testing.T, e *engine.Engine, tap *tap) {
		c := linear(leaf, map[mad.LID]uint8{1: 1, 200: 2}, true)
		tap.answer = func(h mad.Header, data []byte) {
			if h.Attribute == mad.AttrLinearForwardingTable.ID && h.Modifier == 3 {
				data[200%64] ^= 15
			}
		}
		want := "LID 200 reads back as port 13, but port 2 was written"
		if err := edit(t, e, c); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		for _, s := range tap.sets {
			if s.Attr != mad.AttrLinearForwardingTable.ID {
				t.Errorf("Set(%#x) after a difference", s.Attr)
			}
		}
		// NodeInfo and SwitchInfo, block 0 three times, and three Sets.
		if n := e.Stats().Sent; n != 8 {
			t.Errorf("%d sent", n)
		}
	})
}

// TestTableReserved: reserved bits that an agent shows are no change.
func TestTableReserved(t *testing.T) {
	onTap(t, nil, func(t *testing.T, e *engine.Engine, tap *tap) {
		tap.answer = func(h mad.Header, data []byte) {
			if h.Attribute == mad.AttrVLArbitrationTable.ID {
				data[0] |= 0xf0
			}
		}
		c := &device.Table{Dest: leaf, Port: 1}
		device.EditVLArb(c, func(low, high []device.VLWeight) error { return nil })
		if err := edit(t, e, c); err != nil || len(tap.sets) > 0 {
			t.Errorf("%v, %d Sets", err, len(tap.sets))
		}
	})
}

// TestTablePartly: if one Set fails, the error counts the Sets that did not, and the top is not
// raised.
func TestTablePartly(t *testing.T) {
	onTap(t, func(tap *tap) {
		tap.Transport = lossy{tap.Transport, func(d *engine.Datagram) bool {
			h := mad.ParseHeader(d.MAD)
			return h.Method == mad.MethodSet && h.Modifier == 3
		}, nil}
	}, func(t *testing.T, e *engine.Engine, tap *tap) {
		c := linear(leaf, map[mad.LID]uint8{66: 1, 200: 2}, false)
		err := edit(t, e, c)
		want := "1 of 2 changed blocks are written, then: SubnSet(LinearForwardingTable 3) to route 0,1: timed out after 3 attempts in 3s"
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		for _, s := range tap.sets {
			if s.Attr != mad.AttrLinearForwardingTable.ID {
				t.Errorf("Set(%#x) after a failure", s.Attr)
			}
		}
	})
}

// TestTableSizes: the length of a table depends on the node's attributes.
func TestTableSizes(t *testing.T) {
	here := fabric.Dest{Route: mad.DirectedRoute{0}}
	field := func(a *mad.Attribute, name string, v uint64) func(mad.Header, []byte) {
		return func(h mad.Header, data []byte) {
			if h.Attribute == a.ID {
				a.Field(name).SetUint(data, v)
			}
		}
	}
	for _, test := range []struct {
		name   string
		table  device.Table
		answer func(mad.Header, []byte)
		want   []uint32
		err    string
	}{
		{"multicast, no top", device.Table{Kind: device.MulticastKind, Dest: leaf}, func(h mad.Header, data []byte) {
			field(mad.AttrSwitchInfo, "multicast_fdb_cap", 33)(h, data)
			field(mad.AttrSwitchInfo, "multicast_fdb_top", 0)(h, data)
		}, []uint32{0, 1}, ""},
		{"multicast, nothing looked up", device.Table{Kind: device.MulticastKind, Dest: leaf}, field(mad.AttrSwitchInfo, "multicast_fdb_top", 0xbfff), nil, ""},
		{"multicast, one block", device.Table{Kind: device.MulticastKind, Dest: leaf}, field(mad.AttrSwitchInfo, "multicast_fdb_top", 0xc01f), []uint32{0}, ""},
		{"multicast, top above all", device.Table{Kind: device.MulticastKind, Dest: leaf}, func(h mad.Header, data []byte) {
			field(mad.AttrSwitchInfo, "multicast_fdb_top", 0xfffe)(h, data)
			field(mad.AttrSwitchInfo, "multicast_fdb_cap", 40)(h, data)
		}, []uint32{0, 1}, ""},
		{"multicast of a CA", device.Table{Kind: device.MulticastKind, Dest: here}, nil, nil, "it is a ca; only switches have forwarding tables"},
		{"lanes of a CA", device.Table{Kind: device.SL2VLKind, Dest: here, Port: device.NoPortNumber}, nil, []uint32{0}, ""},
		{"lanes of another port of a CA", device.Table{Kind: device.SL2VLKind, Dest: here, Port: 2}, field(mad.AttrNodeInfo, "num_ports", 2), nil,
			"the request came in through port 1, and a ca shows its SLtoVLMappingTable of that port only; reach port 2 by its own LID or route"},
		{"lanes of port 0", device.Table{Kind: device.SL2VLKind, Dest: leaf, Port: device.NoPortNumber}, func(h mad.Header, data []byte) {
			field(mad.AttrSwitchInfo, "enhanced_port0", 1)(h, data)
			field(mad.AttrNodeInfo, "num_ports", 1)(h, data)
		}, []uint32{0, 0x100, 1, 0x101}, ""},
		{"arbitration, two blocks", device.Table{Kind: device.VLArbKind, Dest: leaf, Port: 2}, func(h mad.Header, data []byte) {
			field(mad.AttrPortInfo, "vl_arbitration_low_cap", 33)(h, data)
			field(mad.AttrPortInfo, "vl_arbitration_high_cap", 64)(h, data)
		}, []uint32{0x1_0002, 0x2_0002, 0x3_0002, 0x4_0002}, "of block 2"},
		{"arbitration, none", device.Table{Kind: device.VLArbKind, Dest: leaf, Port: 2}, func(h mad.Header, data []byte) {
			field(mad.AttrPortInfo, "vl_arbitration_low_cap", 0)(h, data)
			field(mad.AttrPortInfo, "vl_arbitration_high_cap", 0)(h, data)
		}, nil, ""},
		{"arbitration of a CA", device.Table{Kind: device.VLArbKind, Dest: here, Port: device.NoPortNumber}, nil, []uint32{0x1_0001, 0x3_0001}, ""},
		{"arbitration of a base port 0", device.Table{Kind: device.VLArbKind, Dest: leaf, Port: 0}, nil, nil, "port 0 of this switch is not an enhanced port 0 and has no arbitration tables"},
		{"arbitration of a switch", device.Table{Kind: device.VLArbKind, Dest: leaf, Port: device.NoPortNumber}, nil, nil, "it is a switch; each of its ports has its own VLArbitrationTable, so name a port"},
		{"partitions of port 0", device.Table{Kind: device.PKeyKind, Dest: leaf, Port: 0}, field(mad.AttrSwitchInfo, "partition_enforcement_cap", 0), []uint32{0}, ""},
		{"partitions of a port", device.Table{Kind: device.PKeyKind, Dest: leaf, Port: 1}, field(mad.AttrNodeInfo, "partition_cap", 100), []uint32{0x1_0000}, ""},
		{"partitions not enforced", device.Table{Kind: device.PKeyKind, Dest: leaf, Port: 1}, field(mad.AttrSwitchInfo, "partition_enforcement_cap", 0), nil,
			"the switch enforces no partitions: its external ports have no P_Key tables"},
		{"no GUIDs", device.Table{Kind: device.GUIDKind, Dest: leaf, Port: device.NoPortNumber}, field(mad.AttrPortInfo, "guid_cap", 0), nil, ""},
		{"no such port", device.Table{Kind: device.PKeyKind, Dest: leaf, Port: 4}, nil, nil, "no port 4; the node has ports up to 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onTap(t, func(tap *tap) { tap.answer = test.answer }, func(t *testing.T, e *engine.Engine, _ *tap) {
				read := test.table
				if err := device.ReadTables(t.Context(), e, &read); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, read.Modifiers); diff != "" {
					t.Errorf("blocks (-want +got):\n%s", diff)
				}
				switch got := read.Err; {
				case test.err == "of block 2": // which the simulated switch does not have
					if got == nil {
						t.Error("block 2 is there")
					}
				case got == nil && test.err != "", got != nil && got.Error() != test.err:
					t.Errorf("%v, want %q", got, test.err)
				}
			})
		})
	}
}
