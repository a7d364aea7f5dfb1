package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/scanner"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// TestHostileNames: names stay text, in well-formed pictures.
func TestHostileNames(t *testing.T) {
	f := simulated(t, "fattree:k=8,levels=2,loss=0")
	names := map[mad.GUID]string{}
	for i := range f.Nodes() {
		names[f.Nodes()[i].GUID()] = hostile[i%len(hostile)]
	}
	f = f.Renamed(names)
	for _, o := range []LadderOptions{{}, {Single: 500}, {Around: []*fabric.Node{&f.Nodes()[0]}, Single: 500}} {
		l := ladder(t, f, o)
		checkSVG(t, l)
		checkDOT(t, l)
	}
}

// TestDamaged: whatever is left of a fabric is drawn, and the same twice.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"fattree:k=6,levels=3", "torus:dims=4/4,hosts=1", "dragonfly:a=3,p=1,h=1", "random:n=20,degree=4,hosts=1", "mesh:dims=4/4,hosts=0"} {
		for seed := range 2 {
			spec := fmt.Sprintf("%s,remove_links=%d%%,remove_switches=%d%%,seed=%d", kind, 10+50*seed, 25*seed, seed)
			f := simulated(t, spec)
			for _, o := range []LadderOptions{{}, {Single: 500}, {Around: []*fabric.Node{&f.Nodes()[len(f.Nodes())-1]}, Single: 500}} {
				l := ladder(t, f, o)
				links := 0
				for _, e := range l.Edges {
					links += e.Links
				}
				if o.Around == nil && links != f.Links() {
					t.Errorf("%s: %d links drawn of %d", spec, links, f.Links())
				}
				if svg := checkSVG(t, l); seed == 0 && svg != checkSVG(t, ladder(t, f, o)) {
					t.Errorf("%s: another SVG", spec)
				}
				if dot := checkDOT(t, l); seed == 0 && dot != checkDOT(t, ladder(t, f, o)) {
					t.Errorf("%s: another DOT", spec)
				}
			}
		}
	}
}

// checkSVG reads the picture strictly: only elements and attributes that draw.
func checkSVG(t *testing.T, l *Ladder) string {
	t.Helper()
	var b bytes.Buffer
	if err := l.SVG(&b); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatalf("SVG: %v", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			switch x.Name.Local {
			case "svg", "title", "style", "rect", "text", "path", "g":
			default:
				t.Errorf("SVG: element %q", x.Name.Local)
			}
			for _, a := range x.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Name.Local, "href") {
					t.Errorf("SVG: attribute %q", a.Name.Local)
				}
			}
		case xml.CharData:
			if text := string(x); strings.ContainsAny(text, "\u202e\u2066\x1b\x00") || strings.Count(text, "\u2068") != strings.Count(text, "\u2069") {
				t.Errorf("SVG: text %q", text)
			}
		case xml.Comment, xml.ProcInst, xml.Directive:
			t.Errorf("SVG: %T", x)
		}
	}
}

// checkDOT reads the part of the language that is written (graphviz.org, "The DOT
// Language"), and wants a node for each group, with its names, and an edge for each edge.
func checkDOT(t *testing.T, l *Ladder) string {
	t.Helper()
	var b bytes.Buffer
	if err := l.DOT(&b); err != nil {
		t.Fatal(err)
	}
	var s scanner.Scanner
	s.Init(bytes.NewReader(b.Bytes()))
	s.Mode = scanner.ScanIdents | scanner.ScanFloats | scanner.ScanInts | scanner.ScanStrings | scanner.ScanComments | scanner.SkipComments
	s.Error = func(_ *scanner.Scanner, msg string) {
		if msg != "invalid char escape" { // \ of labels is no escape of Go's
			t.Errorf("DOT: %s", msg)
		}
	}
	read := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `&amp;`, "&")
	var labels []string
	edges, before := 0, []string{"", "", "", ""}
	for r := s.Scan(); r != scanner.EOF; r = s.Scan() {
		text := s.TokenText()
		switch {
		case r == '-' && before[3] == "-":
			edges++
		case r == scanner.String:
			if strings.ContainsAny(text, "\n\u202e\x1b") {
				t.Errorf("DOT: string %q", text)
			}
			if before[0] == fmt.Sprintf("n%d", len(labels)) && strings.Join(before[1:], "") == "[label=" {
				labels = append(labels, read.Replace(text[1:len(text)-1]))
			}
		case r == scanner.Ident:
			id, ok := strings.CutPrefix(text, "n")
			if _, err := strconv.Atoi(id); (!ok || err != nil) && !slices.Contains(dotWords, text) {
				t.Errorf("DOT: %q at %s", text, s.Pos())
			}
		case r != scanner.Int && r != scanner.Float && !strings.ContainsRune("-=,;[]{}", r):
			t.Errorf("DOT: %q at %s", text, s.Pos())
		}
		before = append(before[1:], text)
	}
	var want []string
	for _, g := range l.Groups() {
		lines := strings.Join(g.names(tooltip), "\n… ")
		if len(g.Nodes) > 1 {
			lines = g.CountText() + "\n" + lines
		}
		if g.Uneven() {
			lines += "\n" + strings.Join(g.LinkText(), "\n")
		}
		want = append(want, lines)
	}
	if diff := cmp.Diff(want, labels); diff != "" || edges != len(l.Edges) {
		t.Errorf("DOT: %d edges of %d; labels -want +got\n%s", edges, len(l.Edges), diff)
	}
	return b.String()
}

// BenchmarkSVG draws 11,664 hosts and their switches.
func BenchmarkSVG(b *testing.B) {
	f, _, err := sim.Parse("fattree:k=36,levels=3,remove_links=30")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		l, err := NewLadder(b.Context(), f, LadderOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.SVG(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
