package audit

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"fabsh/fabric"
	"fabsh/mad"
)

// FuzzStateDamage: a state of which bytes are flipped, cut or repeated is refused, or is
// what was written.
func FuzzStateDamage(f *testing.F) {
	st := &State{subnet: "rail-1", job: "counters"}
	st.Add(mixed(noon))
	st.Add(mixed(noon.Add(time.Hour)))
	st.Align(Moment{noon, "boot", time.Hour})
	st.See(pair(true, mad.PortStateActive), noon)
	st.SetFindings([]Finding{{Check: "a.b", Subject: link(1, 2, 3, 4)}}, true, nil, noon)
	whole, err := st.encode()
	if err != nil {
		f.Fatal(err)
	}
	for op := range byte(4) {
		f.Add(op, uint16(len(whole)/2), uint16(7))
		f.Add(op, uint16(3), uint16(1))
	}
	f.Fuzz(func(t *testing.T, op byte, at, n uint16) {
		data := bytes.Clone(whole)
		i := int(at) % len(data)
		j := min(len(data), i+1+int(n)%64)
		switch op % 4 {
		case 0:
			data[i] ^= 1 << (n % 8)
		case 1:
			data = data[:i]
		case 2:
			data = append(data[:i], data[j:]...)
		case 3:
			data = append(data[:j:j], whole[i:]...)
		}
		read := &State{subnet: "rail-1", job: "counters"}
		if read.decode(data) != nil {
			return
		}
		if again, err := read.encode(); err != nil || !bytes.Equal(again, whole) {
			t.Errorf("op %d at %d: another state was read (%v)", op%4, i, err)
		}
	})
}

// packed is the file with that content, as small as zstd makes it.
func packed(t testing.TB, plain []byte) []byte {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(plain, []byte(stateMagic+stateVersion))
}

// content is the beginning of a file, before its reads.
func content(more ...byte) []byte {
	var w stateWriter
	w.uint(countersVersion())
	w.text("rail-1")
	w.text("counters")
	w.int(noon.UnixNano())
	w.text("boot")
	w.int(int64(time.Hour))
	return append(w.b, more...)
}

