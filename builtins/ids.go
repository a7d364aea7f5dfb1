package builtins

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/mad"
)

var guidBuiltin = Builtin{
	Name:   "guid",
	Group:  GroupRest,
	Params: []Param{{Name: "x", Kind: KindAny, Doc: "a GUID in any spelling, an int, or a node or port"}},
	Doc: `Returns a GUID in its canonical spelling.
GUIDs are strings, 0x and 16 lower-case digits: they compare with what is typed.`,
	Example: `
> guid("0002:C903:0012:34ab")
"0x0002c903001234ab"
`,
	fn: func(c *call) (starlark.Value, error) {
		switch x := c.Value("x").(type) {
		case node:
			return guidValue(x.GUID()), nil
		case port:
			return guidValue(x.GUID()), nil
		}
		g, err := parseGUID(c.Value("x"))
		if err != nil {
			return nil, c.paramError("x", "%w", err)
		}
		return guidValue(g), nil
	},
}

var gidBuiltin = Builtin{
	Name:  "gid",
	Group: GroupRest,
	Params: []Param{
		{Name: "x", Kind: KindAny, Doc: "a GID in any spelling, or a port GUID with prefix"},
		{Name: "prefix", Kind: KindAny, Default: "None", Doc: "the subnet prefix that makes a GID of a GUID"},
	},
	Doc: "Returns a GID in its canonical spelling, that of RFC 5952.",
	Example: `
> gid("FE80:0:0:0:0002:C903:0012:34AB")
"fe80::2:c903:12:34ab"
> gid("0x0002c903001234ab", prefix="0xfe80000000000000")
"fe80::2:c903:12:34ab"
`,
	fn: func(c *call) (starlark.Value, error) {
		if !c.Has("prefix") {
			g, err := parseGID(c.Value("x"))
			if err != nil {
				return nil, c.paramError("x", "%w", err)
			}
			return starlark.String(g.String()), nil
		}
		low, err := parseGUID(c.Value("x"))
		if err != nil {
			return nil, c.paramError("x", "%w", err)
		}
		high, err := parseGUID(c.Value("prefix"))
		if err != nil {
			return nil, c.paramError("prefix", "%w", err)
		}
		return starlark.String(mad.MakeGID(uint64(high), low).String()), nil
	},
}

// route is the value `route`: a directed route, its ports as the bytes of a
// string, so that routes compare and hash.
type route string

var (
	_ starlark.HasAttrs = route("")
	_ documented        = route("")
)

var routeType *valueType[route]

func init() {
	routeType = newType("route", "A directed route: the ports through which a request leaves, hop by hop.",
		member[route]{name: "hops", doc: "number of links crossed", get: func(r route) starlark.Value { return starlark.MakeInt(len(r) - 1) }},
		member[route]{name: "ports", doc: "the ports, the first of which is 0 and stands for the local node", get: func(r route) starlark.Value {
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
	return route(r)
}

func (r route) directed() mad.DirectedRoute { return mad.DirectedRoute(r) }

// Text is the route as it encodes: "0,1,3".
func (r route) Text() string { return r.directed().String() }

func (r route) String() string        { return fmt.Sprintf("dr(%q)", r.directed()) }
func (r route) Type() string          { return "route" }
func (r route) Freeze()               {}
func (r route) Truth() starlark.Bool  { return true }
func (r route) Hash() (uint32, error) { return hashBytes([]byte(r)), nil }
func (r route) AttrNames() []string   { return routeType.names }
func (r route) typeDoc() typeDoc      { return routeType.typeDoc() }

func (r route) Attr(name string) (starlark.Value, error) { return routeType.attr(r, name) }

var drBuiltin = Builtin{
	Name:   "dr",
	Group:  GroupRest,
	Params: []Param{{Name: "path", Kind: KindAny, Doc: `"0,1,3", or a list of port numbers; the first is 0 and stands for the local node`}},
	Doc: `Returns a directed route, to use as a target.
The first hop after 0 is the local port.`,
	Example: `
> dr("0,1,3").hops
2
> smp_get("NodeInfo", dr([0, 1])).node_type
"switch"
`,
	fn: func(c *call) (starlark.Value, error) {
		text, ok := starlark.AsString(c.Value("path"))
		if !ok {
			it, iterable := c.Value("path").(starlark.Iterable)
			if !iterable {
				return nil, c.paramError("path", "%w", wantType(c.Value("path"), "string"))
			}
			var parts []string
			for v := range starlark.Elements(it) {
				if _, err := toInt(v); err != nil {
					return nil, c.paramError("path", "%w", err)
				}
				parts = append(parts, v.String())
			}
			text = strings.Join(parts, ",")
		}
		r, err := mad.ParseRoute(text)
		if err != nil {
			return nil, fmt.Errorf("dr: %w", err)
		}
		return route(r), nil
	},
}
