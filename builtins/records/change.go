package records

import (
	"bytes"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/mad"
)

// Change is what a function has changed in an attribute.
type Change struct {
	Before []byte   // the attribute as it was read before
	Fields []string // fields to compare, by their names in scripts; nil: all
	Named  []string // fields that were written: devices do not show keys
	Link   bool     // the state of the link is what changed, so it needs no name
	Reset  bool     // the link trained again, even if it has the same state as before
	// Planned means that the change was recorded, not sent.
	Planned bool
}

var _ lang.Changed = (*Record)(nil)

// ChangedBy returns r, the attribute after a change.
func (r *Record) ChangedBy(c Change) *Record {
	if c.Before != nil {
		c.Before = New(r.Attribute, c.Before).Data
		r.change = &c
	}
	return r
}

// Changes returns a line with the fields that changed, before and after.
func (r *Record) Changes() []string {
	if r.change == nil {
		return nil
	}
	before := &Record{Attribute: r.Attribute, Data: r.change.Before}
	var parts []string
	show := func(name string, f *mad.Field) {
		was, is := lang.Fact{Value: FieldValue(f, before.Data)}, lang.Fact{Value: FieldValue(f, r.Data)}
		if f.Hex && !f.Key {
			was.Hex = (f.Bits + 3) / 4
			is.Hex = was.Hex
		}
		parts = append(parts, name+was.Cell()+" -> "+is.Cell())
	}
	if r.change.Link {
		state := r.Attribute.Field("port_physical_state")
		if sameField(state, before.Data, r.Data) && !r.change.Reset {
			word := lang.Fact{Value: FieldValue(state, r.Data)}
			parts = append(parts, word.Cell()+" (unchanged)")
		} else {
			show("", state)
		}
	}
	for i := range r.Attribute.Flat() {
		f := &r.Attribute.Flat()[i]
		switch {
		case f.Key && slices.Contains(r.change.Named, f.Script):
			parts = append(parts, f.Script+" written")
		case r.change.Fields != nil && !slices.Contains(r.change.Fields, f.Script), sameField(f, before.Data, r.Data):
		case r.change.Link && (f.Script == "port_physical_state" || f.Script == "port_state"):
		default:
			show(f.Script+" ", f)
		}
	}
	if len(parts) == 0 {
		parts = []string{"unchanged"}
	}
	return []string{ChangeLabel(r.origin, r.change.Planned) + strings.Join(parts, "; ")}
}

// ChangeLabel returns the begin of a line of a change.
func ChangeLabel(o *Origin, planned bool) string {
	if planned {
		return "planned: " + o.Label() + ": "
	}
	return o.Label() + ": "
}

// sameField reports whether a field has the same value in a and b.
func sameField(f *mad.Field, a, b []byte) bool {
	if f.Bits > 64 {
		first := f.Offset / 8
		end := fieldEnd(f)
		return end > min(len(a), len(b)) || bytes.Equal(a[first:end], b[first:end])
	}
	for i := range f.Count {
		if f.UintAt(a, i) != f.UintAt(b, i) {
			return false
		}
	}
	return true
}

// Label returns the target in a few words: leaf-1/3, LID 5 port 3.
func (o *Origin) Label() string {
	if o == nil {
		return "record"
	}
	label, sep := "", "/"
	switch of := o.Of.(type) {
	case lang.Named:
		label = of.Name()
	case starlark.String:
		label = string(of)
	case lang.Textual:
		label, sep = "route "+of.Text(), " port "
	}
	if label == "" {
		label, sep = "LID "+o.LID.String(), " port "
	}
	if o.Port != starlark.None {
		label += sep + o.Port.String()
	}
	return lang.OneLine(label)
}
