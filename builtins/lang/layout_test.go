package lang

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"
)

// rowsOf are dicts of the columns name, lid, guid and what follows.
func rowsOf(rows ...[]any) []starlark.Value {
	names := []string{"name", "guid", "lid", "state", "comment"}
	var list []starlark.Value
	for _, row := range rows {
		if err, ok := row[0].(error); ok {
			list = append(list, &Failure{Err: err, Target: row[1].(string)})
			continue
		}
		d := new(starlark.Dict)
		for i, v := range row {
			switch v := v.(type) {
			case string:
				d.SetKey(starlark.String(names[i]), starlark.String(v))
			case int:
				d.SetKey(starlark.String(names[i]), starlark.MakeInt(v))
			}
		}
		list = append(list, d)
	}
	return list
}

// TestNarrowTables: columns are left out from the right, long identifiers first,
// and no word is broken.
func TestNarrowTables(t *testing.T) {
	list := rowsOf(
		[]any{"leaf-1/1", "0x0002c90300100000", 1, "active", "a longer comment"},
		[]any{errors.New("it is asked in vain and again in vain"), "LID 999"},
		[]any{"node-0001 HCA-1/1", "0x0002c90310000000", 13, "down", ""},
	)
	for width, want := range map[int]string{
		0: `
name               guid                lid  state   comment
leaf-1/1           0x0002c90300100000    1  active  a longer comment
LID 999            error: it is asked in vain and again in vain
node-0001 HCA-1/1  0x0002c90310000000   13  down
`,
		80: `
name               lid  state   comment           guid
leaf-1/1             1  active  a longer comment  0x0002c90300100000
LID 999            error: it is asked in vain and again in vain
node-0001 HCA-1/1   13  down                      0x0002c90310000000
`,
		50: `
name               lid  state   comment
leaf-1/1             1  active  a longer comment
LID 999            error: it is asked in vain and
                   again in vain
node-0001 HCA-1/1   13  down
... not shown: guid (a wider terminal has more, -o
  json all)
`,
		30: `
name               lid  state
leaf-1/1             1  active
LID 999            error: it
  is asked in vain and again
  in vain
node-0001 HCA-1/1   13  down
... not shown: comment, guid
  (a wider terminal has more,
  -o json all)
`,
		12: `
name
leaf-1/1
LID 999
  error: it
  is asked
  in vain
  and again
  in vain
node-0001...
... not
  shown:
  lid,
  state,
  comment,
  guid (a
  wider
  terminal
  has more,
  -o json
  all)
`,
	} {
		got := "\n" + renderText(starlark.NewList(list), width)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d (-want +got):\n%s", width, d)
		}
	}
}

func TestFit(t *testing.T) {
	for _, test := range []struct {
		width    int
		in, want string
	}{
		{0, "as it is, however long\n", "as it is, however long\n"},
		{10, "short\n", "short\n"},
		{10, "one two three four\n", "one two\n  three\n  four\n"},
		{10, "supercalifragilistic word\n", "supercalifragilistic\n  word\n"},
		{10, "", ""},
		{20, "name  value with words\n", "name  value with\n      words\n"},
		{20, "a very long name  and value\n", "a very long name\n  and value\n"},
		{14, "  indented text goes on\n", "  indented\n    text goes\n    on\n"},
		{8, "\u4e2d\u6587 \u4e2d\u6587 \u4e2d\u6587\n", "\u4e2d\u6587\n  \u4e2d\u6587\n  \u4e2d\u6587\n"},
		{12, "no end of line", "no end of\n  line"},
		{1, "a b c", "a\nb\nc"},
	} {
		if got := Fit(test.in, test.width); got != test.want {
			t.Errorf("%d %q: got %q, want %q", test.width, test.in, got, test.want)
		}
	}
	// No text hangs it, and no word is lost.
	for width := range 12 {
		for _, in := range []string{strings.Repeat(" ", 30) + "x", "x" + strings.Repeat(" ", 30) + "y z", "a  b  c  d  e f g h i j k l m"} {
			if got := Fit(in, width); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(in), " ") {
				t.Errorf("%d %q: %q", width, in, got)
			}
		}
	}
}

// TestReflow: prose that is wrapped fills the width, and what is no prose keeps its lines.
func TestReflow(t *testing.T) {
	const text = `An audit is a .star file that defines audit(fabric, *, ...), or one that is
shipped, by name. Without names the standard set runs.

Usage:
  fabsh audit [NAME] [flags]

link.width  narrower than both ends support (error). False positives: a cable
            that carries no more.
link.flap   the link was up and not active.
`
	const want = `An audit is a .star file that defines
audit(fabric, *, ...), or one that is
shipped, by name. Without names the
standard set runs.

Usage:
  fabsh audit [NAME] [flags]

link.width  narrower than both ends
            support (error). False
            positives: a cable that
            carries no more.
link.flap   the link was up and not
            active.
`
	if diff := cmp.Diff(want, Reflow(text, 37)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := Reflow(text, 0); got != text {
		t.Errorf("without a width: %q", got)
	}
}
