package datagrams

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// kindHeader is the kind of a dict of header fields to values.
var kindHeader = &lang.Kind{Convert: func(v starlark.Value) (any, error) {
	if d, ok := v.(*starlark.Dict); ok {
		return d, nil
	}
	return nil, lang.WantType(v, "dict")
}, Type: reflect.TypeFor[*starlark.Dict]()}

// elsewhere are the header fields that have their own parameters in mad_send.
var elsewhere = map[string]string{
	"mgmt_class": "mgmt_class=", "class_version": "class_version=", "r": "method=, with 0x80", "method": "method=",
	"attribute_id": "attr", "attribute_modifier": "modifier=", "component_mask": "mask=", "oui": "oui=",
}

// putHeader writes the fields of the argument header to the headers of call, which is
// otherwise complete and addressed.
func (r *madRequest) putHeader(call *engine.Call) error {
	m := call.MAD[:]
	if class, ok := r.args.MgmtClass.(starlark.Int); ok && class == starlark.MakeInt(int(mad.ClassSubnDirected)) {
		m[mad.ClassOffset] = byte(mad.ClassSubnDirected) // also to a LID
	}
	answered := r.h.IsAnswered()
	var names []string
	parts := slices.DeleteFunc(mad.Dissect(m), func(p mad.Part) bool { return p.Layout.Class != 0 })
	for _, p := range parts {
		for i := range p.Layout.Flat() {
			names = append(names, p.Layout.Flat()[i].Script)
		}
	}
	for _, item := range r.header.Items() {
		name, ok := starlark.AsString(item[0])
		i := slices.IndexFunc(parts, func(p mad.Part) bool { return p.Layout.Field(name) != nil })
		switch {
		case !ok:
			return lang.ParamError("header", "got a key of type %s, want the name of a field", item[0].Type())
		case elsewhere[name] != "":
			return lang.ParamError("header", "%s is not supported here; give %s", name, elsewhere[name])
		case name == "transaction_id" && answered:
			return lang.ParamError("header", "transaction_id cannot be set, because fabsh matches the answer by it; only requests without an answer (send, trap, trap_repress) may set it")
		case i < 0:
			names = slices.DeleteFunc(names, func(n string) bool { return elsewhere[n] != "" || n == "transaction_id" && answered })
			return lang.ParamError("header", "class %v has no header field %q%s; supported: %s", mad.Class(m[mad.ClassOffset]), name, fabric.DidYouMean(name, names), strings.Join(names, ", "))
		}
		if _, err := records.SetNamed(parts[i].Layout, parts[i].Data, name, item[1]); err != nil {
			return lang.ParamError("header", "%w", err)
		}
		call.KeepTID = call.KeepTID || name == "transaction_id"
	}
	return nil
}

// refusedBy reports whether err is the status of an answer.
func refusedBy(err error) bool {
	var e *engine.Error
	return errors.As(err, &e) && e.Status != 0
}

// rawAnswer returns the answer to call, with its whole table, as bytes. Keys are replaced
// by zeros.
func rawAnswer(call *engine.Call) starlark.Bytes {
	m := slices.Clone(call.MAD[:])
	if call.Table != nil {
		h := call.Header()
		m = append(m[:h.DataOffset()], call.Table...)
		m = append(m, make([]byte, max(0, mad.Size-len(m)))...)
	}
	mad.MaskKeys(m)
	return starlark.Bytes(m)
}
