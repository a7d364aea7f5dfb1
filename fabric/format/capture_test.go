package format

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

const capturedNodes = `fabric: 3 nodes (1 switch, 2 CAs), 2 links, complete
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
				want = strings.Replace(want, "complete", "incomplete: 1 timed out", 1)
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

const listedNodes = `fabric: 3 nodes (1 switch, 2 CAs), 2 links, complete
switch "leaf 1" guid 1 image 0 vendor 0 device 0 ports 3 port guid 1 lid 2 lmc 0
  1 - 1 node-1 HCA-1/1 4xhdr
  2 - 2 node-2 HCA-1/1 4xhdr
ca "node-1 HCA-1" guid a1 image 0 vendor 0 device 0 ports 1
  1 - 0 leaf 1/1 4xhdr guid a1 lid 1 lmc 0
ca "node-2 HCA-1" guid b1 image 0 vendor 0 device 0 ports 2
  1 - 0 leaf 1/2 4xhdr guid b1 lid 3 lmc 0
`

const listLacks = "left out: x is a list of ports: models, GUIDs of systems, and GUIDs of CAs are unknown; a CA has the GUID of its first port\n"

// TestPortLists: lists of ports have nodes and links as far as they go.
func TestPortLists(t *testing.T) {
	cutShort := strings.Replace(listedNodes, "complete", "incomplete: 1 cut short", 1)
	testLoads(t, []loadCase{
		{"ibnetdiscover -p", capturedReport, listedNodes + listLacks},
		{"iblinkinfo", capturedLinks, listedNodes + listLacks},
		{"iblinkinfo -l", capturedLines, listedNodes + "left out: x has no types of nodes: a GUID with several ports is taken for that of a switch; make it without -l\n" + listLacks},
		{"captured", "PuTTY log\r\n[root@a ~]# iblinkinfo\r\n" + strings.ReplaceAll(capturedLinks, "\n", "\r\n") + "[root@a ~]#", listedNodes +
			listLacks + "left out: x:12: skipped 1 line after the dump, such as a prompt: [root@a ~]#\nleft out: x:1: skipped 2 lines before the dump, such as a banner or a prompt: PuTTY log\n"},
		{"a line is missing", strings.Join(strings.SplitAfter(capturedReport, "\n")[1:], ""), cutShort +
			"cut short: x:3: 1 port has no line and was derived from the other end; the list is partial, or lines are missing\n" + listLacks},
		{"no end of a line", strings.TrimSuffix(capturedReport, "\n"), cutShort + "cut short: x:6: the last line has no line end; the file may be cut short\n" + listLacks},
		{"cut in a line", capturedLinks[:strings.LastIndex(capturedLinks, "==(")+1], `x:9: expected a node as in Switch: 0x0002c90300001000 leaf 1:, or a link as in 3    1[  ] ==( 4X 25.78125 Gbps Active/  LinkUp)==> ...: "      0x00000000000000b2      9    2[  ] ="`},
		{"cut in a line, then a prompt", capturedLinks[:strings.LastIndex(capturedLinks, "==(")+1] + "\n[root@a ~]# ", `x:9: expected a node as in Switch: 0x0002c90300001000 leaf 1:, or a link as in 3    1[  ] ==( 4X 25.78125 Gbps Active/  LinkUp)==> ...: "      0x00000000000000b2      9    2[  ] ="`},
		{"an end is missing", strings.Join(strings.SplitAfter(capturedLinks, "\n")[2:], ""), `fabric: 2 nodes (1 switch, 1 CA), 1 link, incomplete: 1 cut short
switch "leaf 1" guid 1 image 0 vendor 0 device 0 ports 3 port guid 1 lid 2 lmc 0
  2 - 1 node-2 HCA-1/1 4xhdr
ca "node-2 HCA-1" guid b1 image 0 vendor 0 device 0 ports 2
  1 - 0 leaf 1/2 4xhdr guid b1 lid 3 lmc 0
cut short: x has 1 link without a line of the other end, which were left out (x:2); make it of the whole fabric, or with -l
` + listLacks},
		{"names of several nodes", strings.Repeat("CA: a:\n      0xa1      0    1[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==>       0    1[  ] \"leaf\" ( )\n", 2),
			`x:4: expected one link from port 1 of "a" to port 1 of "leaf", but x:2 has one too: several nodes have these names; make the list with iblinkinfo -l, which has GUIDs`},
		{"disagreement", strings.Replace(capturedReport, "SW     2  1 0x0000000000000001 4x HDR - CA     1  1 0x00000000000000a1", "SW     2  1 0x0000000000000001 4x HDR - CA     1  1 0x00000000000000b1", 1),
			`x:1: expected "S-0000000000000001"[1] to be connected to "H-00000000000000a1"[1], but x:4 has "H-00000000000000b1"[1]`},
		{"twice", capturedReport + "SW     2  3 0x0000000000000001 4x SDR    'leaf 1'\n", "x:7: expected one line for port 3 of leaf 1, but x:2 is one too"},
		{"garbage between", strings.Replace(capturedReport, "\n", "\nhello\n", 1), `x:2: expected a port as in CA     3  1 0x0002c90300000011 4x EDR - SW     1  5 0x0002c90300001000 ( 'node-1 HCA-1' - 'leaf 1' ): "hello"`},
	})
}

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

// TestNodeLists: lists of nodes have no links, and what they lack is unknown.
func TestNodeLists(t *testing.T) {
	const lacks = "left out: x is a list of nodes: links, and GUIDs of ports and systems, are unknown\n"
	testLoads(t, []loadCase{
		{"ibnetdiscover -l", "Ca\t : 0x00000000000000a0 ports 2 devid 0x1013 vendid 0x2c9 \"node-1 HCA-1\"\nSwitch\t : 0x0000000000000001 ports 36 devid 0xcb20 vendid 0x2c9 \"leaf 1\"\n",
			"fabric: 2 nodes (1 switch, 1 CA), 0 links, complete\n" +
				"switch \"leaf 1\" guid 1 image 0 vendor 2c9 device cb20 ports 36 port guid 1 lid 0 lmc 0\nca \"node-1 HCA-1\" guid a0 image 0 vendor 2c9 device 1013 ports 2\n" + lacks},
		{"ibnodes", "Ca\t: 0x00000000000000a0 ports 2 \"node-1 HCA-1\"\nSwitch\t: 0x0000000000000001 ports 36 \"leaf 1\" enhanced port 0 lid 7 lmc 0\n",
			"fabric: 2 nodes (1 switch, 1 CA), 0 links, complete\n" +
				"switch \"leaf 1\" guid 1 image 0 vendor 0 device 0 ports 36 port guid 1 lid 7 lmc 0 enhanced true\nca \"node-1 HCA-1\" guid a0 image 0 vendor 0 device 0 ports 2\n" + lacks},
		{"twice", "Ca\t: 0xa0 ports 2 \"a\"\nCa\t: 0xa0 ports 2 \"a\"\n", "x:2: expected one line for node 0x00000000000000a0, but x:1 is one too"},
		{"ports", "Ca\t: 0xa0 ports 300 \"a\"\n", `x:1: expected 1 to 254 ports: "Ca\t: 0xa0 ports 300 \"a\""`},
	})
}

// TestCutDumps: a dump that ends anywhere, or lacks a line, is an error, or has a note, or
// is the same fabric: it is never a smaller one without a note. A list that ends within a line
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
