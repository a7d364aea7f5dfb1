package remedy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/format"
	"fabsh/fabric/jsonfile/jsonfiletest"
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
	if _, err := update(path, func(*Log) ([]Entry, error) { return entries, nil }); err != nil {
		t.Fatal(err)
	}
	l, err := readLog(path)
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
	if strings.Contains(string(whole), "\x1b") || strings.Count(string(whole), "\n") != 5 {
		t.Errorf("the file has %q", whole)
	}
	for i := range whole {
		for _, bit := range []byte{1, 0x80} {
			text := slices.Clone(whole)
			text[i] ^= bit
			var damage *damageError
			if err := (&Log{}).parse(text); !errors.As(err, &damage) {
				t.Fatalf("byte %d changed: %v", i, err)
			}
		}
	}
	// A writer that was killed had not written the first line again.
	appended(t, path, run(2))
	longer, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := len(whole); n <= len(longer); n++ {
		l, want := new(Log), 4
		if n == len(longer) {
			want = 5
		}
		if err := l.parse(append(slices.Clone(whole[:headLength]), longer[headLength:n]...)); err != nil || len(l.Entries) != want {
			t.Fatalf("killed after %d bytes: %d entries, %v", n, len(l.Entries), err)
		}
	}
	// The next run replaces an incomplete line.
	if err := os.WriteFile(path, append(slices.Clone(whole[:headLength]), longer[headLength:len(longer)-5]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if l := appended(t, path, run(3)); len(l.Entries) != 5 || l.Entries[4].Kind != KindRun || !l.Entries[4].At.Equal(at(3)) {
		t.Errorf("after an incomplete line: %+v", l.Entries)
	}
	text := append([]byte("x"), whole...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = update(path, func(*Log) ([]Entry, error) { return []Entry{run(3)}, nil })
	if err == nil || err.Error() != "log of remedies "+path+" line 1: not a line of the log; the file is unchanged, and no remedy runs without it: restore it, or move it away to forget which ports are isolated" {
		t.Error(err)
	}
	if now, _ := os.ReadFile(path); string(now) != string(text) {
		t.Error("a damaged file was changed")
	}
}

// olderLog is a log as an older version wrote it: lines have only their own checksums.
func olderLog(t testing.TB, entries ...Entry) (text []byte) {
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		text = fmt.Appendf(text, "%08x %s\n", crc32.Checksum(line, castagnoli), line)
	}
	return text
}

// TestCutLog: whatever lines or bytes are missing is damage, which leaves the file unchanged, except of
// a log of the older format, which gets the checksums with the next entry.
func TestCutLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subnet", "remedies")
	appended(t, path, run(0), isolation(0, "runs"))
	appended(t, path, run(1), isolation(1, ""))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		for _, text := range [][]byte{whole[:n], whole[n:], append(slices.Clone(whole[:n/2]), whole[n:]...)} {
			if len(text) == len(whole) {
				continue
			}
			if err := new(Log).parse(text); !errors.As(err, new(*damageError)) {
				t.Fatalf("%d of %d bytes are left: %v", len(text), len(whole), err)
			}
		}
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for i := range 5 {
		for j := i + 1; j <= 5; j++ {
			text := bytes.Join(slices.Concat(lines[:i], lines[j:]), nil)
			if err := new(Log).parse(text); !errors.As(err, new(*damageError)) {
				t.Errorf("without lines %d to %d: %v", i+1, j, err)
			}
		}
	}
	for _, test := range []struct {
		left int
		want string
	}{
		{0, "line 1: the file is empty"},
		{20, "line 1: the first line is incomplete"},
		{len(whole) - len(lines[4]), fmt.Sprintf("line 5: the file was cut: %d of %d bytes are left", len(whole)-len(lines[4]), len(whole))},
	} {
		if err := os.WriteFile(path, whole[:test.left], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := update(path, func(*Log) ([]Entry, error) { return []Entry{run(2)}, nil }); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%d bytes: %v, want %s", test.left, err, test.want)
		}
		if now, _ := os.ReadFile(path); string(now) != string(whole[:test.left]) {
			t.Errorf("%d bytes: the file was changed", test.left)
		}
	}
	older := olderLog(t, run(0), isolation(0, "runs"), run(1), isolation(1, ""))
	if err := os.WriteFile(path, older, 0o600); err != nil {
		t.Fatal(err)
	}
	l := appended(t, path, run(2))
	now, _ := os.ReadFile(path)
	if len(l.Entries) != 5 || len(l.State.Runs) != 3 || l.State.Refused != 1 || !bytes.HasPrefix(now, append(slices.Clone(headLine(l.Recorded, l.sum)), lines[1]...)) {
		t.Errorf("of the older format: %+v\n%s", l, now)
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
	for _, s := range []*State{{Ports: slices.Repeat([]*Past{{}}, 2*maxPorts+1)}, {Runs: make([]time.Time, keptRuns+1)}} {
		line, _, err := lines(0, []Entry{{At: noon, Kind: KindState, State: s, Covers: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if err := new(Log).parse(append(headLine(0, 0), line...)); err == nil || !strings.Contains(err.Error(), "the state is invalid") {
			t.Errorf("%d ports: %v", len(s.Ports), err)
		}
	}
}

// TestEntryMembers: a line without any one of its members is damage, or documented to be valid.
func TestEntryMembers(t *testing.T) {
	past := &Past{Port: a, Peer: b, Name: "x", Bad: []time.Time{noon}, Planned: noon, Restoring: noon, Declined: "runs", Isolated: noon, Testing: noon, Times: 1, Last: noon, Restored: noon}
	decision := isolation(1, "runs")
	decision.Subject, decision.Why, decision.Kept = "x", "y", true
	var examples [][]byte
	for _, e := range []Entry{
		run(1), decision, {At: noon, Kind: KindApplied, Action: Isolate, Port: a}, {At: noon, Kind: KindReleased, Port: a},
		{At: noon, Kind: KindState, State: &State{Runs: []time.Time{noon}, Ports: []*Past{past}, Steps: []*PastStep{{Port: a, Peer: b, Name: "x", Step: StepClean, Proposed: noon, Done: noon}}, Refused: 1}, Covers: 1},
		{At: noon, Kind: KindStep, Port: a, Peer: b, Step: StepClean, By: "me"},
	} {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		examples = append(examples, text)
	}
	load := func(text []byte) error { return entryFormat().Unmarshal(text, new(Entry)) }
	jsonfiletest.Members(t, entryFormat().Members(), load, examples...)
}

// TestOneAtATime: two runs do not append at the same time.
func TestOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subnet", "remedies")
	_, err := update(path, func(*Log) ([]Entry, error) {
		_, err := update(path, func(*Log) ([]Entry, error) { return nil, nil })
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

// FuzzLog: no bytes make the reader of logs fail otherwise than with damage, and what it
// reads is written the same.
func FuzzLog(f *testing.F) {
	state := Entry{At: noon, Kind: KindState, State: &State{Runs: []time.Time{noon}, Ports: []*Past{{Port: a, Name: "x"}}}, Covers: 1}
	text, sum, _ := lines(0, []Entry{state, isolation(1, "x")})
	f.Add(append(headLine(int64(headLength+len(text)), sum), text...))
	f.Add(olderLog(f, state, isolation(1, "x")))
	f.Add([]byte("00000000 {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := new(Log)
		var damage *damageError
		if err := l.parse(data); err != nil && !errors.As(err, &damage) {
			t.Fatal(err)
		}
		l.State.With(l.Entries)
	})
}
