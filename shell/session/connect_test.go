package session

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	changes "fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/capture"
	"fabsh/mad/engine"
)

// content returns the content of a file; "-": there is no such file.
func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRecordFile: until the end a recording is FILE.part, and an older one at FILE is
// untouched; a session that is killed leaves both; the next one replaces its part.
func TestRecordFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcap")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	check := func(when, whole, part string) {
		t.Helper()
		if got := content(t, path); got != whole {
			t.Errorf("%s: the recording is %q, want %q", when, got, whole)
		}
		if got := content(t, path+partSuffix); got != part {
			t.Errorf("%s: the part is %q, want %q", when, got, part)
		}
	}
	begin := func() *recordFile {
		t.Helper()
		w, err := createRecording(path)
		if err != nil {
			t.Fatal(err)
		}
		r := w.(*recordFile)
		if _, err := r.Write([]byte("packet")); err != nil {
			t.Fatal(err)
		}
		return r
	}
	killed := begin()
	check("while it is written", "old", "packet")
	if _, err := createRecording(path); err == nil || !strings.Contains(err.Error(), "another session is writing") {
		t.Errorf("a second session: %v", err)
	}
	killed.f.Close()
	check("after a kill", "old", "packet")
	r := begin()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	check("at the end", "packet", "-")
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", st.Mode(), err)
	}
	r = begin()
	r.f.Close() // as if the disk was full
	if _, err := r.Write([]byte("more")); err == nil {
		t.Error("a write succeeded on a closed file")
	}
	if err := r.Close(); err == nil || !strings.Contains(err.Error(), "incomplete recording, kept in "+path+partSuffix) {
		t.Errorf("the end of an incomplete recording: %v", err)
	}
	check("after an error", "packet", "packet")
	r = begin()
	r.discard()
	check("after discard", "packet", "-")
}

// TestRecordFileOfOthers: a symbolic link at FILE.part is not followed.
func TestRecordFileOfOthers(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "a.pcap"), filepath.Join(dir, "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o644), os.Symlink(victim, path+partSuffix)); err != nil {
		t.Fatal(err)
	}
	if _, err := createRecording(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	if got := content(t, victim); got != "precious" {
		t.Errorf("the other file is %q", got)
	}
}

// damage returns file with flipped, cut and repeated bytes: each operation takes four
// bytes of ops, which are what is done, the place (16 bits, of 65536), and how much.
func damage(file, ops []byte) []byte {
	file = slices.Clone(file)
	for ; len(ops) >= 4 && len(file) > 0; ops = ops[4:] {
		at := (int(ops[1])<<8 | int(ops[2])) * len(file) >> 16
		n := min(int(ops[3])+1, len(file)-at)
		switch ops[0] % 4 {
		case 0:
			file[at] ^= 1 << (ops[3] % 8)
		case 1:
			file = slices.Delete(file, at, at+n)
		case 2:
			file = file[:at]
		case 3:
			file = slices.Insert(file, at, bytes.Clone(file[at:at+n])...)
		}
	}
	return file
}

// saved is a file that fabsh reads back. check loads what became of it, and reports an
// error unless loading fails or gives nothing but what was written.
type saved struct {
	name  string
	file  []byte
	check func(t *testing.T, damaged []byte)
}

