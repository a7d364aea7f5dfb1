package topology

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/mad"
)

var GUID = lang.Builtin{
	Name:   "guid",
	Group:  lang.GroupRest,
	Params: []lang.Param{{Name: "x", Kind: lang.KindAny, Doc: "a GUID in any spelling, an int, or a node or port"}},
	Doc: `Returns a GUID in its canonical spelling.
GUIDs are strings, 0x and 16 lower-case digits: they compare with what is typed.`,
	Example: `
> guid("0002:C903:0012:34ab")
"0x0002c903001234ab"
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		switch x := c.Value("x").(type) {
		case Node:
			return GUIDValue(x.GUID()), nil
		case Port:
			return GUIDValue(x.GUID()), nil
		}
		g, err := records.ParseGUID(c.Value("x"))
		if err != nil {
			return nil, lang.ParamError("x", "%w", err)
		}
		return GUIDValue(g), nil
	}),
}

var GID = lang.Builtin{
	Name:  "gid",
	Group: lang.GroupRest,
	Params: []lang.Param{
		{Name: "x", Kind: lang.KindAny, Doc: "a GID in any spelling, or a port GUID with prefix"},
		{Name: "prefix", Kind: lang.KindAny, Default: "None", Doc: "the subnet prefix that makes a GID of a GUID"},
	},
	Doc: "Returns a GID in its canonical spelling, that of RFC 5952.",
	Example: `
> gid("FE80:0:0:0:0002:C903:0012:34AB")
"fe80::2:c903:12:34ab"
> gid("0x0002c903001234ab", prefix="0xfe80000000000000")
"fe80::2:c903:12:34ab"
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		if !c.Has("prefix") {
			g, err := records.ParseGID(c.Value("x"))
			if err != nil {
				return nil, lang.ParamError("x", "%w", err)
			}
			return starlark.String(g.String()), nil
		}
		low, err := records.ParseGUID(c.Value("x"))
		if err != nil {
			return nil, lang.ParamError("x", "%w", err)
		}
		high, err := records.ParseGUID(c.Value("prefix"))
		if err != nil {
			return nil, lang.ParamError("prefix", "%w", err)
		}
		return starlark.String(mad.MakeGID(uint64(high), low).String()), nil
	}),
}

// Route is the value `route`: a directed route, its ports as the bytes of a
// string, so that routes compare and hash.
type Route string

var (
	_ starlark.HasAttrs = Route("")
	_ lang.Documented   = Route("")
)

var RouteType *lang.Type[Route]

func init() {
	RouteType = lang.NewType("route", "A directed route: the ports through which a request leaves, hop by hop.",
		lang.Member[Route]{Name: "hops", Doc: "number of links crossed", Get: func(r Route) starlark.Value { return starlark.MakeInt(len(r) - 1) }},
		lang.Member[Route]{Name: "ports", Doc: "the ports, the first of which is 0 and stands for the local node", Get: func(r Route) starlark.Value {
			t := make(starlark.Tuple, len(r))
			for i := range t {
				t[i] = starlark.MakeInt(int(r[i]))
			}
			return t
		}},
	)
}

func routeValue(r mad.DirectedRoute) starlark.Value {
	if r == nil {
		return starlark.None
	}
	return Route(r)
}

func (r Route) directed() mad.DirectedRoute { return mad.DirectedRoute(r) }

// Text is the route as it encodes: "0,1,3".
func (r Route) Text() string { return r.directed().String() }

func (r Route) String() string        { return fmt.Sprintf("dr(%q)", r.directed()) }
func (r Route) Type() string          { return "route" }
func (r Route) Freeze()               {}
func (r Route) Truth() starlark.Bool  { return true }
func (r Route) Hash() (uint32, error) { return lang.HashBytes([]byte(r)), nil }
func (r Route) AttrNames() []string   { return RouteType.Names }
func (r Route) TypeDoc() lang.TypeDoc { return RouteType.TypeDoc() }

func (r Route) Attr(name string) (starlark.Value, error) { return RouteType.Attr(r, name) }

var DR = lang.Builtin{
	Name:   "dr",
	Group:  lang.GroupRest,
	Params: []lang.Param{{Name: "path", Kind: lang.KindAny, Doc: `"0,1,3", or a list of port numbers; the first is 0 and stands for the local node`}},
	Doc: `Returns a directed route, to use as a target.
The first hop after 0 is the local port.`,
	Example: `
> dr("0,1,3").hops
2
> smp_get("NodeInfo", dr([0, 1])).node_type
"switch"
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		text, ok := starlark.AsString(c.Value("path"))
		if !ok {
			it, iterable := c.Value("path").(starlark.Iterable)
			if !iterable {
				return nil, lang.ParamError("path", "%w", lang.WantType(c.Value("path"), "string"))
			}
			var parts []string
			for v := range starlark.Elements(it) {
				if _, err := lang.ToInt(v); err != nil {
					return nil, lang.ParamError("path", "%w", err)
				}
				parts = append(parts, v.String())
			}
			text = strings.Join(parts, ",")
		}
		r, err := mad.ParseRoute(text)
		if err != nil {
			return nil, fmt.Errorf("dr: %w", err)
		}
		return Route(r), nil
	}),
}
