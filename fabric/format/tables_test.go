package format_test

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/format"
	"fabsh/mad"
)

// readers read a file of tables of each sort, and tell in a line each what
// they find.
var readers = map[string]func(r io.Reader, name string) (string, error){
	"lft": tell(format.LFTs, func(b io.Writer, t *format.LFT) {
		fmt.Fprintf(b, "%s %v %d %v %q top %d:", t.Position(), t.GUID, t.LID, []uint8(t.Route), t.Name, len(t.Entries)-1)
		for lid, p := range t.Entries {
			if p != mad.NoPort {
				fmt.Fprintf(b, " %d %d", lid, p)
				if t.Owners[lid] != 0 {
					fmt.Fprintf(b, " of %x", uint64(t.Owners[lid]))
				}
			}
		}
	}),
	"far": tell(format.FARs, farLine),
	"hops": tell(format.HopRows, func(b io.Writer, h *format.HopRow) {
		fmt.Fprintf(b, "%s %v %d of %x: %v", h.Position(), h.GUID, h.LID, uint64(h.Owner), h.Hops)
	}),
	"mft": tell(format.MFTs, func(b io.Writer, m *format.MFT) {
		fmt.Fprintf(b, "%s %v %d %v %q: %x", m.Position(), m.GUID, m.LID, []uint8(m.Route), m.Name, m.Entries)
	}),
	"sl2vl": tell(format.SL2VLs, func(b io.Writer, v *format.SL2VL) {
		fmt.Fprintf(b, "%s %v %d %v %q %d %d: %d", v.Position(), v.GUID, v.LID, []uint8(v.Route), v.Name, v.In, v.Out, v.VLs)
	}),
	"psl": tell(format.PathSLs, func(b io.Writer, p *format.PathSL) {
		fmt.Fprintf(b, "%s %v %d %q: %d %d", p.Position(), p.GUID, p.LID, p.Name, p.DLID, p.SL)
	}),
	"guids": tell(format.GUIDLines, func(b io.Writer, g format.GUIDLine) {
		numbers, err := g.Numbers(300)
		fmt.Fprintf(b, "%s %v %q %q %v %v", g.Position(), g.GUID, g.Rest, g.NodeName(), numbers, err)
	}),
}

func tell[T any](read func(io.Reader, string) iter.Seq2[T, error], line func(io.Writer, T)) func(io.Reader, string) (string, error) {
	return func(r io.Reader, name string) (string, error) {
		var b strings.Builder
		for x, err := range read(r, name) {
			if err != nil {
				return b.String(), err
			}
			line(&b, x)
			b.WriteByte('\n')
		}
		return b.String(), nil
	}
}

