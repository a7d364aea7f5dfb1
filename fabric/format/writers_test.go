package format_test

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// TestWriters: what peers on the nets of other tests do not show.
func TestWriters(t *testing.T) {
	f, err := format.Load(strings.NewReader(strings.Replace(bound, "\"other\"", "\"0123456789012345678901234567890123456789012345678901234567890123\"", 1)), "net", nil)
	if err != nil {
		t.Fatal(err)
	}
	lanes := func(in, out *fabric.Port) (vls [16]uint8, ok bool) {
		vls[1] = uint8(out.Num())
		if in != nil {
			vls[2] = uint8(in.Num())
		}
		return vls, in == nil || in.Num() < 2
	}
	table := []byte{255, 255, 0, 3, 255, 2, 4, 255, 1}
	row := func(n *fabric.Node) []byte {
		if n.GUID() == 0x20 {
			return table
		}
		return nil
	}
	hops := func(_ *fabric.Node, lid mad.LID, hops []byte) bool {
		copy(hops, []byte{2, 5, 2, 255})
		return lid == 2 || lid == 5
	}
	tables := &format.Tables{
		LFT:   row,
		Hops:  func() (format.HopsFunc, error) { return hops, nil },
		SL:    func(src *fabric.Port, dlid mad.LID) (uint8, bool) { return uint8(dlid), dlid != 9 },
		SL2VL: lanes,
	}
	dump := func(w io.Writer, kind format.FormatName) error { return format.Dump(w, f, kind) }
	dumpTables := func(w io.Writer, kind format.FormatName) error { return format.DumpTables(w, f, kind, tables) }
	for _, test := range []struct {
		kind  format.FormatName
		write func(io.Writer, format.FormatName) error
		want  string
	}{
		{"opensm-lfts", dumpTables, `Unicast lids [0-8] of switch Lid 3 guid 0x0000000000000020 ('012345678901234567890123456789012345678901234567890123456789012'):
0x0002 000 # Switch portguid 0x0000000000000010: 'leaf'
0x0003 003 # Switch portguid 0x0000000000000020: '012345678901234567890123456789012345678901234567890123456789012'
0x0005 002 # Channel Adapter portguid 0x00000000000000b1: 'b'
0x0008 001 # Channel Adapter portguid 0x00000000000000a1: 'a'
8 lids dumped
`},
		{"opensm-fdbs", dumpTables, `dump_ucast_routes: Switch 0x0000000000000020
LID    : Port : Hops : Optimal
0x0001 : UNREACHABLE
0x0002 : 000  : 02   : yes
0x0003 : 003  : HOPS UNKNOWN
0x0004 : UNREACHABLE
0x0005 : 002  : 02   : yes
0x0006 : UNREACHABLE
0x0007 : UNREACHABLE
0x0008 : 001  : 06   : No 3 hop path possible via port 2!
`},
		{"opensm-lid-matrix", dumpTables, `Switch: guid 0x0000000000000010
0x0002: 02 05 02 ff # portguid 0x0000000000000010
0x0005: 02 05 02 ff # portguid 0x00000000000000b1
Switch: guid 0x0000000000000020
0x0002: 02 05 02 ff # portguid 0x0000000000000010
0x0005: 02 05 02 ff # portguid 0x00000000000000b1
`},
		{"opensm-sl2vl", dumpTables, `Switch 0x0000000000000010, base LID 2, "leaf"
#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15
#--------------------------------------------------------
0   1   : 0  1  0  0  0  0  0  0  0  0  0  0  0  0  0  0 
1   1   : 0  1  1  0  0  0  0  0  0  0  0  0  0  0  0  0 
0   2   : 0  2  0  0  0  0  0  0  0  0  0  0  0  0  0  0 
1   2   : 0  2  1  0  0  0  0  0  0  0  0  0  0  0  0  0 
#--------------------------------------------------------

Switch 0x0000000000000020, base LID 3, "012345678901234567890123456789012345678901234567890123456789012"
#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15
#--------------------------------------------------------
#--------------------------------------------------------

Channel Adapter 0x00000000000000a1, base LID 8, "a"
#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15
#--------------------------------------------------------
0   0   : 0  1  0  0  0  0  0  0  0  0  0  0  0  0  0  0 
#--------------------------------------------------------

Channel Adapter 0x00000000000000b1, base LID 5, "b"
#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15
#--------------------------------------------------------
0   0   : 0  1  0  0  0  0  0  0  0  0  0  0  0  0  0  0 
#--------------------------------------------------------

`},
		{"ibdm-sl2vl", dumpTables, `0x0000000000000010 0 1 0x01 0x00 0x00 0x00 0x00 0x00 0x00 0x00
0x0000000000000010 1 1 0x01 0x10 0x00 0x00 0x00 0x00 0x00 0x00
0x0000000000000010 0 2 0x02 0x00 0x00 0x00 0x00 0x00 0x00 0x00
0x0000000000000010 1 2 0x02 0x10 0x00 0x00 0x00 0x00 0x00 0x00
0x00000000000000a0 0 1 0x01 0x00 0x00 0x00 0x00 0x00 0x00 0x00
0x00000000000000b0 0 1 0x01 0x00 0x00 0x00 0x00 0x00 0x00 0x00
`},
		{"path-sl", dumpTables, `Channel Adapter 0x00000000000000a1, base LID 8, "a"
0x0005 : 5
Channel Adapter 0x00000000000000b1, base LID 5, "b"
0x0008 : 8
`},
		{"guid2lid", dump, "0x0000000000000010 0x0002 0x0002\n\n0x0000000000000020 0x0003 0x0003\n\n0x00000000000000a1 0x0008 0x0009\n\n0x00000000000000b1 0x0005 0x0005\n\n"},
		{"node-name-map", dump, `0x0000000000000010 "leaf"
0x0000000000000020 "0123456789012345678901234567890123456789012345678901234567890123"
0x00000000000000a0 "a"
0x00000000000000b0 "b"
`},
	} {
		t.Run(string(test.kind), func(t *testing.T) {
			var b strings.Builder
			if err := test.write(&b, test.kind); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, b.String()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if got := format.Recognise([]byte(b.String())); got != test.kind {
				t.Errorf("recognised as %q", got)
			}
			if err := test.write(brokenWriter{}, test.kind); err == nil {
				t.Error("no error of a writer that takes nothing")
			}
		})
	}
	names, err := format.ReadNodeNames(strings.NewReader("0x10 \"leaf\"\n0x10 \"spine\"\n0x20\n"), "x")
	if d := cmp.Diff(map[mad.GUID]string{0x10: "spine"}, names); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	guids, err := format.ReadGUIDs(strings.NewReader("0x20 # x\n0x10\n"), "x")
	if d := cmp.Diff([]mad.GUID{0x20, 0x10}, guids); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
