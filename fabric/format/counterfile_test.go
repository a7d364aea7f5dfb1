package format_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// countersOf are the counters of a port that are not 0, with their attribute.
func countersOf(f *fabric.Fabric, guid mad.GUID, num int) string {
	var list []string
	for _, a := range f.AnswersOf(f.NodeByGUID(guid)[0].ID()) {
		attr := mad.Lookup(a.Class, a.ID)
		if a.Class != mad.ClassPerf || int(a.Port) != num && attr != mad.AttrPerfClassPortInfo {
			continue
		}
		if attr == mad.AttrPerfClassPortInfo {
			var info mad.ClassPortInfo
			info.Decode(a.Data)
			list = append(list, fmt.Sprintf("caps=%#x/%#x", info.CapabilityMask, info.CapabilityMask2))
			continue
		}
		for i := range attr.Flat() {
			if x := &attr.Flat()[i]; x.Type == mad.FieldTypeUint && x.Count == 1 && x.Uint(a.Data) != 0 && x.Script != "port_select" {
				list = append(list, fmt.Sprintf("%s=%d", x.Script, x.Uint(a.Data)))
			}
		}
	}
	return strings.Join(list, " ")
}

const queried = `Errors for 0x10 "sw"
   GUID 0x10 port ALL: [SymbolErrorCounter == 70000] [PortXmitWait == 17]
   GUID 0x10 port 1: [SymbolErrorCounter == 70000] [PortXmitWait == 17] [PortXmitData == 12 (0.012KB)]
         Link info:      1   1[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==>       2    1[  ] "h" ( )
   GUID 0x10 port 3: [LinkDownedCounter == 3] [PortRcvErrors == 5] [PortLocalPhysicalErrors == 4]
   GUID 0x77 port 3: [LinkDownedCounter == 3]
Errors for "h"
   GUID 0x20 port 1: [LinkDowned == 2] [Odd == 1]

## Summary: 2 nodes checked, 2 bad nodes found
`

const perfQueried = `# Port counters: Lid 1 port 2 (CapMask: 0x1200)
PortSelect:......................2
CounterSelect:...................0x0000
LinkDownedCounter:...............9
PortXmitWait:....................4
# Port extended counters: Lid 1 port 2 (CapMask: 0x1000 CapMask2: 0x0000002)
PortSelect:......................2
PortXmitData:....................4294967296
PortUnicastXmitPkts:.............3
# PortRcvErrorDetails counters: Lid 1 port 2
PortMalformedPktErrors:..........6
# PortXmitDataSL counters: Lid 1 port 2
XmtDataSL0:......................1
# Port counters: Lid 9 port 2 (CapMask: 0x1200)
LinkDownedCounter:...............9
`

const twoNodes = "vendid=0x2c9\ndevid=0xb924\nswitchguid=0x10(10)\nSwitch\t4 \"S-0000000000000010\"\t\t# \"sw\" enhanced port 0 lid 1 lmc 0\n[1]\t\"H-0000000000000020\"[1](21)\t\t# \"h\" lid 2 4xHDR\n\n" +
	"vendid=0x2c9\ndevid=0x1019\ncaguid=0x20\nCa\t1 \"H-0000000000000020\"\t\t# \"h\"\n[1](21)\t\"S-0000000000000010\"[1]\t\t# lid 2 lmc 0 \"sw\" lid 1 4xHDR\n"

