package format

import (
	"strings"
	"testing"
)

// samples are beginnings of files of each kind, and of files that two kinds
// might take.
var samples = []struct {
	head string
	want FormatName
}{
	{"", FormatUnknown},
	{"# only\n", FormatUnknown},
	{"hello\n", FormatUnknown},
	{"12 13\n", FormatUnknown},
	{"Dear all,\n\nthis is a letter.\n", FormatUnknown},
	{"Switch 36 \"a\"\n", FormatUnknown}, // Load takes it
	{"#\n# x\n\nvendid=0x2c9\n", KindIbnetdiscover},
	{"Ca\t1 \"a\"\n", KindIbnetdiscover},
	{"CA     8  1 0x0c42a10300000601 4x FDR - SW", KindPortsReport},
	{"Ca\t : 0x0c42a10300000600 ports 1 devid", KindNodeList},
	{"Ca\t: 0x0c42a10300000600 ports 1 \"a\"", KindNodeList},
	{"CA: node-3 HCA-1:\n", KindLinkInfo},
	{"Switch: 0x0002c90300001030 leaf 1:\n", KindLinkInfo},
	{"[root@host ~]# iblinkinfo -l\n0x10 \"a\"  0  1[  ] ==( 4X 25.78125 Gbps Active/  LinkUp)==>  0x20  0  1[  ] \"b\" ( )\n", KindLinkInfo},
	{"=~=~ PuTTY log =~=~\r\n\r\nSW     0  8 0x0002c90300001030 4x SDR  'a'\r\n", KindPortsReport},
	{"{ SW Ports:08 SystemGUID:0 ", KindSubnet},
	{"# x\nMTS2400 S-1\n\tP1 -> MT1 H-1 P1", KindTopo},
	{"MTS2400 S-1 CFG: a=R\n   P1 -4X-5G-> MT1 H-1 P1", KindTopo},
	{"\ufeffA, a_port,b,b_port,notes\n", KindCables},
	{"# x\n\na;a_port;b;b_port\n", KindCables},
	{"a_port\ta\tb\tb_port\r\n", KindCables},
	{"a,a_port,b,b_port,a\n", FormatUnknown},
	{"# This database was made by ibdiagnet\n\nSTART_NODES\nNodeGUID\n", KindDBCSV},
	{"START_here\n", FormatUnknown},
	{"#StartDevice,StartPort,EndDevice,EndPort,LinkType\n", KindNDT},
	{",rack #,U height,#Fields:StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort,,\n", KindNDT},
	{"SYSTEM LEAF,LEAF:4x\n", KindIBNL},
	{"TOPSYSTEM A\n", KindIBNL},
	{"fabsh snapshot 1\n", KindSnapshot},
	{"\nfabsh snapshot 1\n", FormatUnknown},
	{"+\x83\xe7\x8f\x01\x00", KindCache},
	{"#\n+\x83\xe7\x8f\x01\x00", FormatUnknown},
	{"Unicast lids [0-9] of switch", KindLFTs},
	{"Unicast lids [0x0-0x9] of switch", KindIbroute},
	{"dump_ucast_routes: Switch 0x10", KindFDBs},
	{"# x\nFile version: 2\n\nSwitch 0x10 - a\n", KindFAR},
	{"Switch: guid 0x10", KindHops},
	{"\nSwitch 0x0002c90300001000\nLID    : Out", KindMFTs},
	{"Multicast mlids [0xc000-0xc3ff] of", KindIbrouteMFTs},
	{"Switch 0x10, base LID 2, \"a\"\n#in out : 0\n", KindSL2VL},
	{"Switch 0x10, base LID 2, \"a\"\n0  1 : 0 1\n", KindSL2VL},
	{"# SL2VL table: Lid 3\n", KindSmpquerySL2VL},
	{"0x10 0 1 0x01 0x23 0x45 0x67 0x89 0xab 0xcd 0xef\n", KindShortSL2VL},
	{"Channel Adapter 0x10, base LID 2\n0x0001 : 0\n", KindPathSL},
	{"0x10 154 0\n", KindPathSL},
	{"0x10 154 20\n", KindGUIDs},
	{"0x10 0x0001 0x0002\n\n", KindGUID2LID},
	{"0x10 \"name\" # x\n", KindNodeNames},
	{"0x10 # name\n", KindGUIDs},
	{"1234567\n", KindGUIDs},

	// Where the order of formats decides.
	{"Switch 0x10, base LID 2\nSwitch 0x10\n", KindSL2VL},
	{"Switch 0x10, base LID 2\nSYSTEM A\n", KindIBNL},
	{"Switch 0x10, base LID 2\nports: in 0\n", KindSmpquerySL2VL},
	{"Switch 0x10, base LID 2\n0x10 0 1 0x01 0x23 0x45 0x67 0x89 0xab 0xcd 0xef\n", KindPathSL},
	{"Switch 0x10, base LID 2\n0x10 \"name\"\n", KindPathSL},
	{"two words\n Switch 0x10, base LID 2, \"->\"\n12 -> 3\n", KindSL2VL},
	{"two words\n Switch 0x10 -> 3\n", KindMFTs},
	{"two words\n Ca\t->\n", KindIbnetdiscover},
	{"two words\n 12->3\n", KindTopo},
	{"two words\n 0x12->3 4\n", KindGUIDs},
	{"0x10 \"1 2 0x01 4 5 6 7 8 9 10\n", KindShortSL2VL},
}

func TestRecognise(t *testing.T) {
	for _, s := range samples {
		if got := Recognise([]byte(s.head)); got != s.want {
			t.Errorf("%q: got %q, want %q", s.head, got, s.want)
		}
	}
	_, err := Load(strings.NewReader("Unicast lids [0-9] of switch guid 0x10\n"), "x", nil)
	if want := "x: expected a topology, but this is forwarding tables (opensm-lfts.dump)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
