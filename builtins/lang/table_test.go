package lang

import (
	"errors"
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
