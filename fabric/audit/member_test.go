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

// outlier is a finding about nodes of one model: those from first to last.
func outlier(first, last int) Finding {
	at := func(n int) Subject { return OfGUID(mad.GUID(n), NoPort, "") }
	f := Finding{Check: "fw.outlier", Subject: at(first), Severity: Warning, Message: "old"}
	for n := first + 1; n <= last; n++ {
		f.Members = append(f.Members, at(n))
		f.Absorbed = append(f.Absorbed, f.idAt(at(n)))
	}
	return f
}

// unresponsive is a finding about ports of one node.
func unresponsive(ports int) Finding {
	f := Finding{Check: "port.unresponsive", Subject: OfGUID(1, NoPort, ""), Severity: Error, Message: "no answer"}
	for n := range ports {
		f.Members = append(f.Members, OfGUID(1, n+1, ""))
		f.Absorbed = append(f.Absorbed, f.idAt(f.Members[n]))
	}
	return f
}

func settledText(f Finding, acks Acks, baseline map[string]bool) string {
	var r Report
	r.Settle([]Finding{f}, acks, baseline, noon)
	var b strings.Builder
	for _, x := range r.Findings {
		fmt.Fprintf(&b, "%s; ", x.Message)
	}
	fmt.Fprintf(&b, "%d acked, %d grown, %d known", len(r.Acked), len(r.Grown), r.Known)
	for _, s := range r.Silent {
		b.WriteString("; silent " + s.Name())
	}
	for _, n := range r.Notes {
		b.WriteString("; " + n)
	}
	return b.String()
}

