package datagrams

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// GroupMAD is the heading of requests of a class in the overview.
const GroupMAD = "Management datagrams"

// madParams are the parameters of madArgs without fields.
var madParams = []lang.Param{
	{Name: "attr", Kind: records.KindAttribute, Doc: `name of an attribute, "CongestionInfo", or its number`},
	{Name: "target", Kind: topology.KindTarget, Doc: "one target or an iterable of them"},
	{Name: "mgmt_class", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: `management class, as a number or a word: "cc", "bm", "dev_mgt", "com_mgt", "snmp", "perf", "subn", "subn_adm"; not needed with a name that only one class has`},
	{Name: "modifier", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "the attribute modifier; its parts can also be given by name, like fields"},
	{Name: "data", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "the attribute to send: a record, hexadecimal digits, bytes, or a list of numbers"},
	{Name: "class_version", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "version of the class (default: the current version)"},
	{Name: "oui", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "the vendor, in classes 0x30 to 0x4f"},
	{Name: "mask", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "component mask of subnet administration (default: the components that are given)"},
}

// madFields is the parameter **fields.
var madFields = lang.Param{Name: "**fields", Kind: records.KindFields, Doc: "parts of the modifier, fields of the attribute and their values, as words or numbers"}

// madRaw is the parameter raw.
var madRaw = lang.Param{Name: "raw", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "return the whole answer as bytes, with headers and reserved bits, whatever its status; keys are replaced by zeros"}

// madArgs are the arguments that mad_get, mad_set and mad_send share.
type madArgs struct {
	Attr, Target, MgmtClass starlark.Value
	Modifier                *int
	Data                    starlark.Value
	ClassVersion, OUI, Mask *int
	Fields                  []starlark.Tuple
}

// madGetArgs are the arguments of mad_get.
type madGetArgs struct {
	madArgs
	Raw bool
}

// MADGet is mad_get, which reads records of an attribute of any class.
var MADGet = lang.Builtin{
	Name:    "mad_get",
	Returns: "record of attr",
	Group:   GroupMAD,
	Params:  append(slices.Clone(madParams), madRaw, madFields),
	Doc: `Reads an attribute of any management class.
It is for the classes without their own functions, such as congestion control, baseboard and device management and vendor classes, and for attributes known only by number. It returns a record, or bytes if the layout is unknown. Requests that are not known to be read-only, which includes all vendor classes, require --write.`,
	Example: `
> sw = discover().switches[0]
> mad_get("CongestionInfo", sw).control_table_cap
2
> mad_get("ClassPortInfo", sw, mgmt_class="bm").class_version
1
> mad_get(0x0011, sw, mgmt_class=0x21) == mad_get("CongestionInfo", sw)
True
> mad_get("CongestionInfo", sw, raw=True)[:4]
b"\x01!\x02\x81"
`,
	Run: lang.Do(func(c *lang.Call, a *madGetArgs) (starlark.Value, error) {
		r, err := newMADRequest(c, mad.MethodGet, &a.madArgs, nil)
		if err != nil {
			return nil, err
		}
		r.raw = a.Raw
		return r.exchange()
	}),
}

// MADSet is mad_set, which sets an attribute of any class.
var MADSet = lang.Builtin{
	Name:    "mad_set",
	Returns: "record of attr",
	Group:   GroupMAD,
	Params:  append(slices.Clone(madParams), madFields),
	Doc: `Writes an attribute of any management class.
It sends data, or without data the attribute that it has just read, with the named fields changed. It returns the response. The request is sent once: if it is not answered, it may nevertheless have taken effect. It requires --write, and --override-sm if a subnet manager owns the attribute; a refusal ends the script with status 2.`,
	Example: `
> sw = discover().switches[0]
> mad_set("SwitchCongestionSetting", sw, control_map=0x10, marking_rate=5).marking_rate
5
`,
	Run: lang.Do(func(c *lang.Call, a *madArgs) (starlark.Value, error) {
		r, err := newMADRequest(c, mad.MethodSet, a, nil)
		if err != nil {
			return nil, err
		}
		if a.Data == nil {
			if err := r.readFirst(); err != nil {
				return nil, err
			}
		}
		return r.exchange()
	}),
}

// madSendArgs are the arguments of mad_send.
type madSendArgs struct {
	madArgs
	Method starlark.Value
	Header *starlark.Dict
	Raw    bool
}

