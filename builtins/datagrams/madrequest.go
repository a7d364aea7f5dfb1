package datagrams

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// madRequest is a request of any class, to some targets.
type madRequest struct {
	*targetRequest
	args   *madArgs
	h      mad.Header
	attr   *mad.Attribute // nil: the layout is unknown
	layout *mad.Attribute // of the request: attr, or a variant of it
	offset int            // of the attribute in the MAD
	oui    uint32
	mask   uint64         // of components
	given  []byte         // data, and the named fields
	named  []*mad.Field   // the named fields
	before []engine.Call  // the reads of the other fields
	header *starlark.Dict // of header fields; nil: the headers are regular
	raw    bool           // return the answer as bytes
}

// newMADRequest returns the request of the call, and checks that it may be sent.
func newMADRequest(c *lang.Call, m mad.Method, a *madArgs, header *starlark.Dict) (*madRequest, error) {
	class, version, err := a.class()
	if err != nil {
		return nil, err
	}
	r := &madRequest{targetRequest: &targetRequest{c: c, class: class}, args: a, header: header, h: mad.Header{Class: class, ClassVersion: version, Method: m}}
	if header != nil {
		r.targetRequest.addressed = r.putHeader
	}
	for _, step := range []func() error{r.about, r.vendor, r.allowed, r.content, r.address} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// about determines the attribute.
func (r *madRequest) about() error {
	class := r.h.Class
	switch v := r.args.Attr.(type) {
	case starlark.Int:
		n, ok := v.Uint64()
		if !ok || n > 0xffff {
			return lang.ParamError("attr", "%s is out of range, 0..0xffff", v)
		}
		r.h.Attribute = mad.AttributeID(n)
		r.attr = mad.LookupVersion(class, r.h.ClassVersion, r.h.Attribute)
		if r.attr == nil && class == mad.ClassSubnAdm {
			r.attr = mad.Lookup(class, r.h.Attribute) // in the other version
		}
	case starlark.String:
		if r.attr = mad.LookupName(class, string(v)); r.attr == nil {
			return lang.ParamError("attr", "class %v has no attribute %s%s", class, v, fabric.DidYouMean(string(v), AttributeNames(class)))
		}
		r.h.Attribute = r.attr.ID
		if a := mad.LookupVersion(class, r.h.ClassVersion, r.attr.ID); a != nil {
			r.attr = a // its layout may differ between versions
		}
	default:
		return lang.ParamError("attr", "got %s, want the name or the number of an attribute", v.Type())
	}
	return nil
}

// vendor determines the vendor of the class.
func (r *madRequest) vendor() error {
	switch {
	case !r.h.Class.HasOUI() && r.args.OUI != nil:
		return lang.ParamError("oui", "not supported for MADs of class %v", r.h.Class)
	case !r.h.Class.HasOUI():
	case r.args.OUI != nil:
		n := *r.args.OUI
		if n < 0 || n > 0xffffff {
			return lang.ParamError("oui", "got %d, want 0..0xffffff", n)
		}
		if r.oui = uint32(n); r.attr != nil && r.attr.OUI != r.oui {
			r.attr = nil // of another vendor
		}
	case r.attr != nil:
		r.oui = r.attr.OUI
	default:
		return lang.ParamError("oui", "missing; class %v is different for each vendor; give it as in oui=0x001405", r.h.Class)
	}
	r.offset = r.h.DataOffset()
	if r.attr != nil {
		r.offset = r.attr.OffsetIn(r.h.ClassVersion)
	}
	return nil
}

// allowed checks that the request exists and may be sent.
func (r *madRequest) allowed() error {
	h := &r.h
	switch {
	case r.header != nil:
	case h.Method.IsResponse():
		return lang.ParamError("method", "%#02x is a response, not a request; header={} sends it nevertheless", uint8(h.Method))
	default:
		if err := mad.Allowed(h.Class, h.ClassVersion, h.Method, h.Attribute); err != nil {
			return lang.Errorf("%w", err)
		}
	}
	if r.reads() {
		return nil
	}
	if err := topology.MayNotPlan(r.c); err != nil {
		return err
	}
	attr := r.attr
	if attr == nil || h.Method == mad.MethodGet || r.header != nil {
		// The request is not known to be harmless; in subnet management, a subnet
		// manager may own the attribute.
		attr = &mad.Attribute{Name: fmt.Sprintf("attribute %#04x", uint16(h.Attribute)), SMOwned: h.Class.Family() == mad.ClassSubn && (h.Method != mad.MethodGet || r.header != nil)}
	}
	_, err := topology.MayChange(r.c, attr)
	return err
}

// reads reports whether the request is known to change nothing.
func (r *madRequest) reads() bool {
	return r.header == nil && mad.EffectOf(r.h.Class, r.h.ClassVersion, r.h.Method, r.h.Attribute) != mad.EffectFabric
}

// content processes the modifier, the data and the fields of the call.
func (r *madRequest) content() (err error) {
	if r.args.Modifier != nil {
		if r.h.Modifier, err = modifierOf(*r.args.Modifier); err != nil {
			return err
		}
	}
	room := mad.Size - r.offset
	if r.h.Class.Family() == mad.ClassSubn {
		room = r.h.Class.DataSize()
	}
	if r.attr != nil {
		room = min(room, (r.attr.Size+7)&^7)
	}
	r.given = make([]byte, room)
	if r.args.Data != nil {
		data, err := bytesOf("data", r.args.Data, r.attr)
		if err != nil {
			return err
		}
		if len(data) > room {
			return lang.ParamError("data", "%s are too many; the maximum is %d", plural.Count(len(data), "byte", "bytes"), room)
		}
		copy(r.given, data)
	}
	// The fields may depend on the modifier and on other fields.
	fields := r.args.Fields
	for _, take := range []func(string, starlark.Value) (bool, error){r.modifierPart, r.field, r.field, r.noField} {
		fields = slices.DeleteFunc(slices.Clone(fields), func(kv starlark.Tuple) (taken bool) {
			if err == nil {
				taken, err = take(string(kv[0].(starlark.String)), kv[1])
			}
			return taken
		})
		if err != nil {
			return lang.Errorf("%w", err)
		}
		if r.attr != nil {
			r.layout = r.attr.Resolve(r.given, r.h.Modifier)
		}
	}
	if r.args.Mask != nil {
		if r.h.Class != mad.ClassSubnAdm {
			return lang.ParamError("mask", "not supported for MADs of class %v", r.h.Class)
		}
		r.mask = uint64(*r.args.Mask)
	}
	return nil
}

// modifierPart processes a part of the modifier, unless it is the name of a field.
func (r *madRequest) modifierPart(name string, v starlark.Value) (taken bool, err error) {
	if r.attr == nil || r.attr.Field(name) != nil {
		return false, nil
	}
	i := slices.IndexFunc(r.attr.Modifier, func(p mad.ModifierPart) bool { return p.Name == name })
	if i < 0 {
		return false, nil
	}
	if r.args.Modifier != nil {
		return false, fmt.Errorf("modifier is the whole attribute modifier; give it or %s, not both", name)
	}
	part := r.attr.Modifier[i]
	n, err := lang.ToInt(v)
	if most := 1<<part.Bits - 1; err == nil && (n < 0 || n > most) {
		err = fmt.Errorf("%d is out of range, 0..%d", n, most)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	r.h.Modifier |= uint32(n) << part.Shift
	return true, nil
}

// field processes a field of the attribute, if it has one of that name.
func (r *madRequest) field(name string, v starlark.Value) (taken bool, err error) {
	if r.layout == nil || r.layout.Field(name) == nil && records.CodeField(r.layout, name) == nil {
		return false, nil
	}
	f, err := records.SetNamed(r.layout, r.given, name, v)
	if err != nil {
		return false, err
	}
	r.named = append(r.named, f)
	if r.h.Class == mad.ClassSubnAdm {
		r.mask |= f.Mask()
	}
	return true, nil
}

// noField returns the error of an unknown field.
func (r *madRequest) noField(name string, v starlark.Value) (taken bool, err error) {
	if r.attr == nil {
		return false, fmt.Errorf("%s: the layout of the attribute is unknown; give data", name)
	}
	_, err = records.SetNamed(r.layout, r.given, name, v)
	return false, err
}

// address resolves the targets. The two classes of subnet management differ in their
// addressing; the class that the call names is used.
func (r *madRequest) address() error {
	if err := r.resolve(r.args.Target); err != nil {
		return err
	}
	if class, ok := r.args.MgmtClass.(starlark.Int); ok && r.h.Class.Family() == mad.ClassSubn {
		directed := class == starlark.MakeInt(int(mad.ClassSubnDirected))
		for i := range r.targets {
			t := &r.targets[i]
			switch {
			case directed && t.Route == nil && r.header != nil: // putHeader sets the class
			case directed && t.Route == nil:
				return lang.ParamError("target", "class 0x81 requires a directed route, and none is known to %s; give the target as dr(...), or use class 0x01", t.Label)
			case !directed && t.LID == 0:
				return lang.ParamError("target", "class 0x01 requires a LID, and that of %s is unknown; give the target as a LID, or use class 0x81", t.Label)
			case !directed:
				t.Route = nil
			}
		}
	}
	return nil
}

// readFirst reads the fields that a Set does not change.
func (r *madRequest) readFirst() error {
	c := r.c
	switch {
	case r.attr == nil:
		return lang.Errorf("the layout of the attribute is unknown; give data")
	case setterOf(r.h.Class) != c.Name:
		return lang.Errorf("use %s, which implements the Set of %s; or give data", setterOf(r.h.Class), r.attr.Name)
	case len(r.layout.Flat()) == 0:
		return nil // a Set without fields, for example to test a device
	case len(r.named) == 0:
		return lang.Errorf("nothing to change; name fields, %s(%q, target, field=value), or give data", c.Name, r.attr.Name)
	case !slices.Contains(r.attr.Methods, mad.MethodGet):
		return nil
	}
	for i := range r.layout.Flat() {
		// A device may hide a key from readers.
		if f := &r.layout.Flat()[i]; f.Key && !slices.Contains(r.named, r.layout.Field(f.Script)) {
			return lang.Errorf("missing %s: devices may hide it from readers, and a Set would then write a wrong key; name it", f.Script)
		}
	}
	get := *r
	get.h.Method, get.given = mad.MethodGet, nil
	calls, err := get.send(get.put)
	for i := range calls {
		r.answered(i, calls[i].Err)
	}
	r.before = calls
	return err
}
