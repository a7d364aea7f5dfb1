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
... not shown: guid (--columns NAMES chooses)
`,
		30: `
name               lid  state
leaf-1/1             1  active
LID 999            error: it
  is asked in vain and again
  in vain
node-0001 HCA-1/1   13  down
... not shown: comment and 1
  more (--columns NAMES
  chooses)
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
  shown: lid
  and 3 more
  (--columns
  NAMES
  chooses)
`,
	} {
		got := "\n" + renderText(starlark.NewList(list), page{width: width})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d (-want +got):\n%s", width, d)
		}
	}
}

// TestImportantColumns: a table that is too wide keeps the columns that its type declares as
// important, whatever their place, cuts a text that is one, and drops minor ones first.
func TestImportantColumns(t *testing.T) {
	finding := &ResultType{Name: "fault", Important: []string{"name", "message"}, Members: []ResultMember{{Name: "severity"}, {Name: "check"}, {Name: "name"}, {Name: "message"}, {Name: "version"}}}
	text := func(s string) starlark.Value { return starlark.String(s) }
	list := starlark.NewList([]starlark.Value{
		NewResult(finding, text("error"), text("ctr.ber.with.a.long.name"), text("leaf-1/1"), text("200 symbol errors in 10 s on both ends"), starlark.MakeInt(1)),
	})
	for width, want := range map[int]string{
		80: `
severity  name      message                                 version
error     leaf-1/1  200 symbol errors in 10 s on both ends        1
... not shown: check (_.blocks() shows all)
`,
		44: `
severity  name      message
error     leaf-1/1  200 symbol errors in ...
... not shown: check and 1 more (_.blocks()
  shows all)
`,
	} {
		if d := cmp.Diff(want, "\n"+renderText(list, page{width, "_.blocks() shows all"})); d != "" {
			t.Errorf("%d (-want +got):\n%s", width, d)
		}
	}
}

// TestLongLists: a table that is too wide shows a long list by its length and its ends; blocks()
// shows all of it.
func TestLongLists(t *testing.T) {
	hops := starlark.Tuple{starlark.MakeInt(101), starlark.MakeInt(102), starlark.MakeInt(103), starlark.MakeInt(104), starlark.MakeInt(105), starlark.MakeInt(106), starlark.MakeInt(107)}
	list := starlark.NewList([]starlark.Value{DictOf("cost", starlark.MakeInt(5), "lids", hops)})
	for width, want := range map[int]string{
		0:  "cost  lids\n   5  101 102 103 104 105 106 107\n",
		33: "cost  lids\n   5  101 102 103 104 105 106 107\n",
		32: "cost  lids\n   5  7 lids: 101 ... 107\n",
	} {
		if got := renderText(list, page{width: width}); got != want {
			t.Errorf("%d: got\n%s", width, got)
		}
	}
	rows, _, _ := factRows(Elements(list))
	if got, want := blocksText(rows), "cost  5\nlids  101 102 103 104 105 106 107\n"; got != want {
		t.Errorf("blocks: got\n%s", got)
	}
}
