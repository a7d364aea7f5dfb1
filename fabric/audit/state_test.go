package audit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"fabsh/fabric"
	"fabsh/mad"
)

var rail = fabric.Subnet{Given: "rail-1", Prefix: fabric.DefaultPrefix, SM: 7}

// openState opens the state of a test, of which nothing is told.
func openState(t testing.TB, dir string) *State {
	t.Helper()
	st, err := OpenState(dir, rail, "counters")
	if err != nil {
		t.Fatal(err)
	}
	if st.Read(); st.Reset != nil {
		t.Fatal(st.Reset)
	}
	return st
}

// whole is all that there is to know of a read.
func whole(r *Read) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Began.UTC(), r.holds)
	for i := range r.Len() {
		p := r.port(i)
		fmt.Fprint(&b, *p.id(), p.kind().answered, p.kind().silent)
		for attr := range numAttributes {
			fmt.Fprint(&b, " ", p.after(attr))
		}
		fmt.Fprintln(&b)
		for _, counter := range p.kind().layout.counters {
			if v, _ := p.value(counter); v > 0 {
				fmt.Fprintln(&b, " ", Counters()[counter].Name, v)
			}
		}
	}
	return b.String()
}

// mixed is a read of ports that differ in all that is kept.
func mixed(began time.Time) *Read {
	_, r := readOf(began,
		portSpec{key: PortKey{0xffffffffffffffff, 254}, node: 1, system: 0xfffffffffffffffe, info: full, values: map[string]uint64{"1.port_xmit_data": 1<<64 - 1, "1.symbol_error_counter": 5}},
		portSpec{key: PortKey{2, 1}, node: 2, info: old, silent: []int{2}, refuse: []int{3}, values: map[string]uint64{"0.symbol_error_counter": 65535, "0.port_rcv_pkts": 9}},
		portSpec{key: PortKey{2, 0}, node: 2, info: full, values: map[string]uint64{"3.port_inactive_discards": 7}},
		portSpec{key: PortKey{3, 1}, node: 3, info: full}, // a GUID twice
		portSpec{key: PortKey{3, 1}, node: 4, info: full},
		portSpec{key: PortKey{0, 1}, node: 5, info: full}, // nobody's
		portSpec{key: PortKey{9, 1}, node: 9, info: full, silent: []int{0, 1, 2, 3}},
	)
	return r
}

// TestState: what is saved is there for the next run: the last read whole, older
// ones without traffic, findings with the time of the first. The same makes the
// same bytes.
func TestState(t *testing.T) {
	dir := t.TempDir()
	st := openState(t, dir)
	if st.Last() != nil || len(st.findings) != 0 {
		t.Error("a new state holds something")
	}
	evil := Finding{Audit: "links", Check: "link.width", Subject: Subject{KindLink, []End{{7, 3, "leaf\",\n\x1b[2J\xff", ""}, {8, NoPort, "", ""}}}, Severity: Error, Message: "narrow", Cause: "a.b:fabric", Data: []Datum{{"x", 1}}}
	other := Finding{Check: "sm.none", Subject: OfFabric(), Severity: Critical}
	st.Add(mixed(noon))
	st.SetFindings([]Finding{evil}, true, nil, noon)
	if err := st.Save(); err != nil {
		t.Fatal(err)
	}
	st = openState(t, dir)
	second := mixed(noon.Add(5 * time.Minute))
	st.Add(second)
	fixed := Finding{Check: "link.down", Subject: OfFabric()}
	st.findings = append(st.findings, fixed)
	found := []Finding{other, evil}
	gone := st.SetFindings(found, true, nil, noon.Add(5*time.Minute))
	if d := cmp.Diff([]Finding{fixed}, gone); d != "" || !found[0].Since.Equal(noon.Add(5*time.Minute)) || !found[1].Since.Equal(noon) || found[1].Data == nil {
		t.Errorf("found %+v, gone -want +got\n%s", found, d)
	}
	if err := st.Save(); err != nil {
		t.Fatal(err)
	}
	first, _ := os.ReadFile(st.path)
	st = openState(t, dir)
	if len(st.Reads()) != 2 {
		t.Fatalf("%d reads", len(st.Reads()))
	}
	for i, want := range []*Read{second, mixed(noon).reduced(holdsErrors)} {
		if d := cmp.Diff(whole(want), whole(st.Reads()[i])); d != "" {
			t.Errorf("read %d -want +got\n%s", i, d)
		}
	}
	evil.Data, evil.Since, other.Since = nil, noon, noon.Add(5*time.Minute)
	want := []Finding{other, evil}
	if d := cmp.Diff(want, st.findings); d != "" {
		t.Errorf("findings -want +got\n%s", d)
	}
	if n := second.Len(); n != 3 {
		t.Errorf("%d ports are kept, want 3", n)
	}
	if err := st.Save(); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(st.path); !bytes.Equal(first, again) {
		t.Error("the same state made other bytes")
	}
	if entries, _ := os.ReadDir(filepath.Dir(st.path)); len(entries) != 1 || st.path != filepath.Join(dir, "rail-1", "counters.state") {
		t.Errorf("files %v, path %s", entries, st.path)
	}
}

func emptyRead(began time.Time) *Read {
	_, r := readOf(began)
	return r
}

