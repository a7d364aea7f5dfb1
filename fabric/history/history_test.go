package history_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/history"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// subnet is a simulated subnet, and what happens to it.
type subnet struct {
	t *testing.T
	f *fabric.Fabric // as generated
	*sim.Subnet
	e   *engine.Engine
	now time.Time
}

func newSubnet(t *testing.T, spec string) *subnet {
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	s := &subnet{t: t, f: f, Subnet: sim.New(f, o), now: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
	conn, err := s.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	s.e = engine.New(conn, engine.Options{})
	t.Cleanup(func() { s.e.Close() })
	return s
}

func (s *subnet) sweep() *fabric.Fabric {
	f, err := discover.Sweep(s.t.Context(), s.e, discover.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

func (s *subnet) recorder(path string) *history.Recorder {
	r, err := history.NewRecorder(s.t.Context(), path, fabric.SubnetOf(s.f, ""), s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// record adds a cycle, five minutes after the last one.
func (s *subnet) record(r *history.Recorder) (*fabric.Fabric, *history.Summary) {
	s.now = s.now.Add(5 * time.Minute)
	f := s.sweep()
	x, err := r.Record(s.t.Context(), history.Cycle{Time: s.now, Every: 5 * time.Minute, Source: "test", Fabric: f})
	if err != nil {
		s.t.Fatal(err)
	}
	return f, x
}

func snapshotOf(t testing.TB, f *fabric.Fabric) []byte {
	var b bytes.Buffer
	if err := format.WriteSnapshot(&b, f.Bare()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// words are the events of a cycle, a line each.
func words(events []history.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s %s: %q %q\n", e.Kind, e.Subject, e.Was, e.Now)
	}
	return b.String()
}

// TestScenario: a link that fails and returns, a host that goes and returns, a cable that moves: each has
// its events, and the fabric of each cycle is the snapshot that was taken, byte for byte.
func TestScenario(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(t.TempDir(), "subnet", history.FileName)
	r := s.recorder(path)
	var link *fabric.Port // between switches
	for i := range s.f.Ports() {
		if p := &s.f.Ports()[i]; p.Peer() != nil && p.Node().IsSwitch() && p.Peer().Node().IsSwitch() {
			link = p
			break
		}
	}
	host := &s.f.OfType(mad.NodeTypeCA)[5]
	leaf := host.Port(1).Peer()
	unlink := func(p *fabric.Port) func() error {
		return func() error { return s.Cables.Unlink(p.Node().GUID(), p.Num()) }
	}
	relink := func(p *fabric.Port) func() error {
		return func() error { return s.Cables.Link(p.Node().GUID(), p.Num()) }
	}
	linkName := link.Name() + " - " + link.Peer().Name()
	if link.Node().GUID() > link.Peer().Node().GUID() {
		linkName = link.Peer().Name() + " - " + link.Name()
	}
	type step struct {
		do   func() error
		want string
	}
	var snapshots [][]byte
	var times []time.Time
	for i, x := range []step{
		{func() error { return nil }, ""},
		{unlink(link), "link.down " + linkName + `: "4x hdr" "polling"` + "\n"},
		{func() error { return nil }, ""},
		{relink(link), "link.up " + linkName + `: "" "4x hdr"` + "\n"},
		{unlink(leaf), fmt.Sprintf("node.gone %s: \"\" \"\"\nlink.gone %s - %s: \"4x hdr\" %q\n", fabric.NodeLabel(host.Name(), host.GUID()), leaf.Name(), host.Port(1).Name(), "with "+fabric.NodeLabel(host.Name(), host.GUID()))},
		{relink(leaf), fmt.Sprintf("node.back %s: \"\" \"\"\nlink.up %s - %s: \"\" \"4x hdr\"\n", fabric.NodeLabel(host.Name(), host.GUID()), leaf.Name(), host.Port(1).Name())},
	} {
		if err := x.do(); err != nil {
			t.Fatal(err)
		}
		f, sum := s.record(r)
		if got := words(sum.Events); got != x.want {
			t.Errorf("step %d: got\n%swant\n%s", i, got, x.want)
		}
		snapshots, times = append(snapshots, snapshotOf(t, f)), append(times, s.now)
		if i == 2 { // the recorder ends, and another goes on
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			r = s.recorder(path)
		}
	}
	defer r.Close()
	h, err := history.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for i, when := range times {
		f, cycle, err := h.At(t.Context(), when.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if !cycle.Equal(when) || !bytes.Equal(snapshotOf(t, f), snapshots[i]) {
			t.Errorf("step %d: %v at %v, want %v", i, f, cycle, when)
		}
	}
	lives, err := h.Lives(t.Context(), link.Node().GUID(), link.Num())
	if err != nil || len(lives) != 2 || !lives[0].From.Equal(times[0]) || !lives[0].Till.Equal(times[1]) || !lives[1].From.Equal(times[3]) || !lives[1].Till.IsZero() {
		t.Errorf("lives of %s: %v %v", link.Name(), lives, err)
	}
	if events, err := h.EventsOf(t.Context(), link.Peer().Node().GUID(), link.Peer().Num()); err != nil || len(events) != 2 {
		t.Errorf("events of %s: %s %v", link.Peer().Name(), words(events), err)
	}
	if flaps, err := h.Flaps(t.Context(), 1, times[0], s.now); err != nil || len(flaps) != 1 || flaps[0].Subject != linkName {
		t.Errorf("flaps: %v %v: a host that went away does not count", flaps, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", st.Mode(), err)
	}
	if v, err := h.Check(t.Context()); err != nil || len(v.Damage) > 0 {
		t.Errorf("check: %q %v", v, err)
	}
}

// TestGaps: what was not recorded is a gap, of the fabric too, and a clock that was set back makes no
// second past.
func TestGaps(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(t.TempDir(), history.FileName)
	r := s.recorder(path)
	defer r.Close()
	for range 3 {
		s.record(r)
	}
	last := s.now
	s.now = s.now.Add(3 * time.Hour)
	s.record(r)
	first := s.now
	s.now = s.now.Add(-time.Hour)
	if _, x := s.record(r); words(x.Events) != fmt.Sprintf("clock.back : %q %q\n", first.Format(time.RFC3339), s.now.Format(time.RFC3339)) || !x.Time.After(first) {
		t.Errorf("clock set back: %s at %v", words(x.Events), x.Time)
	}
	if _, x := s.record(r); len(x.Events) > 0 || !x.Time.After(first.Add(time.Second)) {
		t.Errorf("before the clock has caught up: %s at %v", words(x.Events), x.Time)
	}
	gaps, err := r.Gaps(t.Context(), time.Time{}, time.Time{})
	if err != nil || !slices.Equal(gaps, []history.Gap{{last, first}}) {
		t.Errorf("gaps: %v %v", gaps, err)
	}
	if f, _, err := r.At(t.Context(), last.Add(time.Hour)); err != nil || f.Complete() {
		t.Errorf("in the gap: %v %v", f, err)
	}
	if f, _, err := r.At(t.Context(), last.Add(time.Minute)); err != nil || !f.Complete() {
		t.Errorf("at the cycle before the gap: %v %v", f, err)
	}
	if _, _, err := r.At(t.Context(), last.Add(-time.Hour)); err == nil || !strings.Contains(err.Error(), "nothing was recorded until") {
		t.Errorf("before the first cycle: %v", err)
	}
}

// TestOthers: a second recorder, a file that is no history, one of a later version.
func TestOthers(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	dir := t.TempDir()
	path := filepath.Join(dir, history.FileName)
	if _, err := history.Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
	r := s.recorder(path)
	if _, err := history.NewRecorder(t.Context(), path, fabric.SubnetOf(s.f, ""), s.now); err == nil || !strings.Contains(err.Error(), "another run is in progress") {
		t.Errorf("two recorders: %v", err)
	}
	s.record(r)
	copied := filepath.Join(dir, "copy.db")
	if err := r.Copy(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	if err := r.Copy(t.Context(), copied); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("copy over a file: %v", err)
	}
	r.Close()
	if h, err := history.Open(t.Context(), path); err != nil || h.Copy(t.Context(), filepath.Join(dir, "again.db")) != nil || h.Close() != nil {
		t.Errorf("copy without a recorder: %v", err)
	}
	text := filepath.Join(dir, "text")
	os.WriteFile(text, []byte(strings.Repeat("not a history\n", 100)), 0o600)
	if _, err := history.Open(t.Context(), text); err == nil {
		t.Error("a text is a history")
	}
	h, err := history.Open(t.Context(), copied)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if o, err := h.Overview(context.Background()); err != nil || o.Cycles != 1 || o.Links != s.f.Links() {
		t.Errorf("overview of the copy: %+v %v", o, err)
	}
}

// TestFlippedBits: Check names each bit that changes an answer.
func TestFlippedBits(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	dir := t.TempDir()
	path := filepath.Join(dir, history.FileName)
	r := s.recorder(path)
	hosts := s.f.OfType(mad.NodeTypeCA)
	m := &meters{map[audit.PortKey]*[3]uint64{}, map[[2]uint64]string{}}
	for i := range 6 {
		p := hosts[1+i].Port(1)
		if err := s.Cables.Unlink(p.Node().GUID(), 1); err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(5 * time.Minute)
		if i == 4 { // tiles
			s.now = s.now.Add(24 * time.Hour)
		}
		f := s.sweep()
		for i := range f.Ports() {
			q := &f.Ports()[i]
			m.of(q)[0]++
			m.of(q)[2] += 1e9
			m.modules[[2]uint64{uint64(q.Node().GUID()), uint64(q.Num())}] = q.Name()
		}
		c := history.Cycle{Time: s.now, Every: 5 * time.Minute, Source: "test", Fabric: f, Counters: m.read(f, s.now), Traffic: true, Modules: m.list(f)}
		c.Rates = []history.BER{{Node: p.Node().GUID(), Port: 1, Up: time.Hour, Raw: 1e-4, Effective: 1e-9, Symbol: 1e-10}}
		if _, err := r.Record(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		err := history.Contribute(t.Context(), path, s.now, func(c *history.Contributor) {
			c.Findings("job", []audit.Finding{finding(p, "link.width")}, func(string, string) bool { return true })
			c.Acks(audit.Acks{{Pattern: "link.width:*", Until: s.now, By: "me", Reason: p.Name()}})
			c.Change("apply", p.Name(), "me", "confirmed", p.Node().GUID(), 1)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	answers := func(path string) (string, error) {
		h, err := history.Open(t.Context(), path)
		if err != nil {
			return "", err
		}
		defer h.Close()
		events, err := h.Changes(t.Context(), time.Time{}, time.Time{})
		if err != nil {
			return "", err
		}
		text := words(events)
		for _, n := range hosts[:8] {
			lives, err := h.Lives(t.Context(), n.GUID(), 1)
			if err != nil {
				return "", err
			}
			text += fmt.Sprintln(lives)
		}
		for at := s.now.Add(-25 * time.Minute); !at.After(s.now); at = at.Add(5 * time.Minute) {
			f, cycle, err := h.At(t.Context(), at)
			if err != nil {
				return "", err
			}
			text += fmt.Sprintln(cycle, f)
		}
		rows, err := h.Dump(t)
		return text + rows, err
	}
	want, err := answers(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	flips, changed := 150, 0
	if os.Getenv("FABSH_SOAK") != "" {
		flips = 1000
	}
	for range flips {
		data := slices.Clone(whole)
		bit := random.IntN(8 * len(data))
		data[bit/8] ^= 1 << (bit % 8)
		damaged := filepath.Join(dir, "damaged.db")
		os.WriteFile(damaged, data, 0o600)
		got, err := answers(damaged)
		if err != nil || got == want {
			continue
		}
		changed++
		h, err := history.Open(t.Context(), damaged)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := h.Check(t.Context()); err == nil && len(v.Damage) == 0 {
			t.Errorf("bit %d of byte %d changes an answer, and Check finds nothing", bit%8, bit/8)
		}
		h.Close()
	}
	t.Log(flips, "bits,", changed, "change an answer")
}

// TestFullDiskAtEachWrite: however many pages a cycle may have, it is there as a whole or not at all.
func TestFullDiskAtEachWrite(t *testing.T) {
	s := newSubnet(t, "fattree:k=10")
	path := filepath.Join(t.TempDir(), history.FileName)
	r := s.recorder(path)
	defer r.Close()
	m := &meters{map[audit.PortKey]*[3]uint64{}, map[[2]uint64]string{}}
	host := s.f.OfType(mad.NodeTypeCA)[3]
	full := 0
	for round := range 6 {
		s.now = s.now.Add(5 * time.Minute)
		if round >= 2 {
			s.now = s.now.Add(24 * time.Hour)
		}
		if err := s.Cables.Unlink(host.GUID(), 1); round == 1 && err != nil {
			t.Fatal(err)
		}
		f := s.sweep()
		for i := range f.Ports() {
			m.of(&f.Ports()[i])[0]++
			m.of(&f.Ports()[i])[2] += 1e9
		}
		c := history.Cycle{Time: s.now, Fabric: f, Counters: m.read(f, s.now), Traffic: true, Modules: m.list(f)}
		before, err := r.Dump(t)
		if err != nil {
			t.Fatal(err)
		}
		for pages := r.Pages(t); ; pages++ {
			r.Limit(t, pages)
			_, err := r.Record(t.Context(), c)
			if err == nil {
				break
			}
			full++
			if after, failure := r.Dump(t); failure != nil || after != before || !strings.Contains(err.Error(), "full") {
				t.Fatalf("round %d: %v, %v; rows changed: %v", round, err, failure, after != before)
			}
		}
		r.Limit(t, 1<<20)
		if v, err := r.Check(t.Context()); err != nil || len(v.Damage) > 0 {
			t.Fatalf("round %d: %q %v", round, v.Damage, err)
		}
	}
	if full < 3 {
		t.Errorf("the disk was full %d times", full)
	}
	errors := int64(0)
	for _, row := range r.Rows(t, "err_day", "") {
		errors += row[4].(int64)
	}
	if ports := int64(2 * s.f.Links()); errors < 5*(ports-2) || errors > 5*ports { // the link of a host goes down
		t.Errorf("%d errors of %d ports in five cycles", errors, ports)
	}
}

// TestFullDisk: a cycle for which there is no room is not there at all, and the next one goes on.
func TestFullDisk(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	r := s.recorder(filepath.Join(t.TempDir(), history.FileName))
	defer r.Close()
	s.record(r)
	hosts, n := s.f.OfType(mad.NodeTypeCA), 0
	var err error
	for r.Limit(t, 60); err == nil && n < 2000; n++ {
		p := hosts[1+n/2%6].Port(1)
		if err = s.Cables.Unlink(p.Node().GUID(), 1); n%2 > 0 {
			err = s.Cables.Link(p.Node().GUID(), 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(5 * time.Minute)
		_, err = r.Record(t.Context(), history.Cycle{Time: s.now, Fabric: s.sweep()})
	}
	if err == nil || !strings.Contains(err.Error(), "full") {
		t.Fatalf("after %d cycles: %v", n, err)
	}
	before, _ := r.Overview(t.Context())
	r.Limit(t, 1<<20)
	if _, x := s.record(r); len(x.Events) == 0 {
		t.Error("what happened in the cycle that was not written is lost")
	}
	after, _ := r.Overview(t.Context())
	if v, err := r.Check(t.Context()); err != nil || len(v.Damage) > 0 || before.Cycles != n || after.Cycles != n+1 {
		t.Errorf("%d and %d cycles, want %d and one more; %q %v", before.Cycles, after.Cycles, n, v, err)
	}
}

// TestDuplicate: links of two nodes with one GUID are each one life, and no event in each sweep.
func TestDuplicate(t *testing.T) {
	s := newSubnet(t, "fattree:k=4")
	path := filepath.Join(t.TempDir(), history.FileName)
	hosts := s.f.OfType(mad.NodeTypeCA)
	r := s.recorder(path)
	defer r.Close()
	s.record(r)
	if err := s.Edit.NodeGUID(hosts[5].GUID(), 1, hosts[6].GUID()); err != nil {
		t.Fatal(err)
	}
	s.record(r)
	for range 3 {
		if _, x := s.record(r); len(x.Events) > 0 {
			t.Errorf("nothing happened: %s", words(x.Events))
		}
	}
	if v, err := r.Check(t.Context()); err != nil || len(v.Damage) > 0 {
		t.Errorf("check: %q %v", v.Damage, err)
	}
}
