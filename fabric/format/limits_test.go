package format_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"

	"fabsh/fabric/format"
	"fabsh/mad"
)

// bombMemory is what a file that is refused may cost: bytes of the heap at its
// highest.
const bombMemory = 256 << 20

// bombWork is what it may allocate in all, in bytes: 512 MiB take some 0.2 s.
const bombWork = 512 << 20

// refused reads in, which must be an error that contains want, within the memory.
// The time it took is in the log: it depends on the machine.
func refused(t *testing.T, want string, read func() error) {
	t.Helper()
	runtime.GC()
	before, allocated := heapObjects(), metric("/gc/heap/allocs:bytes")
	highest := make(chan uint64)
	stop := make(chan struct{})
	go func() {
		top := uint64(0)
		for {
			top = max(top, heapObjects())
			select {
			case <-stop:
				highest <- top
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	began := time.Now()
	err := read()
	took := time.Since(began)
	close(stop)
	heap := max(<-highest, before) - before
	allocated = metric("/gc/heap/allocs:bytes") - allocated
	t.Logf("%v, %d MiB of %d: %v", took.Round(time.Millisecond), heap>>20, allocated>>20, err)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if heap > bombMemory {
		t.Errorf("it took %d MiB", heap>>20)
	}
	if allocated > bombWork {
		t.Errorf("it allocated %d MiB", allocated>>20)
	}
}

// heapObjects is the bytes of objects in the heap, garbage included.
func heapObjects() uint64 { return metric("/memory/classes/heap/objects:bytes") }

func metric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// packed is a snapshot of what write writes, as small as zstd makes it.
func packed(t *testing.T, write func(w io.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("fabsh snapshot 1\n")
	z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	write(z)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// nodes is a section F up to the problems: n switches of so many ports, of which
// nothing is known.
func nodes(w io.Writer, n, ports int, name string) {
	b := []byte{'F', 0}
	w.Write(binary.AppendUvarint(b, uint64(n)))
	var info [64]byte
	(&mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: uint8(ports), NodeGUID: 0x10}).Encode(info[:])
	one := append(info[:40:40], binary.AppendUvarint(nil, uint64(len(name)))...)
	one = append(append(one, name...), 0)
	for range n {
		w.Write(one)
	}
	w.Write(make([]byte, n*(ports+1)+1))
}

// TestSnapshotBombs: little that unpacks to much.
func TestSnapshotBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	fill := func(w io.Writer, part []byte, n int) {
		many := bytes.Repeat(part, 1<<16/len(part)+1)
		for n > 0 {
			k := min(n, len(many)/len(part))
			w.Write(many[:k*len(part)])
			n -= k
		}
	}
	text := append([]byte{0xff, 0xff, 0x03}, make([]byte, 1<<16-1)...)
	for _, tt := range []struct {
		name  string
		write func(w io.Writer)
	}{
		{"problems", func(w io.Writer) {
			nodes(w, 1, 1, "")
			w.Write(binary.AppendUvarint(nil, 1<<20))
			fill(w, append([]byte{0}, text...), 1<<12)
		}},
		{"empty problems", func(w io.Writer) {
			nodes(w, 1, 1, "")
			w.Write(binary.AppendUvarint(nil, 1<<20))
			fill(w, []byte{0, 0}, 1<<20)
			fill(w, []byte{'A', 0, 0, 0, 0, 0}, 1<<22)
		}},
		{"names", func(w io.Writer) { nodes(w, 1<<12, 1, strings.Repeat("x", 1<<16-1)) }},
		{"ports", func(w io.Writer) { nodes(w, 4111, 254, "") }},
		{"nodes", func(w io.Writer) { nodes(w, 1<<16, 15, "") }},
		{"empty answers", func(w io.Writer) {
			nodes(w, 1, 1, "")
			w.Write([]byte{0})
			fill(w, []byte{'A', 0, 0, 0, 0, 0}, 1<<22)
		}},
		{"answers", func(w io.Writer) {
			nodes(w, 1, 1, "")
			w.Write([]byte{0})
			fill(w, append([]byte{'A', 0, 0, 0, 0}, text...), 1<<12)
		}},
		{"tables", func(w io.Writer) {
			nodes(w, 1<<15, 1, "")
			w.Write([]byte{0})
			for i := range 1 << 12 {
				w.Write(binary.AppendUvarint([]byte{'L'}, uint64(i)))
				w.Write(append([]byte{0x80, 0x80, 0x03}, make([]byte, 0xc000)...))
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := packed(t, tt.write)
			if len(file) > 1<<20 {
				t.Fatalf("%d bytes are no bomb", len(file))
			}
			t.Logf("%d bytes", len(file))
			refused(t, "x: ", func() error {
				_, err := format.ReadSnapshot(bytes.NewReader(file), "x")
				return err
			})
		})
	}
}

// TestSnapshotHeads: heads that ask for much.
func TestSnapshotHeads(t *testing.T) {
	manyNodes := packed(t, func(w io.Writer) { w.Write(binary.AppendUvarint([]byte{'F', 0}, 1<<16+1)) })
	// A frame of zstd whose window has 2^(10+19) bytes (RFC 8878, 3.1.1.1.2).
	window := "fabsh snapshot 1\n\x28\xb5\x2f\xfd\x04\x98\x01\x00\x00"
	for want, file := range map[string]string{
		"x: expected a number of nodes up to 65536, not 65537: the snapshot is damaged": string(manyNodes),
		"x: the snapshot is damaged: window size exceeded":                              window,
	} {
		refused(t, want, func() error {
			_, err := format.ReadSnapshot(strings.NewReader(file), "x")
			return err
		})
	}
}

// TestTopologyBombs: few lines that mean much.
func TestTopologyBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	var boards, wires, long, deep strings.Builder
	for level := range 7 {
		fmt.Fprintf(&boards, "SYSTEM B%d\n", level)
		for i := range 40 {
			fmt.Fprintf(&boards, "SUBSYSTEM B%d b%d\n", level+1, i)
		}
	}
	boards.WriteString("SYSTEM B7\nNODE SW 1 X U1\n1 -> P1\nTOPSYSTEM S\nSUBSYSTEM B0 b\n")
	wires.WriteString("SYSTEM B\nNODE SW 2 X U1\n")
	for range 100000 {
		wires.WriteString("1 -> U1 2\n")
	}
	wires.WriteString("TOPSYSTEM S\n")
	for i := range 30000 {
		fmt.Fprintf(&wires, "SUBSYSTEM B b%d\n", i)
	}
	long.WriteString("SYSTEM B\n")
	for i := range 200 {
		fmt.Fprintf(&long, "NODE SW 1 X %s%d\n", strings.Repeat("u", 60000), i)
	}
	long.WriteString("TOPSYSTEM S\n")
	for i := range 300 {
		fmt.Fprintf(&long, "SUBSYSTEM B b%d\n", i)
	}
	fmt.Fprintf(&deep, "SYSTEM B\nNODE SW 2 X U1\n%sTOPSYSTEM S\n", strings.Repeat("1 -> U1 2\n", 100000))
	for i := range 20 {
		fmt.Fprintf(&deep, "SUBSYSTEM B %s%d\n", strings.Repeat("b", 60000), i)
	}
	var ports strings.Builder
	for i := range 4128 {
		fmt.Fprintf(&ports, "Switch 254 \"s%d\"\n", i)
	}
	plan, names := []byte("a,a_port,b,b_port\n"), []byte("a,a_port,b,b_port\n")
	for i := range 1 << 16 {
		plan = fmt.Appendf(plan, "%x,254,%x,254\n", 2*i, 2*i+1)
		if i < 1<<12 {
			names = fmt.Appendf(names, "%x,1,%x%s,2\n", i, i, strings.Repeat(",", 60000))
		}
	}
	db, rows := []byte("START_NODES\nNodeGUID,NodeType,NumPorts\n"), []byte("START_NODES\nNodeGUID,NodeType,NumPorts\n1,2,2\n2,2,2\nEND_NODES\nSTART_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n")
	for i := range 1 << 16 {
		db = fmt.Appendf(db, "%d,2,254\n", i+1)
	}
	rows = append(rows, bytes.Repeat([]byte("1,1,2,1\n"), 1<<20+1)...)
	comments := bytes.Repeat([]byte("# "+strings.Repeat("x", 997)+"\n"), 100)
	const topo = "S S-1\n  P1 -> S S-2 P1\n"
	for _, tt := range []struct{ name, text, ibnl, want string }{
		{"boards", topo, boards.String(), "at most 65536 nodes"},
		{"wires", topo, wires.String(), "boards, chips and wires"},
		{"wires on boards of long names", topo, deep.String(), "boards, chips and wires"},
		{"a long description", topo, strings.Repeat("# "+strings.Repeat("x", 997)+"\n", 17<<10), "S.ibnl: expected at most 16 MB"},
		{"names", topo, long.String(), "names of at most"},
		{"ports", ports.String(), "", "ports"},
		{"ports of a plan", string(plan), "", "ports"},
		{"columns of a plan", string(names), "", "x:2: expected a port"},
		{"quotes in a plan", "a,a_port,b,b_port\n" + strings.Repeat("\""+strings.Repeat("\"", 60000)+"\",1,x,2\n", 300), "", "a name of 1 to"},
		{"nodes of a data base", string(db), "", "ports"},
		{"lines of a data base", string(rows), "", "at most 1048576 lines in section LINKS"},
		{"columns of a data base", "START_PORTS\n" + strings.Repeat(",", 60000) + "\n", "", "column NodeGuid"},
		{"includes", "include \"a0\"\n", "", "included"},
		{"long includes", strings.Repeat("include \"long\"\n", 1000), "", "at most 64 MB of files that others include"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			open := func(name string) (io.ReadCloser, error) {
				var level int
				if n, _ := fmt.Sscanf(name, "a%d", &level); n == 1 {
					return io.NopCloser(strings.NewReader(strings.Repeat(fmt.Sprintf("include \"a%d\"\n", level+1), 14-min(level, 14)))), nil
				}
				return fstest.MapFS{"S.ibnl": {Data: []byte(tt.ibnl)}, "long": {Data: comments}}.Open(name)
			}
			refused(t, tt.want, func() error {
				_, err := format.Load(strings.NewReader(tt.text), "x", open)
				return err
			})
		})
	}
}

// rowReaders read whole files of each kind of rows.
var rowReaders = []func(r io.Reader, name string) error{
	func(r io.Reader, name string) error { return last(format.LFTs(r, name)) },
	func(r io.Reader, name string) error { return last(format.HopRows(r, name)) },
	func(r io.Reader, name string) error { return last(format.MFTs(r, name)) },
	func(r io.Reader, name string) error { return last(format.SL2VLs(r, name)) },
	func(r io.Reader, name string) error { return last(format.PathSLs(r, name)) },
	func(r io.Reader, name string) error { return last(format.GUIDLines(r, name)) },
	func(r io.Reader, name string) error { _, err := format.ReadKeys(r, name); return err },
	func(r io.Reader, name string) error { _, err := format.ReadSnapshot(r, name); return err },
}

// last is the error that ends the rows.
func last[T any](rows iter.Seq2[T, error]) (err error) {
	for _, err = range rows {
	}
	return err
}

// TestLists: short lines without end.
func TestLists(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	var guids, names, keys strings.Builder
	for i := range 2 << 20 {
		fmt.Fprintf(&guids, "%d\n", i+1)
		fmt.Fprintf(&names, "%d n\n", i+1)
		fmt.Fprintf(&keys, "%d 1\n", i+1)
	}
	for _, tt := range []struct {
		text, want string
		read       func(r io.Reader, name string) error
	}{
		{guids.String(), "x:1048577: expected at most 1048576 GUIDs", func(r io.Reader, name string) error { _, err := format.ReadGUIDs(r, name); return err }},
		{names.String(), "x:1048577: expected at most 1048576 GUIDs", func(r io.Reader, name string) error { _, err := format.ReadNodeNames(r, name); return err }},
		{keys.String(), "x:1048577: expected keys of at most 1048576 ports", func(r io.Reader, name string) error { _, err := format.ReadKeys(r, name); return err }},
	} {
		refused(t, tt.want, func() error { return tt.read(strings.NewReader(tt.text), "x") })
	}
}

// TestTooLong: each reader has a limit, and reports it before it reads.
func TestTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 65<<30); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := format.Bounded(strings.NewReader("12345"), "x", 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil || err.Error() != "x: expected at most 0 MB" {
		t.Errorf("a pipe: %v", err)
	}
	for i, read := range rowReaders {
		if err := read(f, "x"); err == nil || !strings.HasPrefix(err.Error(), "x: expected at most ") {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestSparseFiles: a file of a gigabyte that takes no space.
func TestSparseFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	for name, head := range map[string]string{
		"empty": "", "net": "Switch 8 \"a\"\n", "cache": "\x2b\x83\xe7\x8f\x01\x00\x00\x00\xff\xff\xff\x7f\xff\xff\xff\x7f\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"subnet": "{ SW", "snapshot": "fabsh snapshot 1\n", "table": "Unicast lids [0-9] of switch guid 0x10\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(head), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, 1<<30); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			refused(t, "", func() error {
				_, err := format.Load(f, "x", nil)
				return err
			})
			for _, read := range rowReaders {
				f.Seek(0, io.SeekStart)
				refused(t, "x:", func() error { return read(f, "x") })
			}
		})
	}
}