// MADSend is mad_send, which sends a request with any method.
var MADSend = lang.Builtin{
	Name:  "mad_send",
	Group: GroupMAD,
	Params: slices.Concat(madParams[:2], []lang.Param{
		{Name: "method", Kind: lang.KindAny, Default: `"send"`, Keyword: true, Doc: `the method, as a number or a word of its class: "send", "trap", "trap_repress", "get_table"`},
	}, madParams[2:], []lang.Param{
		{Name: "header", Kind: kindHeader, Default: "None", Keyword: true, Doc: `fields of the headers and their values, {"hop_pointer": 2, "d": 1}, by the names that fabsh decode shows; the request is then not checked`},
		madRaw, madFields,
	}),
	Doc: `Sends a request with any method of any management class.
Send, Trap and TrapRepress have no answer, so the result is None; other methods return the same as mad_get, table methods a list. Requests that are not known to be read-only require --write and are sent once.
With header the call determines the whole datagram, even a malformed one: any method, version and combination, to test an agent. This always requires --write.`,
	Example: `
> len(mad_send("NodeRecord", 13, method="get_table", node_type="switch"))
12
> mad_send("NodeInfo", dr("0,1"), method="get", header={"status": 0x1c}).num_ports
8
> catch(mad_send, "NodeInfo", dr("0,1"), method="get", header={"base_version": 2}).status
"timed out"
`,
	Run: lang.Do(func(c *lang.Call, a *madSendArgs) (starlark.Value, error) {
		class, version, err := a.class()
		if err != nil {
			return nil, err
		}
		m, err := methodOf(a.Method, class, version)
		if err != nil {
			return nil, err
		}
		r, err := newMADRequest(c, m, &a.madArgs, a.Header)
		if err != nil {
			return nil, err
		}
		r.raw = a.Raw
		return r.exchange()
	}),
}

// methodOf returns the argument method; Send if it is nil, that is, not given.
func methodOf(method starlark.Value, class mad.Class, version uint8) (mad.Method, error) {
	switch v := method.(type) {
	case nil:
		return mad.MethodSend, nil
	case starlark.Int:
		n, ok := v.Uint64()
		if !ok || n > 0xff {
			return 0, lang.ParamError("method", "%s is out of range, 0..0xff", v)
		}
		return mad.Method(n), nil
	case starlark.String:
		var words []string
		for _, info := range mad.Methods(class, version) {
			word := mad.SnakeName(info.Name)
			if word == string(v) {
				return info.Method, nil
			}
			words = append(words, word)
		}
		return 0, lang.ParamError("method", "class %v version %d: unknown method %s%s; supported: %s", class, version, v, fabric.DidYouMean(string(v), words), strings.Join(words, ", "))
	}
	return 0, lang.ParamError("method", "%w", lang.WantType(method, "a word or a number"))
}

// class returns the class of the call and its version.
func (a *madArgs) class() (class mad.Class, version uint8, err error) {
	switch v := a.MgmtClass.(type) {
	case nil: // not given
		attr, err := onlyAttribute(a.Attr)
		if err != nil {
			return 0, 0, err
		}
		class = attr.Class
	case starlark.Int:
		n, ok := v.Uint64()
		if !ok || n > 0xff {
			return 0, 0, lang.ParamError("mgmt_class", "%s is out of range, 0..0xff", v)
		}
		class = mad.Class(n)
	case starlark.String:
		var words []string
		for _, info := range mad.Classes() {
			if info.First != info.Last {
				continue
			}
			word := classWord(info.First)
			if word == string(v) {
				class = info.First
			}
			words = append(words, word)
		}
		if class == 0 {
			return 0, 0, lang.ParamError("mgmt_class", "unknown class %s%s; want a number, or one of %s", v, fabric.DidYouMean(string(v), words), strings.Join(words, ", "))
		}
	default:
		return 0, 0, lang.ParamError("mgmt_class", "%w", lang.WantType(v, "a word or a number"))
	}
	version = class.Version()
	if a.ClassVersion != nil {
		n := *a.ClassVersion
		if n < 0 || n > 0xff {
			return 0, 0, lang.ParamError("class_version", "got %d, want 0..255", n)
		}
		version = uint8(n)
	}
	return class, version, nil
}

