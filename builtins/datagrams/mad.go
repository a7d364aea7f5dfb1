package datagrams

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
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
