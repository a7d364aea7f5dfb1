package builtins

import (
	"bytes"
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/mad"
)

// unrouted is the entry of a LID that the switch drops (IBA 14.2.5.10).
const unrouted = 255

// lft is the value `lft`: the linear forwarding table of a switch. It never
// changes.
type lft struct {
	entries []byte // by LID, 0 to LinearFDBTop
}

var (
	_ starlark.Mapping    = (*lft)(nil)
	_ starlark.Sequence   = (*lft)(nil)
	_ starlark.Container  = (*lft)(nil)
	_ starlark.HasAttrs   = (*lft)(nil)
	_ starlark.Comparable = (*lft)(nil)
	_ factual             = (*lft)(nil)
	_ documented          = (*lft)(nil)
)

var lftType *valueType[*lft]

func init() {
	lftType = newType("lft", "A linear forwarding table: lft[lid] is the port that packets to lid leave through, None if they are dropped; lid in lft tells whether there is one. It iterates over the entries from LID 0 on.",
		member[*lft]{name: "top", doc: "LinearFDBTop: the highest LID that the switch looks up", get: func(t *lft) starlark.Value { return starlark.MakeInt(len(t.entries) - 1) }},
		member[*lft]{name: "lids", doc: "the LIDs that have a port, in order", get: func(t *lft) starlark.Value {
			var lids starlark.Tuple
			for lid, p := range t.entries {
				if p != unrouted {
					lids = append(lids, starlark.MakeInt(lid))
				}
			}
			return lids
		}},
	)
}

func (t *lft) String() string {
	return fmt.Sprintf("lft(top=%d, %s)", len(t.entries)-1, count(len(t.entries)-bytes.Count(t.entries, []byte{unrouted}), "route"))
}
func (t *lft) Type() string          { return "lft" }
func (t *lft) Freeze()               {}
func (t *lft) Truth() starlark.Bool  { return true }
func (t *lft) Hash() (uint32, error) { return hashBytes(t.entries), nil }
func (t *lft) Len() int              { return len(t.entries) }
func (t *lft) AttrNames() []string   { return lftType.names }
func (t *lft) typeDoc() typeDoc      { return lftType.typeDoc() }
func (t *lft) schema() string        { return "lft/1" }

func (t *lft) Attr(name string) (starlark.Value, error) { return lftType.attr(t, name) }

func (t *lft) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	return compareEqual(op, t, bytes.Equal(t.entries, y.(*lft).entries))
}

// Get is lft[lid]. A LID above the top is dropped, too.
func (t *lft) Get(key starlark.Value) (starlark.Value, bool, error) {
	lid, err := toInt(key)
	if err != nil {
		return nil, false, fmt.Errorf("a table is indexed by LID: %w", err)
	}
	if lid < 0 || lid > int(mad.MaxUnicastLID) {
		return nil, false, fmt.Errorf("LID %d is out of range, 0..%d", lid, mad.MaxUnicastLID)
	}
	if lid >= len(t.entries) {
		return starlark.None, true, nil
	}
	return entryValue(t.entries[lid]), true, nil
}

// Has is lid in lft: it has a port.
func (t *lft) Has(key starlark.Value) (bool, error) {
	port, _, err := t.Get(key)
	return err == nil && port != starlark.None, err
}

func entryValue(port byte) starlark.Value {
	if port == unrouted {
		return starlark.None
	}
	return starlark.MakeInt(int(port))
}

func (t *lft) Iterate() starlark.Iterator { return &lftIterator{entries: t.entries} }

type lftIterator struct{ entries []byte }

func (it *lftIterator) Next(v *starlark.Value) bool {
	if len(it.entries) == 0 {
		return false
	}
	*v = entryValue(it.entries[0])
	it.entries = it.entries[1:]
	return true
}

func (it *lftIterator) Done() {}

// facts are the top and, by LID, the ports of those that have one.
func (t *lft) facts() []fact {
	ports := starlark.NewDict(len(t.entries))
	for lid, p := range t.entries {
		if p != unrouted {
			ports.SetKey(starlark.MakeInt(lid), starlark.MakeInt(int(p)))
		}
	}
	return []fact{{name: "top", value: starlark.MakeInt(len(t.entries) - 1)}, {name: "ports", value: ports}}
}

// display lays the entries out, 16 a line.
func (t *lft) display() string {
	const perLine = 16
	var b strings.Builder
	fmt.Fprintf(&b, "%5s ", "lid")
	for i := range perLine {
		fmt.Fprintf(&b, " %3s", fmt.Sprintf("+%d", i))
	}
	b.WriteByte('\n')
	for first := 0; first < len(t.entries); first += perLine {
		line := t.entries[first:min(first+perLine, len(t.entries))]
		if bytes.Count(line, []byte{unrouted}) == len(line) {
			continue
		}
		fmt.Fprintf(&b, "%5d ", first)
		for _, p := range line {
			if p == unrouted {
				b.WriteString("   -")
			} else {
				fmt.Fprintf(&b, " %3d", p)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
