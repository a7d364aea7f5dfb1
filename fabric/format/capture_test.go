package format

import (
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
)

const capturedDump = `#
# Topology file: generated on Sat Nov 21 02:15:00 2026
#
# Initiated from node 00000000000000a0 port 00000000000000a1

vendid=0x2c9
devid=0xd2f0
sysimgguid=0x1
switchguid=0x1(1)
Switch	36 "S-0000000000000001"		# "leaf 1" enhanced port 0 lid 2 lmc 0
[1]	"H-00000000000000a0"[1](a1) 		# "node-1 HCA-1" lid 1 4xHDR
[2]	"H-00000000000000b0"[1](b1) 		# "node-2 HCA-1" lid 3 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0xa0
caguid=0xa0
Ca	1 "H-00000000000000a0"		# "node-1 HCA-1"
[1](a1) 	"S-0000000000000001"[1]		# lid 1 lmc 0 "leaf 1" lid 2 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0xb0
caguid=0xb0
Ca	1 "H-00000000000000b0"		# "node-2 HCA-1"
[1](b1) 	"S-0000000000000001"[2]		# lid 3 lmc 0 "leaf 1" lid 2 4xHDR
`

const capturedNodes = `fabric: 3 nodes (1 switch, 2 CAs), 2 links; the file does not state that it is whole
from node-1 HCA-1/1
switch "leaf 1" guid 1 image 1 vendor 2c9 device d2f0 ports 36 port guid 1 lid 2 lmc 0 enhanced true
  1 - 1 node-1 HCA-1/1 4xhdr
  2 - 2 node-2 HCA-1/1 4xhdr
ca "node-1 HCA-1" guid a0 image a0 vendor 2c9 device 101b ports 1
  1 - 0 leaf 1/1 4xhdr guid a1 lid 1 lmc 0
ca "node-2 HCA-1" guid b0 image b0 vendor 2c9 device 101b ports 1
  1 - 0 leaf 1/2 4xhdr guid b1 lid 3 lmc 0
`

