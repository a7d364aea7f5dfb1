package format_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// statisticsOf is what register PPCNT of a port has: received bits, symbol errors, and the bit error rates.
func statisticsOf(f *fabric.Fabric, guid mad.GUID, num int) string {
	for _, a := range f.AnswersOf(f.NodeByGUID(guid)[0].ID()) {
		layout := mad.LookupRegister(uint16(a.Modifier))
		if a.Class != mad.ClassVendor0A || layout.Name != "PPCNT" || int(a.Port) != num {
			continue
		}
		page := layout.Resolve(a.Data, 0)
		u := func(field string) uint64 { return page.Field(field).Uint(a.Data) }
		return fmt.Sprintf("port %d, %d bits, %d symbols, raw %de-%d, effective %de-%d, symbol %de-%d", u("local_port"), u("phy_received_bits"), u("phy_symbol_errors"),
			u("raw_ber_coef"), u("raw_ber_magnitude"), u("effective_ber_coef"), u("effective_ber_magnitude"), u("symbol_ber_coef"), u("symbol_ber_magnitude"))
	}
	return ""
}

// TestPhyStatistics: PHY_DB16 is the register with the counters for bit error rates. Rates at other places are left out.
func TestPhyStatistics(t *testing.T) {
	const section = "START_PHY_DB16\nNodeGuid,PortGuid,PortNum,Version,field0,field1,field2,field3,field4,field5,field6,field7,field8,field9,field10,field11,field12,field13,field14,field15,field16,field17\n" +
		"0xa0,0xa0,1,1,1000,5000000,7,800,1,2,3,4,0,0,0,0,3,9,15,255,15,255\n" +
		"0xa0,0xa0,2,1,1000,5000000,7,800,1,2,3,4,0,0,0,0,3,9,15,255,2,4\n" + // a rate after FEC above that before it
		"0xb0,0xb1,1,1,1000,5000000,7,800,1,2,3,4,0,0,0,0,12345,9,15,255,15,255\n" + // no coefficient
		"END_PHY_DB16\n"
	f, err := format.Load(strings.NewReader(format.DBSample+section), "db", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		guid mad.GUID
		num  int
		want string
	}{
		{0xa0, 1, "port 1, 5000000 bits, 7 symbols, raw 3e-9, effective 15e-255, symbol 15e-255"},
		{0xa0, 2, "port 2, 5000000 bits, 7 symbols, raw 0e-0, effective 0e-0, symbol 0e-0"},
		{0xb0, 1, "port 1, 5000000 bits, 7 symbols, raw 0e-0, effective 0e-0, symbol 0e-0"},
	} {
		if got := statisticsOf(f, test.guid, test.num); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
	// A snapshot keeps registers to the byte; the key is not among them.
	var b bytes.Buffer
	if err := format.Dump(&b, f, format.KindSnapshot); err != nil {
		t.Fatal(err)
	}
	kept, err := format.Load(&b, "snap", nil)
	if err != nil || !reflect.DeepEqual(kept.Answers(), f.Answers()) {
		t.Errorf("snapshot: %v, %d answers of %d, or others", err, len(kept.Answers()), len(f.Answers()))
	}
	if want := "db has bit error rates in section PHY_DB16 at other places than known: they are kept as text (2 times)"; !slices.Contains(problemTexts(f), want) {
		t.Errorf("%q, want %s", problemTexts(f), want)
	}
}

const (
	netDumpExtHead = "# Running timestamp : 2026-01-31 23:00:18 UTC +0000\n\n\nTy : # : #IB : GUID               : LID          : Sta  : PhysSta : LWA     : LSA     : Conn LID (#) : FEC mode            : RTR    : Raw BER : Effective BER   : Symbol BER      : Symbol Err : Effective Err : Node Desc\n"
	netDumpExtRow  = "%s : 1 : %s : %s : 180  (0xb4 ) : ACT  : LINK UP : 4x      : 100     : 24    (1/31/1) : MLNX_RS_271_257_PLR : NO-RTR : %s : 1.5e-254 : %s : 4 : 0 : \"a : b\"\n"
)

// TestErrorRateFile: ibdiagnet2.net_dump_ext has the bit error rates of ports of the topology.
func TestErrorRateFile(t *testing.T) {
	load := func(text string) (*fabric.Fabric, []string) {
		f, err := format.LoadDir(fstest.MapFS{"ibdiagnet2.db_csv": {Data: []byte(format.DBSample)}, "ibdiagnet2.net_dump_ext": {Data: []byte(text)}}, "run", nil)
		if err != nil {
			t.Fatal(err)
		}
		return f, problemTexts(f)
	}
	row := func(kind, port, guid, raw, symbol string) string {
		return fmt.Sprintf(netDumpExtRow, kind, port, guid, raw, symbol)
	}
	f, texts := load(netDumpExtHead + row("SW", "1", "0xa0", "3e-09", "1.2e-13") + row("SW", "2", "0xa0", "N/A", "") + row("CA", "1", "0xb1", "1e-12", "2e-14") + row("CA", "1", "0xdead", "1e-12", "2e-14") + "\n\n# File closed at : x\n")
	for _, test := range []struct {
		guid mad.GUID
		num  int
		want string
	}{
		{0xa0, 1, "port 1, 0 bits, 4 symbols, raw 3e-9, effective 15e-255, symbol 12e-14"},
		{0xb0, 1, "port 1, 0 bits, 4 symbols, raw 1e-12, effective 15e-255, symbol 2e-14"},
	} {
		if got := statisticsOf(f, test.guid, test.num); got != test.want {
			t.Errorf("%q, want %s", got, test.want)
		}
	}
	if want := "run/ibdiagnet2.net_dump_ext: 1 record was left out: the topology does not have its node or port"; !slices.Contains(texts, want) {
		t.Errorf("%q, want %s", texts, want)
	}
	whole := netDumpExtHead + row("SW", "1", "0xa0", "3e-09", "1.2e-13")
	for name, test := range map[string]struct{ text, want string }{
		"cut":      {whole[:len(whole)-40], "the file is cut short: its last lines are missing"},
		"unended":  {whole[:len(whole)-1], "the file is cut short: its last lines are missing"},
		"headless": {row("SW", "1", "0xa0", "3e-09", "1e-13"), "expected 0 columns"},
		"rate":     {netDumpExtHead + row("SW", "1", "0xa0", "3x", "1e-13"), "expected a bit error rate as in 3e-09, not \"3x\""},
		"port":     {netDumpExtHead + row("SW", "x", "0xa0", "3e-9", "1e-13"), "expected GUID and number of a port"},
	} {
		f, texts := load(test.text)
		if got := statisticsOf(f, 0xa0, 1); got != "" || !strings.Contains(strings.Join(texts, "\n"), test.want) {
			t.Errorf("%s: %q %q, want %s", name, got, texts, test.want)
		}
	}
}

// TestArchiveInDirectory: a directory with the archive of a run is that run, if nothing else in it is a topology.
func TestArchiveInDirectory(t *testing.T) {
	packed := gzipped(t, tarred(t, ibdiagnetRun(t, "var/tmp/ibdiagnet2/")))
	files := fstest.MapFS{"run/out.tgz": {Data: packed}}
	f, err := format.LoadDir(files, "dir", nil)
	if err != nil || f.Links() != 8 || !strings.Contains(strings.Join(problemTexts(f), "\n"), "dir: 3 files were not read: run/out.tgz/var/tmp/ibdiagnet2/ibdiagnet2.ibnet") {
		t.Fatal(f, err, problemTexts(f))
	}
	files["run/out.zip"] = &fstest.MapFile{Data: zipped(t, ibdiagnetRun(t, ""))}
	if _, err = format.LoadDir(files, "dir", nil); err == nil || !strings.Contains(err.Error(), "dir: topologies in 2 folders: run/out.tgz/var/tmp/ibdiagnet2, run/out.zip; unpack it") {
		t.Error(err)
	}
	files["run/ibdiagnet2.db_csv"] = &fstest.MapFile{Data: []byte(format.DBSample)}
	f, err = format.LoadDir(files, "dir", nil)
	if err != nil || f.Links() != 2 || !slices.Contains(problemTexts(f), "dir: 2 files were not read: run/out.tgz (an archive; the topology is read from the files beside it), run/out.zip (an archive; the topology is read from the files beside it)") {
		t.Error(f, err)
	}
	// Archives in archives stay packed, and the limits hold for all.
	twice := fstest.MapFS{"twice.tar": {Data: tarred(t, fstest.MapFS{"out.tgz": {Data: packed, Mode: 0o644}})}}
	for _, load := range []func() (*fabric.Fabric, error){
		func() (*fabric.Fabric, error) { return format.LoadDir(twice, "dir", nil) },
		func() (*fabric.Fabric, error) {
			return format.Load(bytes.NewReader(zipped(t, fstest.MapFS{"out.tgz": {Data: packed, Mode: 0o644}})), "a.zip", nil)
		},
	} {
		if _, err := load(); err == nil || !strings.Contains(err.Error(), "out.tgz (an archive in an archive; unpack it)") {
			t.Error(err)
		}
	}
	hostile := fstest.MapFS{"a.tar": {Data: tarred(t, fstest.MapFS{"../x": {Data: []byte("x"), Mode: 0o644}})}}
	if _, err := format.LoadDir(hostile, "dir", nil); err == nil || !strings.Contains(err.Error(), "dir/a.tar: the path of a file leads out of the archive: ../x; refused") {
		t.Error(err)
	}
	cut := fstest.MapFS{"a.tgz": {Data: packed[:len(packed)/2]}}
	if _, err := format.LoadDir(cut, "dir", nil); err == nil || !strings.Contains(err.Error(), "dir/a.tgz: the archive is damaged or cut short") {
		t.Error(err)
	}
}

// TestLIDsCompared: guid2lid of a directory of OpenSM is compared with the topology.
func TestLIDsCompared(t *testing.T) {
	for lids, want := range map[string]string{
		"0x00000000000000b1 0x0005 0x0005\n\n0x00000000000000ff 0x0009 0x0009\n\n": "",
		"0x00000000000000b1 0x0006 0x0006\n\n":                                     `run/guid2lid has other LIDs than the topology for 1 of 1 port: node-1/1: 5, there 6`,
	} {
		f, err := format.LoadDir(fstest.MapFS{"net": {Data: []byte(lidNet)}, "guid2lid": {Data: []byte(lids)}}, "run", nil)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(problemTexts(f), "\n")
		if strings.Contains(got, "guid2lid") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

const lidNet = "vendid=0x2c9\ndevid=0xb924\nswitchguid=0x10(10)\nSwitch\t4 \"S-0000000000000010\"\t\t# \"sw\" enhanced port 0 lid 1 lmc 0\n[1]\t\"H-0000000000000020\"[1](b1)\t\t# \"node-1\" lid 5 4xHDR\n\n" +
	"vendid=0x2c9\ndevid=0x1019\ncaguid=0x20\nCa\t1 \"H-0000000000000020\"\t\t# \"node-1\"\n[1](b1)\t\"S-0000000000000010\"[1]\t\t# lid 5 lmc 0 \"sw\" lid 1 4xHDR\n"