// TestStateDamage: an invalid file is reported, and the state starts empty:
// whatever byte is lost or changed; of another version; of another job; a bomb;
// no file at all.
func TestStateDamage(t *testing.T) {
	dir := t.TempDir()
	st := openState(t, dir)
	st.Add(mixed(noon))
	st.SetFindings([]Finding{{Check: "a.b", Subject: OfFabric()}}, true, nil, noon)
	if err := st.Save(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(st.path)
	if err != nil {
		t.Fatal(err)
	}
	read := whole(st.Last())
	reset := func(what string, data []byte, want string) {
		t.Helper()
		if err := os.WriteFile(st.path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := OpenState(dir, rail, "counters")
		if err != nil {
			t.Fatal(err)
		}
		got.Read()
		switch {
		case got.Reset == nil && want == "" && whole(got.Last()) == read: // a bit that means nothing
		case got.Reset == nil:
			t.Errorf("%s: it is taken", what)
		case got.Last() != nil || len(got.findings) > 0 || !strings.HasSuffix(got.Reset.Error(), want+"; the state starts empty"):
			t.Errorf("%s: %v, %v", what, got.Reset, got.reads)
		}
	}
	for i := range data {
		reset(fmt.Sprint("cut at ", i), data[:i], "")
		changed := bytes.Clone(data)
		changed[i] ^= 1 << (i % 8)
		reset(fmt.Sprint("changed at ", i), changed, "")
	}
	reset("empty", nil, "")
	reset("another version", []byte("fabsh audit state 2\nx"), "written by another version of fabsh")
	reset("other counters", packed(t, []byte{1, 0, 0}), "written by another version of fabsh, which reads other counters")
	reset("another job", packed(t, bytes.Replace(content(0, 0, 0, 'E'), []byte("rail-1"), []byte("rail-2"), 1)), `it is of the job "counters" in the subnet "rail-2"; was the file moved?`)
	reset("many ports", packed(t, content(1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f)), "expected a number of ports")
	reset("many reads", packed(t, content(21)), "expected up to 20 reads")
	reset("a long text", packed(t, content(0, 1, 0, 3, 0xff, 0xff, 3)), "expected an audit")
	reset("more after the end", packed(t, content(0, 0, 0, 0, 0, 'E', 'E')), "expected the end after the last agent")
	reset("many agents", packed(t, content(0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f)), "expected a number of agents")
	reset("a bomb of ports", packed(t, append(content(1, 0, 0, 0x80, 0x80, 0x80, 0x04), make([]byte, 64<<20)...)), "expected less than 512 MB")
	reset("a bomb", packed(t, make([]byte, 600<<20)), "decompressed size exceeds configured limit")

	if err := os.Remove(st.path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(st.path, 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := OpenState(dir, rail, "counters")
	if err != nil {
		t.Fatal(err)
	}
	if got.Read(); got.Reset == nil {
		t.Error("a folder is taken for a state")
	}
}

// TestStateOther: what is not a regular file is kept, and what a symbolic link
// leads to.
func TestStateOther(t *testing.T) {
	dir := t.TempDir()
	st := openState(t, dir)
	if err := st.Save(); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	for what, make := range map[string]func() error{
		"a link": func() error { return os.Symlink(precious, st.path) },
		"a pipe": func() error { return syscall.Mkfifo(st.path, 0o644) },
	} {
		os.Remove(st.path)
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if err := st.Save(); err == nil || !strings.HasSuffix(err.Error(), "not a regular file; not replaced, move it away") {
			t.Errorf("%s: %v", what, err)
		}
		if got, err := os.ReadFile(precious); err != nil || string(got) != "precious" {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}

// TestStateLinks: no file of a state is read or written through a symbolic link.
func TestStateLinks(t *testing.T) {
	for _, name := range []string{"subnet", "acks", "counters.state"} {
		dir := t.TempDir()
		st := openState(t, dir)
		ack := Ack{Pattern: "link.down:0x1/1", Reason: "r", Until: noon.AddDate(1, 0, 0), By: "b"}
		acks := AckFile(dir, rail)
		for _, err := range []error{st.Save(), RecordSubnet(dir, rail, true), AddAck(acks, &ack)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(rail.Folder(dir), name)
		if err := errors.Join(os.Rename(path, path+".moved"), os.Symlink(path+".moved", path)); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := rail
		changed.Switches = []mad.GUID{1, 2, 3}
		_, bad := ReadAcks(acks, noon)
		st.Read()
		for what, x := range map[string]struct {
			of  string
			err error
		}{
			"CheckSubnet": {"subnet", CheckSubnet(dir, changed)}, "RecordSubnet": {"subnet", RecordSubnet(dir, changed, true)},
			"ReadAcks": {"acks", errors.Join(bad...)}, "AddAck": {"acks", AddAck(acks, &ack)},
			"Read": {"counters.state", st.Reset}, "Save": {"counters.state", st.Save()},
		} {
			if x.of == name && (x.err == nil || !strings.Contains(x.err.Error(), "symbolic link") && !strings.Contains(x.err.Error(), "not a regular file")) {
				t.Errorf("%s: %s: %v", name, what, x.err)
			}
		}
		if after, err := os.ReadFile(path + ".moved"); err != nil || !bytes.Equal(after, before) {
			t.Errorf("%s: the other file is %q, %v", name, after, err)
		}
	}
}

// TestStateNames: nothing that names a job or a subnet leads out of the folder.
func TestStateNames(t *testing.T) {
	for _, job := range []string{"", ".", "..", "../x", "a/b", "a\x00", "a\n", ".x", strings.Repeat("x", 129)} {
		if _, err := OpenState(t.TempDir(), rail, job); err == nil {
			t.Errorf("%q is taken for a job", job)
		}
	}
	for _, s := range []fabric.Subnet{{}, {Given: "../x"}, {Prefix: fabric.DefaultPrefix}} {
		if _, err := OpenState(t.TempDir(), s, "x"); err == nil {
			t.Errorf("%+v is taken for a subnet", s)
		}
	}
}

// FuzzState is about what is within the zstd frame, which has a checksum.
func FuzzState(f *testing.F) {
	st := &State{subnet: "rail-1", job: "counters"}
	st.Add(mixed(noon))
	st.Add(mixed(noon.Add(time.Hour)))
	st.SetFindings([]Finding{{Check: "a.b", Subject: link(1, 2, 3, 4)}}, true, nil, noon)
	data, err := st.encode()
	if err != nil {
		f.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		f.Fatal(err)
	}
	defer z.Close()
	plain, err := z.DecodeAll(data[len(stateMagic+stateVersion):], nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain)
	f.Add(content(0, 0, 0, 'E'))
	f.Fuzz(func(t *testing.T, plain []byte) {
		st := &State{subnet: "rail-1", job: "counters"}
		r := stateReader{b: plain, limit: 64 << 20}
		if r.state(st, true) != nil {
			return
		}
		once, err := st.encode()
		if err != nil {
			t.Fatal(err)
		}
		again := &State{subnet: "rail-1", job: "counters"}
		if err := again.decode(once); err != nil {
			t.Fatal(err)
		}
		if twice, _ := again.encode(); !bytes.Equal(once, twice) {
			t.Error("what was read is not what was written")
		}
		for _, read := range again.Reads() {
			between := new(Comparison)
			between.Add(read, read)
			for i := range read.Len() {
				w := between.Newest(read.port(i))
				for c := range Counters() {
					w.Rate(c)
				}
			}
		}
	})
}

// large is a read of 70,000 ports, whose traffic nobody can compress.
func large(began time.Time) *Read {
	random := rand.New(rand.NewPCG(1, 2))
	a := NewAnswers(began, 0)
	for n := range 70_000 {
		node := mad.GUID(0x0002c90300000000 + uint64(n/36)*0x40)
		i := a.AddPort(PortKey{node, uint8(1 + n%36)}, node, node+3)
		for attr := range 4 {
			data := make([]byte, mad.ClassPerf.DataSize())
			for _, c := range CounterAttributes[attr].Counters() {
				switch {
				case strings.HasSuffix(c.Script, "_data"), strings.HasSuffix(c.Script, "_pkts"), c.Script == "port_xmit_wait":
					c.SetUint(data, random.Uint64()>>max(64-c.Bits, 20))
				case random.IntN(100) == 0:
					c.SetUint(data, random.Uint64N(10))
				}
			}
			a.Answered(i, attr, full, nil, data, began.Add(time.Duration(n)*20*time.Microsecond))
		}
	}
	_, r := a.Read()
	return r
}

// BenchmarkStateWrite and BenchmarkStateRead are of one read of 70,000 ports:
// 0.2 s, 8 MB.
func BenchmarkStateWrite(b *testing.B) {
	st := openState(b, b.TempDir())
	st.Add(large(noon))
	for b.Loop() {
		if err := st.Save(); err != nil {
			b.Fatal(err)
		}
	}
	size, err := os.Stat(st.path)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(size.Size())/1e6, "MB")
}

func BenchmarkStateRead(b *testing.B) {
	dir := b.TempDir()
	st := openState(b, dir)
	st.Add(large(noon))
	if err := st.Save(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if st = openState(b, dir); st.Last().Len() != 70_000 {
			b.Fatal(st.Last().Len())
		}
	}
}

// TestEncodeRead: a read that was written compares like the one that it was, and damage is an error.
func TestEncodeRead(t *testing.T) {
	info := &mad.ClassPortInfo{}
	a := NewAnswers(time.Unix(1000, 0), 3)
	for i := range 3 {
		base := make([]byte, mad.AttrPortCounters.Size)
		mad.AttrPortCounters.Field("symbol_error_counter").SetUint(base, uint64(i))
		a.Answered(a.AddPort(PortKey{mad.GUID(10 + i), 1}, mad.GUID(20+i), 0), 0, info, nil, base, time.Unix(1001, 0))
	}
	_, read := a.Read()
	data, err := EncodeRead(read)
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeRead(data)
	if err != nil || back.Len() != 3 || !back.Began.Equal(read.Began) {
		t.Fatalf("%v %v", back, err)
	}
	c := new(Comparison)
	c.Add(read, back)
	for p, node := range read.All() {
		w := c.Newest(p)
		if v, ok := back.Port(p.Key()).Value("symbol_error_counter"); !ok || v != uint64(node-20) || len(w.Grown()) > 0 {
			t.Errorf("%v: %d %v, grown %v", p.Key(), v, ok, w.Grown())
		}
	}
	for i := range data {
		damaged := append([]byte(nil), data...)
		damaged[i] ^= 1
		if x, err := DecodeRead(damaged); err == nil { // such as in the size of the window
			if again, err := EncodeRead(x); err != nil || string(again) != string(data) {
				t.Errorf("byte %d: no error, and other counters", i)
			}
		}
	}
}
