package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/diff"
	"fabsh/mad"
)

// cabled is two leaves with a host each, and two spines; up are which leaf is at which
// port of which spine.
func cabled(t *testing.T, up ...[3]int) *fabric.Fabric {
	t.Helper()
	b := fabric.NewBuilder()
	for i, name := range []string{"leaf-1", "leaf-2", "spine-1", "spine-2", "<b>node-1", "node-2"} {
		kind, guid := mad.NodeTypeSwitch, mad.GUID(i+1)
		if i > 3 {
			kind = mad.NodeTypeCA
		}
		b.AddNode(fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: kind, NumPorts: 4, NodeGUID: guid, PortGUID: guid, LocalPortNum: 1}})
	}
	links := [][4]int{{0, 4, 4, 1}, {1, 4, 5, 1}}
	for i, u := range up {
		links = append(links, [4]int{u[0], i/2 + 1, u[1], u[2]})
	}
	for _, l := range links {
		if err := b.Link(l[0], l[1], l[2], l[3]); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

// TestChanges: links that are gone, new, exchanged or at other ports are cells of the
// nodes that they are of, and nothing else is drawn.
func TestChanges(t *testing.T) {
	was := cabled(t, [3]int{0, 2, 1}, [3]int{1, 3, 1})
	for _, test := range []struct {
		name string
		now  *fabric.Fabric
		want string
	}{
		{"nothing", cabled(t, [3]int{0, 2, 1}, [3]int{1, 3, 1}), ""},
		{"gone", cabled(t, [3]int{0, 2, 1}), "tier 1 (leaves) x tier 2: leaf-2 / spine-2 missing 1"},
		{"exchanged", cabled(t, [3]int{0, 3, 1}, [3]int{1, 2, 1}), "tier 1 (leaves) x tier 2: leaf-1 leaf-2 / spine-1 spine-2 missing 2 up 2"},
		{"at another port", cabled(t, [3]int{0, 2, 2}, [3]int{1, 3, 1}), "tier 1 (leaves) x tier 2: leaf-1 / spine-1 slow 1"},
		{"not all was read", partOf(t), "tier 1 (leaves) x tier 2: leaf-2 / spine-2 unknown 1"},
	} {
		d, err := diff.Compare(t.Context(), was, test.now)
		if err != nil {
			t.Fatal(err)
		}
		p := &Page{Report: &audit.Report{Model: test.now}, FailOn: audit.Warning, Baseline: was, Diff: d}
		var lines []string
		for _, g := range p.changes().Grids {
			line := g.Title + ":"
			for _, l := range g.Grid.RowLabels {
				line += " " + l.Text
			}
			line += " /"
			for _, l := range g.Grid.ColumnLabels {
				line += " " + l.Text
			}
			for _, l := range g.Grid.Layers {
				line += fmt.Sprintf(" %s %d", l.Class, strings.Count(l.Path, "z"))
			}
			lines = append(lines, line)
		}
		if diff := cmp.Diff(test.want, strings.Join(lines, "\n")); diff != "" {
			t.Errorf("%s: -want +got\n%s", test.name, diff)
		}
		if html := written(t, p); !strings.Contains(html, "Changes since the baseline") || strings.Contains(html, "<b>") {
			t.Errorf("%s: the page does not tell of changes, or takes names for markup", test.name)
		}
	}
}

// partOf is a fabric without a link, of which not all was read.
func partOf(t *testing.T) *fabric.Fabric {
	return cabled(t, [3]int{0, 2, 1}).With(fabric.Reading{Problems: []fabric.Problem{{Kind: fabric.ProblemTimedOut, Text: "no answer"}}})
}
