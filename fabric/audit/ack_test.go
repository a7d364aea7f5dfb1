package audit

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// TestEditAcks: an ack replaces those of the same pattern, and can be removed; all other
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
