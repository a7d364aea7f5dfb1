package picture

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// TestLadder: what is connected alike is one group, whatever is missing, on trees and
// other networks.
func TestLadder(t *testing.T) {
	for _, test := range []struct{ spec, want string }{
		{"fattree:k=8,levels=2", `
2: 0 (4) spine-1
1: 1 (8) leaf-1
0: 2 (32) node-0001 HCA-1
edges 0-1:32 1-2:32
matrix 8x4 1`},
		{"fattree:k=4,levels=3", `
3: 0 (2) core-1, 1 (2) core-2
2: 2 (2) spine-1, 3 (2) spine-3, 4 (2) spine-5, 5 (2) spine-7
1: 6 (2) leaf-1, 7 (2) leaf-3, 8 (2) leaf-5, 9 (2) leaf-7
0: 10 (4) node-0001 HCA-1, 11 (4) node-0005 HCA-1, 12 (4) node-0009 HCA-1, 13 (4) node-0013 HCA-1
edges 0-2:2 0-3:2 0-4:2 0-5:2 1-2:2 1-3:2 1-4:2 1-5:2 2-6:4 3-7:4 4-8:4 5-9:4 6-10:4 7-11:4 8-12:4 9-13:4
matrix 2x2 1
matrix 2x2 1
matrix 2x2 1
matrix 2x2 1
matrix 4x2 1
matrix 4x2 1`},
		{"fattree:k=8,levels=2,remove_links=3,seed=5", `
2: 0 (4) spine-1
1: 1 (8, 3 to 4 up) leaf-1
0: 2 (32) node-0001 HCA-1
edges 0-1:29 1-2:32
matrix 8x4 1`},
		{"pgft:m=2/4,w=1/2,p=1/3", `
2: 0 (2) spine-1
1: 1 (4) leaf-1
0: 2 (8) node-0001 HCA-1
edges 0-1:24 1-2:8
matrix 4x2 3`},
		{"ring:n=3", `
1: 0 (1) switch-1, 1 (1) switch-2, 2 (1) switch-3
0: 3 (1) node-0001 HCA-1, 4 (1) node-0002 HCA-1, 5 (1) node-0003 HCA-1
edges 0-1:1 0-2:1 0-3:1 1-2:1 1-4:1 2-5:1
matrix 3x3 1`},
		{"ring:n=3,hosts=0", `
-1: 0 (1) switch-1, 1 (1) switch-2, 2 (1) switch-3
edges 0-1:1 0-2:1 1-2:1
matrix 3x3 1`},
		{"dragonfly:a=4,p=1,h=1", `
1: 0 (4) group-1 switch-1, 1 (4) group-2 switch-1, 2 (4) group-3 switch-1, 3 (4) group-4 switch-1, 4 (4) group-5 switch-1
0: 5 (4) node-0001 HCA-1, 6 (4) node-0005 HCA-1, 7 (4) node-0009 HCA-1, 8 (4) node-0013 HCA-1, 9 (4) node-0017 HCA-1
edges 0-0:6 0-1:1 0-2:1 0-3:1 0-4:1 0-5:4 1-1:6 1-2:1 1-3:1 1-4:1 1-6:4 2-2:6 2-3:1 2-4:1 2-7:4 3-3:6 3-4:1 3-8:4 4-4:6 4-9:4
matrix 20x20 0`},
		{"torus:dims=9/9", `
1: 0 (81) switch-1-1
0: 1 (324) node-0001 HCA-1
edges 0-0:162 0-1:324
note hosts: 81 groups are drawn as one
note tier 1 (leaves): 81 groups are drawn as one
matrix 81x81 0`},
	} {
		l := ladder(t, simulated(t, test.spec), LadderOptions{})
		if diff := cmp.Diff(strings.TrimSpace(test.want), describe(l)); diff != "" {
			t.Errorf("%s: -want +got\n%s", test.spec, diff)
		}
	}
}

// describe returns a ladder in lines.
func describe(l *Ladder) string {
	var b strings.Builder
	for _, tier := range l.Tiers {
		var groups []string
		for _, g := range tier.Groups {
			up := ""
			if g.MinUp != g.MaxUp {
				up = ", " + g.LinkText()[0]
			}
			groups = append(groups, fmt.Sprintf("%d (%d%s) %s", g.ID, len(g.Nodes), up, g.Nodes[0].Name()))
		}
		fmt.Fprintf(&b, "%d: %s\n", tier.Num, strings.Join(groups, ", "))
	}
	b.WriteString("edges")
	for _, e := range l.Edges {
		fmt.Fprintf(&b, " %d-%d:%d", e.A.ID, e.B.ID, e.Links)
	}
	for _, note := range l.Notes {
		b.WriteString("\nnote " + note)
	}
	for _, m := range l.Matrices {
		fmt.Fprintf(&b, "\nmatrix %dx%d %d", len(m.Rows), len(m.Columns), m.Expected)
	}
	return b.String()
}