// TestThin: whatever the time between runs, few reads are kept, and for each
// window there is one that is long enough, and not much longer.
func TestThin(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, next := range map[string]func() time.Duration{
		"1s":     func() time.Duration { return time.Second },
		"10s":    func() time.Duration { return 10 * time.Second },
		"1m":     func() time.Duration { return time.Minute },
		"5m":     func() time.Duration { return 5 * time.Minute },
		"7m":     func() time.Duration { return 7 * time.Minute },
		"1h":     func() time.Duration { return time.Hour },
		"24h":    func() time.Duration { return 24 * time.Hour },
		"random": func() time.Duration { return time.Duration(random.Int64N(int64(10 * time.Minute))) },
	} {
		st, now, longest, most := new(State), noon, time.Duration(0), 0
		for range 20000 {
			gap := next()
			longest = max(longest, gap)
			now = now.Add(gap)
			reads := st.Reads()
			for window := longest; len(reads) > 0 && window <= LongestWindow && now.Sub(noon) > 4*(LongestWindow+longest); window += window / 3 {
				best := time.Duration(0)
				for _, r := range reads {
					if age := now.Sub(r.Began); age >= window {
						best = age
						break
					}
				}
				if best == 0 || best > 2*window+2*longest {
					t.Fatalf("every %s: for a window of %v there is a read of %v", name, window, best)
				}
			}
			st.Add(emptyRead(now))
			most = max(most, len(st.reads))
		}
		if most > maxReads {
			t.Errorf("every %s: %d reads", name, most)
		}
		t.Logf("every %s: up to %d reads", name, most)
	}
	st := new(State)
	st.Add(emptyRead(noon))
	st.Add(emptyRead(noon.Add(-time.Hour))) // the clock was set back
	if len(st.reads) != 1 || !st.Last().Began.Equal(noon.Add(-time.Hour)) {
		t.Errorf("after the clock was set back: %d reads", len(st.reads))
	}
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

// TestStateDamage: a file that cannot be read is told, and the state begins anew:
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
	anew := func(what string, data []byte, want string) {
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
		anew(fmt.Sprint("cut at ", i), data[:i], "")
		changed := bytes.Clone(data)
		changed[i] ^= 1 << (i % 8)
		anew(fmt.Sprint("changed at ", i), changed, "")
	}
	anew("empty", nil, "")
	anew("another version", []byte("fabsh audit state 2\nx"), "written by another version of fabsh")
	anew("other counters", packed(t, []byte{1, 0, 0}), "written by another version of fabsh, which reads other counters")
	anew("another job", packed(t, bytes.Replace(content(0, 0, 0, 'E'), []byte("rail-1"), []byte("rail-2"), 1)), `it is of the job "counters" in the subnet "rail-2"; was the file moved?`)
	anew("many ports", packed(t, content(1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f)), "expected a number of ports")
	anew("many reads", packed(t, content(21)), "expected up to 20 reads")
	anew("a long text", packed(t, content(0, 1, 0, 3, 0xff, 0xff, 3)), "expected an audit")
	anew("more after the end", packed(t, content(0, 0, 0, 0, 0, 'E', 'E')), "expected the end after the last agent")
	anew("many agents", packed(t, content(0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f)), "expected a number of agents")
	anew("a bomb of ports", packed(t, append(content(1, 0, 0, 0x80, 0x80, 0x80, 0x04), make([]byte, 64<<20)...)), "expected less than 512 MB")
	anew("a bomb", packed(t, make([]byte, 600<<20)), "decompressed size exceeds configured limit")

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

// TestIncompleteRun: what a run could not look at is not gone.
func TestIncompleteRun(t *testing.T) {
	st := openState(t, t.TempDir())
	old, still := Finding{Check: "a.old", Subject: OfFabric()}, Finding{Check: "a.still", Subject: OfFabric()}
	st.SetFindings([]Finding{old, still}, true, nil, noon)
	if gone := st.SetFindings([]Finding{still}, false, nil, noon.Add(time.Minute)); len(gone) > 0 {
		t.Errorf("%v is told to be gone", gone)
	}
	again := []Finding{old}
	gone := st.SetFindings(again, true, nil, noon.Add(2*time.Minute))
	if !again[0].Since.Equal(noon) || len(gone) != 1 || gone[0].Check != "a.still" {
		t.Errorf("found %v, gone %v", again, gone)
	}
}

// TestJobOf: whatever a job is named after, its name is one.
func TestJobOf(t *testing.T) {
	for _, test := range []struct {
		texts []string
		want  string
	}{
		{[]string{"links", "counters"}, "links+counters"},
		{[]string{"../x", "a b\n"}, "_._x+a_b_"},
		{[]string{strings.Repeat("x", 100), strings.Repeat("y", 100)}, strings.Repeat("x", 100) + "+" + strings.Repeat("y", 10) + "-"},
	} {
		if got := JobOf(test.texts...); !strings.HasPrefix(got, test.want) || CheckJob(got) != nil {
			t.Errorf("%q: %s, want %s", test.texts, got, test.want)
		}
	}
	if JobOf(strings.Repeat("x", 200)) == JobOf(strings.Repeat("x", 201)) {
		t.Error("two jobs have one name")
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