// onlyAttribute returns the attribute with the name in the argument attr, which must be
// unique: among all classes, or among those without their own functions.
func onlyAttribute(attr starlark.Value) (*mad.Attribute, error) {
	name, ok := starlark.AsString(attr)
	if !ok {
		return nil, lang.ParamError("mgmt_class", "missing; attribute %v is different in each class", attr)
	}
	var found []*mad.Attribute
	for _, a := range mad.Attributes() {
		other := func(b *mad.Attribute) bool { return b.Class == a.Class }
		if (a.Name == name || slices.Contains(a.Aliases, name)) && !slices.ContainsFunc(found, other) {
			found = append(found, a)
		}
	}
	own := func(a *mad.Attribute) bool { return getterOf(a.Class) != "mad_get" }
	if others := slices.DeleteFunc(slices.Clone(found), own); len(others) == 1 {
		found = others
	}
	switch len(found) {
	case 0:
		return nil, lang.ParamError("attr", "unknown attribute %q%s", name, fabric.DidYouMean(name, AllAttributeNames()))
	case 1:
		return found[0], nil
	}
	var words []string
	for _, a := range found {
		words = append(words, classWord(a.Class))
	}
	return nil, lang.ParamError("mgmt_class", "%s is an attribute of several classes; give one, mgmt_class=%q (%s)", name, words[0], strings.Join(words, ", "))
}

// classWord returns the name of a class in scripts: a word, or its number.
func classWord(c mad.Class) string {
	if info, ok := c.Info(); ok && info.First == info.Last {
		return mad.SnakeName(info.Name)
	}
	return fmt.Sprintf("%#02x", uint8(c))
}

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
	for _, step := range []func() error{r.findAttribute, r.vendor, r.checkAllowed, r.content, r.address} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// findAttribute determines the attribute.
func (r *madRequest) findAttribute() error {
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

// checkAllowed checks that the request exists and may be sent.
func (r *madRequest) checkAllowed() error {
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
	return r.header == nil && (r.attr != nil || !r.h.Class.HasOUI()) && mad.EffectOf(r.h.Class, r.h.ClassVersion, r.h.Method, r.h.Attribute) != mad.EffectFabric
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
	for _, take := range []func(string, starlark.Value) (bool, error){r.modifierPart, r.fieldIfValid, r.field, r.noField} {
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

// fieldIfValid is field for all that fit the layout before the others are known.
func (r *madRequest) fieldIfValid(name string, v starlark.Value) (taken bool, err error) {
	taken, err = r.field(name, v)
	return taken && err == nil, nil
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

// exchange sends the request to all targets and returns their answers.
func (r *madRequest) exchange() (starlark.Value, error) {
	calls, err := r.send(r.put)
	if err != nil {
		return nil, err
	}
	for i := range calls {
		err := calls[i].Err
		if r.raw && isStatusError(err) {
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
		switch {
		case attr == nil:
		case v.Attribute.Name != attr.Name || v.Attribute.ID != attr.ID:
			return nil, lang.ParamError(param, "got %s of class %v, want %s of class %v", v.Type(), v.Attribute.Class.Family(), records.TypeName(attr), attr.Class.Family())
		case v.Attribute.Class != attr.Class: // a notice, which in other classes has no issuer_gid
			return v.Data[:min(len(v.Data), attr.Size)], nil
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

// kindHeader is the kind of a dict of header fields to values.
var kindHeader = &lang.Kind{Convert: func(v starlark.Value) (any, error) {
	if d, ok := v.(*starlark.Dict); ok {
		return d, nil
	}
	return nil, lang.WantType(v, "dict")
}, Type: reflect.TypeFor[*starlark.Dict]()}

// headerParams are the header fields that have their own parameters in mad_send.
var headerParams = map[string]string{
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
		case headerParams[name] != "":
			return lang.ParamError("header", "%s is not supported here; give %s", name, headerParams[name])
		case name == "transaction_id" && answered:
			return lang.ParamError("header", "transaction_id cannot be set, because fabsh matches the answer by it; only requests without an answer (send, trap, trap_repress) may set it")
		case i < 0:
			names = slices.DeleteFunc(names, func(n string) bool { return headerParams[n] != "" || n == "transaction_id" && answered })
			return lang.ParamError("header", "class %v has no header field %q%s; supported: %s", mad.Class(m[mad.ClassOffset]), name, fabric.DidYouMean(name, names), strings.Join(names, ", "))
		}
		if _, err := records.SetNamed(parts[i].Layout, parts[i].Data, name, item[1]); err != nil {
			return lang.ParamError("header", "%w", err)
		}
		call.KeepTID = call.KeepTID || name == "transaction_id"
	}
	return nil
}

// isStatusError reports whether err is the status of an answer.
func isStatusError(err error) bool {
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
