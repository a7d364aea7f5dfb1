package audits

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/picture"
	"fabsh/mad"
)

// testMatrix returns a matrix of leaves and spines, all of them linked except the first leaf and the
// last spine. A cell's figure is ten times its row and once its column, both from 1; the
// second leaf has no values.
func testMatrix(t *testing.T, leaves, spines int, name string) *Matrix {
	t.Helper()
	b := fabric.NewBuilder()
	for i := range leaves + spines {
		kind, num := "leaf", i+1
		if i >= leaves {
			kind, num = "spine", i-leaves+1
		}
		guid := mad.GUID(i + 1)
		b.AddNode(fabric.NodeSpec{Name: fmt.Sprintf("%s%s-%d", name, kind, num), Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: uint8(max(leaves, spines)), NodeGUID: guid, PortGUID: guid}})
	}
	for l := range leaves {
		for s := range spines {
			if l == 0 && s == spines-1 {
				continue
			}
			if err := b.Link(l, s+1, leaves+s, l+1); err != nil {
				t.Fatal(err)
			}
		}
	}
	f := b.Build()
	m := &Matrix{from: "leaf", to: "spine", figure: figure{name: "x", unit: "units", scale: linear, value: func(p *fabric.Port) (float64, bool) {
		return float64(10*int(p.Node().GUID()) + p.Num()), p.Node().GUID() != 2
	}}}
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; int(n.GUID()) <= leaves {
			m.rows = append(m.rows, n)
		} else {
			m.columns = append(m.columns, n)
		}
	}
	parts, alone, err := picture.Parts(f, m.rows, m.columns)
	if err != nil {
		t.Fatal(err)
	}
	m.alone = alone
	m.fill(parts)
	return m
}

func TestDraw(t *testing.T) {
	m := testMatrix(t, 3, 4, "")
	const title = "leaf (3) x spine (4), units: 11 to 34, unknown for 4 pairs\n"
	for _, c := range []struct {
		width  int
		shaded bool
		want   string
	}{
		{0, false, title + `        spine-1  spine-2  spine-3  spine-4
leaf-1       11       12       13        -
leaf-2        ?        ?        ?        ?
leaf-3       31       32       33       34
`},
		{30, false, "leaf (3) x spine (4), units: 1\n" + `       spine-1 .. spine-4
leaf-1 ......
leaf-2 ????????
leaf-3 ##@@@@@@
. from 11  : from 14
- from 17  = from 20
+ from 23  * from 26
# from 29  @ from 32
? unknown  blank: no link
`},
	} {
		if diff := cmp.Diff(c.want, m.Draw(c.width, c.shaded)); diff != "" {
			t.Errorf("%d: -want +got\n%s", c.width, diff)
		}
	}
	cells := func(shades ...int) (s string) {
		for _, shade := range shades {
			s += strings.Repeat(string(lang.Cell(shade)), 2)
		}
		return s
	}
	want := "       spine-1 .. spine-4\nleaf-1 " + cells(0, 0, 0, 9) + "\nleaf-2 " + cells(8, 8, 8, 8) + "\nleaf-3 " + cells(6, 7, 7, 7) + "\n"
	if got := m.Draw(80, true); !strings.Contains(got, want) {
		t.Errorf("got %q, want in it %q", got, want)
	}
}

// TestDrawWidths: no line is wider than the terminal, whatever the names are, and no control
// characters of names are printed.
func TestDrawWidths(t *testing.T) {
	for _, name := range []string{"", strings.Repeat("long-", 40), "\x1b[2J\u202eevil\n", "交换机交换机交换机", "e\u0301\u0301", string(lang.Cell(3))} {
		m := testMatrix(t, 7, 33, name)
		for width := 1; width < 130; width += 1 + width/16 {
			for _, shaded := range []bool{false, true} {
				drawn := m.Draw(width, shaded)
				for line := range strings.Lines(drawn) {
					line = strings.TrimSuffix(line, "\n")
					if n := text.StringWidth(line); n > width || strings.ContainsFunc(line, unicode.IsControl) {
						t.Fatalf("%q at %d: %d columns: %q", name, width, n, line)
					}
				}
			}
		}
	}
}

// TestAlike: parts that look alike are drawn once.
func TestAlike(t *testing.T) {
	m := testMatrix(t, 3, 2, "")
	m.parts = slices.Repeat(m.parts, 5)
	if got := m.Draw(80, false); strings.Count(got, "leaf-1 ") != 2 || !strings.Contains(got, "3 x 2: leaf-1 .. leaf-3, and 4 more that look alike") {
		t.Error(got)
	}
}

// TestParts: links decide what belongs together.
func TestParts(t *testing.T) {
	m := testMatrix(t, 2, 1, "") // leaf-1 has no link
	if len(m.parts) != 1 || m.alone != 1 || len(m.parts[0].Rows) != 1 || m.known != 0 || m.unknown != 1 {
		t.Errorf("%d parts, %d alone, %d known", len(m.parts), m.alone, m.known)
	}
	if got, want := m.Draw(0, false), "leaf (2) x spine (1), units: unknown for all; 1 node without such a link\n        spine-1\nleaf-2        ?\n"; got != want {
		t.Errorf("got %q", got)
	}
}
