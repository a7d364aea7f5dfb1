package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// TestGrown: an ack hides a finding until there is 10 times as much of the fault as when
// it was given; one of all findings of a check, until there are 10 times as many.
func TestGrown(t *testing.T) {
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	node := func(guid int) Subject { return OfGUID(0x100, guid, "") }
	several := func(n int) (list []Finding) {
		for i := range n {
			list = append(list, Finding{Check: "fw.outlier", Subject: node(i + 1), Severity: Warning})
		}
		return list
	}
	errors := func(count float64) []Finding {
		return []Finding{{Check: "ctr.rcv", Subject: node(1), Severity: Error, Count: count}}
	}
	for _, test := range []struct {
		name, pattern          string
		then, now              []Finding
		count                  float64
		acked, grown, reported int
	}{
		{"the same", "ctr.rcv:0x0000000000000100/1", errors(5), errors(5), 5, 1, 0, 0},
		{"more", "ctr.rcv:0x0000000000000100/1", errors(5), errors(49.9), 5, 1, 0, 0},
		{"ten times", "ctr.rcv:0x0000000000000100/1", errors(5), errors(50), 5, 0, 1, 1},
		{"none then", "ctr.rcv:0x0000000000000100/1", nil, errors(5000), 0, 1, 0, 0},
		{"no count", "fw.outlier:0x0000000000000100/1", several(1), several(1), 1, 1, 0, 0},
		{"a few more of all", "fw.outlier:*", several(2), several(19), 2, 19, 0, 0},
		{"many more of all", "fw.outlier:*", several(2), several(20), 2, 0, 20, 20},
	} {
		a := Ack{Pattern: test.pattern, Until: now}
		if a.Count = a.CountOf(test.then); a.Count != test.count {
			t.Errorf("%s: count %g, want %g", test.name, a.Count, test.count)
		}
		var r Report
		r.Settle(test.now, Acks{a}, nil, now)
		if len(r.Acked) != test.acked || len(r.Grown) != test.grown || len(r.Findings) != test.reported {
			t.Errorf("%s: %d acked, %d grown, %d reported; want %d, %d, %d", test.name, len(r.Acked), len(r.Grown), len(r.Findings), test.acked, test.grown, test.reported)
		}
	}
}

// TestEditAcks: an ack replaces acks with its pattern, and can be removed; all other
// lines of the file stay.
func TestEditAcks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "acks")
	const before = "# by hand\nlink.width:fabric 2026-01-20 \"me\" \"x\"\nno ack\nlink.width:fabric 2020-01-01 \"me\" \"ended\"\nlink.speed:fabric 2026-01-20 \"me\" \"y\""
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	want := func(when, text string) {
		t.Helper()
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", when, diff)
		}
	}
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	a, err := NewAck("link.width:fabric", "", "2026-01-25", "me", "again", now)
	if err != nil {
		t.Fatal(err)
	}
	a.Count = 2.5
	if err := AddAck(path, a); err != nil {
		t.Fatal(err)
	}
	want("added", "# by hand\nno ack\nlink.speed:fabric 2026-01-20 \"me\" \"y\"\nlink.width:fabric 2026-01-25 \"me\" \"again\" \"\" 2.5\n")
	acks, bad := ReadAcks(path, now)
	if len(acks) != 2 || acks[1].Count != 2.5 || len(bad) != 1 {
		t.Errorf("read %v, %v", acks, bad)
	}
	for _, want := range []int{1, 0} {
		if n, err := RemoveAcks(path, "link.width:fabric"); n != want || err != nil {
			t.Errorf("removed %d, %v; want %d", n, err, want)
		}
	}
	want("removed", "# by hand\nno ack\nlink.speed:fabric 2026-01-20 \"me\" \"y\"\n")
	for _, bad := range []string{"0", "-1", "x", "NaN", "Inf", "1e999"} {
		if _, err := parseAck(`link.width:fabric 2026-01-20 "me" "x" "" `+bad, now); err == nil {
			t.Errorf("%s is accepted as a count", bad)
		}
	}
}

