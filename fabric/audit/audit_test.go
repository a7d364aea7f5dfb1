package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim"
	"fabsh/mad"
)

// TestIDs: an ID is of GUIDs and port numbers, and a link has one whichever end
// it is seen from.
func TestIDs(t *testing.T) {
	f, _, err := sim.Parse("ring:n=2")
	if err != nil {
		t.Fatal(err)
	}
	p := f.Nodes()[0].Port(1)
	for _, test := range []struct {
		s    Subject
		want string
	}{
		{OfFabric(), "x.y:fabric"},
		{OfNode(p.Node()), "x.y:" + p.Node().GUID().String()},
		{OfPort(p.Peer()), "x.y:" + p.Peer().Node().GUID().String() + "/1"},
		{OfLink(p, p.Peer()), "x.y:" + p.Node().GUID().String() + "/1"},
		{OfLink(p.Peer(), p), "x.y:" + p.Node().GUID().String() + "/1"},
	} {
		if got := (&Finding{Check: "x.y", Subject: test.s}).ID(); got != test.want {
			t.Errorf("%s: ID %s, want %s", test.s.Name(), got, test.want)
		}
	}
}

func port(node mad.GUID, num int) Subject { return OfGUID(node, num, fmt.Sprintf("n%d", node)) }

func link(a mad.GUID, an int, b mad.GUID, bn int) Subject {
	return Subject{KindLink, []End{port(a, an).Ends[0], port(b, bn).Ends[0]}}
}

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

// TestCoverage: what is silent is missing until it is known to be.
func TestCoverage(t *testing.T) {
	var c Coverage
	c.Count("sweep", "NodeInfo", Subject{}, Answered, 10)
	c.Count("sweep", "NodeInfo", port(1, 7), TimedOut, 1)
	c.Count("pkeys", "PKeyTable", port(1, 7), Failed, 1)
	c.Count("pkeys", "PKeyTable", port(1, 8), Unsupported, 1)
	if c.Complete() {
		t.Errorf("complete: %+v", c.Rows())
	}
	r := Report{Coverage: c}
	ack := Ack{Pattern: "port.unresponsive:*/7", Until: time.Now()}
	r.Settle([]Finding{{Check: "port.unresponsive", Subject: port(1, 7), Severity: Error}}, Acks{ack}, nil, time.Now())
	want := []Row{
		{Audit: "sweep", Attribute: "NodeInfo", Asked: 10, Answered: 10},
		{Audit: "pkeys", Attribute: "PKeyTable", Asked: 1, Unsupported: 1},
	}
	if diff := cmp.Diff(want, r.Coverage.Rows()); diff != "" || !r.Complete() || len(r.Silent) != 1 {
		t.Errorf("silent %v, rows -want +got\n%s", r.Silent, diff)
	}
	r.Coverage.Forget("sweep")
	if diff := cmp.Diff(want[1:], r.Coverage.Rows()); diff != "" {
		t.Errorf("after Forget -want +got\n%s", diff)
	}
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

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
		t.Errorf("told %v, acked %v, notes %q", r.Findings, r.Acked, r.Notes)
	}
	if len(later.Findings) != 2 || len(later.Notes) != 2 {
		t.Errorf("a day later: told %v, notes %q", later.Findings, later.Notes)
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