// FuzzDamage: whatever happened to a plan, acks, a state, a recording, or a snapshot, as of a
// baseline, they are refused, or what is read is what was written.
func FuzzDamage(f *testing.F) {
	files := savedFiles(f)
	for i := range files {
		f.Add(uint8(i), []byte(nil))
		for op := range byte(4) {
			for _, at := range []byte{0, 0x40, 0x80, 0xc0, 0xff} {
				f.Add(uint8(i), []byte{op, at, 0x55, at + 3})
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, ops []byte) {
		s := &files[int(which)%len(files)]
		s.check(t, damage(s.file, ops[:min(len(ops), 64)]))
	})
}

func savedFiles(f *testing.F) []saved {
	topology, options, err := sim.Parse("ring:n=3")
	if err != nil {
		f.Fatal(err)
	}
	transport, err := sim.New(topology, options).Attach(3, 1)
	if err != nil {
		f.Fatal(err)
	}
	var recorded bytes.Buffer
	recording, err := capture.Record(transport, nopCloser{&recorded})
	if err != nil {
		f.Fatal(err)
	}
	e := engine.New(recording, engine.Options{})
	read, err := discover.Sweep(f.Context(), e, discover.Options{})
	if err != nil {
		f.Fatal(err)
	}
	if err := e.Close(); err != nil {
		f.Fatal(err)
	}
	return []saved{savedPlan(f, read), savedAcks(f), savedState(f), savedRecording(f, recorded.Bytes()), savedSnapshot(f, read)}
}

type nopCloser struct{ *bytes.Buffer }

func (nopCloser) Close() error { return nil }

// savedPlan: a plan may be edited, and is proven when it is made. What is read of it must be
// what is written of it.
func savedPlan(f *testing.F, read *fabric.Fabric) saved {
	sw := &read.OfType(mad.NodeTypeSwitch)[0]
	p := &changes.Plan{
		From: "x.star", Base: changes.FingerprintOf(read, nil),
		Sets: []certificate.Change{{Attr: mad.AttrLinearForwardingTable, Node: sw.GUID(), Name: sw.Name(), Routes: []mad.DirectedRoute{{0, 1}}, Old: make([]byte, 64), New: bytes.Repeat([]byte{1}, 64)}},
	}
	write := func(t testing.TB, p *changes.Plan) []byte {
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	return saved{"plan", write(f, p), func(t *testing.T, damaged []byte) {
		p, err := changes.LoadPlan(bytes.NewReader(damaged), "x")
		if err != nil {
			return
		}
		once := write(t, p)
		again, err := changes.LoadPlan(bytes.NewReader(once), "x")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(once, write(t, again)) {
			t.Errorf("what is read of\n%s\nis not what is written", damaged)
		}
	}}
}

// savedAcks: each line that is whole is in effect, and the others are reported.
func savedAcks(f *testing.F) saved {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	lines := []string{`link.down:fabric 2026-12-01 "me" "cable"`, `ctr.*:0x0000000000000002/7 2026-12-02 "you" "known" "leaf-1"`, `port.*:* 2026-12-03 "they" "old"`}
	path := filepath.Join(f.TempDir(), "acks")
	return saved{"acks", []byte("# comment\n" + strings.Join(lines, "\n") + "\n"), func(t *testing.T, damaged []byte) {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		acks, bad := audit.ReadAcks(path, now)
		count := 0
		for line := range strings.SplitSeq(string(damaged), "\n") {
			if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
				count++
			}
			if slices.Contains(lines, line) && !slices.ContainsFunc(acks, func(a audit.Ack) bool { return strings.HasPrefix(line, a.Pattern+" ") }) {
				t.Errorf("the line %q is not in effect", line)
			}
		}
		if len(acks)+len(bad) != count {
			t.Errorf("%d acks and %d bad lines of %d", len(acks), len(bad), count)
		}
		found := audit.Finding{Check: "link.down", Subject: audit.OfFabric()}
		new(audit.Report).Settle([]audit.Finding{found}, acks, nil, now)
	}}
}

// savedState: what was kept of runs before, or nothing and why.
func savedState(f *testing.F) saved {
	dir := f.TempDir()
	open := func(t testing.TB) (*audit.State, string) {
		st, err := audit.OpenState(dir, fabric.Subnet{Given: "rail-1"}, "x")
		if err != nil {
			t.Fatal(err)
		}
		return st, filepath.Join(fabric.Subnet{Given: "rail-1"}.Folder(dir), "x.state")
	}
	content := func(t testing.TB, st *audit.State, path string) []byte {
		if err := st.Save(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	began := time.Unix(1_795_000_000, 0)
	a := audit.NewAnswers(began, 3)
	for i := range 3 {
		guid := mad.GUID(0x10 + i)
		data := bytes.Repeat([]byte{byte(i), 7}, 100)
		a.Answered(a.AddPort(audit.PortKey{GUID: guid, Num: 1}, guid, guid), 0, new(mad.ClassPortInfo), nil, data, began)
	}
	_, read := a.Read()
	st, path := open(f)
	st.Add(read)
	st.SetFindings([]audit.Finding{{Check: "link.down", Subject: audit.OfFabric(), Message: "it is down"}}, true, nil, began)
	file := content(f, st, path)
	return saved{"state", file, func(t *testing.T, damaged []byte) {
		st, path := open(t)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if st.Read(); st.Reset != nil {
			if st.Last() != nil {
				t.Error("a state that is refused has reads")
			}
			return
		}
		if !bytes.Equal(content(t, st, path), file) {
			t.Error("the state that was read is another one")
		}
	}}
}

// savedRecording: what a replay answers was recorded, as the answer to the same request.
func savedRecording(f *testing.F, file []byte) saved {
	ask := func(t testing.TB, file []byte, routes []mad.DirectedRoute) (answers []string, err error) {
		r, err := capture.Load(bytes.NewReader(file), "x")
		if err != nil {
			return nil, err
		}
		e := engine.New(capture.NewReplay(r), engine.Options{})
		defer e.Close()
		for _, route := range routes {
			var c engine.Call
			c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
			c.SetRoute(route)
			if e.Do(context.Background(), &c); c.Err != nil {
				answers = append(answers, "")
				continue
			}
			answers = append(answers, string(c.Data()[:mad.AttrNodeInfo.Size]))
		}
		return answers, nil
	}
	routes := []mad.DirectedRoute{{0}, {0, 1}, {0, 1, 1}, {0, 1, 2}, {0, 1, 3}}
	want, err := ask(f, file, routes)
	if err != nil {
		f.Fatal(err)
	}
	return saved{"recording", file, func(t *testing.T, damaged []byte) {
		got, err := ask(t, damaged, routes)
		for i := range got {
			if err == nil && got[i] != "" && got[i] != want[i] {
				t.Errorf("the answer from %v is\n%x, and was\n%x", routes[i], got[i], want[i])
			}
		}
	}}
}

// savedSnapshot: the fabric that was read.
func savedSnapshot(f *testing.F, read *fabric.Fabric) saved {
	write := func(t testing.TB, f *fabric.Fabric) []byte {
		var b bytes.Buffer
		if err := format.WriteSnapshot(&b, f); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	file := write(f, read)
	return saved{"snapshot", file, func(t *testing.T, damaged []byte) {
		got, err := format.Load(bytes.NewReader(damaged), "x", nil)
		if err == nil && !bytes.Equal(write(t, got), file) {
			t.Error("the fabric that was read is another one")
		}
	}}
}

// liar is a subnet whose switch invents another one behind each of its ports, and
// so do these.
type liar struct {
	engine.Basic
	out  chan engine.Datagram
	done chan bool
}

func (l *liar) Send(d *engine.Datagram) error {
	r := engine.Datagram{Address: d.Address, MAD: slices.Clone(d.MAD)}
	route := mad.RouteOf(d.MAD)
	data := r.MAD[mad.SMPDataOffset:][:64]
	switch mad.ParseHeader(d.MAD).Attribute {
	case mad.AttrNodeInfo.ID:
		sum := fnv.New64()
		sum.Write(route)
		info := mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeTypeSwitch, NumPorts: 254,
			NodeGUID: mad.GUID(sum.Sum64()), PortGUID: mad.GUID(sum.Sum64()), LocalPortNum: 1}
		if len(route) == 1 {
			info.NodeType, info.NumPorts = mad.NodeTypeCA, 1
		}
		info.Encode(data)
	case mad.AttrPortInfo.ID:
		info := mad.PortInfo{LID: mad.LID(len(route)), PortState: mad.PortStateActive, PortPhysicalState: mad.PortPhysicalStateLinkUp}
		info.Encode(data)
	}
	r.MAD[mad.MethodOffset] |= byte(mad.Response)
	select {
	case l.out <- r:
	case <-l.done:
	}
	return nil
}

func (l *liar) Recv(d *engine.Datagram) error {
	select {
	case r := <-l.out:
		m := append(d.MAD[:0], r.MAD...)
		*d = r
		d.MAD = m
		return nil
	case <-l.done:
		return engine.ErrClosed
	}
}

func (l *liar) Port() (engine.Port, error) { return engine.Port{LID: 1, Num: 1}, nil }
func (l *liar) Traits() engine.Traits      { return engine.Traits{} }
func (l *liar) Close() error               { close(l.done); return nil }

// TestLyingSwitch: a switch that invents nodes ends discover() with a warning; the
// script goes on with what was found, and the exit status is 3.
func TestLyingSwitch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	p, out := testProgram(t, "--window", "512")
	p.Interrupts, _, _ = testInterrupts()
	s, err := New(p, Base{Connection: &Connection{Name: "liar", transport: &liar{out: make(chan engine.Datagram, 1<<12), done: make(chan bool)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	status := s.Runner.Evaluate(func(ctx context.Context) error {
		return program.RunCode(ctx, s.Interpreter, "<command>", "len(discover().nodes)")
	})
	if status != lang.StatusFabric {
		t.Errorf("exit status %d", status)
	}
	want := regexp.MustCompile(`the sweep stopped at 411\d nodes with \d+ ports, the most that a subnet can have; [^\n]*\n(.*\n)*411\d\n`)
	if !want.Match(out.Bytes()) {
		t.Errorf("got %.2000s", out)
	}
}