// TestAcks: an ack holds on its last day, then the finding speaks up again; a
// link is named by either end; names cannot break the file.
func TestAcks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "acks")
	hostile := "evil\",\n\x1b[2J# x"
	for _, x := range []struct{ id, until string }{{"link.width:0x0000000000000002/7", "2026-11-22"}, {"link.down:*", "2026-11-21"}} {
		a, err := NewAck(x.id, hostile, x.until, hostile, "cable, ordered", noon)
		if err != nil {
			t.Fatal(err)
		}
		if err := AddAck(path, a); err != nil {
			t.Fatal(err)
		}
	}
	data, _ := os.ReadFile(path)
	want := ackHeader + `link.width:0x0000000000000002/7 2026-11-22 "evil\",\n\x1b[2J# x" "cable, ordered" "evil\",\n\x1b[2J# x"
link.down:* 2026-11-21 "evil\",\n\x1b[2J# x" "cable, ordered" "evil\",\n\x1b[2J# x"
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("file -want +got\n%s", diff)
	}
	acks, bad := ReadAcks(path, noon)
	if len(bad) > 0 {
		t.Error(bad)
	}
	found := []Finding{
		{Check: "link.width", Subject: link(1, 3, 2, 7), Severity: Warning},
		{Check: "link.down", Subject: link(1, 4, 2, 8), Severity: Warning},
	}
	var r, later Report
	r.Settle(found, acks, nil, noon)
	later.Settle(found, acks, nil, noon.AddDate(0, 0, 1))
	if len(r.Acked) != 1 || len(r.Findings) != 1 || r.Acked[0].Ack.By != hostile || len(r.Notes) != 1 {
		t.Errorf("reported %v, acked %v, notes %q", r.Findings, r.Acked, r.Notes)
	}
	if len(later.Findings) != 2 || len(later.Notes) != 2 {
		t.Errorf("a day later: reported %v, notes %q", later.Findings, later.Notes)
	}
}

// TestBadAcks: a line that cannot be read acknowledges nothing, and is named.
func TestBadAcks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "acks")
	lines := []string{
		`a.b:fabric 2026-12-01 "me" "why"   # good`,
		`a.b:fabric 2026-12-01 "me`,
		`a.b:fabric 9999-12-31 "me" "why"`,
		`* 2026-12-01 "me" "why"`,
		`a.b:* someday "me" "why"`,
		`a.b:* 2026-12-01 "" "why"`,
		`a.b:* 2026-12-01`,
		`a.b:leaf-1/1 2026-12-01 "me" "why"`, // names, and other spellings, are no finding's
		`a.b:leaf* 2026-12-01 "me" "why"`,
		`a.b:0x2C90300100000/1 2026-12-01 "me" "why"`,
		`a.b:0x0002c90300100000/01 2026-12-01 "me" "why"`,
		`A.b:* 2026-12-01 "me" "why"`,
		"0:\x91 2026-12-01 \"me\" \"why\"", "a.b:\x91* 2026-12-01 \"me\" \"why\"",
		``, `# comment`, "\x00\xff",
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	acks, bad := ReadAcks(path, noon)
	if len(acks) != 1 || len(bad) != 14 {
		t.Errorf("%d acks, errors %v", len(acks), bad)
	}
	for i, err := range bad {
		if !strings.Contains(err.Error(), "the line is ignored") {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestMatches: * stands for any text, all else for itself, whatever the bytes.
func TestMatches(t *testing.T) {
	for _, x := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"", "", true}, {"*", "", true}, {"*", "a\nb", true},
		{"a*", "ab", true}, {"a*", "ba", false}, {"*a", "ba", true}, {"*a", "ab", false},
		{"a*b*c", "abc", true}, {"a*b*c", "a-b-b-c", true}, {"a*b*c", "acb", false}, {"a*:*", "b:c", false}, {"a*b*", "xab", false},
		{"ab*ba", "aba", false}, {"**", "x", true}, {"a.*", "abc", false}, {"\x91*", "\x91x", true}, {"\xff", "\xfe", false},
	} {
		if got := matches(x.pattern, x.text); got != x.want {
			t.Errorf("matches(%q, %q) = %v", x.pattern, x.text, got)
		}
	}
}