// TestNeighbourhood: the links of the nodes that are named, and no other.
func TestNeighbourhood(t *testing.T) {
	f := simulated(t, "fattree:k=4,levels=3")
	l := ladder(t, f, LadderOptions{Around: f.NodeByName("leaf-3"), Single: 500})
	if g := l.Groups(); g[2].MaxUp != 2 || g[3].MaxUp != 0 {
		t.Errorf("links up of leaf-3: %d; of a host, whose other links are not drawn: %d", g[2].MaxUp, g[3].MaxUp)
	}
	const want = `2: 0 (1) spine-3, 1 (1) spine-4
1: 2 (1) leaf-3
0: 3 (1) node-0005 HCA-1, 4 (1) node-0006 HCA-1
edges 0-2:1 1-2:1 2-3:1 2-4:1`
	if diff := cmp.Diff(want, describe(l)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestSlow: a link that is slower than it could be is shown at its edge and its cell.
func TestSlow(t *testing.T) {
	b := fabric.NewBuilder()
	var node []int
	for i, kind := range []mad.NodeType{mad.NodeTypeSwitch, mad.NodeTypeSwitch, mad.NodeTypeCA} {
		node = append(node, b.AddNode(fabric.NodeSpec{Name: []string{"spine-1", "leaf-1", "node-1"}[i], Info: mad.NodeInfo{NodeType: kind, NumPorts: 2, NodeGUID: mad.GUID(i + 1), PortGUID: mad.GUID(i + 1), LocalPortNum: 1}}))
		b.SetPort(i, 0, &mad.PortInfo{})
		for num := 1; num <= 2; num++ {
			info := mad.PortInfo{PortPhysicalState: mad.PortPhysicalStateLinkUp, LinkWidthActive: mad.LinkWidth4x, LinkWidthSupported: mad.LinkWidth1x | mad.LinkWidth4x, LinkWidthEnabled: mad.LinkWidth1x | mad.LinkWidth4x, LinkSpeedActive: mad.LinkSpeedSDR, LinkSpeedSupported: mad.LinkSpeedSDR, LinkSpeedEnabled: mad.LinkSpeedSDR}
			if i < 2 && num == 1 {
				info.LinkWidthActive = mad.LinkWidth1x
			}
			b.SetPort(i, num, &info)
		}
	}
	if err := errors.Join(b.Link(node[0], 1, node[1], 1), b.Link(node[1], 2, node[2], 1)); err != nil {
		t.Fatal(err)
	}
	f := b.Build()
	l := ladder(t, f, LadderOptions{})
	if e, m := l.Edges[0], l.Matrices[0]; e.States[Slow] != 1 || l.Edges[1].States[Slow] != 0 || m.States(0, 0)[Slow] != 1 || m.uniform() {
		t.Errorf("edge %+v, matrix %v", e, m.States(0, 0))
	}
	if svg, dot := checkSVG(t, l), checkDOT(t, l); !strings.Contains(svg, ">leaf-1") || strings.Count(svg, `class="edge slow"`) != 1 || strings.Count(svg, `class="cs" d=`) != 1 || strings.Count(dot, "color=") != 1 {
		t.Errorf("%s\n%s", svg, dot)
	}
}

// TestChain: a file may have as many tiers as switches.
func TestChain(t *testing.T) {
	const switches = 1000
	b := fabric.NewBuilder()
	before := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 2, NodeGUID: 1, LocalPortNum: 2}})
	for i := range switches {
		n := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 2, NodeGUID: mad.GUID(i + 2)}})
		if err := b.Link(before, 2, n, 1); err != nil {
			t.Fatal(err)
		}
		before = n
	}
	l := ladder(t, b.Build(), LadderOptions{})
	if len(l.Tiers) != switches+1 || len(l.Edges) != switches {
		t.Errorf("%d tiers, %d edges", len(l.Tiers), len(l.Edges))
	}
	if err := l.SVG(io.Discard); err != nil {
		t.Fatal(err)
	}
}

