package format_test

import (
	"bytes"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// fuzzReader feeds a reader, which may refuse, saying where; again does with
// what was read.
func fuzzReader(f *testing.F, name string, again func(t *testing.T, text string)) {
	for _, seed := range seeds[name] {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := readers[name](strings.NewReader(text), "x")
		switch {
		case err != nil && !strings.HasPrefix(err.Error(), "x:"):
			t.Error(err)
		case err == nil && again != nil:
			again(t, text)
		}
	})
}

var seeds = map[string][]string{
	"lft": {
		"Unicast lids [0-4] of switch Lid 2 guid 0x10 ('a'):\n0x0002 000 # Switch portguid 0x10: 'a'\n4 lids dumped\n",
		"Unicast lids [0x0-0x8] of switch DR path slid 0; dlid 0; 0,1 guid 0x10 (a):\n  Lid  Out   Destination\n       Port     Info \n0x0005 002 : (path #2 out of 4: portguid 0xa1)\n1 valid lids dumped \nMulticast mlids [0xc000-0xc3ff] of switch Lid 2 guid 0x10 (a):\nx\n",
		"dump_ucast_routes: Switch 0x10\nLID    : Port : Hops : Optimal\n0x0001 : 004  : 02   : yes\n0x0003 : UNREACHABLE\n",
	},
	"far":   {far + "0 0 1 1,2,\n\nLFT Definition: PLFT_NUM: 0, top: 0x4\nLID\n-------\n0x0001 1 Static 0\n0x2 2 Free 0\n\n"},
	"hops":  {"Switch: guid 0x10\n0x0002: 01 ff 01\n0x0003: 00 02 ff # portguid 0xa1\n"},
	"mft":   {"\nSwitch 0x10\nLID    : Out Port(s)\n0xC000 : 0x000  0x0FE \n", "Multicast mlids [0xc000-0xc3ff] of switch Lid 2 guid 0x10 (a b):\n     Ports: 0 1 2 \n MLid\n0xc001      x   x \n1 valid mlids dumped \n", "Multicast mlids [] of switch Lid 4 guid 0x10 (a):\n MLid       Port Mask\n0xc001      00038001\n"},
	"sl2vl": {"# SL2VL table: Lid 3\nports: in  0, out 11: | 0| 1| 2| 3| 4| 5| 6| 7| 0| 1| 2| 3| 4| 5| 6|15|\n", "0x10 5 1 0x01 0x23 0x45 0x67 0x89 0xab 0xcd 0xe7\n", "Switch 0xa2, base LID 6, \"a\"\n0 0 : 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1\n"},
	"psl":   {"0x0002c90000000099 154 3\n", "Channel Adapter 0xa1, base LID 5, \"h\"\n0x009a : 3\n"},
	"guids": {"0x10\n16 # x\n020#octal\n0xAB \"leaf 1\" # \"x\"\n0x3 4 0x5\n"},
}

// FuzzLFTs: what was read, written in OpenSM's own dialect, reads back.
func FuzzLFTs(f *testing.F) {
	fuzzReader(f, "lft", func(t *testing.T, text string) {
		for table, err := range format.LFTs(strings.NewReader(text), "x") {
			if err != nil {
				t.Fatal(err)
			}
			if len(table.Entries) == 0 {
				continue // it is not written
			}
			net, n := oneSwitch(table.GUID)
			var b bytes.Buffer
			if err := format.WriteLFTs(&b, net, func(*fabric.Node) []byte { return table.Entries }); err != nil {
				t.Fatal(err)
			}
			for back, err := range format.LFTs(bytes.NewReader(b.Bytes()), "x") {
				if err != nil {
					t.Fatalf("%v in\n%s", err, b.String())
				}
				if d := cmp.Diff(table.Entries, back.Entries); d != "" || back.GUID != n.GUID() {
					t.Errorf("(-written +read):\n%s", d)
				}
			}
		}
	})
}

