package datagrams

import (
	"encoding/hex"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// exchange sends the request to all targets and returns their answers.
func (r *madRequest) exchange() (starlark.Value, error) {
	calls, err := r.send(r.put)
	if err != nil {
		return nil, err
	}
	for i := range calls {
		err := calls[i].Err
		if r.raw && refusedBy(err) {
			err = nil // the answer is returned whatever its status
		}
		if !r.answered(i, err) {
			continue
		}
		v, err := r.answer(&calls[i])
		if rec, ok := v.(*records.Record); ok {
			v = r.targets[i].Answer(rec, modifierPort(rec.Attribute, calls[i].Header().Modifier))
		}
		if r.answered(i, err) {
			r.values[i] = v
		}
	}
	if r.attr != nil && r.h.Method == mad.MethodGet {
		topology.Observe(r.c, r.attr, r.targets, r.values)
	}
	return r.results()
}

// put writes the MAD for target i.
func (r *madRequest) put(i int, call *engine.Call) {
	call.PutMAD(r.h, nil)
	content := call.MAD[r.offset:]
	if r.before != nil {
		copy(content[:len(r.given)], r.before[i].MAD[r.offset:])
		for _, f := range r.named {
			copyField(f, content, r.given)
		}
	} else {
		copy(content, r.given)
	}
	if r.h.Class.HasOUI() {
		call.PutOUI(r.oui)
	}
	if r.h.Class == mad.ClassSubnAdm {
		mad.PutSA(call.MAD[:], r.mask, len(r.given))
	}
	if !r.reads() {
		call.Retries = -1 // a lost answer does not mean that it had no effect
	}
}

// answer returns the answer of a target: a record, or for a table a list of them; bytes
// if the layout is unknown; None if the method has no answer.
func (r *madRequest) answer(call *engine.Call) (starlark.Value, error) {
	h := call.Header()
	switch {
	case !r.h.IsAnswered():
		return starlark.None, nil
	case r.raw:
		return rawAnswer(call), nil
	}
	attr := r.attr
	if attr != nil && attr.Answer != nil {
		attr = attr.Answer
	}
	switch {
	case call.Table != nil && attr == nil:
		return starlark.Bytes(call.Table), nil
	case call.Table != nil:
		records, err := topology.SARecords(attr, call)
		return recordList(records), err
	case attr == nil:
		return starlark.Bytes(call.Data()[:h.DataSize()]), nil
	}
	rec := records.NewAnswer(attr, h.Modifier, call.MAD[r.offset:])
	if r.h.Method == mad.MethodSet {
		for _, f := range r.named {
			is, want := records.FieldValue(f, rec.Data), records.FieldValue(f, r.given)
			if same, err := starlark.Equal(is, want); err != nil || !same && !f.Key {
				return nil, fmt.Errorf("the Set of %s was answered, but %s is %v, not %v", r.attr.Name, f.Script, is, want)
			}
		}
	}
	return rec, nil
}

// bytesOf returns the bytes in an argument: a record of attr, hexadecimal digits, bytes,
// or a list of numbers.
func bytesOf(param string, v starlark.Value, attr *mad.Attribute) ([]byte, error) {
	switch v := v.(type) {
	case *records.Record:
		if attr != nil && (v.Attribute.Class != attr.Class || v.Attribute.ID != attr.ID) {
			return nil, lang.ParamError(param, "got %s, want %s", v.Type(), records.TypeName(attr))
		}
		return v.Data, nil
	case starlark.Bytes:
		return []byte(v), nil
	case starlark.String:
		digits := strings.NewReplacer(" ", "", "\n", "", ":", "").Replace(strings.TrimPrefix(string(v), "0x"))
		b, err := hex.DecodeString(digits)
		if err != nil {
			return nil, lang.ParamError(param, "%q is not hexadecimal with two digits for each byte", string(v))
		}
		return b, nil
	case starlark.Iterable:
		var b []byte
		for x := range starlark.Elements(v) {
			n, err := lang.ToInt(x)
			if err == nil && (n < 0 || n > 0xff) {
				err = fmt.Errorf("%d is not a byte, 0..255", n)
			}
			if err != nil {
				return nil, lang.ParamError(param, "element %d: %w", len(b), err)
			}
			b = append(b, byte(n))
		}
		return b, nil
	}
	return nil, lang.ParamError(param, "got %s, want a record, hexadecimal digits, bytes or a list of numbers", v.Type())
}