// TestReaders: what the dialects have that peers do not write on the nets of
// other tests.
func TestReaders(t *testing.T) {
	tests := []struct{ name, reader, in, want string }{
		{"LMC and illegal ports", "lft", `Unicast lids [0x0-0x8] of switch Lid 7 guid 0x0000000000000010 (it's (a) name):
  Lid  Out   Destination
       Port     Info 
0x0000 255 : (illegal port)
0x0003 040 : (illegal port)
0x0004 001 : (Channel Adapter portguid 0x00000000000000a1: 'portguid 0x5: x')
0x0005 002 : (path #2 out of 4: portguid 0x00000000000000a1)
0x0006 002 : (path #2 - illegal port)
5 valid lids dumped 
`, `x:1 0x0000000000000010 7 [] "it's (a) name" top 8: 4 1 of a1 5 2 of a1
`},
		{"by hand", "lft", `# tables of my own
	Unicast lids [0-3] of switch guid 0x10
0x1 2 
  0x0004	0 # portguid 0xab: 'x'
Unicast lids [0-2] of switch Lid 3 guid 0x0000000000000011 ('b'):
0x0002 001 # unknown node and type
Unicast lids guid 0x12
0x0002 001
`, `x:2 0x0000000000000010 0 [] "" top 4: 1 2 4 0 of ab
x:5 0x0000000000000011 3 [] "b" top 2: 2 1
x:7 0x0000000000000012 0 [] "" top 2: 2 1
`},
		{"fdbs", "lft", "dump_ucast_routes: Switch 0x10\nLID    : Port : Hops : Optimal\n0x0001 : 004  : 02   : yes\n0x0002 : 255  : HOPS UNKNOWN\n0x0003 : UNREACHABLE\n0x000A : 003  : 02   : No 1 hop path possible via port 5!\n",
			"x:1 0x0000000000000010 0 [] \"\" top 10: 1 4 10 3\n"},
		{"hops", "hops", "Switch: guid 0x10\n0x0002: 01 ff 01\n0x0003: 00 02 ff # portguid 0xa1\n",
			"x:2 0x0000000000000010 2 of 0: [1 255 1]\nx:3 0x0000000000000010 3 of a1: [0 2 255]\n"},
		{"ports of multicast", "mft", "\nSwitch 0x10\nLID    : Out Port(s)\n0xC000 : 0x000  0x0FE \n\nSwitch 0x11\nLID    : Out Port(s)\n",
			"x:2 0x0000000000000010 0 [] \"\": [{c000 00fe}]\nx:6 0x0000000000000011 0 [] \"\": []\n"},
		{"columns of multicast", "mft", "Multicast mlids [0xc000-0xc3ff] of switch DR path slid 0; dlid 0; 0,1,2 guid 0x10 (a b):\n            0                   1 \n     Ports: 0 1 2 3 4 5 6 7 8 9 0 \n MLid\n0xc001      x x                 x \n0xc002                            \n2 valid mlids dumped \n",
			"x:1 0x0000000000000010 0 [0 1 2] \"a b\": [{c001 00010a} {c002 }]\n"},
		{"masks of multicast", "mft", "Multicast mlids [0xc000-0xc3ff] of switch Lid 4 guid 0x10 (a):\n MLid       Port Mask\n0xc001      00038001\n",
			"x:1 0x0000000000000010 4 [] \"a\": [{c001 0001101f}]\n"},
		{"smpquery", "sl2vl", "# SL2VL table: Lid 3\n#                 SL: | 0| 1|\nports: in  0, out 11: | 0| 1| 2| 3| 4| 5| 6| 7| 0| 1| 2| 3| 4| 5| 6|15|\n# SL2VL table: DR path slid 65535; dlid 65535; 0,1\nports: in 10, out  1: | 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0| 0|\n",
			"x:3 0x0000000000000000 3 [] \"\" 0 11: [0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 15]\nx:5 0x0000000000000000 0 [0 1] \"\" 10 1: [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]\n"},
		{"short", "sl2vl", "0x0002c90000000201 5 1 0x01 0x23 0x45 0x67 0x89 0xab 0xcd 0xe7\n",
			"x:1 0x0002c90000000201 0 [] \"\" 5 1: [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 7]\n"},
		{"opensm", "sl2vl", "Channel Adapter 0xa1, base LID 5, \"a \"b\" c\"\n#in out : 0\n0   0   : 0  1  2  3  4  5  6  7  0  1  2  3  4  5  6  7 \n#---\n\nRouter 0xa2, base LID 6, \"\"\n0 0 : 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1\n",
			"x:3 0x00000000000000a1 5 [] \"a \\\"b\\\" c\" 0 0: [0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7]\nx:7 0x00000000000000a2 6 [] \"\" 0 0: [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1]\n"},
		{"lines", "psl", "# of dfsssp\n0x0002c90000000099 154 3\n",
			"x:2 0x0002c90000000099 0 \"\": 154 3\n"},
		{"blocks", "psl", "Channel Adapter 0xa1, base LID 5, \"h\"\n0x009a : 3\n0x009b :	0\nSwitch 0xa2, base LID 7, \"s\"\n0x0001 : 1\n",
			"x:2 0x00000000000000a1 5 \"h\": 154 3\nx:3 0x00000000000000a1 5 \"h\": 155 0\nx:5 0x00000000000000a2 7 \"s\": 1 1\n"},
		{"guid2lid", "guids", "0xa1 0x0004 0x0007\n\n0xa2 0x0001 0x0001\n\n",
			"x:1 0x00000000000000a1 \"0x0004 0x0007\" \"0x0004 0x0007\" [4 7] <nil>\nx:3 0x00000000000000a2 \"0x0001 0x0001\" \"0x0001 0x0001\" [1 1] <nil>\n"},
		{"guids", "guids", "# roots\n\n  0x10\n16 # in decimal\n020#octal\n0xAB \"leaf 1\" # with \"quotes\"\n0x1 name without#x\n0x2 # none\n0x3 4 0x5 # port and weight\n0x4 500\n",
			`x:3 0x0000000000000010 "" "" [] <nil>
x:4 0x0000000000000010 "# in decimal" "" [] <nil>
x:5 0x0000000000000010 "#octal" "" [] <nil>
x:6 0x00000000000000ab "\"leaf 1\" # with \"quotes\"" "leaf 1" [] x:6: expected numbers from 0 to 300 after GUID 0x00000000000000ab, not "\"leaf"
x:7 0x0000000000000001 "name without#x" "name without" [] x:7: expected numbers from 0 to 300 after GUID 0x0000000000000001, not "name"
x:8 0x0000000000000002 "# none" "" [] <nil>
x:9 0x0000000000000003 "4 0x5 # port and weight" "4 0x5 " [4 5] <nil>
x:10 0x0000000000000004 "500" "500" [] x:10: expected numbers from 0 to 300 after GUID 0x0000000000000004, not "500"
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := readers[test.reader](strings.NewReader(test.in), "x")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestReaderErrors(t *testing.T) {
	const lft = "Unicast lids [0-9] of switch Lid 1 guid 0x10 ('a'):\n"
	const sl2vl = "Switch 0x10, base LID 1, \"a\"\n"
	tests := []struct{ reader, in, want string }{
		{"lft", "", "x:0: expected tables that begin with Unicast lids (OpenSM, ibroute, dump_fts) or dump_ucast_routes: (opensm.fdbs), and found none in 0 lines"},
		{"lft", "Switch: guid 0x10\n", `x:1: expected an entry (0x0001 001 ...) or the first line of a table (Unicast lids ..., dump_ucast_routes: ...): "Switch: guid 0x10"`},
		{"lft", "0x0001 001\n", `x:1: expected an entry (0x0001 001 ...) or the first line of a table (Unicast lids ..., dump_ucast_routes: ...): "0x0001 001"`},
		{"lft", "Unicast lids [0-9] of switch Lid 1\n", `x:1: expected guid 0x and the GUID of the switch: "Unicast lids [0-9] of switch Lid 1"`},
		{"lft", "Unicast lids [0-9] of switch guid 0x\n", `x:1: expected guid 0x and the GUID of the switch: "Unicast lids [0-9] of switch guid 0x"`},
		{"lft", "Unicast lids [0-9] of switch guid 0x10000000000000010\n", `x:1: expected guid 0x and the GUID of the switch: "Unicast lids [0-9] of switch guid 0x10000000000000010"`},
		{"lft", "Unicast lids [0-65535] of switch guid 0x10\n", `x:1: expected the LIDs of the table, as in [0-100], of which the last is at most 49151: "Unicast lids [0-65535] of switch guid 0x10"`},
		{"lft", "Unicast lids [0-x] of switch guid 0x10\n", `x:1: expected the LIDs of the table, as in [0-100], of which the last is at most 49151: "Unicast lids [0-x] of switch guid 0x10"`},
		{"lft", "dump_ucast_routes: Switch 10\n", `x:1: expected dump_ucast_routes: Switch 0x and the GUID of the switch: "dump_ucast_routes: Switch 10"`},
		{"lft", lft + "0x0001 256 # x\n", `x:2: expected a port in decimal after LID 1: "0x0001 256 # x"`},
		{"lft", lft + "0x0001 : UNREACHED\n", `x:2: expected a port in decimal after LID 1: "0x0001 : UNREACHED"`},
		{"lft", lft + "0xc000 001\n", `x:2: expected a LID from 0x0000 to 0xbfff and a space: "0xc000 001"`},
		{"lft", lft + "0x0001001\n", `x:2: expected a LID from 0x0000 to 0xbfff and a space: "0x0001001"`},
		{"lft", lft + "0x0001 001 # Switch portguid 0x12x: 'a'\n", `x:2: expected a port GUID in hexadecimal, which a colon, a parenthesis or a space ends: "0x0001 001 # Switch portguid 0x12x: 'a'"`},
		{"lft", lft + "0x0001 001 # Switch portguid 0x1234", `x:2: expected the end of the line: the file is cut short, or its last line needs a line feed: "0x0001 001 # Switch portguid 0x1234"`},
		{"lft", lft + "0x0001 00", `x:2: expected the end of the line: the file is cut short, or its last line needs a line feed: "0x0001 00"`},
		{"lft", lft + "0x0001 001\n0x0001 002\n", `x:3: expected one port for LID 1, but line 2 has 1 and this line 2`},
		{"lft", lft + "0x0001 001\n7 valid lids dumped \n", `x:3: expected as many entries as the last line of the table counts, not 1: "7 valid lids dumped"`},
		{"lft", lft + "0x0001 001\n9 lids dumped\n" + lft + "0x0001 001\n", `x:5: expected the table of switch 0x0000000000000010, from line 4, to end with a line such as 100 lids dumped, as others do; the table is cut short`},
		{"lft", lft + strings.Repeat("x", 1<<17), `x:2: expected a line of at most 65536 bytes`},
		{"hops", "", "x:0: expected switches that begin with Switch: guid 0x (opensm-lid-matrix.dump), and found none in 0 lines"},
		{"hops", "0x0001: 00\n", `x:1: expected the first line of a switch, Switch: guid 0x...: "0x0001: 00"`},
		{"hops", "Switch: 0x10\n", `x:1: expected Switch: guid 0x and the GUID of the switch: "Switch: 0x10"`},
		{"hops", "Switch: guid 0x10\n0x0001 00\n", `x:2: expected a LID from 0x0000 to 0xbfff and a colon: "0x0001 00"`},
		{"hops", "Switch: guid 0x10\n0x0001: 00 100\n", `x:2: expected numbers of hops by port, in hexadecimal up to ff, of 255 ports at most: "100"`},
		{"hops", "Switch: guid 0x10\n0x0001: 00 01\n0x0002: 00 01 02\n", `x:3: expected 2 numbers of hops, as for other LIDs of the switch, not 3`},
		{"hops", "Switch: guid 0x10\n0x0001: 00 01\n0x0002: 00 0", `x:3: expected the end of the line: the file is cut short, or its last line needs a line feed: "0x0002: 00 0"`},
		{"mft", "0xC000 : 0x001\n", `x:1: expected an entry (0xC000 ...) or the first line of a table (Switch 0x..., Multicast mlids ...): "0xC000 : 0x001"`},
		{"mft", "Switch 0x10 x\n", `x:1: expected 0x and the GUID of the switch: "Switch 0x10 x"`},
		{"mft", "Switch 0x10\n0xB000 : 0x001\n", `x:2: expected a multicast LID from 0xc000 to 0xfffe: "0xB000 : 0x001"`},
		{"mft", "Switch 0x10\n0xC000 : 0x007 0x001\n", `x:2: expected the ports of multicast LID 0xc000, as in 0x001  0x007, ascending: "0xC000 : 0x007 0x001"`},
		{"mft", "Switch 0x10\n0xC000 : 0x001\n0xC000 : 0x002\n", `x:3: expected multicast LIDs in ascending order: "0xC000 : 0x002"`},
		{"mft", "Multicast mlids [] of switch Lid 1 guid 0x10 (a):\n0xc000       x\n", `x:2: expected the ports of multicast LID 0xc000, an x below each after six spaces: "0xc000       x"`},
		{"mft", "Multicast mlids [] of switch Lid 1 guid 0x10 (a):\n MLid       Port Mask\n0xc000      123\n", `x:3: expected the ports of multicast LID 0xc000, as masks of four hexadecimal digits for each 16 ports: "0xc000      123"`},
		{"sl2vl", "", "x:0: expected tables of service levels of OpenSM, ibdmchk or smpquery sl2vl, and found none in 0 lines"},
		{"sl2vl", "Bridge 0x10, base LID 1\n", `x:1: expected a node, as in Switch 0x0002c90300001000, base LID 2, "name": "Bridge 0x10, base LID 1"`},
		{"sl2vl", "0 1 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7\n", `x:1: expected the ports in and out, a colon and VLs for 16 SLs, below the line that names their node: "0 1 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7"`},
		{"sl2vl", sl2vl + "0 1 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6\n", `x:2: expected the ports in and out, a colon and VLs for 16 SLs, below the line that names their node: "0 1 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6"`},
		{"sl2vl", sl2vl + "0 1 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 16\n", `x:2: expected the ports in and out, a colon and VLs for 16 SLs, below the line that names their node: "0 1 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 16"`},
		{"sl2vl", "0x10 0 1 0x01 0x23 0x45 0x67 0x89 0xab 0xcd\n", `x:1: expected 0x and the GUID of the node, the ports in and out, and VLs for 16 SLs in eight bytes, as in 0x01: "0x10 0 1 0x01 0x23 0x45 0x67 0x89 0xab 0xcd"`},
		{"sl2vl", "ports: in  0, out  0: | 0| 1| 2| 3| 4| 5| 6| 7| 0| 1| 2| 3| 4| 5| 6| 7|\n", `x:1: expected ports: in 0, out 1: | 0| 1|, with VLs for 16 SLs, below # SL2VL table: and whose it is: "ports: in  0, out  0: | 0| 1| 2| 3| 4| 5| 6| 7| 0| 1| 2| 3| ..."`},
		{"psl", "", "x:0: expected service levels of paths, and found none in 0 lines"},
		{"psl", "0x10 0x5 0\n", `x:1: expected 0x and a node GUID, a LID in decimal and an SL from 0 to 15: "0x10 0x5 0"`},
		{"psl", "0x10 5 16\n", `x:1: expected 0x and a node GUID, a LID in decimal and an SL from 0 to 15: "0x10 5 16"`},
		{"psl", "0x0005 : 1\n", `x:1: expected 0x, a LID, a colon and an SL from 0 to 15, below the line that names the source: "0x0005 : 1"`},
		{"psl", "hello\n", `x:1: expected a node, as in Channel Adapter 0x0002c90300001001, base LID 2, "name", or 0x, a node GUID, a LID and an SL: "hello"`},
		{"guids", "0x10\nspine-1\n", `x:2: expected a GUID, as in 0x0002c90300001000, and then nothing, a space or a #: "spine-1"`},
		{"guids", "0x10:1 0x20:2\n", `x:1: expected a GUID, as in 0x0002c90300001000, and then nothing, a space or a #: "0x10:1 0x20:2"`},
	}
	for _, test := range tests {
		got, err := readers[test.reader](strings.NewReader(test.in), "x")
		if err == nil {
			t.Errorf("%s %q: read %s", test.reader, test.in, got)
		} else if d := cmp.Diff(test.want, err.Error()); d != "" {
			t.Errorf("%s %.80q (-want +got):\n%s", test.reader, test.in, d)
		}
	}
	for name, read := range readers {
		_, err := read(io.MultiReader(strings.NewReader("# x\n\n"), iotest.ErrReader(errors.New("unplugged"))), "x")
		if want := "x: after line 2: unplugged"; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// bound is a switch of three ports, and hosts: on port 1 with LIDs 8 and 9, on
// port 2 with LID 5.
const bound = `switchguid=0x10
Switch 3 "S-0000000000000010" # "leaf" base port 0 lid 2 lmc 0
[1] "H-00000000000000a0"[1](a1) # "a" lid 8 4xHDR
[2] "H-00000000000000b0"[1](b1) # "b" lid 5 4xHDR

switchguid=0x20
Switch 3 "S-0000000000000020" # "other" base port 0 lid 3 lmc 0

caguid=0xa0
Ca 1 "H-00000000000000a0" # "a"
[1](a1) "S-0000000000000010"[1] # lid 8 lmc 1 "leaf" lid 2 4xHDR

caguid=0xb0
Ca 1 "H-00000000000000b0" # "b"
[1](b1) "S-0000000000000010"[2] # lid 5 lmc 0 "leaf" lid 2 4xHDR
`

func TestFind(t *testing.T) {
	f, err := format.Load(strings.NewReader("# Initiated from node 00000000000000a0 port 00000000000000a1\n"+bound), "net", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		ref  format.NodeRef
		want string
	}{
		{format.NodeRef{GUID: 0x10, LID: 5}, "leaf"},
		{format.NodeRef{GUID: 0xa1}, "a"},
		{format.NodeRef{LID: 9}, "a"},
		{format.NodeRef{Route: mad.DirectedRoute{0, 1, 2}}, "b"},
		{format.NodeRef{File: "x", Line: 3, GUID: 0x99}, "x:3: expected a node of the fabric, which has no GUID 0x0000000000000099"},
		{format.NodeRef{File: "x", Line: 3, LID: 99}, "x:3: expected a node of the fabric, which has no LID 99"},
		{format.NodeRef{File: "x", Line: 3, Route: mad.DirectedRoute{0, 1, 3}}, "x:3: expected a node of the fabric; route 0,1,3 leads to no node"},
	} {
		n, err := test.ref.Find(f)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = n.Name()
		}
		if got != test.want {
			t.Errorf("%+v: got %s, want %s", test.ref, got, test.want)
		}
	}
}