// FuzzReadLFTs: whatever tables come to a fabric, its switches get no ports that
// they do not have.
func FuzzReadLFTs(f *testing.F) {
	net, err := format.Load(strings.NewReader(bound), "net", nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("Unicast lids [0-9] of switch guid 0x10\n0x0005 001 # CA portguid 0xb1: 'b'\n0x0006 002 # CA portguid 0xb1: 'b'\n0x0008 001 # CA portguid 0xc1: ''\n9 lids dumped\n")
	f.Add("dump_ucast_routes: Switch 0x20\n0x0001 : 002 : 01 : yes\n")
	f.Fuzz(func(t *testing.T, text string) {
		table := rows{}
		if _, err := format.ReadLFTs(strings.NewReader(text), "x", net, table.of(net)); err != nil {
			return
		}
		for n, row := range table {
			for lid, port := range row {
				if int(port) > n.NumPorts() && port != mad.NoPort {
					t.Errorf("%s: LID %d to port %d", n.Label(), lid, port)
				}
			}
		}
	})
}

// oneSwitch is a fabric of a switch with as many ports as there can be.
func oneSwitch(guid mad.GUID) (*fabric.Fabric, *fabric.Node) {
	b := fabric.NewBuilder()
	b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 254, NodeGUID: guid}, Name: "s"})
	f := b.Build()
	return f, &f.Nodes()[0]
}

func FuzzHops(f *testing.F)   { fuzzReader(f, "hops", nil) }
func FuzzSL2VL(f *testing.F)  { fuzzReader(f, "sl2vl", nil) }
func FuzzPathSL(f *testing.F) { fuzzReader(f, "psl", nil) }
func FuzzGUIDs(f *testing.F)  { fuzzReader(f, "guids", nil) }

// FuzzMFTs: what was read, written as OpenSM does, reads back.
func FuzzMFTs(f *testing.F) {
	fuzzReader(f, "mft", func(t *testing.T, text string) {
		for table, err := range format.MFTs(strings.NewReader(text), "x") {
			if err != nil {
				t.Fatal(err)
			}
			var want []format.MFTEntry
			for _, e := range table.Entries {
				if len(e.Ports) > 0 {
					want = append(want, e)
				}
			}
			net, _ := oneSwitch(table.GUID)
			var b bytes.Buffer
			if err := format.WriteMFTs(&b, net, func(*fabric.Node) []format.MFTEntry { return want }); err != nil {
				t.Fatal(err)
			}
			for back, err := range format.MFTs(&b, "x") {
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, back.Entries); d != "" {
					t.Errorf("(-written +read):\n%s", d)
				}
			}
		}
	})
}

// FuzzSubnet: an opensm-subnet.lst that is read, written, read and written
// again does not change.
func FuzzSubnet(f *testing.F) {
	f.Add("{ CA-SM Ports:01 SystemGUID:0c42a10300000100 NodeGUID:0c42a10300000100 PortGUID:0c42a10300000101 VenID:0002C9 DevID:1013 Rev:000000A1 {a {b}} LID:0001 PN:01 } { SW Ports:08 SystemGUID:0c42a10300001000 NodeGUID:0c42a10300001000 PortGUID:0c42a10300001000 VenID:000002C9 DevID:CF080000 Rev:000000A1 {} LID:0002 PN:01 } PHY=4x LOG=ACT SPD=25\n")
	f.Add("{ SW Ports:08 SystemGUID:0 NodeGUID:1 PortGUID:1 VenID:000002C9 DevID:A87C0000 Rev:000000A0 LID:0002 PN:05 } { SW Ports:08 SystemGUID:0 NodeGUID:1 PortGUID:1 VenID:000002C9 DevID:0 Rev:0 {x} LID:0002 PN:04 } PHY=?? LOG=DWN\n")
	f.Fuzz(func(t *testing.T, text string) {
		var dumps [2]string
		for i := range dumps {
			if format.Recognise([]byte(text)) != format.KindSubnet {
				return
			}
			g, err := format.Load(strings.NewReader(text), "x", nil)
			if err != nil {
				if i > 0 || !strings.HasPrefix(err.Error(), "x:") {
					t.Fatalf("%v in\n%s", err, text)
				}
				return
			}
			var b strings.Builder
			if err := format.Dump(&b, g, "opensm-subnet"); err != nil {
				t.Fatal(err)
			}
			dumps[i], text = b.String(), b.String()
		}
		if d := cmp.Diff(dumps[0], dumps[1]); d != "" {
			t.Errorf("(-first +second):\n%s", d)
		}
	})
}

