package format_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// ibdiagnetRun is the files of a run of ibdiagnet, in a folder.
func ibdiagnetRun(t testing.TB, folder string) fstest.MapFS {
	files := fstest.MapFS{}
	for _, name := range []string{"db_csv", "ibnetdiscover", "net_dump", "sm", "cables"} {
		data, err := os.ReadFile("testdata/ibdiagnet/ibdiagnet2." + name)
		if err != nil {
			t.Fatal(err)
		}
		files[folder+"ibdiagnet2."+name] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
	return files
}

// tarred packs files, in the order of their names.
func tarred(t testing.TB, files fstest.MapFS) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range sortedNames(files) {
		f := files[name]
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(f.Data)), Typeflag: tar.TypeReg}
		if f.Mode&fs.ModeSymlink != 0 {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, string(f.Data), 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			w.Write(f.Data)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, files fstest.MapFS) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range sortedNames(files) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(files[name].Mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(files[name].Data)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sortedNames(files fstest.MapFS) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// packedBy packs data by a writer that open makes.
func packedBy[W io.WriteCloser](t testing.TB, open func(io.Writer) (W, error), data []byte) []byte {
	var b bytes.Buffer
	w, err := open(&b)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(data)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestArchives: a run of ibdiagnet loads from a directory and from archives, and the files that are
// not read are listed.
func TestArchives(t *testing.T) {
	files := ibdiagnetRun(t, "var/tmp/ibdiagnet2/")
	whole := tarred(t, files)
	zst := func(w io.Writer) (*zstd.Encoder, error) { return zstd.NewWriter(w) }
	for name, data := range map[string][]byte{
		"a.tar": whole, "a.tgz": gzipped(t, whole), "a.tar.xz": packedBy(t, xz.NewWriter, whole), "a.tar.zst": packedBy(t, zst, whole), "a.zip": zipped(t, files),
		"dir": nil,
	} {
		var f *fabric.Fabric
		var err error
		if data == nil {
			f, err = format.LoadDir(files, name, nil)
		} else {
			f, err = format.Load(bytes.NewReader(data), name, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		want := name + ": 3 files were not read: var/tmp/ibdiagnet2/ibdiagnet2.ibnetdiscover (the topology is read from ibdiagnet2.db_csv), " +
			"var/tmp/ibdiagnet2/ibdiagnet2.net_dump (links are read from the topology), var/tmp/ibdiagnet2/ibdiagnet2.sm (the same is in ibdiagnet2.db_csv)"
		if got := problemTexts(f); f.Links() != 8 || !slices.Contains(got, want) {
			t.Errorf("%s: %s\n%s\nwant %s", name, f, strings.Join(got, "\n"), want)
		}
		// ibdiagnet2.cables replaces CABLE_INFO: 65496 is -40 dBm, and copper has no sensor.
		if got, want := moduleOf(f, 0x2c90300aa0000, 1), "EX-SR8 58 -40 [temperature rx_power]"; got != want {
			t.Errorf("%s: module %q, want %q", name, got, want)
		}
		if got, want := moduleOf(f, 0x2c90300aa0040, 1), "EX-CU-2 0 0 []"; got != want {
			t.Errorf("%s: module %q, want %q", name, got, want)
		}
	}
	csv := files["var/tmp/ibdiagnet2/ibdiagnet2.db_csv"].Data
	for name, data := range map[string][]byte{"d.xz": packedBy(t, xz.NewWriter, csv), "d.zst": packedBy(t, zst, csv)} {
		if f, err := format.Load(bytes.NewReader(data), name, nil); err != nil || f.Links() != 8 {
			t.Errorf("%s: %v", name, err)
		}
		for _, cut := range []int{20, len(data) / 2, len(data) - 64} {
			if f, err := format.Load(bytes.NewReader(data[:cut]), name, nil); err == nil {
				t.Errorf("%s cut at %d of %d: %s", name, cut, len(data), f)
			}
		}
	}
	bz, err := base64.StdEncoding.DecodeString(bzipped)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := format.Load(bytes.NewReader(bz), "d.bz2", nil); err != nil || len(f.Nodes()) != 2 {
		t.Errorf("bzip2: %v", err)
	}
}

// moduleOf is the module of a port: part, temperature, optical power of the first lane, and what it measures.
func moduleOf(f *fabric.Fabric, guid mad.GUID, num int) string {
	for _, a := range f.AnswersOf(f.NodeByGUID(guid)[0].ID()) {
		if layout := mad.LookupRegister(uint16(a.Modifier)); a.Class == mad.ClassVendor0A && layout.Name == "PDDR" && int(a.Port) == num {
			page := layout.Resolve(a.Data, 0)
			monitors := page.Field("monitor_cap_mask")
			return fmt.Sprint(page.Field("vendor_pn").Text(a.Data), " ", page.Field("temperature").Number(a.Data, 0), " ", page.Field("rx_power_lane").Number(a.Data, 0), " ", monitors.Words.Split(monitors.Uint(a.Data)))
		}
	}
	return ""
}

func problemTexts(f *fabric.Fabric) (list []string) {
	for _, p := range f.Problems() {
		list = append(list, p.Text)
	}
	return list
}

// TestArchiveTables: the tables of a directory of OpenSM come with the fabric.
func TestArchiveTables(t *testing.T) {
	const net = "vendid=0x2c9\ndevid=0xb924\nswitchguid=0x10(10)\nSwitch\t4 \"S-0000000000000010\"\t\t# \"sw\" enhanced port 0 lid 1 lmc 0\n[1]\t\"H-0000000000000020\"[1](21)\t\t# \"h\" lid 2 4xHDR\n\n" +
		"vendid=0x2c9\ndevid=0x1019\ncaguid=0x20\nCa\t1 \"H-0000000000000020\"\t\t# \"h\"\n[1](21)\t\"S-0000000000000010\"[1]\t\t# lid 2 lmc 0 \"sw\" lid 1 4xHDR\n"
	files := fstest.MapFS{
		"net.txt":           {Data: []byte(net)},
		"opensm-lfts.dump":  {Data: []byte("Unicast lids [0x0-0x2] of switch Lid 1 guid 0x0000000000000010 (sw):\n  Lid  Out   Destination\n       Port     Info\n0x0001 000 : (Switch portguid 0x0000000000000010: 'sw')\n0x0002 001 : (Channel Adapter portguid 0x0000000000000021: 'h')\n2 valid lids dumped\n")},
		"opensm.mcfdbs":     {Data: []byte("Switch 0x0000000000000010\nLID    : Out Port(s)\n0xC021 : 0x000  0x001 \n")},
		"opensm-sl2vl.dump": {Data: []byte("0x10 0 1 0x01 0x23 0x45 0x67 0x89 0xab 0xcd 0xe7\n")},
		"guid2mkey":         {Data: []byte("0x0000000000000010 0x5ec7e75ec7e7\n")},
		"opensm.log":        {Data: []byte("log\n")},
	}
	f, err := format.LoadDir(files, "dumps", nil)
	if err != nil {
		t.Fatal(err)
	}
	sw := f.NodeByGUID(0x10)[0]
	if got := fmt.Sprint(sw.LFT()); got != "[255 0 1]" {
		t.Errorf("table %s", got)
	}
	var got []string
	for _, a := range f.AnswersOf(sw.ID()) {
		got = append(got, fmt.Sprintf("%s %d %#x % x", mad.Lookup(a.Class, a.ID).Name, a.Port, a.Modifier, a.Data[:8]))
	}
	want := []string{"MulticastForwardingTable -1 0x1 00 00 00 03 00 00 00 00", "SLtoVLMappingTable 1 0x1 01 23 45 67 89 ab cd e7"}
	if !slices.Equal(got, want) {
		t.Errorf("answers %q, want %q", got, want)
	}
	if texts := strings.Join(problemTexts(f), "\n"); strings.Contains(texts, "5ec7e7") || !strings.Contains(texts, "dumps: 2 files were not read: guid2mkey (keys), opensm.log (a log)") {
		t.Error(texts)
	}
}

// TestHostileArchives: links and paths that leave the archive are not followed, bombs are refused,
// and so are archives without a topology, or with several.
func TestHostileArchives(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("START_NODES\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := ibdiagnetRun(t, "")
	with := func(name string, f *fstest.MapFile) fstest.MapFS {
		files := fstest.MapFS{name: f}
		for n, x := range run {
			files[n] = x
		}
		return files
	}
	for _, test := range []struct {
		files fstest.MapFS
		want  string
	}{
		{with("../net.txt", &fstest.MapFile{Data: []byte("x")}), "x: the path of a file leads out of the archive: ../net.txt; refused"},
		{with("/etc/net.txt", &fstest.MapFile{Data: []byte("x")}), "x: the path of a file leads out of the archive: /etc/net.txt; refused"},
		{fstest.MapFS{"a.net": {Data: []byte(secret), Mode: fs.ModeSymlink | 0o777}, "b": {Data: []byte("?")}}, "x: no topology among its 2 files; expected ibdiagnet2.db_csv, opensm-subnet.lst, or what ibnetdiscover or iblinkinfo print; not read: a.net (a link), b (unknown format)"},
		{with("older/ibdiagnet2.db_csv", run["ibdiagnet2.db_csv"]), "x: topologies in 2 folders: ., older; unpack it, and name one of them"},
	} {
		for kind, data := range map[string][]byte{"tar": tarred(t, test.files), "zip": zipped(t, test.files)} {
			if _, err := format.Load(bytes.NewReader(data), "x", nil); err == nil || err.Error() != test.want {
				t.Errorf("%s:\ngot  %v\nwant %s", kind, err, test.want)
			}
		}
	}
	many := fstest.MapFS{}
	for i := range 1<<14 + 1 {
		many[fmt.Sprint(i)] = &fstest.MapFile{}
	}
	if _, err := format.LoadDir(many, "x", nil); err == nil || err.Error() != "x: expected at most 16384 files" {
		t.Error(err)
	}
}

// TestTwice: of a file that an archive has twice, the last is read; tables of two files that contradict each
// other are not mixed.
func TestTwice(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, text := range []string{strings.Replace(twoNodes, `"sw"`, `"older"`, 1), strings.Replace(twoNodes, `"sw"`, `"newer"`, 1)} {
		w.WriteHeader(&tar.Header{Name: "run/net.txt", Mode: 0o644, Size: int64(len(text))})
		io.WriteString(w, text)
	}
	w.Close()
	f, err := format.Load(&b, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.NodeByGUID(0x10)[0].Name(); got != "newer" {
		t.Errorf("read the %s file", got)
	}
	if got := problemTexts(f); !slices.Equal(got, []string{"x: 1 file was not read: run/net.txt (the archive has it several times; the last is read)"}) {
		t.Errorf("problems %q", got)
	}

	const table = "Unicast lids [0-2] of switch Lid 1 guid 0x0000000000000010 ('sw'):\n0x0001 000 # Switch portguid 0x0000000000000010: 'sw'\n0x0002 001 # Channel Adapter portguid 0x0000000000000021: 'h'\n2 lids dumped\n"
	other := strings.Replace(table, "0x0002 001", "0x0002 002", 1)
	files := fstest.MapFS{"net.txt": {Data: []byte(twoNodes)}, "a.dump": {Data: []byte(table)}, "b.dump": {Data: []byte(other)}, "c.dump": {Data: []byte(table)},
		"p1.txt": {Data: []byte(perfQueried)}, "p2.txt": {Data: []byte(strings.Replace(perfQueried, "LinkDownedCounter:...............9", "LinkDownedCounter:...............8", 1))}}
	if f, err = format.LoadDir(files, "d", nil); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.NodeByGUID(0x10)[0].LFT()); got != "[255 0 1]" {
		t.Errorf("table %s", got)
	}
	if got := strings.Join(problemTexts(f), "\n"); !strings.Contains(got, "d: 1 file was not read: b.dump (b.dump: its table of \"sw\" (0x0000000000000010) differs from that of another file)") || !strings.Contains(got, "are in several files with other values") {
		t.Error(got)
	}
}

// TestLinkInDirectory: a link in a directory is not followed, also to a file in it.
func TestLinkInDirectory(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile("testdata/ibdiagnet/ibdiagnet2.db_csv")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ibdiagnet2.db_csv"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "net.txt")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f, err := format.LoadDir(root.FS(), "dir", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := problemTexts(f); !slices.Contains(got, "dir: 1 file was not read: net.txt (a link)") {
		t.Error(got)
	}
}

// TestArchiveBomb: an archive that unpacks to much is refused within bounded memory.
func TestArchiveBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	zst := func(w io.Writer) (*zstd.Encoder, error) { return zstd.NewWriter(w) }
	const part, parts = 16 << 20, 80
	var header bytes.Buffer
	if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: "a.csv", Typeflag: tar.TypeReg, Size: part * parts}); err != nil {
		t.Fatal(err)
	}
	frame := packedBy(t, zst, bytes.Repeat([]byte("START_NODES\n# x"), part/16))
	bomb := append(packedBy(t, zst, header.Bytes()), bytes.Repeat(frame, parts)...)
	refused(t, "x: expected at most 1024 MB", func() error {
		_, err := format.Load(bytes.NewReader(bomb), "x", nil)
		return err
	})
}

// FuzzArchives: any bytes are refused, or load, within limits.
func FuzzArchives(f *testing.F) {
	files := fstest.MapFS{"a.net": {Data: []byte("Switch 4 \"S1\"\n[1] \"H1\"[1]\n\nHca 1 \"H1\"\n[1] \"S1\"[1]\n"), Mode: 0o644}}
	f.Add(tarred(f, files))
	f.Add(zipped(f, files))
	f.Add(packedBy(f, xz.NewWriter, tarred(f, files)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := format.Load(bytes.NewReader(data), "x", nil); err != nil && !strings.HasPrefix(err.Error(), "x") {
			t.Error(err)
		}
	})
}

// bzipped is a topology, packed by bzip2 1.0.8.
const bzipped = "QlpoOTFBWSZTWUMoyUYAABFfgAAQUAAkAABACAooYASAIAAhKn6o1MnkmQpgAD1cEX8Z3BoEZkaDElIomQ3rl+9r8XckU4UJBDKMlGA="
