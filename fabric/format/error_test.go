package format

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestLoadErrors(t *testing.T) {
	const leaf = "Switch 4 \"leaf\"\n"
	tests := []struct{ name, in, want string }{
		{"nothing", "", `net: expected a topology of ibnetdiscover, OpenSM, ibdm or ibdiagnet, a net file of ibsim, a plan of cables or a snapshot: there is no record of a node (Switch, Ca, Rt)`},
		{"comments", "# nothing\n\n", `net: expected a topology of ibnetdiscover, OpenSM, ibdm or ibdiagnet, a net file of ibsim, a plan of cables or a snapshot: there is no record of a node (Switch, Ca, Rt)`},
		{"another format", "{\"nodes\": []}\n", `net:1: expected a record of a node (Switch, Ca, Rt), a port line ([1] ...), a setting (vendid=...) or a comment (#): "{\"nodes\": []}"`},
		{"columns", "from,port,to,port\nleaf,1,spine,1\n", `net:1: expected the names of the columns of a plan of cables, a,a_port,b,b_port or StartDevice,StartPort,EndDevice,EndPort, above its lines: "from,port,to,port"`},
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

func TestIncludeErrors(t *testing.T) {
	fsys := fstest.MapFS{
		"self":  {Data: []byte("# again\ninclude \"self\"\n")},
		"a/inc": {Data: []byte("\nSwitch\n")},
	}
	for _, test := range []struct{ name, in, want string }{
		{"a/net", "\ninclude \"b\"\n", `a/net:2: include "a/b": file does not exist`},
		{"a/bad", "include \"inc\"\n", `a/inc:2: expected a record of a node (Switch, Ca, Rt), a port line ([1] ...), a setting (vendid=...) or a comment (#): "Switch"`},
		{"net", "include \"self\"\n", "self:2: expected at most 16 files that include one another: does self include itself?"},
	} {
		if _, err := Load(strings.NewReader(test.in), test.name, opener(fsys)); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
	_, err := Load(io.MultiReader(strings.NewReader("# x\n"), iotest.ErrReader(errors.New("unplugged"))), "net", nil)
	if want := "net: after line 1: unplugged"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDumpUnknownKind(t *testing.T) {
	const kinds = "ibnetdiscover, opensm-subnet, cables, topo, guid2lid, node-name-map, ibnl, snapshot"
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