func FuzzAck(f *testing.F) {
	f.Add(`a.b:fabric 2026-12-01 "me" "why" "name"`)
	f.Add("0:\x91 2026-12-01 \"me\" \"why\"")
	f.Fuzz(func(t *testing.T, line string) {
		a, err := parseAck(line, noon)
		if err != nil || a == nil {
			return
		}
		again, err := parseAck(strings.TrimSuffix(a.line(), "\n"), noon)
		if err != nil || again.Pattern != a.Pattern || again.Reason != a.Reason || again.By != a.By || again.Name != a.Name {
			t.Errorf("%q: %+v, then %+v, %v", line, a, again, err)
		}
		a.Covers(&Finding{Check: "a.b", Subject: OfFabric()})
	})
}

// manyAcks are acks of IDs, of checks and of subjects, and findings with ports that few of them
// are about.
func manyAcks() (found []Finding, acks Acks) {
	for i := range 12000 {
		found = append(found, Finding{Check: "ctr.rcv", Subject: OfGUID(mad.GUID(1+i/36), 1+i%36, ""), Severity: Warning})
	}
	for i := range 3000 {
		pattern := []string{fmt.Sprintf("ctr.rcv:0x%016x/7", i), fmt.Sprintf("link.c%d:*", i), fmt.Sprintf("link.*:0x%016x/8", i)}[i%3]
		acks = append(acks, Ack{Pattern: pattern, Until: noon, Reason: "x"})
	}
	return found, acks
}

// TestAckIndex: a finding is compared with few of many acks.
func TestAckIndex(t *testing.T) {
	found, acks := manyAcks()
	x := acks.index(found, noon)
	tried := 0
	for i := range found {
		for _, id := range found[i].ids() {
			tried += len(x.candidates(id))
		}
	}
	if tried > len(found) {
		t.Errorf("%d comparisons for %d findings and %d acks", tried, len(found), len(acks))
	}
	var r Report
	r.Settle(found, acks, nil, noon)
	if len(r.Acked) != 111 { // the multiples of 3 from 3 to 333
		t.Errorf("%d acked, want 111", len(r.Acked))
	}
}

// TestPatternKey: whatever its form, a pattern is found by the IDs that it matches.
func TestPatternKey(t *testing.T) {
	for _, pattern := range []string{"a.b:fabric", "a.b:*", "a.*:fabric", "*:*", "*", "a*c", "*fabric", "a.b*"} {
		acks := Acks{{Pattern: pattern, Until: noon}}
		f := Finding{Check: "a.b", Subject: OfFabric()}
		if _, got := acks.index(nil, noon).of(f.ids()); got != acks[0].Covers(&f) {
			t.Errorf("%s: %t", pattern, got)
		}
	}
}

func BenchmarkSettle(b *testing.B) {
	found, acks := manyAcks()
	for b.Loop() {
		new(Report).Settle(found, acks, nil, noon)
	}
}

// TestCountAcks: acks without a count get the count of the first run that has the finding, in memory
// and in the file, and members that are added later are reported.
func TestCountAcks(t *testing.T) {
	const ids = `fw.outlier:0x0000000000000001 2026-12-20 "me" "new model" # by hand
fw.outlier:0x0000000000000009 2026-12-20 "me" "absent"
fw.*:* 2020-01-01 "me" "ended"
fw.x*:* 2026-12-20 "me" "a pattern"
port.unresponsive:0x0000000000000001 2026-12-20 "me" "counted" "sw" 2
`
	path := filepath.Join(t.TempDir(), "acks")
	if err := os.WriteFile(path, []byte(ids), 0o600); err != nil {
		t.Fatal(err)
	}
	acks, bad := ReadAcks(path, noon)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	counts := acks.Uncounted([]Finding{outlier(1, 7), unresponsive(3)}, noon)
	if diff := cmp.Diff(map[string]float64{"fw.outlier:0x0000000000000001": 7}, counts); diff != "" {
		t.Fatalf("-want +got\n%s", diff)
	}
	acks.SetCounts(counts)
	if err := RecordCounts(path, counts); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(ids, `"new model" #`, `"new model" "" 7 #`, 1)
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("file: -want +got\n%s", diff)
	}
	read, _ := ReadAcks(path, noon)
	for _, list := range []Acks{acks, read} {
		for last, want := range map[int]string{7: "1 acked, 0 grown, 0 known", 9: "old; 7 of 9 acknowledged; 0 acked, 0 grown, 0 known"} {
			if got := settledText(outlier(1, last), list[:1], nil); got != want {
				t.Errorf("%d members:\ngot  %s\nwant %s", last, got, want)
			}
		}
	}
}
