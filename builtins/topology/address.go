package topology

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/mad"
)

// GUID is guid().
var GUID = lang.Builtin{
	Name:    "guid",
	Returns: "string",
	Group:   lang.GroupRest,
	Params:  []lang.Param{{Name: "x", Kind: lang.KindAny, Doc: "a GUID in any notation, an int, or a node or port"}},
	Doc: `Returns a GUID in its canonical notation.
GUIDs are strings, 0x and 16 lower-case digits, so that they can be compared with literals.`,
	Example: `
> guid("0002:C903:0012:34ab")
"0x0002c903001234ab"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ X starlark.Value }) (starlark.Value, error) {
		switch x := a.X.(type) {
		case Node:
			return GUIDValue(x.GUID()), nil
		case Port:
			return GUIDValue(x.GUID()), nil
		}
		g, err := records.ParseGUID(a.X)
		if err != nil {
			return nil, lang.ParamError("x", "%w", err)
		}
		return GUIDValue(g), nil
	}),
}

// GID is gid().
var GID = lang.Builtin{
	Name:    "gid",
	Returns: "string",
	Group:   lang.GroupRest,
	Params: []lang.Param{
		{Name: "x", Kind: lang.KindAny, Doc: "a GID in any notation, or a port GUID with prefix"},
		{Name: "prefix", Kind: lang.KindAny, Default: "None", Doc: "the subnet prefix, to make a GID from a GUID"},
	},
	Doc: "Returns a GID in its canonical notation, that of RFC 5952.",
	Example: `
> gid("FE80:0:0:0:0002:C903:0012:34AB")
"fe80::2:c903:12:34ab"
> gid("0x0002c903001234ab", prefix="0xfe80000000000000")
"fe80::2:c903:12:34ab"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ X, Prefix starlark.Value }) (starlark.Value, error) {
		if a.Prefix == nil {
			g, err := records.ParseGID(a.X)
			if err != nil {
				return nil, lang.ParamError("x", "%w", err)
			}
			return starlark.String(g.String()), nil
		}
		low, err := records.ParseGUID(a.X)
		if err != nil {
			return nil, lang.ParamError("x", "%w", err)
		}
		high, err := records.ParseGUID(a.Prefix)
		if err != nil {
			return nil, lang.ParamError("prefix", "%w", err)
		}
		return starlark.String(mad.MakeGID(uint64(high), low).String()), nil
	}),
}

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

// Component returns the value for a field of a record of the subnet administrator. If
// the field is an address, v may be any target, which is converted; other values are
// returned unchanged.
func Component(c *lang.Call, f *mad.Field, v starlark.Value) (starlark.Value, error) {
	if isAddress(f, v) {
		return v, nil
	}
	t, err := (&Resolver{Call: c}).target(v)
	if err == nil {
		err = t.Err
	}
	if err != nil {
		return nil, lang.ParamError(f.Script, "%w", err)
	}
	var p *fabric.Port
	if current := EnvOf(c.Runtime()).Current; t.Node == nil && current != nil && f.Type != mad.FieldTypeLID {
		if p = current.PortByLID(t.LID); p != nil {
			t.Node = p.Node()
		}
	} else if t.Node != nil {
		p = endPort(t.Node, t.Port)
	}
	switch f.Type {
	case mad.FieldTypeLID:
		if err := t.NeedsLID(); err != nil {
			return nil, lang.ParamError(f.Script, "%s: %w", t.Label, err)
		}
		return starlark.MakeInt(int(t.LID)), nil
	case mad.FieldTypeGID:
		if p != nil && p.GUID() != 0 {
			return starlark.String(p.GID().String()), nil
		}
	case mad.FieldTypeGUID:
		switch {
		case t.Node != nil && strings.HasPrefix(f.Script, "node"):
			return GUIDValue(t.Node.GUID()), nil
		case p != nil && p.GUID() != 0:
			return GUIDValue(p.GUID()), nil
		}
	}
	return nil, lang.ParamError(f.Script, "%s: %w", t.Label, errNoGUID)
}

var errNoGUID = errors.New("its GUID is unknown; run discover(), or give the GUID")

// isAddress reports whether v needs no conversion: it is an address, or f is not one.
func isAddress(f *mad.Field, v starlark.Value) bool {
	if f.Count > 1 {
		return true
	}
	s, isText := starlark.AsString(v)
	switch f.Type {
	case mad.FieldTypeLID:
		_, isInt := v.(starlark.Int)
		return isInt || isText && strings.HasPrefix(s, "0x") && len(s) <= len("0xffff")
	case mad.FieldTypeGID:
		_, err := records.ParseGID(v)
		return err == nil
	case mad.FieldTypeGUID:
		_, err := records.ParseGUID(v)
		return err == nil
	}
	return true
}

// endPort returns the port that n is addressed by: port num, for a switch port 0, else
// the first port with a LID.
func endPort(n *fabric.Node, num int) *fabric.Port {
	switch {
	case n.IsSwitch():
		return n.Port(0)
	case num != NoPortGiven:
		return n.Port(num)
	}
	for p := range n.Ports() {
		if p.LID() != 0 {
			return p
		}
	}
	return n.Port(1)
}
