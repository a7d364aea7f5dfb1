package format

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// cutNet is a network of two switches with two hosts.
const cutNet = `# Initiated from node 00000000000000a0 port 00000000000000a1

vendid=0x2c9
devid=0xd2f0
switchguid=0x10(10)
Switch	36 "S-0000000000000010"		# "leaf" base port 0 lid 2 lmc 0
[1]	"H-00000000000000a0"[1](a1) 		# "node-1 HCA-1" lid 1 4xHDR
[2]	"S-0000000000000011"[2]		# "spine" lid 3 4xHDR

vendid=0x2c9
devid=0xd2f0
switchguid=0x11(11)
Switch	36 "S-0000000000000011"		# "spine" base port 0 lid 3 lmc 0
[2]	"S-0000000000000010"[2]		# "leaf" lid 2 4xHDR
[3]	"H-00000000000000b0"[1](b1) 		# "node-2 HCA-1" lid 4 4xHDR

vendid=0x2c9
devid=0x101b
caguid=0xa0
Ca	1 "H-00000000000000a0"		# "node-1 HCA-1"
[1](a1) 	"S-0000000000000010"[1]		# lid 1 lmc 0 "leaf" lid 2 4xHDR

vendid=0x2c9
devid=0x101b
caguid=0xb0
Ca	1 "H-00000000000000b0"		# "node-2 HCA-1"
[1](b1) 	"S-0000000000000011"[3]		# lid 4 lmc 0 "spine" lid 3 4xHDR
`

// cutCache is cutNet as ibnetdiscover --cache keeps it, without PortInfo.
func cutCache(f *fabric.Fabric) string {
	var b bytes.Buffer
	ports := 0
	number := func(v uint64, bytes int) {
		for range bytes {
			b.WriteByte(byte(v))
			v >>= 8
		}
	}
	for i := range f.Ports() {
		if f.Ports()[i].Peer() != nil {
			ports++
		}
	}
	for _, x := range [][2]uint64{{0x8FE7832B, 4}, {1, 4}, {uint64(len(f.Nodes())), 4}, {uint64(ports), 4}, {0xa0, 8}, {3, 4}} {
		number(x[0], int(x[1]))
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		record := make([]byte, 207)
		n.Info().Encode(record[78:142])
		copy(record[142:], n.Name())
		for k := range 8 {
			record[68+k] = byte(n.GUID() >> (8 * k))
		}
		record[77] = uint8(n.NumPorts())
		b.Write(record)
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if p.Peer() == nil {
			continue
		}
		number(uint64(p.GUID()), 8)
		number(uint64(p.Num()), 1)
		b.Write(make([]byte, 68))
		number(uint64(p.Node().GUID()), 8)
		number(1, 1)
		number(uint64(p.Peer().GUID()), 8)
		number(uint64(p.Peer().Num()), 1)
	}
	return b.String()
}

// loadCut is Load, where the file may include nothing but definitions of systems.
func loadCut(text string, files map[string]string) (*fabric.Fabric, error) {
	return Load(strings.NewReader(text), "x", func(name string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(files[name])), nil
	})
}

