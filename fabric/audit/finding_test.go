package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// tree draws groups.
func tree(groups []*Group, indent string) string {
	var b strings.Builder
	for _, g := range groups {
		b.WriteString(indent + g.Check + " " + g.Subject.Name() + "\n" + tree(g.Effects, indent+"  "))
	}
	return b.String()
}

// TestFold: node > link > counter; an effect that is worse stands by itself;
// causes that go round in circles hide nothing.
func TestFold(t *testing.T) {
	list := []Finding{
		{Check: "node.gone", Subject: OfGUID(1, NoPort, "n1"), Severity: Critical},
		{Check: "link.down", Subject: link(1, 1, 2, 7), Severity: Critical},
		{Check: "link.down", Subject: link(1, 2, 3, 7), Severity: Error},
		{Check: "ctr.ber", Subject: port(2, 7), Severity: Error},
		{Check: "ctr.ber", Subject: port(2, 8), Severity: Error},
		{Check: "name.dup", Subject: OfGUID(1, NoPort, "n1"), Severity: Warning},
		{Check: "node.reboot", Subject: OfGUID(4, NoPort, "n4"), Severity: Info},
		{Check: "link.down", Subject: link(4, 1, 5, 1), Severity: Critical},
		{Check: "a.b", Subject: OfFabric(), Severity: Error, Cause: "c.d:fabric"},
		{Check: "c.d", Subject: OfFabric(), Severity: Error, Cause: "a.b:fabric"},
		{Check: "sm.lid", Subject: port(9, 1), Severity: Error, Cause: "node.gone:0x0000000000000001"},
	}
	want := `node.gone n1
  link.down n1/1 - n2/7
    ctr.ber n2/7
  link.down n1/2 - n3/7
  sm.lid n9/1
ctr.ber n2/8
name.dup n1
node.reboot n4
link.down n4/1 - n5/1
a.b fabric
c.d fabric
`
	got := Fold(list)
	if diff := cmp.Diff(want, tree(got, "")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if n := got[0].Size(); n != 5 {
		t.Errorf("the first group has %d findings, want 5", n)
	}
}

// TestCollection: one fault of one subject is one finding, of bounded length.
func TestCollection(t *testing.T) {
	var c Collection
	c.Add(Finding{Check: "a.b", Subject: port(1, 1), Severity: Warning, Message: "one"})
	for i := range 100 {
		c.Add(Finding{Check: "a.b", Subject: port(1, 1), Severity: Error, Message: fmt.Sprint("more ", i)})
	}
	c.Add(Finding{Check: "a.c", Subject: port(1, 1), Severity: Critical, Message: "other"})
	list := c.List()
	if len(list) != 2 || list[0].Check != "a.c" || list[1].Severity != Error || strings.Count(list[1].Message, ";") != maxMessages-1 {
		t.Errorf("got %v", list)
	}
}

// TestJoin: findings of two collections, joined, are as if they had been added to one.
func TestJoin(t *testing.T) {
	x := OfFabric()
	parts := [2][]Finding{
		{{Check: "a.b", Subject: x, Message: "one", Severity: Warning}, {Check: "a.b", Subject: x, Message: "two", Severity: Warning}},
		{{Check: "a.b", Subject: x, Message: "one", Severity: Error}, {Check: "a.c", Subject: x, Message: "one"}, {Check: "a.b", Subject: x, Message: "three"}},
	}
	var joined, added Collection
	for _, list := range parts {
		var part Collection
		for _, f := range list {
			part.Add(f)
			added.Add(f)
		}
		joined.Join(&part)
	}
	if diff := cmp.Diff(added.List(), joined.List()); diff != "" || added.List()[0].Message != "one; two; three" {
		t.Errorf("(-added +joined):\n%s%q", diff, added.List()[0].Message)
	}
}

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

func faultAt(check string, node mad.GUID, num int, s Severity) Finding {
	return Finding{Check: check, Subject: OfGUID(node, num, ""), Severity: s}
}

func merged(list []Finding) string {
	var b strings.Builder
	for _, f := range Merge(list) {
		fmt.Fprintf(&b, "%s %s%v", f.Severity, f.ID(), f.Absorbed)
		if f.Cause != "" {
			b.WriteString(" <- " + f.Cause)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestMerge: one fault is one finding. It keeps the IDs of the others, and the worst severity.
func TestMerge(t *testing.T) {
	const leaf, spine = "0x0000000000000001", "0x0000000000000002"
	down := func(num int) Finding {
		f := faultAt("link.down", 1, num, Warning)
		f.Absorbs = []string{"link.uplinks:" + leaf}
		return f
	}
	uplinks := faultAt("link.uplinks", 1, NoPort, Error)
	uplinks.Parts = 2
	gone := faultAt("node.gone", 2, NoPort, Error)
	gone.Absorbs = []string{"node.silent:" + spine}
	silent := faultAt("node.silent", 2, NoPort, Critical)
	silent.Absorbs = []string{"port.unresponsive:" + leaf + "/7"}
	port := faultAt("port.unresponsive", 1, 7, Error)
	effect := faultAt("ctr.rcv", 1, 7, Warning)
	effect.Cause = "port.unresponsive:" + leaf + "/7"
	self := faultAt("a.b", 3, 1, Info)
	self.Absorbs = []string{"a.b:0x0000000000000003/1", "c.d:0x0000000000000003/1"}
	circle := faultAt("c.d", 3, 1, Info)
	circle.Absorbs = []string{"a.b:0x0000000000000003/1"}
	for _, x := range []struct {
		name string
		list []Finding
		want string
	}{
		{"alone", []Finding{down(1)}, "warning link.down:" + leaf + "/1[]\n"},
		{"one of two parts", []Finding{uplinks, down(1)}, "error link.uplinks:" + leaf + "[]\nwarning link.down:" + leaf + "/1[]\n"},
		{"both parts", []Finding{uplinks, down(1), down(2)}, "error link.down:" + leaf + "/1[link.uplinks:" + leaf + "]\nwarning link.down:" + leaf + "/2[]\n"},
		{"a chain", []Finding{effect, port, silent, gone}, "critical node.gone:" + spine + "[port.unresponsive:" + leaf + "/7 node.silent:" + spine + "]\nwarning ctr.rcv:" + leaf + "/7[] <- node.gone:" + spine + "\n"},
		{"a circle", []Finding{self, circle}, "info a.b:0x0000000000000003/1[]\ninfo c.d:0x0000000000000003/1[]\n"},
	} {
		if got := merged(x.list); got != x.want {
			t.Errorf("%s:\ngot\n%swant\n%s", x.name, got, x.want)
		}
	}

	// An ack of an absorbed ID applies to the finding that absorbed it, and to no other.
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	acks := Acks{{Pattern: "port.unresponsive:" + leaf + "/7", Until: now, Reason: "off"}}
	var r Report
	r.Settle(Merge([]Finding{port, silent, gone, uplinks}), acks, nil, now)
	if len(r.Acked) != 1 || r.Acked[0].Check != "node.gone" || len(r.Findings) != 1 || len(r.Silent) != 3 {
		t.Errorf("acked %v, reported %v, silent %v", r.Acked, r.Findings, r.Silent)
	}
}
