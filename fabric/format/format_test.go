package format

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of formats to FORMATS.md")

// TestGenerated compares the table of formats with that in FORMATS.md.
func TestGenerated(t *testing.T) {
	const (
		path  = "FORMATS.md"
		begin = "<!-- The table of formats, generated from format.go by make generate. -->\n"
		end   = "<!-- End of the table. -->\n"
	)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	above, rest, ok := strings.Cut(string(text), begin)
	table, below, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table, between %s and %s", path, begin, end)
	}
	var want strings.Builder
	want.WriteString("| kind | file | in | out |\n|---|---|---|---|\n")
	word := map[bool]string{true: "yes", false: "no"}
	for _, f := range formats {
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", f.kind, f.file, word[f.reads()], word[f.writes()])
	}
	if *update {
		if err := os.WriteFile(path, []byte(above+begin+want.String()+end+below), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want.String(), table); d != "" {
		t.Errorf("%s is stale, run make generate (-want +got):\n%s", path, d)
	}
}

// TestFormats: every kind is in the table, once and completely, is recognised
// from a sample, and can be found in help if it is written.
func TestFormats(t *testing.T) {
	var kinds []FormatName
	for _, f := range formats {
		kinds = append(kinds, f.kind)
		if f.about == "" || f.file == "" {
			t.Errorf("%s: it is not said what it is: about %q, file %q", f.kind, f.about, f.file)
		}
		if len(f.beginnings) == 0 && f.sniff == nil {
			t.Errorf("%s: nothing recognises it", f.kind)
		}
		recognised := false
		for _, s := range samples {
			recognised = recognised || s.want == f.kind && Recognise([]byte(s.head)) == f.kind
		}
		if !recognised {
			t.Errorf("%s is recognised from none of the samples", f.kind)
		}
		for _, h := range []struct {
			help   string
			writes bool
		}{{DumpHelp(), f.write != nil || f.writeFiles != nil}, {TablesHelp(), f.writeTables != nil}} {
			if n := strings.Count(h.help, strconv.Quote(string(f.kind))); n > 1 || n == 1 != h.writes {
				t.Errorf("%s is %d times in help: %s", f.kind, n, h.help)
			}
		}
	}
	declared := declaredKinds(t)
	slices.Sort(kinds)
	slices.Sort(declared)
	if d := cmp.Diff(declared, kinds); d != "" {
		t.Errorf("constants and the table (-declared +in the table):\n%s", d)
	}
}

// declaredKinds returns the values of the package's constants of type FormatName, except
// FormatUnknown.
func declaredKinds(t *testing.T) []FormatName {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []FormatName
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "FormatName" {
				for _, v := range spec.Values {
					if text, err := strconv.Unquote(v.(*ast.BasicLit).Value); err == nil && text != "" {
						kinds = append(kinds, FormatName(text))
					}
				}
			}
			return true
		})
	}
	return kinds
}

// reads reports whether there is a reader of the format.
func (f *fileFormat) reads() bool {
	return f.load != nil || f.system != nil || f.lfts != nil || f.fars != nil || f.hops != nil || f.mfts != nil || f.sl2vls != nil || f.pathSLs != nil || f.guids != nil || f.answers != nil
}

// writes reports whether there is a writer of the format.
func (f *fileFormat) writes() bool {
	return f.write != nil || f.writeFiles != nil || f.writeTables != nil || f.writeMFTs != nil
}