// TestCutTopologies: no topology that is cut anywhere loads as complete. A format that does not show
// its end never does; then unseen are the cuts at ends of lines of which nothing in the rest of the
// file shows that something is missing.
func TestCutTopologies(t *testing.T) {
	f, err := loadCut(cutNet, nil)
	if err != nil {
		t.Fatal(err)
	}
	dump := func(kind FormatName) string {
		var b strings.Builder
		if err := Dump(&b, f, kind); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	whole, err := loadCut(DBSample, nil) // a snapshot of it states that it is whole
	if err != nil {
		t.Fatal(err)
	}
	var snapshot bytes.Buffer
	if err := WriteSnapshot(&snapshot, whole); err != nil {
		t.Fatal(err)
	}
	systems := map[string]string{"x/y": ""}
	if err := WriteIBNLs(f, func(name string) (io.WriteCloser, error) { return &mapFile{files: systems, name: name}, nil }); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		kind   FormatName
		text   string
		ends   bool // the format shows its end
		unseen int
	}{
		{KindIbnetdiscover, cutNet, false, 2},
		{KindSubnet, dump(KindSubnet), false, 2},
		{KindCache, cutCache(f), true, 0},
		{KindDBCSV, DBSample, true, 0},
		{KindCables, dump(KindCables), false, 2},
		{KindTopo, dump(KindTopo), false, 11},
		{KindNodeList, "Switch\t: 0x0000000000000010 ports 4 \"leaf\" base port 0 lid 2 lmc 0\nCa\t: 0x00000000000000a0 ports 1 \"node-1 HCA-1\"\n", false, 0},
		{KindPortsReport, capturedReport, false, 1},
		{KindLinkInfo, capturedLinks, false, 2},
		{KindLinkInfo, capturedLines, false, 2},
		{KindNDT, "StartDevice,StartPort,EndDevice,EndPort,State,Domain\nsw-1,Port 21,sw-2,Port 1,Active,In-Scope\nsw-1,Port 22,node mlx5_0,Port 1,Active,In-Scope\n", false, 1},
		{KindSnapshot, snapshot.String(), true, 0},
	} {
		if got := Recognise([]byte(x.text)); got != x.kind {
			t.Errorf("%s: recognised as %q", x.kind, got)
		}
		f, err := loadCut(x.text, systems)
		if err != nil || !f.Complete() && !f.LinksUnknown() || f.EndUnknown() == x.ends {
			t.Errorf("%s: %v, %v", x.kind, f, err)
			continue
		}
		unseen := 0
		for at := range len(x.text) {
			got, err := loadCut(x.text[:at], systems)
			if err != nil || !got.Complete() {
				continue
			}
			if unseen++; !got.EndUnknown() || strings.HasSuffix(got.String(), ", complete") {
				t.Errorf("%s: cut after byte %d: %v", x.kind, at, got)
			}
			if x.text[at-1] != '\n' && !endsWithSpeed(x.text[:at]) {
				t.Errorf("%s: cut within a line, at byte %d: %v", x.kind, at, got)
			}
		}
		if x.kind != KindDBCSV && unseen != x.unseen {
			t.Errorf("%s: %d cuts are not seen, want %d", x.kind, unseen, x.unseen)
		}
	}
}

// mapFile is a file that becomes an element of a map when it is closed.
type mapFile struct {
	bytes.Buffer
	files map[string]string
	name  string
}

func (f *mapFile) Close() error {
	f.files[f.name] = f.String()
	return nil
}

// rowsOf returns rows in words, until an error.
func rowsOf[T any](rows iter.Seq2[T, error], words func(T) []string) (list []string, err error) {
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		list = append(list, words(row)...)
	}
	return list, nil
}

