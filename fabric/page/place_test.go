package page

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// TestPlaces: a finding leads to its entry in the list of its section, whose number is at the cell,
// or at the name of the switch, in the picture.
func TestPlaces(t *testing.T) {
	f := parse(t, "fattree:k=4,levels=2,remove_links=1,seed=3")
	p := pageOf(t, f)
	leaf, spine := f.NodeByName("leaf-1")[0], f.NodeByName("spine-1")[0]
	var host, up *audit.Subject
	for port := range leaf.Ports() {
		s := audit.OfPort(port)
		switch q := port.Peer(); {
		case q == nil:
		case !q.Node().IsSwitch() && host == nil:
			n := audit.OfNode(q.Node())
			host = &n
		case q.Node() == spine:
			up = &s
		}
	}
	if host == nil || up == nil {
		t.Fatal("leaf-1 has no host, or no link to spine-1")
	}
	add := func(check string, s audit.Subject, data ...audit.Datum) {
		p.Report.Findings = append(p.Report.Findings, audit.Finding{Check: check, Subject: s, Severity: audit.Warning, Message: "<it>", Data: data})
	}
	add("node.a", audit.OfNode(leaf))
	add("node.b", audit.OfNode(spine))
	add("node.c", *host)
	add("link.d", *up)
	add("link.e", audit.OfNode(leaf), audit.Datum{Name: "peers", Value: fmt.Sprintf("[%q]", spine.GUID())})
	html := written(t, p)
	var got []string
	for _, m := range regexp.MustCompile(`class="check">(\S+)</td><td role="cell" data-label="subject" class="id"><a href="#(.*?)">`).FindAllStringSubmatch(html, -1) {
		entry := regexp.MustCompile(`<li value="(\d+)" id="` + m[2] + `" tabindex="-1">(.*?)</li>`).FindStringSubmatch(html)
		cell := regexp.MustCompile(`<g class="mark" data-place="` + m[2] + `"><title>.*?</title><rect x="(\S+)" y="(\S+)" .*?>(\d+)</text>`).FindStringSubmatch(html)
		if entry == nil || cell == nil || entry[1] != cell[3] || !strings.Contains(entry[2], m[1]+" ") {
			t.Errorf("%s: place %q, entry %q, mark %q", m[1], m[2], entry, cell)
			continue
		}
		got = append(got, m[1]+": "+cell[1]+" "+cell[2])
	}
	want := []string{"node.a: -59 -1", "link.d: -1 -1", "link.e: -1 -1", "node.b: -1 -65", "node.c: -1 -1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if n := strings.Count(html, `class="ring" cx="`); n != 2 { // one is in the legend
		t.Errorf("%d rings, want one on the line with a finding", n-1)
	}
	check := regexp.MustCompile(`: no link; most pairs here have 1</bdi>`).FindAllString(html, -1)
	if len(check) != 1 || !strings.Contains(html, "<strong>1 place to check</strong>") {
		t.Errorf("%d missing links are listed, want 1", len(check))
	}
}

// TestPlacesLimit: a section lists no more places than it has room for, and counts the others.
func TestPlacesLimit(t *testing.T) {
	f := parse(t, "fattree:k=16,levels=2")
	p := pageOf(t, f)
	for i := range f.Nodes() {
		p.Report.Findings = append(p.Report.Findings, audit.Finding{Check: "node.a", Subject: audit.OfNode(&f.Nodes()[i]), Severity: audit.Info})
	}
	html := written(t, p)
	more := fmt.Sprintf("and %d more</li>", len(f.Nodes())-maxPlaces)
	if n := strings.Count(html, "<li value="); n != maxPlaces || !strings.Contains(html, more) {
		t.Errorf("%d places, want %d, %s", n, maxPlaces, more)
	}
	p.Report.Findings = slices.Repeat(p.Report.Findings[:1], maxTexts+7)
	if html := written(t, p); strings.Count(html, "<bdi>node.a ") != maxTexts || !strings.Contains(html, "<br>and 7 more</li>") {
		t.Errorf("a place has %d texts, want %d", strings.Count(html, "<bdi>node.a "), maxTexts)
	}
	if strings.Contains(html, "to check") {
		t.Error("places with findings are called places to check")
	}
}

// TestExplain: the names of checks lead to their explanations, once each; others are text.
func TestExplain(t *testing.T) {
	f := parse(t, "fattree:k=4")
	p := pageOf(t, f)
	for i, check := range []string{"link.b", "link.b", "own.check", "<b>"} {
		p.Report.Findings = append(p.Report.Findings, audit.Finding{Check: check, Subject: audit.OfNode(&f.Nodes()[i]), Severity: audit.Warning})
	}
	p.Report.Unjudged = []audit.Unjudged{{Audit: "links", Check: "link.a", Lacked: "not read"}}
	p.Explain = func(check string) string {
		return map[string]string{"link.a": "text <a>", "link.b": "text b", "<b>": "text"}[check]
	}
	html := written(t, p)
	got := regexp.MustCompile(`<dt id="(.*?)">(.*?)</dt><dd><bdi>(.*?)</bdi>|class="check">(.*?)</td>|<li><bdi>(.*?)</bdi>`).FindAllString(html, -1)
	want := []string{
		`<li><bdi><a href="#check-link.a">link.a</a> (not read)</bdi>`,
		`class="check"><a href="#check-link.b">link.b</a></td>`, `class="check"><a href="#check-link.b">link.b</a></td>`, `class="check">own.check</td>`, `class="check">&lt;b&gt;</td>`,
	}
	for _, w := range want {
		found := false
		for i, g := range got {
			if g == w {
				got[i], found = "", true
				break
			}
		}
		if !found {
			t.Errorf("the page has no %s", w)
		}
	}
	if n := strings.Count(html, "<dt id="); n != 2 || !strings.Contains(html, `<dt id="check-link.a">link.a</dt><dd><bdi>text &lt;a&gt;</bdi></dd>`) {
		t.Errorf("%d explanations, want 2", n)
	}
}

// TestSilent: a port whose link is up and whose other end is unknown is hatched, as in the legend.
func TestSilent(t *testing.T) {
	b := fabric.NewBuilder()
	leaf := b.AddNode(fabric.NodeSpec{Name: "leaf-1", Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 3, NodeGUID: 1, LocalPortNum: 1}})
	host := b.AddNode(fabric.NodeSpec{Name: "node-1", Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: 2, LocalPortNum: 1}})
	up := mad.PortInfo{PortState: mad.PortStateActive, PortPhysicalState: mad.PortPhysicalStateLinkUp}
	for _, port := range [][2]int{{leaf, 1}, {leaf, 2}, {host, 1}} {
		b.SetPort(port[0], port[1], &up)
	}
	b.SetPort(leaf, 3, &mad.PortInfo{PortState: mad.PortStateDown, PortPhysicalState: mad.PortPhysicalStatePolling})
	if err := b.Link(leaf, 1, host, 1); err != nil {
		t.Fatal(err)
	}
	f := b.Build()
	p := &Page{Report: &audit.Report{Model: f}}
	html := written(t, p)
	if !strings.Contains(html, `<path class="unknown" d="M0 0h15v15h-15zM16 0h15v15h-15z"/>`) || !strings.Contains(html, "leaf-1/2: the other end is unknown") || strings.Contains(html, "leaf-1/3") {
		t.Error("the silent port is not hatched, or not listed")
	}
	p.Report.Findings = []audit.Finding{{Check: "port.unresponsive", Subject: audit.OfPort(f.NodeByName("leaf-1")[0].Port(2)), Severity: audit.Error, Message: "silent"}}
	html = written(t, p)
	if !strings.Contains(html, `<g class="mark" data-place="g1-1"><title>port.unresponsive leaf-1/2: silent</title><rect x="15" y="-1"`) || strings.Contains(html, "the other end is unknown") {
		t.Error("the finding is not at the place of the port")
	}
}

// TestAxes: heat maps name their columns and rows, each matrix its own.
func TestAxes(t *testing.T) {
	for _, test := range []struct {
		spec          string
		columns, rows int // names beside the cells of a map
		text          string
	}{
		{"fattree:k=4,levels=2,remove_links=1,seed=3", 4, 2, "Columns: tier 1 (leaves); rows: tier 2."},
		{"fattree:k=4,levels=3,remove_links=1,seed=3", 8, 8, "4 matrices side by side; columns: tier 1 (leaves); rows: tier 2."},
		{"fattree:k=16,levels=3,remove_links=1,seed=3", 16, 0, "16 matrices side by side; columns: tier 1 (leaves); rows: tier 2."},
	} {
		p := pageOf(t, parse(t, test.spec))
		at, err := newTopology(p.Report.Model, p.Report)
		if err != nil {
			t.Fatal(err)
		}
		views, _ := p.heat(at)
		v := views[0]
		if len(v.ColumnLabels) != test.columns || len(v.RowLabels) != test.rows || v.Columns != test.text {
			t.Errorf("%s: %d and %d names, %s", test.spec, len(v.ColumnLabels), len(v.RowLabels), v.Columns)
		}
		if want := "columns: leaf-1, leaf-2"; !strings.HasPrefix(v.Blocks[0], want) || !strings.Contains(v.Blocks[0], "; rows: spine-1, spine-2") {
			t.Errorf("%s: %s", test.spec, v.Blocks[0])
		}
	}
}