// FuzzPlan: what was read of a plan of cables, written, read and written again, is the
// same.
func FuzzPlan(f *testing.F) {
	f.Add("a,a_port,b,b_port,width,speed\nleaf,19,\"spine,1\",1,4x,hdr\n0x10,1,leaf,2,,\n\"a\"\"b\",1,\xff,2\n")
	f.Add("\ufeffa;a_port;b;b_port\r\nMF0;1\r\nx;1;y;2\r\n")
	f.Add("#StartDevice,StartPort,EndDevice,EndPort,State\nx,Port 1,y,Blade 3_Port 1/2,Active\ny,y mlx5_0,x,Port 1/2/1,\nz,Port 1,,,Disabled\n")
	f.Add("#StartDevice,StartPort,EndDevice,EndPort\nY,Y \x8e,x,Port 1\n\u0130,\u0130 a,x,Port 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		var dumps [2]string
		for i := range dumps {
			if kind := format.Recognise([]byte(text)); kind != format.KindCables && kind != format.KindNDT {
				if i > 0 {
					t.Fatalf("%q is not recognised", text)
				}
				return
			}
			g, err := format.Load(strings.NewReader(text), "x", nil)
			if err != nil {
				if i > 0 || !strings.HasPrefix(err.Error(), "x:") {
					t.Fatalf("%v in\n%s", err, text)
				}
				return
			}
			var b strings.Builder
			if err := format.Dump(&b, g, "cables"); err != nil {
				t.Fatal(err)
			}
			dumps[i], text = b.String(), b.String()
		}
		if d := cmp.Diff(strings.Count(dumps[0], "\n"), strings.Count(dumps[1], "\n")); d != "" {
			t.Errorf("(-first +second):\n%s", d)
		}
	})
}

// FuzzDBCSV: what was read of a data base of ibdiagnet is a fabric like any other: a
// snapshot of it reads back.
func FuzzDBCSV(f *testing.F) {
	f.Add("START_NODES\nNodeGUID,NodeType,NumPorts,NodeDesc\n0xa0,2,2,\"a,\"\"b\"\n0xb0,1,1,\nEND_NODES\nSTART_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n0xa0,1,0xb0,1\nEND_LINKS\n")
	f.Add(format.DBSample)
	f.Fuzz(func(t *testing.T, text string) {
		if format.Recognise([]byte(text)) != format.KindDBCSV {
			return
		}
		s, err := format.Load(strings.NewReader(text), "x", nil)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x:") {
				t.Error(err)
			}
			return
		}
		readAgain(t, s)
	})
}

// readAgain checks that a snapshot of f has all that f has.
func readAgain(t testing.TB, f *fabric.Fabric) {
	t.Helper()
	again, err := format.ReadSnapshot(bytes.NewReader(writeSnapshot(t, f)), "x")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(whole(f), whole(again)); d != "" {
		t.Errorf("(-read +read again):\n%s", d)
	}
	if d := cmp.Diff(f.Answers(), again.Answers(), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-read +read again):\n%s", d)
	}
}