// TestMembers: an ack or a baseline that has some members of a finding does not hide the others.
func TestMembers(t *testing.T) {
	const first = "fw.outlier:0x0000000000000001"
	ack := func(count float64, patterns ...string) (list Acks) {
		for _, p := range patterns {
			list = append(list, Ack{Pattern: p, Until: noon, Reason: "x", Count: count})
		}
		return list
	}
	member := func(from, to int) (ids []string) {
		for n := from; n <= to; n++ {
			ids = append(ids, fmt.Sprintf("fw.outlier:0x%016x", n))
		}
		return ids
	}
	ended := ack(1, first)
	ended[0].Until = noon.AddDate(0, 0, -1)
	alone := []Finding{outlier(1, 1), outlier(2, 2)}
	silent := Finding{Check: "node.gone", Subject: OfGUID(9, NoPort, ""), Message: "gone", Merged: []Finding{unresponsive(3)}, Absorbed: []string{"port.unresponsive:0x0000000000000001"}}
	for _, x := range []struct {
		name     string
		found    Finding
		acks     Acks
		baseline []Finding
		want     string
	}{
		{"new members", outlier(1, 7), nil, alone, "old; 2 of 7 also in the baseline; 0 acked, 0 grown, 0 known"},
		{"all in the baseline", outlier(1, 7), nil, []Finding{outlier(1, 7)}, "0 acked, 0 grown, 1 known"},
		{"the first repaired", outlier(2, 7), nil, []Finding{outlier(1, 7)}, "0 acked, 0 grown, 1 known"},
		{"another first", outlier(1, 7), nil, []Finding{outlier(2, 7)}, "old; 6 of 7 also in the baseline; 0 acked, 0 grown, 0 known"},
		{"more ports of a node", unresponsive(3), nil, []Finding{unresponsive(2)}, "no answer; 2 of 3 also in the baseline; 0 acked, 0 grown, 0 known"},
		{"ports of a node", unresponsive(2), nil, []Finding{unresponsive(3)}, "0 acked, 0 grown, 1 known"},
		{"baseline and acks", outlier(1, 4), ack(1, member(3, 4)...), alone, "1 acked, 0 grown, 0 known"},
		{"the first acked alone", outlier(1, 7), ack(1, first), nil, "old; 1 of 7 acknowledged; 0 acked, 0 grown, 0 known"},
		{"a member acked", outlier(1, 7), ack(1, member(3, 3)...), nil, "old; 1 of 7 acknowledged; 0 acked, 0 grown, 0 known"},
		{"the whole acked", outlier(1, 7), ack(7, first), nil, "1 acked, 0 grown, 0 known"},
		{"more than the whole", outlier(1, 9), ack(7, first), nil, "old; 7 of 9 acknowledged; 0 acked, 0 grown, 0 known"},
		{"an ack without a count", outlier(1, 9), ack(0, first), nil, "old; 1 of 9 acknowledged; 0 acked, 0 grown, 0 known"},
		{"a node without a count", unresponsive(3), ack(0, "port.unresponsive:0x0000000000000001"), nil, "1 acked, 0 grown, 0 known; silent 0x0000000000000001"},
		{"one of several, alone again", outlier(3, 3), ack(1, member(3, 3)...), nil, "1 acked, 0 grown, 0 known"},
		{"several acked, one left", outlier(1, 1), ack(7, first), nil, "1 acked, 0 grown, 0 known"},
		{"each acked", outlier(1, 5), ack(1, member(1, 5)...), nil, "1 acked, 0 grown, 0 known"},
		{"all of a check", outlier(1, 5), ack(0, "fw.outlier:*"), nil, "1 acked, 0 grown, 0 known"},
		{"all, ten times as many", outlier(1, 50), ack(5, "fw.*:*"), nil, "old; 0 acked, 1 grown, 0 known"},
		{"ended", outlier(1, 5), ended, nil, "old; 0 acked, 0 grown, 0 known; the ack of " + first + " ended after 2026-11-21: x"},
		{"a port", unresponsive(3), ack(1, "port.unresponsive:0x0000000000000001/2"), nil, "no answer; 1 of 3 acknowledged; 0 acked, 0 grown, 0 known; silent 0x0000000000000001/2"},
		{"the ports", unresponsive(3), ack(1, "port.unresponsive:0x0000000000000001/*"), nil, "1 acked, 0 grown, 0 known; silent 0x0000000000000001"},
		{"the node", unresponsive(3), ack(3, "port.unresponsive:0x0000000000000001"), nil, "1 acked, 0 grown, 0 known; silent 0x0000000000000001"},
		{"the node, fewer ports", unresponsive(3), ack(2, "port.unresponsive:0x0000000000000001"), nil, "no answer; 2 of 3 acknowledged; 0 acked, 0 grown, 0 known"},
		{"the same fault", silent, ack(3, "port.unresponsive:0x0000000000000001"), nil, "1 acked, 0 grown, 0 known; silent 0x0000000000000009; silent 0x0000000000000001"},
		{"a part of the same fault", silent, ack(1, "port.unresponsive:0x0000000000000001/2"), nil, "gone; 0 acked, 0 grown, 0 known"},
		{"the same fault in the baseline", silent, nil, []Finding{{Check: "node.gone", Subject: silent.Subject}, unresponsive(3)}, "0 acked, 0 grown, 1 known"},
		{"less of it in the baseline", silent, nil, []Finding{{Check: "node.gone", Subject: silent.Subject}, unresponsive(2)}, "gone; 0 acked, 0 grown, 0 known"},
	} {
		known := map[string]bool{}
		IDs(x.baseline, known)
		if got := settledText(x.found, x.acks, known); got != x.want {
			t.Errorf("%s:\ngot  %s\nwant %s", x.name, got, x.want)
		}
	}

	// What an ack records: the units of the whole, one of a member.
	for id, want := range map[string]float64{first: 7, "fw.outlier:0x0000000000000003": 1, "fw.outlier:*": 7} {
		if a := (Ack{Pattern: id}); a.CountOf([]Finding{outlier(1, 7)}) != want {
			t.Errorf("%s: count %g, want %g", id, a.CountOf([]Finding{outlier(1, 7)}), want)
		}
	}
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

// TestGoneMembers: a finding that another one stands for now is not gone, nor is one whose
// check was not done; the oldest time is kept.
func TestGoneMembers(t *testing.T) {
	st := openState(t, t.TempDir())
	later := noon.Add(time.Minute)
	other := Finding{Audit: "links", Check: "link.down", Subject: OfFabric()}
	st.SetFindings([]Finding{outlier(2, 2), other}, true, nil, noon)
	st.SetFindings([]Finding{outlier(2, 2), outlier(3, 3), other}, true, nil, later)

	found := []Finding{outlier(1, 7)}
	undone := []Unjudged{{Audit: "links", Check: "link.down"}, {Audit: "identity", Check: "fw.outlier"}}
	if gone := st.SetFindings(found, true, undone, later.Add(time.Minute)); len(gone) > 0 || !found[0].Since.Equal(noon) {
		t.Errorf("gone %v, since %v; want none, %v", gone, found[0].Since, noon)
	}
	again := []Finding{other}
	gone := st.SetFindings(again, true, nil, later.Add(2*time.Minute))
	if len(gone) != 1 || gone[0].ID() != found[0].ID() || !again[0].Since.Equal(noon) {
		t.Errorf("gone %v, again since %v", gone, again[0].Since)
	}
}

// TestMembersBecomeFindings: when nodes of a finding become findings of their own, or the other
// way round, they are the same as before; those without the fault are gone.
func TestMembersBecomeFindings(t *testing.T) {
	dir := t.TempDir()
	of := func(list ...Finding) []Finding { return list }
	var got strings.Builder
	for i, found := range [][]Finding{
		of(outlier(2, 2), outlier(5, 5)),
		of(outlier(1, 5)), // of one form to the other
		of(outlier(2, 2), outlier(5, 5)),
		of(outlier(1, 5)),
		of(outlier(3, 5)), // the first is repaired
		of(unresponsive(3)),
		of(unresponsive(1)),
		nil,
	} {
		st := openState(t, dir)
		st.Read()
		if st.Reset != nil {
			t.Fatal(st.Reset)
		}
		gone := st.SetFindings(found, true, nil, noon.Add(time.Duration(i)*time.Minute))
		if err := st.Save(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "%d:", i)
		for _, f := range found {
			fmt.Fprintf(&got, " %s since %.0f;", f.Subject.Name(), f.Since.Sub(noon).Minutes())
		}
		for _, f := range gone {
			fmt.Fprintf(&got, " gone %s %s", f.Check, f.Subject.Name())
		}
		got.WriteString("\n")
	}
	if diff := cmp.Diff(`0: 0x0000000000000002 since 0; 0x0000000000000005 since 0;
1: 0x0000000000000001 since 0;
2: 0x0000000000000002 since 0; 0x0000000000000005 since 0; gone fw.outlier 0x0000000000000001 gone fw.outlier 0x0000000000000003 gone fw.outlier 0x0000000000000004
3: 0x0000000000000001 since 0;
4: 0x0000000000000003 since 0; gone fw.outlier 0x0000000000000001 gone fw.outlier 0x0000000000000002
5: 0x0000000000000001 since 5; gone fw.outlier 0x0000000000000003
6: 0x0000000000000001 since 5;
7: gone port.unresponsive 0x0000000000000001
`, got.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestCountAcks: acks without a count get that of the first run that has the finding, in memory
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