// TestOrder: groups stand above and below their neighbours, whatever they are called.
func TestOrder(t *testing.T) {
	f := simulated(t, "fattree:k=4,levels=3")
	names := map[mad.GUID]string{}
	for _, name := range []string{"leaf-1", "leaf-2"} {
		names[f.NodeByName(name)[0].GUID()] = "z" + name
	}
	firsts := func(tiers []Tier) (names []string) {
		for _, tier := range tiers {
			for _, g := range tier.Groups {
				names = append(names, g.Nodes[0].Name())
			}
		}
		return names
	}
	got := firsts(ladder(t, f.Renamed(names), LadderOptions{}).Tiers[1:])
	want := []string{"spine-3", "spine-5", "spine-7", "spine-1", "leaf-3", "leaf-5", "leaf-7", "zleaf-1", "node-0005 HCA-1", "node-0009 HCA-1", "node-0013 HCA-1", "node-0001 HCA-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	want = firsts(ladder(t, simulated(t, "fattree:k=8,levels=3"), LadderOptions{}).Tiers)
	for seed := range 5 {
		got := firsts(ladder(t, simulated(t, fmt.Sprintf("fattree:k=8,levels=3,remove_links=1,seed=%d", seed)), LadderOptions{}).Tiers)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a link is missing, seed %d: -want +got\n%s", seed, diff)
		}
	}
}

// hostile are names that would be markup, or more than text.
var hostile = []string{"<script>alert(1)</script>", `"];evil [label="`, `\N\G\`, "a\nb\r\x00c", "\x1b[31m\x07", "\u05d0\u202e\u2066x", "\xff\xfe", "]]>&amp;&#60;", strings.Repeat("é\u0301", 300), " ", "*/ -- // #"}

// dotWords are all that is written outside of strings, but for the names of groups.
var dotWords = strings.Fields("graph fabric node edge label labelloc t fontname ranksep shape box ellipse style rounded solid rank same penwidth color tooltip")

func simulated(t *testing.T, spec string) *fabric.Fabric {
	t.Helper()
	f, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func ladder(t *testing.T, f *fabric.Fabric, o LadderOptions) *Ladder {
	t.Helper()
	l, err := NewLadder(t.Context(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCliques: groups of a dragonfly are groups, damaged or not; switches of other networks in which
// no groups stand out stay alone.
func TestCliques(t *testing.T) {
	for _, test := range []struct {
		spec   string
		groups int // of switches
	}{
		{"dragonfly:a=4,p=2,h=2", 9},
		{"dragonfly:a=8,p=4,h=4", 33},
		{"dragonfly:a=4,p=2,h=2,remove_links=3,seed=2", 9},
		{"dragonfly:a=6,p=3,h=3,remove_switches=1,seed=4", 19},
		{"dragonfly:a=2,p=1,h=1", 6},
		{"torus:dims=4/4,hosts=1", 16},
		{"random:n=20,degree=4,hosts=1", 20},
		{"torus:dims=2/2/2/2,hosts=1", 16},
	} {
		l := ladder(t, simulated(t, test.spec), LadderOptions{})
		if n := len(l.Tiers[0].Groups); n != test.groups {
			t.Errorf("%s: %d groups, want %d", test.spec, n, test.groups)
		}
	}
}

// TestUneven: both boxes of a missing link are marked, and counts state the direction.
func TestUneven(t *testing.T) {
	l := ladder(t, simulated(t, "fattree:k=8,levels=3,remove_links=1,seed=2"), LadderOptions{})
	var got []string
	for _, g := range l.Groups() {
		if g.Uneven() {
			got = append(got, fmt.Sprintf("%s: %s", g.Nodes[0].Name(), strings.Join(g.LinkText(), ", ")))
		}
	}
	want := []string{"core-1: 7 to 8 down", "spine-13: 3 to 4 up, 4 down each"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	svg := checkSVG(t, l)
	if n := strings.Count(svg, `class="box odd"`); n != 2 {
		t.Errorf("%d boxes are marked, want 2", n)
	}
	edges := regexp.MustCompile(`<path class="(edge[^"]*)"`).FindAllStringSubmatch(svg, -1)
	for i, m := range edges {
		if bad := m[1] == "edge slow"; bad != (i == len(edges)-1) {
			t.Errorf("edge %d of %d is %q; want the bad one last", i+1, len(edges), m[1])
		}
	}
}