func FuzzTopo(f *testing.F) {
	f.Add("S S-1 CFG: l1=12x\n  L1/P1 -12X-5G-> H H-1 P1\n", "SYSTEM LEAF,LEAF:4x\nNODE SW 24 MT47396 U1\n  1 -> P1\nSYSTEM LEAF:12x\nNODE SW 24 MT47396 U1\n 1 -12x-> P1\n 3 -> U2 4\nNODE SW 24 MT47396 U2\nTOPSYSTEM S,Shark\nU1=isChaBma\nSUBSYSTEM LEAF l1\nCFG: x=y\n P1 -> L1/P1\n P2 -> l1 P1\n", "TOPSYSTEM H\nNODE CA 2 MT23108 U1\n 1 -> P1\n")
	f.Fuzz(func(t *testing.T, topo, a, b string) {
		files := fstest.MapFS{"S.ibnl": {Data: []byte(a)}, "ibnl/other.ibnl": {Data: []byte(b)}}
		open := func(name string) (io.ReadCloser, error) {
			file, err := files.Open(name)
			if d, ok := file.(fs.ReadDirFile); ok && err == nil {
				return folder{d}, nil
			}
			return file, err
		}
		g, err := format.Load(strings.NewReader(topo), "x", open)
		switch {
		case err == nil:
			checkFixedPoint(t, "", g)
		case !strings.HasPrefix(err.Error(), "x:") && !strings.HasPrefix(err.Error(), "S.ibnl:") && !strings.HasPrefix(err.Error(), "ibnl/other.ibnl:"):
			t.Error(err)
		}
	})
}

// folder lists its files as *os.File does.
type folder struct{ fs.ReadDirFile }

func (f folder) Readdirnames(n int) ([]string, error) {
	entries, err := f.ReadDir(n)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// FuzzSnapshot is about what is within the zstd frame: the frame itself has a
// checksum.
func FuzzSnapshot(f *testing.F) {
	const head = "fabsh snapshot 2\n"
	net, _ := oneSwitch(0x10)
	ring := discoverSim(f, "ring:n=2")
	answers := []fabric.Answer{{Data: []byte{1}}, {Node: fabric.NoNode, Port: 7, Class: mad.ClassSubnAdm, ID: mad.AttrMCMemberRecord.ID, Data: make([]byte, 52)}}
	for _, s := range []*fabric.Fabric{net, ring.With(fabric.Reading{LFTs: [][]byte{{1, 2}, nil, nil, nil}, Adaptive: []*adaptive.Switch{adaptiveSwitch(0), adaptiveSwitch(1), nil, nil}, Answers: answers})} {
		z, err := zstd.NewReader(bytes.NewReader(writeSnapshot(f, s)[len(head):]))
		if err != nil {
			f.Fatal(err)
		}
		inner, err := io.ReadAll(z)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(inner)
	}
	f.Fuzz(func(t *testing.T, inner []byte) {
		var b bytes.Buffer
		b.WriteString(head)
		z, err := zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		z.Write(inner)
		z.Close()
		s, err := format.ReadSnapshot(&b, "x")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x: ") {
				t.Error(err)
			}
			return
		}
		readAgain(t, s)
	})
}

func FuzzCache(f *testing.F) {
	head := append([]byte{0x2b, 0x83, 0xe7, 0x8f, 1, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0}, make([]byte, 12)...)
	var node [207]byte
	(&mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 2, NodeGUID: 0x10}).Encode(node[78:142])
	node[68], node[77] = 0x10, 2
	seed := append(head, node[:]...)
	for num := range byte(3) {
		var port [95]byte
		port[0], port[8], port[77] = 0x10, num, 0x10
		if num > 0 {
			port[85], port[86], port[94] = 1, 0x10, 3-num
		}
		seed = append(seed, port[:]...)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		if format.Recognise(data) != format.KindCache {
			return
		}
		g, err := format.Load(bytes.NewReader(data), "x", nil)
		switch {
		case err == nil:
			_ = whole(g) // and nothing in it panics
		case !strings.HasPrefix(err.Error(), "x:"):
			t.Error(err)
		}
	})
}