// samples are beginnings of files of each kind, and of files that two kinds
// might take.
var samples = []struct {
	head string
	want FormatName
}{
	{"Errors for 0x2c90300001000 \"leaf\"\n   GUID 0x2c90300001000 port 1: [LinkDownedCounter == 3]\n", KindQueryErrors},
	{"# Port counters: Lid 4 port 1 (CapMask: 0x5A00)\nPortSelect:......................1\n", KindPerfQuery},
	{"MC Group 0xc000  (well known): mgid=0xff12401bffff0000:0x00000000ffffffff port_gid=0x0:0x0\n", KindSADump},
	{"[root@a ~]# cat opensm-sa.dump\nService Record: id=0x1000000000000001 gid=0x0:0x0\n", KindSADump},
	{"[root@a ~]# ibqueryerrors\nErrors for 0x10 \"sw\"\n", KindQueryErrors},
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
	{"0x0002c90300aa0040,1,0x0002c90300bb0010,1,Any,Active\n", KindTopoConfig},
	{"0x0002c90300aa0040,1,0x0002c90300bb0010,Any,Active\n", KindGUIDs},
	{"Rack,U,Name,HCA/Port,Rack,U,Name,Port\n", KindPlan},
	{"Cabling of hall 1\n\nRack;U;Name;HCA/Port;Rack;U;Name;Port\n", KindPlan},
	{"from,port,to,port\n", KindPlan},
	{"{\n \"count\": 0,\n \"results\": []\n}", KindPlanJSON},
	{"[{\"id\": 1, \"a_terminations\": []}]", KindPlanJSON},
	{"{\"nodes\": []}", FormatUnknown},
	{"<?xml version=\"1.0\"?>\n<Topology>", KindPlanXML},
	{"# x\nSwitchName=s1 Nodes=node[1-4]\n", KindSlurm},
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

func TestLoadErrors(t *testing.T) {
	const leaf = "Switch 4 \"leaf\"\n"
	tests := []struct{ name, in, want string }{
		{"nothing", "", `net: expected a topology of ibnetdiscover, OpenSM, ibdm or ibdiagnet, a net file of ibsim, a plan of cables or a snapshot: there is no record of a node (Switch, Ca, Rt)`},
		{"comments", "# nothing\n\n", `net: expected a topology of ibnetdiscover, OpenSM, ibdm or ibdiagnet, a net file of ibsim, a plan of cables or a snapshot: there is no record of a node (Switch, Ca, Rt)`},
		{"another format", "{\"nodes\": []}\n", `net:1: expected a record of a node (Switch, Ca, Rt), a port line ([1] ...), a setting (vendid=...) or a comment (#): "{\"nodes\": []}"`},
		{"columns", "here,port,there,socket\nleaf,1,spine,1\n", `net: no header names a device and a port of two ends; name the columns, as in --map 'a_name=?,a_port=port,b_name=?,b_port=?'`},
		{"unknown setting", "colour=3\n", `net:1: expected one of vendid, devid, sysimgguid, switchguid, caguid, rtguid, width, speed, extspeed, module, include, not "colour"`},
		{"number", "vendid=Mellanox\n", `net:1: expected vendid to be a number of 24 bits, not "Mellanox"`},
		{"GUID", "switchguid=0xhello\n", `net:1: expected a GUID, as in 0x2c90300100000, not "0xhello"`},
		{"port GUID", "switchguid=0x1(z)\n", `net:1: expected a port GUID in hexadecimal, not "z"`},
		{"width", "width=99\n", `net:1: expected width to be a mask of those that ports may use, not 99`},
		{"ports", "Switch 400 \"leaf\"\n", `net:1: expected the number of ports, 1 to 254, and a node id, as in Switch 36 "S-0002c90300100000": " 400 \"leaf\""`},
		{"no id", "Ca 1 host\n", `net:1: expected the number of ports, 1 to 254, and a node id, as in Switch 36 "S-0002c90300100000": " 1 host"`},
		{"reserved", "Ca 1 \"a#b\"\n", `net:1: expected a node id without # and @, not "a#b"`},
		{"id twice", leaf + "\n" + leaf, `net:3: expected a node id of its own, but "leaf" is that of the record at net:1`},
		{"name", "Ca 1 \"a\" # \"open\nx", `net:1: expected a name in quotes: "\"open"`},
		{"LID", "Switch 1 \"a\" # \"a\" base port 0 lid 65536 lmc 0", `net:1: expected lid to be 0 to 49151 and lmc 0 to 7: " base port 0 lid 65536 lmc 0"`},
		{"port line alone", "[1] \"leaf\"[1]\n", `net:1: expected a record (Switch, Ca, Rt) before the port line "[1] \"leaf\"[1]"`},
		{"port line after a gap", leaf + "\n[1] \"leaf\"[1]\n", `net:3: expected a record (Switch, Ca, Rt) before the port line "[1] \"leaf\"[1]"`},
		{"port", leaf + "[5] \"leaf\"[1]\n", `net:2: expected a port from 1 to 4 in brackets, as in [1]: "[5] \"leaf\"[1]"`},
		{"port 0", leaf + "[0] \"leaf\"[1]\n", `net:2: expected a port from 1 to 4 in brackets, as in [1]: "[0] \"leaf\"[1]"`},
		{"port twice", leaf + "[2] \"leaf\"[2]\n[2] \"leaf\"[2]\n", `net:3: expected one line for port 2, but net:2 is one too`},
		{"CA port GUID", "Ca 1 \"a\"\n[1](0x10) \"b\"[1]\n", `net:2: expected a port GUID in parentheses, in hexadecimal: "[1](0x10) \"b\"[1]"`},
		{"far node", leaf + "[2] leaf[1]\n", `net:2: expected the id of the node that port 2 is connected to, in quotes: "[2] leaf[1]"`},
		{"far port", leaf + "[2] \"leaf\"[x]\n", `net:2: expected the port of "leaf" that port 2 is connected to, in brackets: "[2] \"leaf\"[x]"`},
		{"rate", leaf + "[2] \"leaf\"[2] # \"leaf\" lid 0 5xHDR\n", `net:2: expected width and speed, as in 4xHDR, not "5xHDR"`},
		{"option", leaf + "[2] \"leaf\"[2] w=64\n", `net:2: expected an option w=, s= or e= with a mask of widths or speeds, not "w=64"`},
		{"CA LID", "Ca 1 \"a\"\n[1] \"b\"[1] # lid x lmc 0 \"b\" lid 1 4xHDR\n", `net:2: expected lid to be 0 to 49151 and lmc 0 to 7: "lid x lmc 0 "`},
		{"no such node", leaf + "[2] \"spine\"[7]\n", `net:2: no record of node "spine", to which port 2 of "leaf" is connected`},
		{"no such alias", leaf + "[2] \"@up\"\n", `net:2: no port has the alias "@up"`},
		{"alias twice", leaf + "@[2] \"up\"\n@[3] \"up\"\n", `net:3: expected an alias of its own, but "@up" is taken`},
		{"one end", leaf + "[2] \"b\"[3]\n\nSwitch 4 \"b\"\n", `net:2: expected "b"[3] to be connected to "leaf"[2], but its record at net:4 has no line for that port`},
		{"ends that differ", leaf + "[2] \"b\"[3]\n[4] \"b\"[1]\n\nSwitch 4 \"b\"\n[3] \"leaf\"[4]\n", `net:2: expected "b"[3] to be connected to "leaf"[2], but net:6 has "leaf"[4]`},
		{"include", "include \"x\"\n", `net:1: expected no include: only this file is available: "x"`},
		{"module", "module=leaf\n", `net:1: expected a name, as in module="name", without # and @: "module=leaf"`},
		{"long line", "# " + strings.Repeat("x", 1<<17), `net:1: expected a line of at most 65536 bytes`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := Load(strings.NewReader(test.in), "net", nil)
			if err == nil {
				t.Fatalf("loaded: %v", f)
			}
			if d := cmp.Diff(test.want, err.Error()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestDumpUnknownKind(t *testing.T) {
	const kinds = "ibnetdiscover, opensm-subnet, cables, plan, topo, guid2lid, node-name-map, ibnl, snapshot"
	const tables = `"opensm-lfts": what OpenSM's engine file reads; "opensm-fdbs": what ibdmchk reads; "opensm-lid-matrix": distances; "opensm-sl2vl", "ibdm-sl2vl" (for ibdmchk), "path-sl": virtual lanes and service levels; "snapshot", of fabsh`
	for _, test := range []struct {
		err  error
		want string
	}{
		{Dump(io.Discard, nil, "dot"), `unknown format "dot"; supported: ` + kinds},
		{Dump(io.Discard, nil, KindLFTs), `unknown format "opensm-lfts"; supported: ` + kinds},
		{Dump(io.Discard, nil, KindIBNL), `format "ibnl" consists of several files`},
		{DumpTables(io.Discard, nil, "dot", nil), `unknown format "dot"; supported: ` + tables},
		{DumpTables(io.Discard, nil, KindMFTs, nil), `unknown format "opensm-mcfdbs"; supported: ` + tables},
	} {
		if test.err == nil || test.err.Error() != test.want {
			t.Errorf("got %v, want %s", test.err, test.want)
		}
	}
}
