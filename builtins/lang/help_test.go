package lang

import (
	"testing"
)

// TestTypeHelp: a member whose parameters take much room does not push the words of the
// others to the right.
func TestTypeHelp(t *testing.T) {
	d := TypeDoc{Name: "thing", Doc: "It is there.", Members: []MemberDoc{
		{Name: "name", Doc: "What it is called."},
		{Name: "put(where, *, after=None, before=None)", Doc: "Puts it somewhere."},
		{Name: "take(n)", Doc: "Takes some."},
	}}
	const want = `thing

It is there.

  .name     What it is called.
  .put(where, *, after=None, before=None)
      Puts it somewhere.
  .take(n)  Takes some.
`
	if got := d.Help(); got != want {
		t.Errorf("got\n%s", got)
	}
}
