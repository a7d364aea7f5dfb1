package topology

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
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