// TestCutTables: a table that is cut anywhere is an error, or has the first rows of the whole one
// unchanged: no number of a row lacks digits.
func TestCutTables(t *testing.T) {
	f, err := loadCut(cutNet, nil)
	if err != nil {
		t.Fatal(err)
	}
	tables := &Tables{
		LFT: func(*fabric.Node) []byte { return []byte{mad.NoPort, 11, 12, 13, 14} },
		Hops: func() (HopsFunc, error) {
			return func(_ *fabric.Node, _ mad.LID, hops []byte) bool { hops[0] = 10; return true }, nil
		},
		SL:    func(*fabric.Port, mad.LID) (uint8, bool) { return 12, true },
		SL2VL: func(in, out *fabric.Port) (vls [16]uint8, ok bool) { return [16]uint8{10, 11, 12, 13, 14, 10}, true },
	}
	lfts := func(text string) ([]string, error) {
		return rowsOf(LFTs(strings.NewReader(text), "x"), func(l *LFT) (rows []string) {
			for lid, port := range l.Entries {
				if port != mad.NoPort {
					rows = append(rows, fmt.Sprint(l.GUID, lid, port, l.Owners[lid]))
				}
			}
			return rows
		})
	}
	hops := func(text string) ([]string, error) {
		return rowsOf(HopRows(strings.NewReader(text), "x"), func(r *HopRow) []string { return []string{fmt.Sprint(r.GUID, r.LID, r.Hops, r.Owner)} })
	}
	lanes := func(text string) ([]string, error) {
		return rowsOf(SL2VLs(strings.NewReader(text), "x"), func(r *SL2VL) []string { return []string{fmt.Sprint(r.NodeRef, r.In, r.Out, r.VLs)} })
	}
	levels := func(text string) ([]string, error) {
		return rowsOf(PathSLs(strings.NewReader(text), "x"), func(r *PathSL) []string { return []string{fmt.Sprint(r.NodeRef, r.DLID, r.SL)} })
	}
	multicast := func(text string) ([]string, error) {
		return rowsOf(MFTs(strings.NewReader(text), "x"), func(m *MFT) (rows []string) {
			for _, e := range m.Entries {
				rows = append(rows, fmt.Sprint(m.GUID, e))
			}
			return rows
		})
	}
	fars := func(text string) ([]string, error) {
		return rowsOf(FARs(strings.NewReader(text), "x"), func(r *FAR) (rows []string) {
			for plft, table := range r.Tables {
				for lid := range table.Top() + 1 {
					if e := table.Entry(lid); e.State != adaptive.Static || e.Port != mad.NoPort {
						rows = append(rows, fmt.Sprint(r.GUID, plft, lid, e, table.Groups.SubGroupsOf(int(e.Group))))
					}
				}
			}
			return rows
		})
	}
	var mfts strings.Builder
	if err := WriteMFTs(&mfts, f, func(*fabric.Node) []MFTEntry { return []MFTEntry{{0xc001, []uint8{1, 12}}, {0xc002, []uint8{2, 13}}} }); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		kind FormatName
		text string // "": it is written
		read func(text string) ([]string, error)
	}{
		{KindLFTs, "", lfts},
		{KindFDBs, "", lfts},
		{KindIbroute, "Unicast lids [0x0-0x2] of switch Lid 2 guid 0x0000000000000010 (leaf):\n  Lid  Out   Destination\n0x0001 011 : (Channel Adapter portguid 0x00000000000000a1: 'a')\n0x0002 012\n2 valid lids dumped\n", lfts},
		{KindHops, "", hops},
		{KindSL2VL, "", lanes},
		{KindShortSL2VL, "", lanes},
		{KindSmpquerySL2VL, "# SL2VL table: Lid 3\nports: in  0, out  1: | 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|14|\nports: in 10, out 11: | 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|14|\n", lanes},
		{KindPathSL, "", levels},
		{KindPathSL, "0x0000000000000010 154 10\n0x0000000000000010 155 11\n", levels},
		{KindMFTs, mfts.String(), multicast},
		{KindFAR, "File version: 2\nSwitch 0x10 - leaf\nGroups Definition:\n------\n1 0 1 11,12,\n\nLFT Definition: PLFT_NUM: 0, top: 0x12\n------\n0x0001 11 Free 1\n0x0011 12 HBF 1\n\n", fars},
	} {
		text := x.text
		if text == "" {
			var b strings.Builder
			if err := DumpTables(&b, f, x.kind, tables); err != nil {
				t.Fatal(err)
			}
			text = b.String()
		}
		whole, err := x.read(text)
		if err != nil || len(whole) < 2 {
			t.Errorf("%s: %q, %v in\n%s", x.kind, whole, err, text)
			continue
		}
		for at := range len(text) {
			if at > 250 && at < len(text)-250 && text[at] != '\n' && text[at-1] != '\n' {
				continue // as at the beginning and the end
			}
			if got, err := x.read(text[:at]); err == nil && (len(got) > len(whole) || !slices.Equal(got, whole[:len(got)])) {
				t.Errorf("%s: cut after byte %d, %q: %q", x.kind, at, text[max(0, at-20):at], got)
			}
		}
	}
}

// TestCutForwardingTable: a note reports that the last table has no end.
func TestCutForwardingTable(t *testing.T) {
	f, err := loadCut(cutNet, nil)
	if err != nil {
		t.Fatal(err)
	}
	const text = "Unicast lids [0-2] of switch Lid 2 guid 0x0000000000000010 ('leaf'):\n0x0001 001 # Channel Adapter portguid 0x00000000000000a1: 'a'\n0x0002 000 # Switch portguid 0x0000000000000010: 'leaf'\n2 lids dumped\n"
	for cut, want := range map[string]bool{text: false, strings.TrimSuffix(text, "2 lids dumped\n"): true} {
		notes, err := ReadLFTs(strings.NewReader(cut), "x", f, func(n *fabric.Node) []byte { return make([]byte, 5) })
		if got := slices.Contains(notes, "x:1: the last table does not end with a line such as 15 lids dumped; the file may be cut short"); err != nil || got != want {
			t.Errorf("%q: notes %q, error %v", cut, notes, err)
		}
	}
}
