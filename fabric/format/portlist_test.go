package format

import (
	"strings"
	"testing"
)

// TestPortLists: lists of ports have nodes and links as far as they go.
func TestPortLists(t *testing.T) {
	cutShort := strings.Replace(listedNodes, "; the file does not state that it is whole", ", incomplete: 1 cut short", 1)
	testLoads(t, []loadCase{
		{"ibnetdiscover -p", capturedReport, listedNodes + listLacks},
		{"iblinkinfo", capturedLinks, listedNodes + listLacks},
		{"iblinkinfo -l", capturedLines, listedNodes + "left out: x has no types of nodes: a GUID with several ports is taken for that of a switch; make it without -l\n" + listLacks},
		{"captured", "PuTTY log\r\n[root@a ~]# iblinkinfo\r\n" + strings.ReplaceAll(capturedLinks, "\n", "\r\n") + "[root@a ~]#", listedNodes +
			listLacks + "left out: x:12: skipped 1 line after the dump, such as a prompt: [root@a ~]#\nleft out: x:1: skipped 2 lines before the dump, such as a banner or a prompt: PuTTY log\n"},
		{"a line is missing", strings.Join(strings.SplitAfter(capturedReport, "\n")[1:], ""), cutShort +
			"cut short: x:3: 1 port has no line and was derived from the other end; the list is partial, or lines are missing\n" + listLacks},
		{"no end of a line", strings.TrimSuffix(capturedReport, "\n"), cutShort + "cut short: x:6: the last line has no line end; the file may be cut short; if it is whole, add a line feed\n" + listLacks},
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