// TestCounterOutputs: what ibqueryerrors and perfquery print are counters of the ports of the topology
// beside them.
func TestCounterOutputs(t *testing.T) {
	files := fstest.MapFS{"net.txt": {Data: []byte(twoNodes)}, "errors.txt": {Data: []byte(queried)}, "perf.txt": {Data: []byte(perfQueried)}}
	f, err := format.LoadDir(files, "d", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		guid mad.GUID
		num  int
		want string
	}{
		{0x10, 1, "caps=0x1600/0x2 symbol_error_counter=65535 port_xmit_data=12 port_xmit_wait=17 port_xmit_data=12 symbol_error_counter=70000 port_xmit_wait=17"},
		{0x10, 2, "caps=0x1600/0x2 link_downed_counter=9 port_xmit_wait=4 port_malformed_packet_errors=6 port_xmit_data=4294967296 port_unicast_xmit_pkts=3"},
		{0x10, 3, "caps=0x1600/0x2 link_downed_counter=3 port_rcv_errors=5 port_local_physical_errors=4 link_downed_counter=3 port_rcv_errors=5"},
		{0x20, 1, "caps=0x1400/0x2 link_downed_counter=2 link_downed_counter=2"},
	} {
		if got := countersOf(f, x.guid, x.num); got != x.want {
			t.Errorf("%#x/%d: %s\nwant %s", uint64(x.guid), x.num, got, x.want)
		}
	}
	texts := problemTexts(f)
	for _, want := range []string{
		"d/errors.txt: 1 record was left out: the topology does not have its node or port",
		"d/errors.txt: counters that are not read: Odd",
		"d/errors.txt: ibqueryerrors lists 4 ports; the counters that it does not list, and data, are 0 of these, and unknown of others",
		"d/perf.txt: 1 record was left out: the topology does not have its node or port",
		"d/perf.txt: tables that are not read: PortXmitDataSL",
	} {
		if !slices.Contains(texts, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(texts, "\n"))
		}
	}

	// Alone, the output of ibqueryerrors is a fabric without links.
	f, err = format.Load(strings.NewReader(queried), "q", nil)
	if err != nil || len(f.Nodes()) != 3 || f.Links() != 0 || !strings.Contains(countersOf(f, 0x20, 1), "link_downed_counter=2") {
		t.Errorf("alone: %v, %v", f, err)
	}
	for text, want := range map[string]string{
		perfQueried: "q: expected a topology, but this is counters of ports (perfquery), which are read with the topology in the same directory or archive",
		"Errors for 0x10 \"sw\"\n   GUID 0x10 port x: [A == 1]\n": `q:2: expected a port from 0 to 254, and at most 1048576 of them: "   GUID 0x10 port x: [A == 1]"`,
		"Errors for 0x10 \"sw\"\n   GUID 0x10 port 1: [A == b]\n": `q:2: expected a counter as in [LinkDownedCounter == 3], not "A == b]": "   GUID 0x10 port 1: [A == b]"`,
		"Errors for 0x10 \"sw\"\n   GUID 0x10 port 1: [A == 12":   `q:2: expected a counter as in [LinkDownedCounter == 3], not "A == 12": "   GUID 0x10 port 1: [A == 12"`,
		"Errors for 0x10 \"sw\"\n   GUID 0x10 port 1: [A == 1]":   `q:2: expected the end of the last line: the file is cut short`,
		"Errors for 0x10 \"sw\"\n## Summary: 1 nodes checked\n":   "q: no line has a port",
	} {
		if _, err := format.Load(strings.NewReader(text), "q", nil); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestRunFiles: without the data base of ibdiagnet, the other files of the run have counters, firmware and
// the subnet manager.
func TestRunFiles(t *testing.T) {
	files := fstest.MapFS{}
	for _, suffix := range []string{"ibnetdiscover", "pm", "nodes_info", "sm"} {
		data, err := os.ReadFile("testdata/ibdiagnet/ibdiagnet2." + suffix)
		if err != nil {
			t.Fatal(err)
		}
		files["ibdiagnet2."+suffix] = &fstest.MapFile{Data: data}
	}
	files["ibdiagnet2.cables"] = &fstest.MapFile{Data: []byte(": x\nPort=1 Lid=0 GUID=0x1\n: y\n: z: \n")} // damaged
	f, err := format.LoadDir(files, "d", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := countersOf(f, 0x2c90300aa0040, 61), "caps=0x9600/0x2 link_downed_counter=3 link_downed_counter=3"; got != want {
		t.Errorf("counters %q, want %q", got, want)
	}
	if f.CountersRead().IsZero() {
		t.Error("the time of the run is unknown")
	}
	var got []string
	for _, a := range f.AnswersOf(f.NodeByGUID(0x2c90300aa0000)[0].ID()) {
		if a.ID == mad.AttrSMInfo.ID && a.Class == mad.ClassSubn {
			got = append(got, fmt.Sprintf("%d % x", a.Port, a.Data[20:21]))
		}
		if layout := mad.LookupRegister(uint16(a.Modifier)); a.Class == mad.ClassVendor0A && layout != nil && layout.Name == "MGIR" {
			var g mad.MGIR
			g.Decode(a.Data)
			got = append(got, fmt.Sprintf("%#x %d %d.%d.%d %s %#x-%#x-%#x %#x", g.DeviceID, g.Uptime, g.ExtFWMajor, g.ExtFWMinor, g.ExtFWSubMinor, layout.Field("psid").Text(a.Data), g.FWYear, g.FWMonth, g.FWDay, g.FWHour))
		}
	}
	if want := []string{"0 c3", "0xd2f2 1387025 31.2012.1024 MT_0000000577 0x2023-0x8-0x9 0x551"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzRunFiles: any text is refused, or read, as each of the files beside a topology.
func FuzzRunFiles(f *testing.F) {
	f.Add(queried)
	f.Add(perfQueried)
	f.Add(saDumped)
	f.Add("START_SMS\nPortGUID, LID, Priority, State\n0x21, 2, 12, 3\nEND_SMS\n")
	for _, suffix := range []string{"pm", "nodes_info", "sm", "cables", "net_dump_ext"} {
		if data, err := os.ReadFile("testdata/ibdiagnet/ibdiagnet2." + suffix); err == nil {
			f.Add(string(data[:min(len(data), 6000)]))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		files := fstest.MapFS{"net.txt": {Data: []byte(twoNodes)}, "capture.txt": {Data: []byte(text)}}
		files["opensm-smdb.dump"] = files["capture.txt"]
		for _, suffix := range []string{"pm", "nodes_info", "sm", "cables", "net_dump_ext"} {
			files["ibdiagnet2."+suffix] = &fstest.MapFile{Data: []byte(text)}
		}
		loaded, err := format.LoadDir(files, "x", nil)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x") {
				t.Error(err)
			}
			return
		}
		var a, b bytes.Buffer
		again, _ := format.LoadDir(files, "x", nil)
		format.WriteSnapshot(&a, loaded)
		format.WriteSnapshot(&b, again)
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Error("two reads differ")
		}
	})
}
