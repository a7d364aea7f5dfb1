package remedy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/change"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/format"
	"fabsh/mad"
)

var (
	noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	a    = Place{0x10, 3}
	b    = Place{0x20, 7}
)

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

// isolation is the entry of an action on the link of a and b.
func isolation(minutes int, rule string) Entry {
	return Entry{At: at(minutes), Kind: KindDecision, Remedy: "isolate", Action: Isolate, Port: a, Peer: b, Name: "leaf-1/3 - spine-1/7", Reason: "bit errors", Rule: rule}
}

func run(minutes int) Entry { return Entry{At: at(minutes), Kind: KindRun, Of: at(minutes)} }

// appended appends entries to the log at path, and returns it as it is read again.
func appended(t *testing.T, path string, entries ...Entry) *Log {
	t.Helper()
	if _, err := Update(path, func(*Log) ([]Entry, error) { return entries, nil }); err != nil {
		t.Fatal(err)
	}
	l, err := ReadLog(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLog: what is appended is read again; an incomplete last line is ignored, and every other
// changed byte is damage, which leaves the file unchanged.
func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subnet", "remedies")
	hostile := isolation(1, "")
	hostile.Name, hostile.Reason = "a\nb\x1b[2J \"\u2028", strings.Repeat("é", 1000)
	l := appended(t, path, run(0), isolation(0, "runs"), run(1), hostile)
	if len(l.Entries) != 4 || l.Entries[3].Name != hostile.Name || len(l.Entries[3].Reason) > maxText || strings.ContainsRune(l.Entries[3].Reason, '\uFFFD') {
		t.Errorf("read %+v", l.Entries)
	}
	want := State{Runs: []time.Time{at(0), at(1)}, Refused: 1, Ports: []*Past{{Port: a, Peer: b, Name: hostile.Name, Bad: []time.Time{at(0), at(1)}, Planned: at(1)}}}
	if diff := cmp.Diff(want, l.State); diff != "" {
		t.Errorf("state: -want +got\n%s", diff)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(whole), "\x1b") || strings.Count(string(whole), "\n") != 4 {
		t.Errorf("the file has %q", whole)
	}
	for i := range whole {
		for _, bit := range []byte{1, 0x80} {
			text := slices.Clone(whole)
			text[i] ^= bit
			var damage *DamageError
			if err := (&Log{}).parse(text); !errors.As(err, &damage) {
				t.Fatalf("byte %d changed: %v", i, err)
			}
		}
	}
	last := strings.LastIndexByte(strings.TrimSuffix(string(whole), "\n"), '\n') + 1
	for n := last; n < len(whole); n++ {
		l := new(Log)
		if err := l.parse(whole[:n]); err != nil || len(l.Entries) != 3 {
			t.Fatalf("cut after %d bytes: %d entries, %v", n, len(l.Entries), err)
		}
	}
	// The next run replaces an incomplete line.
	if err := os.WriteFile(path, whole[:len(whole)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	if l := appended(t, path, run(2)); len(l.Entries) != 4 || l.Entries[3].Kind != KindRun {
		t.Errorf("after an incomplete line: %+v", l.Entries)
	}
	text := append([]byte("x"), whole...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Update(path, func(*Log) ([]Entry, error) { return []Entry{run(3)}, nil })
	if err == nil || err.Error() != "log of remedies "+path+" line 1: not a line of the log; the file is unchanged, and no remedy runs without it: restore it, or move it away to forget which ports are isolated" {
		t.Error(err)
	}
	if now, _ := os.ReadFile(path); string(now) != string(text) {
		t.Error("a damaged file was changed")
	}
}

// TestShorten: a log that is too long loses its oldest entries, and nothing of its state.
func TestShorten(t *testing.T) {
	if testing.Short() {
		t.Skip("2 s, and 20 s with the race detector")
	}
	path := filepath.Join(t.TempDir(), "subnet", "remedies")
	appended(t, path, run(0), isolation(0, ""), Entry{At: at(1), Kind: KindApplied, Action: Isolate, Port: a, Peer: b})
	other := isolation(0, "uplinks")
	other.Port, other.Peer, other.Reason = Place{0x30, 1}, Place{0x40, 1}, strings.Repeat("x", 300)
	minutes := 1
	var l *Log
	shortened := false
	for before := int64(0); !shortened; {
		var entries []Entry
		for range 120 {
			minutes++
			e := other
			e.At = at(minutes)
			entries = append(entries, run(minutes))
			entries = append(entries, slices.Repeat([]Entry{e}, 100)...)
		}
		l = appended(t, path, entries...)
		shortened, before = l.Recorded < before, l.Recorded
	}
	if l.Recorded > maxLog || l.Entries[0].At.Equal(at(0)) {
		t.Errorf("%d bytes from %v on", l.Recorded, l.Entries[0].At)
	}
	past := l.State.at(a)
	if past == nil || !past.Isolated.Equal(at(1)) || past.Times != 1 || l.State.Refused != uint64(100*(minutes-1)) {
		t.Errorf("state: %+v, %d refused; want %d", past, l.State.Refused, 100*(minutes-1))
	}
	before := l.State.Refused
	if l = appended(t, path, other); l.State.Refused != before+1 {
		t.Errorf("%d refused after another entry; want %d", l.State.Refused, before+1)
	}
}

// TestInvalidState: a state that no run writes is damage, also with a valid checksum.
func TestInvalidState(t *testing.T) {
	for _, s := range []*State{{Ports: []*Past{nil}}, {Runs: make([]time.Time, keptRuns+1)}} {
		line, err := Entry{At: noon, Kind: KindState, State: s}.line()
		if err != nil {
			t.Fatal(err)
		}
		if err := new(Log).parse(line); err == nil || !strings.Contains(err.Error(), "the state is invalid") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// TestOneAtATime: two runs do not append at the same time.
func TestOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subnet", "remedies")
	_, err := Update(path, func(*Log) ([]Entry, error) {
		_, err := Update(path, func(*Log) ([]Entry, error) { return nil, nil })
		return nil, err
	})
	if !errors.Is(err, format.ErrLockHeld) {
		t.Error(err)
	}
	l := appended(t, path, run(0))
	appended(t, path, run(1))
	if err := l.Keep("", nil, nil, at(2), at(2)); err == nil || err.Error() != "another run of remedies has ended meanwhile; run it again" {
		t.Error(err)
	}
}

// journal writes a journal of a change below dir that disables or enables port a.
func journal(t *testing.T, dir, summary string, to mad.PortPhysicalState, begun time.Time, end apply.RecordKind, left ...int) {
	t.Helper()
	size := mad.AttrPortInfo.Size
	c := &apply.Cell{Node: a.GUID, Name: "x", LID: 1, Attr: mad.AttrPortInfo, Modifier: uint32(a.Num), Fields: []string{stateField}, Old: make([]byte, size), New: make([]byte, size)}
	mad.AttrPortInfo.Field(stateField).SetUint(c.New, uint64(to))
	path := apply.JournalIn(filepath.Join(dir, "subnet"))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	j, err := apply.NewJournal(path, &apply.Begin{Summary: summary, Cells: []*apply.Cell{c}})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if left != nil {
		if err := j.Append(apply.Record{Kind: apply.KindApplied, At: begun, Left: left}); err != nil {
			t.Fatal(err)
		}
	}
	if end != "" {
		if err := j.Append(apply.Record{Kind: end, At: begun.Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestApplied: a port is isolated once a journal has confirmed the plan of a remedy, and not by
// another change. Record keeps that before the next change replaces the journal.
func TestApplied(t *testing.T) {
	now := time.Now() // journals have the time of the machine
	planned := isolation(0, "")
	planned.At = now.Add(-time.Minute)
	for _, test := range []struct {
		name, summary string
		planned       time.Time
		end           apply.RecordKind
		want          bool
	}{
		{"confirmed", "fabsh remedy isolate", planned.At, apply.KindConfirmed, true},
		{"open", "fabsh remedy isolate", planned.At, "", false},
		{"reverted", "fabsh remedy isolate", planned.At, apply.KindReverted, false},
		{"of a script", "maintenance.star", planned.At, apply.KindConfirmed, false},
		{"before the plan", "fabsh remedy isolate", now.Add(time.Hour), apply.KindConfirmed, false},
		{"stopped before it", "fabsh remedy isolate", planned.At, apply.KindConfirmed, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a[b]*")
			path := filepath.Join(dir, "subnet", "remedies")
			e := planned
			e.At = test.planned
			appended(t, path, run(0), e)
			var left []int
			if test.name == "stopped before it" {
				left = []int{0}
			}
			journal(t, dir, test.summary, mad.PortPhysicalStateDisabled, now, test.end, left...)
			if err := Record(dir); err != nil {
				t.Fatal(err)
			}
			os.Remove(apply.JournalIn(filepath.Join(dir, "subnet"))) // the next change replaces it
			l, err := Current(path, dir)
			if err != nil {
				t.Fatal(err)
			}
			if past := l.State.at(a); past.Isolated.IsZero() == test.want || past.Planned.IsZero() != test.want {
				t.Errorf("%+v", past)
			}
			if !test.want {
				return
			}
			// It is applied once, and enabled by the plan to restore it.
			if n := len(l.Entries); n != 3 {
				t.Errorf("%d entries", n)
			}
			back := e
			back.Action, back.At = Restore, now.Add(-time.Second)
			appended(t, path, back)
			journal(t, dir, "fabsh remedy restore", mad.PortPhysicalStatePolling, now, apply.KindConfirmed)
			if l, err = Current(path, dir); err != nil || l.State.at(a).Testing.IsZero() || !l.State.at(a).Isolated.IsZero() {
				t.Errorf("after the restore: %+v, %v", l.State.at(a), err)
			}
		})
	}
}

// TestCheckPlan: a plan of remedies is applied where the log has its actions, within a day.
func TestCheckPlan(t *testing.T) {
	dir := t.TempDir()
	back := isolation(10, "")
	back.Action = Restore
	appended(t, filepath.Join(dir, "subnet", "remedies"), run(0), isolation(0, ""), Entry{At: at(1), Kind: KindApplied, Action: Isolate, Port: a, Peer: b}, back)
	empty := t.TempDir()
	const up, disabled, polling = uint64(mad.PortPhysicalStateLinkUp), uint64(mad.PortPhysicalStateDisabled), uint64(mad.PortPhysicalStatePolling)
	refused := func(dir string) string {
		return "no log of remedies below " + dir + " has port 0x0000000000000010/3 as planned in the last 24 h; make the plan again with fabsh remedy --out, and apply it with the same --state"
	}
	for _, test := range []struct {
		name, dir, from string
		old, new        uint64
		minutes         int
		want            string
	}{
		{"restore", dir, "fabsh remedy mine", disabled, polling, 20, ""},
		{"restore, a day later", dir, "fabsh remedy mine", disabled, polling, 10 + 24*60, refused(dir)},
		{"isolated already", dir, "fabsh remedy mine", up, disabled, 20, refused(dir)},
		{"reset", empty, "fabsh remedy mine", up, polling, 20, ""},
		{"another state", empty, "fabsh remedy mine", disabled, polling, 20, refused(empty)},
		{"of a script", empty, "mine.star", disabled, polling, 20, ""},
	} {
		p := &change.Plan{From: test.from, Sets: []change.Set{{Attr: mad.AttrPortInfo, Modifier: uint32(a.Num), Target: change.Target{GUID: a.GUID}, Fields: []change.Field{{Name: stateField, Old: test.old, New: test.new}}}}}
		got := ""
		if err := CheckPlan(test.dir, p, at(test.minutes)); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// badRuns returns in how many of the latest n runs it was proposed to isolate the link.
func badRuns(p *Past, s *State, n int) (bad int) {
	for _, t := range s.Runs[max(0, len(s.Runs)-n):] {
		if slices.ContainsFunc(p.Bad, t.Equal) {
			bad++
		}
	}
	return bad
}

// TestRepeatedRun: a run on findings of an earlier run does not count again, also if another run
// was between.
func TestRepeatedRun(t *testing.T) {
	s := new(State)
	for _, e := range []Entry{run(0), isolation(0, "runs"), run(0), isolation(1, "runs"), run(5), run(9), isolation(9, "runs")} {
		s.Add(&e)
	}
	if got := fmt.Sprint(badRuns(s.at(a), s, 5), badRuns(s.at(b), s, 2), len(s.Runs)); got != "2 1 3" {
		t.Errorf("bad runs of 5, of 2, and runs: %s; want 2 1 3", got)
	}
	for _, e := range []Entry{run(0), isolation(10, "runs"), run(9), isolation(11, "runs")} {
		s.Add(&e)
	}
	if got := fmt.Sprint(badRuns(s.at(a), s, 5), len(s.Runs), s.Runs[2].Equal(at(9))); got != "2 3 true" {
		t.Errorf("bad runs of 5, runs, and whether the latest is last: %s; want 2 3 true", got)
	}
}

// TestPlannedAgain: a plan that is made again does not hide the journal of the first, and one of
// yesterday does not count.
func TestPlannedAgain(t *testing.T) {
	s := new(State)
	for _, test := range []struct {
		minutes int
		want    time.Time
	}{{0, at(0)}, {15, at(0)}, {24*60 - 1, at(0)}, {24 * 60, at(24 * 60)}, {60, at(60)}} { // at last the clock was set back
		e := isolation(test.minutes, "")
		if s.Add(&e); !s.at(a).Planned.Equal(test.want) {
			t.Errorf("after %d min: %v, want %v", test.minutes, s.at(a).Planned, test.want)
		}
	}
}

// TestMovedCable: the link to which the other end of an isolated port was moved has a past of its
// own.
func TestMovedCable(t *testing.T) {
	s := new(State)
	moved := isolation(2, "")
	moved.Port, moved.Peer, moved.Name = b, Place{0x30, 9}, "spine-1/7 - leaf-9/9"
	for _, e := range []Entry{run(0), isolation(0, ""), {At: at(1), Kind: KindApplied, Action: Isolate, Port: a, Peer: b, Name: "leaf-1/3 - spine-1/7"}, run(2), moved} {
		s.Add(&e)
	}
	want := []*Past{
		{Port: a, Name: "leaf-1/3 - spine-1/7", Bad: []time.Time{at(0)}, Isolated: at(1), Last: at(1), Times: 1},
		{Port: b, Peer: moved.Peer, Name: moved.Name, Bad: []time.Time{at(2)}, Planned: at(2)},
	}
	if diff := cmp.Diff(want, s.Ports); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// FuzzLog: no bytes make the reader of logs fail otherwise than with damage, and what it
// reads is written the same.
func FuzzLog(f *testing.F) {
	line, _ := isolation(1, "x").line()
	state, _ := Entry{At: noon, Kind: KindState, State: &State{Runs: []time.Time{noon}, Ports: []*Past{{Port: a, Name: "x"}}}, Covers: 1}.line()
	f.Add(line)
	f.Add(append(state, line...))
	f.Add([]byte("00000000 {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := new(Log)
		var damage *DamageError
		if err := l.parse(data); err != nil && !errors.As(err, &damage) {
			t.Fatal(err)
		}
		l.State.With(l.Entries)
	})
}