// TestCaptures: what terminals and mail programs do to a dump loses nothing of it, and each
// line that is skipped is named.
func TestCaptures(t *testing.T) {
	lose := func(old, new string) func(string) string {
		return func(s string) string { return strings.ReplaceAll(s, old, new) }
	}
	const timedOut = "src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,1,31 Attr 0x11:0) bad status 110; Connection timed out\n"
	for _, c := range []struct {
		name   string
		change func(string) string
		want   string // problems, or an error
	}{
		{"byte order mark", func(s string) string { return byteOrderMark + s }, ""},
		{"CRLF", lose("\n", "\r\n"), ""},
		{"CRCRLF", lose("\n", "\r\r\n"), ""},
		{"tabs as spaces", lose("\t", "    "), ""},
		{"tabs lost", lose("\t", ""), ""},
		{"banner", func(s string) string { return "=~=~=~= PuTTY log 2021.06.15 =~=~=~=\r\n\r\n" + s },
			"left out: x:1: skipped 1 line before the dump, such as a banner or a prompt: =~=~=~= PuTTY log 2021.06.15 =~=~=~=\n"},
		{"prompts", func(s string) string {
			return "Welcome to node-1\nlast login: never\n[root@node-1 ~]# ibnetdiscover\n" + s + "[root@node-1 ~]# exit\nlogout\n"
		}, "left out: x:1: skipped 3 lines before the dump, such as a banner or a prompt: Welcome to node-1\n" +
			"left out: x:30: skipped 2 lines after the dump, such as a prompt: [root@node-1 ~]# exit\n"},
		{"messages", func(s string) string {
			s = strings.Replace(s, "[2]\t", "ibwarn: [4711] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0,1)\n[2]\t", 1)
			return timedOut + strings.Replace(s, "Ca\t", timedOut+"Ca\t", 1)
		}, "timed out: x:1: skipped 3 lines of messages of the tool; the dump lacks what timed out: src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,1,31 ...\n"},
		{"LIDs", func(s string) string {
			return lose("lid 3 ", "lid  ")(strings.Replace(s, "lid 1 lmc", "lid 65535 lmc", 1))
		}, "lids are unknown: x:19: 2 records have no valid LID, which is unknown: no number, or one above 49151\n"},

		{"a prompt between", lose("caguid=0xa0", "[root@node-1 ~]# date\ncaguid=0xa0"), `x:17: expected a record of a node (Switch, Ca, Rt), a port line ([1] ...), a setting (vendid=...) or a comment (#): "[root@node-1 ~]# date"`},
		{"a message in a line", lose("[2]\t", "ibwarn: [1] timed out[2]\t"), `x:12: expected a record of a node (Switch, Ca, Rt), a port line ([1] ...), a setting (vendid=...) or a comment (#): "ibwarn: [1] timed out[2]\t\"H-00000000000000b0\"[1](b1) \t\t# \"no..."`},
		{"cut in a word", func(s string) string { return s + "\nvendi" }, `x:28: expected a record of a node (Switch, Ca, Rt), a port line ([1] ...), a setting (vendid=...) or a comment (#): "vendi"`},
		{"no dump", func(string) string { return "Dear all,\n\nthis is a letter.\n" }, `x:1: expected a record of a node (Switch, Ca, Rt), a port line ([1] ...), a setting (vendid=...) or a comment (#): "Dear all,"`},
		{"a net file", func(string) string { return "hello\nCa 1 \"a\"\n" }, `x:1: expected a record of a node (Switch, Ca, Rt), a port line ([1] ...), a setting (vendid=...) or a comment (#): "hello"`},
		{"a net file's end", func(string) string { return "Ca 1 \"a\"\nhello\n" }, `x:2: expected a record of a node (Switch, Ca, Rt), a port line ([1] ...), a setting (vendid=...) or a comment (#): "hello"`},
	} {
		f, err := Load(strings.NewReader(c.change(capturedDump)), "x", nil)
		got, want := fmt.Sprint(err), c.want
		if err == nil {
			got, want = describe(f), capturedNodes+want
			if c.name == "messages" {
				want = strings.Replace(want, "; the file does not state that it is whole", ", incomplete: 1 timed out", 1)
			}
			if c.name == "LIDs" {
				want = strings.NewReplacer("a1 lid 1", "a1 lid 0", "b1 lid 3", "b1 lid 0").Replace(want)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

const capturedReport = `CA     1  1 0x00000000000000a1 4x HDR - SW     2  1 0x0000000000000001 ( 'node-1 HCA-1' - 'leaf 1' )
SW     2  3 0x0000000000000001 4x SDR                                    'leaf 1'
SW     2  2 0x0000000000000001 4x HDR - CA     3  1 0x00000000000000b1 ( 'leaf 1' - 'node-2 HCA-1' )
SW     2  1 0x0000000000000001 4x HDR - CA     1  1 0x00000000000000a1 ( 'leaf 1' - 'node-1 HCA-1' )
CA     3  1 0x00000000000000b1 4x HDR - SW     2  2 0x0000000000000001 ( 'node-2 HCA-1' - 'leaf 1' )
CA     9  2 0x00000000000000b2 4x HDR                                    'node-2 HCA-1'
`

const capturedLinks = `CA: node-1 HCA-1:
      0x00000000000000a1      1    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       2    1[  ] "leaf 1" ( )
Switch: 0x0000000000000001 leaf 1:
           2    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp) (HOQ:18 VL_Stall:7)==>       1    1[  ] "node-1 HCA-1" ( )
           2    2[  ] ==( 4X        53.125 Gbps Active/  LinkUp) (HOQ:18 VL_Stall:7)==>       3    1[ 4] "node-2 HCA-1" (Could be 12X)
           2    3[  ] ==(                Down/ Polling)==>             [  ] "" ( )
CA: node-2 HCA-1:
      0x00000000000000b1      3    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       2    2[  ] "leaf 1" ( )
      0x00000000000000b2      9    2[  ] ==(                Down/Disabled)==>             [  ] "" ( )
`

const capturedLines = `0x00000000000000a1 "                  node-1 HCA-1"      1    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>  0x0000000000000001      2    1[  ] "leaf 1" ( )
0x0000000000000001 "                        leaf 1"      2    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>  0x00000000000000a1      1    1[  ] "node-1 HCA-1" ( )
0x0000000000000001 "                        leaf 1"      2    2[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>  0x00000000000000b1      3    1[  ] "node-2 HCA-1" ( )
0x0000000000000001 "                        leaf 1"      2    3[  ] ==(                Down/ Polling)==>             [  ] "" ( )
0x00000000000000b1 "                  node-2 HCA-1"      3    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>  0x0000000000000001      2    2[  ] "leaf 1" ( )
0x00000000000000b2 "                  node-2 HCA-1"      9    2[  ] ==(                Down/Disabled)==>             [  ] "" ( )
`

const listedNodes = `fabric: 3 nodes (1 switch, 2 CAs), 2 links; the file does not state that it is whole
switch "leaf 1" guid 1 image 0 vendor 0 device 0 ports 3 port guid 1 lid 2 lmc 0
  1 - 1 node-1 HCA-1/1 4xhdr
  2 - 2 node-2 HCA-1/1 4xhdr
ca "node-1 HCA-1" guid a1 image 0 vendor 0 device 0 ports 1
  1 - 0 leaf 1/1 4xhdr guid a1 lid 1 lmc 0
ca "node-2 HCA-1" guid b1 image 0 vendor 0 device 0 ports 2
  1 - 0 leaf 1/2 4xhdr guid b1 lid 3 lmc 0
`

const listLacks = "left out: x is a list of ports: models, GUIDs of systems, and GUIDs of CAs are unknown; a CA has the GUID of its first port\n"

// loadCase is a file, and the fabric that it describes or the error.
type loadCase struct{ name, text, want string }

func testLoads(t *testing.T, cases []loadCase) {
	t.Helper()
	for _, c := range cases {
		f, err := Load(strings.NewReader(c.text), "x", nil)
		got := fmt.Sprint(err)
		if err == nil {
			got = describe(f)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// TestCutDumps: a dump that ends anywhere, or lacks a line, is an error, or has a note, or
// is the whole fabric: it is never a smaller one without a note. A list that ends within a line
// is never a smaller fabric that claims to be complete, and no part of it is called a prompt;
// only one that ends with a line may show nothing of what follows.
func TestCutDumps(t *testing.T) {
	for name, text := range map[string]string{"ibnetdiscover": capturedDump, "ibnetdiscover -p": capturedReport, "iblinkinfo": capturedLinks, "iblinkinfo -l": capturedLines} {
		whole, err := Load(strings.NewReader(text), "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what, part string) {
			f, err := Load(strings.NewReader(part), "x", nil)
			switch {
			case err != nil:
			case name != "ibnetdiscover" && strings.HasPrefix(text, part) && strings.HasSuffix(part, "\n"):
			case f.String() != whole.String() && len(f.Problems()) <= len(whole.Problems()):
				t.Errorf("%s, %s: %s, without a note", name, what, f)
			case name != "ibnetdiscover" && !strings.HasSuffix(part, "\n") && f.Complete() && f.String() != whole.String():
				t.Errorf("%s, %s: %s, of %s", name, what, f, whole)
			case strings.Contains(fmt.Sprint(f.Problems()), "such as a prompt"):
				t.Errorf("%s, %s: %s: a part of it is called a prompt: %v", name, what, f, f.Problems())
			}
		}
		for i := range text {
			check(fmt.Sprintf("cut at %d", i), text[:i])
		}
		lines := strings.SplitAfter(text, "\n")
		for i := range lines {
			check(fmt.Sprintf("without line %d", i+1), strings.Join(lines[:i], "")+strings.Join(lines[i+1:], ""))
		}
	}
}

// tableTexts are tables of each format, and what reads them.
var tableTexts = []struct {
	name, text string
	read       func(r io.Reader) error
}{
	{"opensm-lfts", "Unicast lids [0-2] of switch Lid 2 guid 0x0c42a10300001000 ('rack 1'):\n0x0001 001 # host\n0x0002 000 # here\n2 lids dumped\n", drained(LFTs)},
	{"ibroute", "Unicast lids [0x0-0x2] of switch Lid 2 guid 0x0c42a10300001000 (rack 1):\n  Lid  Out   Destination\n       Port     Info \n0x0001 001 : (Channel Adapter portguid 0x0c42a10300000101: 'node 1')\n1 valid lids dumped \n", drained(LFTs)},
	{"opensm.fdbs", "dump_ucast_routes: Switch 0x0c42a10300001000\nLID    : Port : Hops : Optimal\n0x0001 : 001  : 01   : yes\n", drained(LFTs)},
	{"opensm-sl2vl", "Channel Adapter 0x0002c90300001001, base LID 2, \"node\"\n#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15\n1 0 : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 7\n", drained(SL2VLs)},
	{"ibdm-sl2vl", "0x0002c90000000201 5 1 0x01 0x23 0x45 0x67 0x89 0xab 0xcd 0xe7\n", drained(SL2VLs)},
	{"smpquery sl2vl", "# SL2VL table: Lid 2\n#                 SL: | 0| 1|\nports: in  0, out  0: | 0| 1| 2| 3| 4| 5| 6| 7| 0| 1| 2| 3| 4| 5| 6| 7|\n", drained(SL2VLs)},
	{"path-sl", "Channel Adapter 0x0002c90300001001, base LID 2, \"node\"\n0x009a : 0\n", drained(PathSLs)},
	{"opensm-lid-matrix", "Switch: guid 0x0c42a10300001000\n0x0002: 00 ff 02 02 # portguid 0x0c42a10300001000\n", drained(HopRows)},
	{"opensm.mcfdbs", "Switch 0x0c42a10300001000\nLID    : Out Port(s)\n0xC000 : 0x001  0x007\n", drained(MFTs)},
	{"ibroute -M", "Multicast mlids [0xc000-0xc3ff] of switch Lid 2 guid 0x0c42a10300001000 (rack 1):\n            0                   1\n     Ports: 0 1 2 3 4 5 6 7 8 9 0\n MLid\n0xc000        x     x\n1 valid mlids dumped \n", drained(MFTs)},
	{"ibdiagnet2.far", "File version: 1\nSwitch 0x0c42a10300001000 - rack 1\nGroups Definition:\nGroup Sub Weight Ports\n------\n1 0 1 5,6,\n\nLFT Definition: PLFT_NUM: 0, top: 0x1\nLID Port State Group\n------\n0x0001 5 Free 1\n\n", drained(FARs)},
}

// drained returns a function that reads all rows.
func drained[T any](rows func(io.Reader, string) iter.Seq2[T, error]) func(io.Reader) error {
	return func(r io.Reader) error {
		n := 0
		for _, err := range rows(r, "x") {
			if err != nil {
				return err
			}
			n++
		}
		if n == 0 {
			return fmt.Errorf("no rows")
		}
		return nil
	}
}

// TestPreambles: a banner or a prompt before a table is skipped with a note. Without a place for
// the note, and where the table has lost its beginning, the file is refused as before.
func TestPreambles(t *testing.T) {
	const banner = "PuTTY\r\n\r\nWelcome to sw-1, up 2 days\r\n[root@a ~]# dump -D 0,1 0x0c42a10300001000\r\n"
	for _, x := range tableTexts {
		var notes []string
		capture := func(text string) error {
			notes = nil
			return x.read(&Capture{Reader: strings.NewReader(text), Note: func(s string) { notes = append(notes, s) }})
		}
		if err := capture(x.text); err != nil || len(notes) > 0 {
			t.Errorf("%s alone: %v, notes %q", x.name, err, notes)
		}
		want := []string{"x:1: skipped 3 lines before the table, such as a banner or a prompt: PuTTY"}
		if err := capture(banner + strings.ReplaceAll(x.text, "\n", "\r\n")); err != nil || !cmp.Equal(want, notes) {
			t.Errorf("%s captured: %v, notes %q", x.name, err, notes)
		}
		for _, text := range []string{banner, banner + "end\n", "hello\n", banner + "0x0001 001 # host\n" + x.text, banner + "1 lids dumped\n" + x.text} {
			strict := x.read(strings.NewReader(text))
			err := capture(text)
			if strings.HasSuffix(text, x.text) && x.name == "ibdiagnet2.far" {
				continue // its reader ignores all lines before a switch
			}
			if err == nil || strict == nil || err.Error() != strict.Error() || len(notes) > 0 {
				t.Errorf("%s: %q: %v, want %v; notes %q", x.name, fabric.Clip(text), err, strict, notes)
			}
		}
		// Line numbers match the file.
		broken := banner + x.text + "~\n"
		err := capture(broken)
		if at := fmt.Sprintf("x:%d: ", strings.Count(broken, "\n")); x.name != "ibdiagnet2.far" && (err == nil || !strings.HasPrefix(err.Error(), at)) {
			t.Errorf("%s with a broken line: %v, want an error at %s", x.name, err, at)
		}
	}
}

func FuzzPreambles(f *testing.F) {
	for i, x := range tableTexts {
		f.Add(i, "PuTTY\r\n[root@a ~]# dump\r\n"+x.text)
		f.Add(i, "\n# x\n1\n"+x.text)
		f.Add(i, x.text+"[root@a ~]# exit\nlogout\n")
	}
	f.Fuzz(func(t *testing.T, i int, text string) {
		x := tableTexts[uint(i)%uint(len(tableTexts))]
		notes := 0
		err := x.read(&Capture{Reader: strings.NewReader(text), Note: func(string) { notes++ }})
		strict := x.read(strings.NewReader(text))
		if notes == 0 && (err == nil) != (strict == nil) || notes > 2 {
			t.Errorf("%d notes; %v, strict %v", notes, err, strict)
		}
	})
}

// TestPostambles: a prompt after the tables, and what follows, are skipped with a note. Without a
// place for the note, and above another row, the file is refused; so are lines without a prompt.
func TestPostambles(t *testing.T) {
	for _, x := range tableTexts {
		var notes []string
		capture := func(text string) error {
			notes = nil
			return x.read(&Capture{Reader: strings.NewReader(text), Note: func(s string) { notes = append(notes, s) }})
		}
		at := "x:" + strconv.Itoa(strings.Count(x.text, "\n")+1)
		for _, c := range []struct{ after, want string }{
			{"[root@a ~]# ", ": skipped 1 line after the table, such as a prompt: [root@a ~]#"},
			{"[root@a ~]# exit\r\n\r\nlogout\r\nConnection to a closed.\r\n", ": skipped 3 lines after the table, such as a prompt: [root@a ~]# exit"},
			{"root@a:~/dumps$ exit\n", ": skipped 1 line after the table, such as a prompt: root@a:~/dumps$ exit"},
			{"sw-1 [standalone: master] > \n", ": skipped 1 line after the table, such as a prompt: sw-1 [standalone: master] >"},
		} {
			if err := capture(x.text + c.after); err != nil || !cmp.Equal([]string{at + c.want}, notes) {
				t.Errorf("%s: %q: %v, notes %q", x.name, c.after, err, notes)
			}
		}
		if x.name == "ibdiagnet2.far" {
			continue // its reader ignores all lines before a switch
		}
		if err := capture(x.text + "ibwarn: [1] timed out\n"); err != nil || !cmp.Equal([]string{at + ": skipped 1 line among the tables, such as a message of the tool or a prompt: ibwarn: [1] timed out"}, notes) {
			t.Errorf("%s: a message: %v, notes %q", x.name, err, notes)
		}
		if err := capture(x.text + "[root@a ~]# dump\n" + x.text); err != nil || !cmp.Equal([]string{at + ": skipped 1 line among the tables, such as a message of the tool or a prompt: [root@a ~]# dump"}, notes) {
			t.Errorf("%s: a prompt between two tables: %v, notes %q", x.name, err, notes)
		}
		for _, after := range []string{"hello\n", "[root@a ~]# x\n0x0003 001\n", "[root@a ~]#\n" + strings.Repeat("y\n", maxPostamble)} {
			strict, err := x.read(strings.NewReader(x.text+after)), capture(x.text+after)
			if err == nil || strict == nil || err.Error() != strict.Error() || len(notes) > 0 {
				t.Errorf("%s: %q: %v, want %v; notes %q", x.name, fabric.Clip(after), err, strict, notes)
			}
		}
	}
}

// TestPrompts: lines of tables are not taken for prompts.
func TestPrompts(t *testing.T) {
	for _, x := range tableTexts {
		for line := range strings.Lines(x.text) {
			if isPrompt([]byte(strings.TrimSpace(line))) {
				t.Errorf("%s: %q is a prompt", x.name, line)
			}
		}
	}
}