// FuzzCaptures: dumps and lists that tools print to a terminal, with anything around them, are
// read or refused, with the place; what is read can be written and read again.
func FuzzCaptures(f *testing.F) {
	f.Add("\ufeff[root@a ~]# ibnetdiscover\r\n#\r\nvendid=0x2c9\r\nswitchguid=0x1(1)\r\nSwitch36 \"S-0000000000000001\"# \"a\" enhanced port 0 lid  lmc 0\r\nibwarn: [1] timed out\r\n[1]\"S-0000000000000001\"[2] # \"a\" lid 65535 4xHDR\r\n[2]\"S-0000000000000001\"[1] # \"a\" lid  4xHDR\r\n[root@a ~]#")
	f.Add("CA     1  1 0x00000000000000a1 4x HDR - SW     2  1 0x0000000000000001 ( 'node-1 HCA-1' - 'leaf 1' )\nSW     2  3 0x0000000000000001 4x SDR         'leaf 1'\n$")
	f.Add("CA: a:\n      0xa1      1    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       2    1[ 3] \"b\" ( )\nSwitch: 0x1 b:\n           2    1[  ] ==( 4X 53.125 Gbps Active/  LinkUp) (HOQ:1 VL_Stall:2)==>       1    1[  ] \"a\" ( )\n           2    2[  ] ==(                Down/ Polling)==>             [  ] \"\" ( )\n")
	f.Add("0xa1 \"  a\"      1    1[  ] ==( 4X 10.0 Gbps (FDR10) Active/  LinkUp)==>  0x0000000000000001      2    1[  ] \"b\" ( )\n0x1 \" b\"  2    2[  ] ==( 4X undefined (8) Armed/LinkUp)==>  \"Port not available\"\n")
	f.Add("Switch\t: 0x1 ports 36 \"a\" enhanced port 0 lid 7 lmc 0\nCa\t : 0xa ports 1 devid 0x1013 vendid 0x2c9 \"b\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		net, err := format.Load(strings.NewReader(text), "x", nil)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := format.WriteSnapshot(&b, net); err != nil {
			t.Fatal(err)
		}
		back, err := format.Load(&b, "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if net.String() != back.String() {
			t.Errorf("wrote %s, read %s", net, back)
		}
	})
}

// FuzzCleaned: what terminals and loggers add never makes a dump with another number of nodes or
// links: whatever stands among its lines, it is read, refused, or incomplete.
func FuzzCleaned(f *testing.F) {
	const dump = "switchguid=0x10(10)\nSwitch\t4 \"S-0000000000000010\"\t\t# \"a\" base port 0 lid 1 lmc 0\n[1]\t\"S-0000000000000011\"[1]\t\t# \"b\" lid 2 4xHDR\n\nswitchguid=0x11(11)\nSwitch\t4 \"S-0000000000000011\"\t\t# \"b\" base port 0 lid 2 lmc 0\n[1]\t\"S-0000000000000010\"[1]\t\t# \"a\" lid 1 4xHDR\n"
	for _, s := range []string{"\x1b[31m", "\x1b]0;title\a", "x\b", "\r", "> ", "2026-11-29 01:52:06 ", "Nov 29 01:52:06 node-1 prog[1]: ", "     1\t", "\x1b[5A", "\x00"} {
		f.Add(s, "")
		f.Add("", s)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.Contains(before+after, "\n") || strings.ContainsAny(before+after, `"[=#`) {
			return // lines of their own, and records
		}
		var b strings.Builder
		for line := range strings.Lines(dump) {
			b.WriteString(before + strings.TrimSuffix(line, "\n") + after + "\n")
		}
		net, err := format.Load(strings.NewReader(b.String()), "x", nil)
		switch {
		case err != nil && !strings.HasPrefix(err.Error(), "x:"):
			t.Error(err)
		case err == nil && net.Complete() && (len(net.Nodes()) != 2 || net.Links() != 1):
			t.Errorf("%q, %q: %s", before, after, net)
		}
	})
}
