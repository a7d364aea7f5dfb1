package format_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/format"
	"fabsh/mad"
)

// far is the beginning of a file.
const far = `# Running version: x
File version: 2

Switch 0x0000000000000010 - leaf
some_setting: 1, other: 0xffff
Groups Definition:
  Group  Sub Group  WHBF  Ports
---------------------------------
`

// farLine describes the tables of a switch in a line.
func farLine(b io.Writer, f *format.FAR) {
	fmt.Fprintf(b, "%s %v", f.Position(), f.GUID)
	for plft, table := range f.Tables {
		if table == nil {
			continue
		}
		fmt.Fprintf(b, " pLFT %d top %d:", plft, table.Top())
		for lid := range table.Top() + 1 {
			if e := table.Entry(lid); e.Port != mad.NoPort || e.Group > 0 {
				fmt.Fprintf(b, " %d=%v:%d:%d", lid, e.State, e.Port, e.Group)
			}
		}
		fmt.Fprintf(b, " groups")
		for group := range table.Groups.Len() {
			fmt.Fprintf(b, " %v", table.Groups.SubGroupsOf(group))
		}
	}
}

func TestFARs(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"one table", far + "0 0 1 1,2,\n0 1 0 \n2    0     1      3,4,5,\n\nLFT Definition: PLFT_NUM: 0, top: 0x4\nLID Static Port Lid State Group\n----------\n0x0001 1 Static 0\n0x2 2  Free 2\n0x0003 3 HBF 0\n0x4 255 Bounded 2\n\n# end\n",
			"x:4 0x0000000000000010 pLFT 0 top 4: 1=static:1:0 2=free:2:2 3=hbf:3:0 4=bounded:255:2 groups [1-2 ] [ ] [3-5 ]\n"},
		{"private LFTs, titles on lines of their own", far + "1 0 0 1, 2\n2 0 0 3 4\nLFT Definition:\nPLFT_NUM: 2, top: 0x2\n-------\n0x1 1 Free 1\nLFT Definition: PLFT_NUM: 0, top: 0xffff\n-------\n0x1 3 Free 2\nSwitch 0x11\nLFT Definition: PLFT_NUM: 0, top: 0x1\n------\n",
			"x:4 0x0000000000000010 pLFT 0 top 49151: 1=free:3:2 groups [] [1-2] [3-4] pLFT 2 top 2: 1=free:1:1 groups [] [1-2] [3-4]\n" +
				"x:18 0x0000000000000011 pLFT 0 top 1: groups\n"},
		{"switches without tables", "File version: 1\nSwitch 0x12 - a\n\nSwitch 0x13 - b\nLFT Definition: PLFT_NUM: 0, top: 0x1\n------\n0x1 2 Static 0\n",
			"x:4 0x0000000000000013 pLFT 0 top 1: 1=static:2:0 groups\n"},
	}
	for _, test := range tests {
		got, err := readers["far"](strings.NewReader(test.in), "x")
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, d)
		}
	}
}

func TestFARErrors(t *testing.T) {
	const table = far + "1 0 0 1\n\nLFT Definition: PLFT_NUM: 0, top: 0x4\n------\n"
	tests := []struct{ in, want string }{
		{"", "x:0: expected switches that begin with Switch 0x and have a table LFT Definition (ibdiagnet2.far), and found none in 0 lines"},
		{"File version: 2\nSwitch 0x10 - leaf\n", "x:2: expected switches that begin with Switch 0x and have a table LFT Definition (ibdiagnet2.far), and found none in 2 lines"},
		{"Switch 0xx\n", `x:1: expected Switch 0x and the GUID of the switch: "Switch 0xx"`},
		{"Groups Definition:\n", `x:1: expected the line of the switch, Switch 0x..., first: "Groups Definition:"`},
		{far + "0 0 0 256\n", `x:9: expected ports from 0 to 254, separated by commas: "0 0 0 256"`},
		{far + "0 0 0 1-2\n", `x:9: expected ports from 0 to 254, separated by commas: "0 0 0 1-2"`},
		{far + "4096 0 0 1\n", `x:9: expected a group up to 4095, a sub-group up to 14, a weight, and ports: "4096 0 0 1"`},
		{far + "1 0\n", `x:9: expected a group up to 4095, a sub-group up to 14, a weight, and ports: "1 0"`},
		{far + "1 0 0 1\n1 0 0 2\nLFT Definition: PLFT_NUM: 0, top: 0x4\n------\n\n", "x:13: expected one line for sub-group 0 of group 1 of switch 0x0000000000000010, above this line"},
		{far + "1 0 0 1,", `x:9: expected the end of the line: the file is cut short`},
		{far + "\nLFT Definition: top: 0x4\n------\n", `x:11: expected PLFT_NUM and top, as in PLFT_NUM: 0, top: 0x40, before the entries: "------"`},
		{far + "\nLFT Definition: PLFT_NUM: 0, top: 4\n", `x:10: expected the highest LID, as in 0x40, after top: "LFT Definition: PLFT_NUM: 0, top: 4"`},
		{far + "\nLFT Definition: PLFT_NUM: 256\n", `x:10: expected a number of a private LFT from 0 to 255 after PLFT_NUM: "LFT Definition: PLFT_NUM: 256"`},
		{far + "\nLFT Definition: PLFT_NUM: 0, top: 0x4\nSwitch 0x11\n", `x:11: expected a line of dashes below the titles of a table: "Switch 0x11"`},
		{table + "0x1 1 Fast 1\n", `x:13: expected a LID in hexadecimal, a port, a state (Bounded, Free, Static, HBF) and a group up to 4095: "0x1 1 Fast 1"`},
		{table + "0x1 256 Free 1\n", `x:13: expected a LID in hexadecimal, a port, a state (Bounded, Free, Static, HBF) and a group up to 4095: "0x1 256 Free 1"`},
		{table + "0x5 1 Free 1\n", `x:13: expected LIDs up to 0x4, the top of the table: "0x5 1 Free 1"`},
		{table + "0x1 1 Free 1\n0x1 1 Free 1\n", `x:14: expected one entry for LID 0x1: "0x1 1 Free 1"`},
		{table + "\nLFT Definition: PLFT_NUM: 0, top: 0x4\n------\n", `x:15: expected one table for private LFT 0 of the switch: "------"`},
		{table + "0x1 1 Free 1", "x:13: expected the end of the line: the file is cut short"},
	}
	for _, test := range tests {
		got, err := readers["far"](strings.NewReader(test.in), "x")
		if err == nil {
			t.Errorf("%q: read %s", test.in, got)
		} else if d := cmp.Diff(test.want, err.Error()); d != "" {
			t.Errorf("%.80q (-want +got):\n%s", test.in, d)
		}
	}
}

func FuzzFARs(f *testing.F) { fuzzReader(f, "far", nil) }
