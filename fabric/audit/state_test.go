package audit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
)

var rail = fabric.Subnet{Given: "rail-1", Prefix: fabric.DefaultPrefix, SM: 7}

// openState opens the state of a test, and fails if it must be reset.
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
		portSpec{key: PortKey{0, 1}, node: 5, info: full}, // without a GUID
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
			for window := longest; len(reads) > 0 && window <= longestWindow && now.Sub(noon) > 4*(longestWindow+longest); window += window / 3 {
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

// TestIncompleteRun: what a run could not look at is not gone.
func TestIncompleteRun(t *testing.T) {
	st := openState(t, t.TempDir())
	old, still := Finding{Check: "a.old", Subject: OfFabric()}, Finding{Check: "a.still", Subject: OfFabric()}
	st.SetFindings([]Finding{old, still}, true, nil, noon)
	if gone := st.SetFindings([]Finding{still}, false, nil, noon.Add(time.Minute)); len(gone) > 0 {
		t.Errorf("%v is reported as gone", gone)
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

// TestStateBefore: a state of the previous version, which has no time since boot, is read.
func TestStateBefore(t *testing.T) {
	var w stateWriter
	w.uint(countersVersion())
	w.text("rail-1")
	w.text("counters")
	w.uint(1)
	w.read(mixed(noon))
	w.uint(0)
	w.history(&History{})
	w.agents(&Agents{})
	data := packed(t, append(w.b, 'E'))
	copy(data, stateMagic+stateBefore)
	st := &State{subnet: "rail-1", job: "counters"}
	if err := st.decode(data); err != nil || st.at != (Moment{}) || len(st.reads) != 1 || !st.Last().Began.Equal(noon) {
		t.Errorf("%v: %+v", err, st)
	}
}

// TestLatestJob: the job that found what is acknowledged has its past, else the latest one.
// Files that are no states are ignored.
func TestLatestJob(t *testing.T) {
	dir := t.TempDir()
	gone := Finding{Check: "node.gone", Subject: OfGUID(0x40, NoPort, "")}
	for i, job := range []struct {
		name  string
		found []Finding
	}{{"a", nil}, {"b", []Finding{gone}}, {"c", []Finding{gone}}, {"d", nil}, {"e", nil}} {
		want := map[string][2]string{"a": {"", ""}, "b": {"a", "a"}, "c": {"b", "b"}, "d": {"c", "c"}, "e": {"c", "d"}}[job.name]
		for k, pattern := range []string{"node.gone:0x0000000000000040", "link.down:*"} {
			if got := LatestJob(dir, rail, nil, &Ack{Pattern: pattern}); got != want[k] {
				t.Errorf("%s before job %s: got %q, want %q", pattern, job.name, got, want[k])
			}
		}
		now := noon.Add(time.Duration(i) * time.Minute)
		st, err := OpenState(dir, rail, job.name)
		if err != nil {
			t.Fatal(err)
		}
		st.Align(Moment{Time: now})
		st.SetFindings(job.found, true, nil, now)
		if err := st.Save(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(rail.Folder(dir), "x.state"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSubnetFile: a directory of one subnet is not used for another subnet of that name.
// Switches that are missing stay recorded, unless the sweep was complete and has half of
// them; so does the prefix, if a text dump lacks it.
func TestSubnetFile(t *testing.T) {
	dir := t.TempDir()
	of := func(prefix uint64, switches ...mad.GUID) fabric.Subnet {
		return fabric.Subnet{Given: "rail-1", Prefix: prefix, Switches: switches}
	}
	folder := filepath.Join(dir, "rail-1")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	const head = "# The subnet of which this directory keeps acknowledgements and state.\nprefix 0x0000000000000001\n"
	for _, step := range []struct {
		now      fabric.Subnet
		complete bool
		file     string
		err      string
	}{
		{now: of(1, 10, 20, 30, 40), file: head + "switch 0x000000000000000a\nswitch 0x0000000000000014\nswitch 0x000000000000001e\nswitch 0x0000000000000028\n"},
		{now: of(1, 10), complete: true, file: head + "switch 0x000000000000000a\nswitch 0x0000000000000014\nswitch 0x000000000000001e\nswitch 0x0000000000000028\n"},
		{now: of(0, 10, 20, 30, 40), complete: true, file: head + "switch 0x000000000000000a\nswitch 0x0000000000000014\nswitch 0x000000000000001e\nswitch 0x0000000000000028\n"},
		{now: of(1, 10, 50), err: folder + " is of another subnet (prefix 0x0000000000000001, 4 switches from 0x000000000000000a), not of this one (prefix 0x0000000000000001, 2 switches from 0x000000000000000a, with 1 of those 4); use --subnet NAME or --state DIR, or remove " + folder + "/subnet if the subnet is the same"},
		{now: of(2, 10, 20, 30, 40), err: folder + " is of another subnet (prefix 0x0000000000000001, 4 switches from 0x000000000000000a), not of this one (prefix 0x0000000000000002, 4 switches from 0x000000000000000a, with 4 of those 4); use --subnet NAME or --state DIR, or remove " + folder + "/subnet if the subnet is the same"},
		{now: of(1, 30, 40, 50), file: head + "switch 0x000000000000000a\nswitch 0x0000000000000014\nswitch 0x000000000000001e\nswitch 0x0000000000000028\nswitch 0x0000000000000032\n"},
		{now: of(1, 30, 40, 50), complete: true, file: head + "switch 0x000000000000001e\nswitch 0x0000000000000028\nswitch 0x0000000000000032\n"},
	} {
		text := ""
		err := CheckSubnet(dir, step.now)
		if err != nil {
			text = err.Error()
		}
		if text != step.err {
			t.Errorf("%v: got %q, want %q", step.now, text, step.err)
		}
		if err != nil {
			continue
		}
		if err := RecordSubnet(dir, step.now, step.complete); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(filepath.Join(folder, "subnet"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.file, string(file)); diff != "" {
			t.Errorf("%v: -want +got\n%s", step.now, diff)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "subnet"), []byte("switch x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := folder + "/subnet: line 1: want prefix or switch, and a number; remove it to record the subnet again"
	if err := CheckSubnet(dir, of(1, 30)); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestKeptBefore: the directory under an earlier manager's name is found by the switches; others are not.
func TestKeptBefore(t *testing.T) {
	dir := t.TempDir()
	of := func(sm mad.GUID, switches ...mad.GUID) fabric.Subnet {
		return fabric.Subnet{Prefix: fabric.DefaultPrefix, SM: sm, Switches: switches}
	}
	before := of(1, 10, 20, 30)
	for _, s := range []fabric.Subnet{before, of(3, 70, 80)} {
		if err := os.Mkdir(s.Folder(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := RecordSubnet(dir, s, true); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		now  fabric.Subnet
		want []string
	}{
		{before, nil}, {of(2, 10, 20), []string{before.Folder(dir)}}, {of(2, 10, 50, 60), nil}, {of(2), nil},
	} {
		if diff := cmp.Diff(c.want, KeptBefore(dir, c.now)); diff != "" {
			t.Errorf("%v: -want +got\n%s", c.now, diff)
		}
	}
}

// FuzzSubnetFile: any bytes are a subnet or an error.
func FuzzSubnetFile(f *testing.F) {
	f.Add(subnetHeader + "prefix 0xfe80000000000000\nswitch 0x0002c90300100000\n")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := parseSubnet(text); (s == nil) == (err == nil) {
			t.Errorf("%v, %v", s, err)
		}
	})
}
