package format_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/format"
)

// TestReadLFTs: entries go with the ports that had the LIDs.
func TestReadLFTs(t *testing.T) {
	f, err := format.Load(strings.NewReader(bound), "net", nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, other := f.NodeByGUID(0x10)[0], f.NodeByGUID(0x20)[0]
	const in = `Unicast lids [0-20] of switch Lid 2 guid 0x0000000000000010 ('leaf'):
0x0002 000 # Switch portguid 0x0000000000000010: 'leaf'
0x0004 001 # Channel Adapter portguid 0x00000000000000a1: 'a'
0x0005 003 # Channel Adapter portguid 0x00000000000000a1: 'a'
0x0008 002 # Channel Adapter portguid 0x00000000000000c1: 'gone, and its LID is now of a'
0x0006 002 # Channel Adapter portguid 0x00000000000000b1: 'b'
0x0007 003 # Channel Adapter portguid 0x00000000000000d1: 'gone'
0x0010 003 # unknown node and type
20 lids dumped
Unicast lids [0-20] of switch Lid 9 guid 0x0000000000000077 ('unknown'):
0x0002 099
20 lids dumped
`
	table := rows{}
	notes, err := format.ReadLFTs(strings.NewReader(in), "lfts", f, table.of(f))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"lfts: 1 of its switches are not in the fabric: 0x0000000000000077",
		`lfts: no table of 1 switch of the fabric: "other" (0x0000000000000020)`,
		"lfts: 3 LIDs have changed since the file was written; their entries follow the ports, by port GUID",
		"lfts: 1 entry is left out: ports that are not in the fabric, and LIDs that now belong to others",
		"lfts: 1 entry is left out: LIDs above the last of the fabric",
	}
	if d := cmp.Diff(want, notes); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
	row := []byte{255, 255, 0, 255, 255, 2, 255, 3, 1, 3}
	if d := cmp.Diff(row, table[leaf][:10]); d != "" || table[other] != nil {
		t.Errorf("(-want +got):\n%s, other %v", d, table[other])
	}

	// Each table has its own word on whose a LID was.
	changes := strings.Replace(in, "0x0000000000000077", "0x0000000000000020", 1)
	changes = strings.Replace(changes, "0x0002 099\n", "0x0004 001 # Channel Adapter portguid 0x00000000000000b1: 'b'\n", 1)
	table = rows{}
	if _, err := format.ReadLFTs(strings.NewReader(changes), "lfts", f, table.of(f)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]byte{255, 255, 255, 255, 255, 1, 255, 255, 255, 255}, table[other]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	// A fabric that does not tell LMC, as of opensm-subnet.lst: b has 5, 6 and 7.
	const further = `Unicast lids [0-8] of switch Lid 2 guid 0x0000000000000010 ('leaf'):
0x0005 001 # Channel Adapter portguid 0x00000000000000b1: 'b'
0x0006 002 # Channel Adapter portguid 0x00000000000000b1: 'b'
0x0007 003 # Channel Adapter portguid 0x00000000000000b1: 'b'
8 lids dumped
`
	table = rows{}
	notes, err = format.ReadLFTs(strings.NewReader(further), "lfts", f, table.of(f))
	if err != nil || len(notes) != 2 || notes[1] != "lfts: 2 LIDs are additional LIDs of their ports (LMC), which the fabric does not have: paths to these are not judged; a topology of ibnetdiscover has them" {
		t.Errorf("%v %q", err, notes)
	}
	if d := cmp.Diff([]byte{255, 255, 255, 255, 255, 1, 2, 3, 255, 255}, table[leaf][:10]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	for in, want := range map[string]string{
		"Unicast lids [0-9] of switch guid 0x10\n0x0002 000\n0x0005 004\n": `lfts:3: expected a port from 0 to 3, which "leaf" (0x0000000000000010) has, for LID 5, not 4`,
		"Unicast lids [0-9] of switch guid\n":                              `lfts:1: expected guid 0x and the GUID of the switch: "Unicast lids [0-9] of switch guid"`,
	} {
		if _, err := format.ReadLFTs(strings.NewReader(in), "lfts", f, rows{}.of(f)); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	twice := "Unicast lids [0-9] of switch guid 0x10\n0x0002 001\nUnicast lids [0-9] of switch guid 0x10\n0x0003 001\n"
	table = rows{}
	notes, err = format.ReadLFTs(strings.NewReader(twice), "lfts", f, table.of(f))
	if err != nil || len(notes) != 3 || notes[1] != `lfts: it has two tables of "leaf" (0x0000000000000010); the last counts` || table[leaf][2] != 255 || table[leaf][3] != 1 {
		t.Errorf("%v %q %v", err, notes, table)
	}
}
