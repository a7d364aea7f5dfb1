package topology

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/mad"
)

// route is the value `route`: a directed route. Its ports are the bytes of a string, so
// that routes can be compared and hashed.
type route string

// RouteType declares the attributes of a route.
var RouteType *lang.Type[route]

func init() {
	RouteType = lang.NewType("route", "A directed route: the ports through which a request leaves, hop by hop.",
		lang.Member[route]{Name: "hops", Doc: "number of links crossed", Get: func(r route) starlark.Value { return starlark.MakeInt(len(r) - 1) }},
		lang.Member[route]{Name: "ports", Doc: "the ports; the first is 0, for the local node", Get: func(r route) starlark.Value {
			t := make(starlark.Tuple, len(r))
			for i := range t {
				t[i] = starlark.MakeInt(int(r[i]))
			}
			return t
		}},
	)
}

// routeValue returns the value of r; None without a route.
func routeValue(r mad.DirectedRoute) starlark.Value {
	if r == nil {
		return starlark.None
	}
	return route(r)
}

// directed returns r in the form for the engine.
func (r route) directed() mad.DirectedRoute { return mad.DirectedRoute(r) }

// Text returns the encoded form of the route: "0,1,3".
func (r route) Text() string { return r.directed().String() }

func (r route) String() string        { return fmt.Sprintf("dr(%q)", r.directed()) }
func (r route) Type() string          { return "route" }
func (r route) Freeze()               {}
func (r route) Truth() starlark.Bool  { return true }
func (r route) Hash() (uint32, error) { return lang.HashBytes([]byte(r)), nil }
func (r route) AttrNames() []string   { return RouteType.Names }
func (r route) TypeDoc() lang.TypeDoc { return RouteType.TypeDoc() }

func (r route) Attr(name string) (starlark.Value, error) { return RouteType.Attr(r, name) }

// DR is dr().
var DR = lang.Builtin{
	Name:    "dr",
	Returns: "route",
	Group:   lang.GroupRest,
	Params:  []lang.Param{{Name: "path", Kind: lang.KindAny, Doc: `"0,1,3", or a list of port numbers; the first is 0, for the local node`}},
	Doc: `Returns a directed route, for use as a target.
The first hop after 0 is the local port.`,
	Example: `
> dr("0,1,3").hops
2
> smp_get("NodeInfo", dr([0, 1])).node_type
"switch"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Path starlark.Value }) (starlark.Value, error) {
		text, ok := starlark.AsString(a.Path)
		if !ok {
			it, iterable := a.Path.(starlark.Iterable)
			if !iterable {
				return nil, lang.ParamError("path", "%w", lang.WantType(a.Path, "string"))
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
			return nil, lang.Errorf("%w", err)
		}
		return route(r), nil
	}),
}
