package topology

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/mad"
)

// nodeMethod is fabric.node(), which finds a node.
var nodeMethod = lang.Builtin{
	Name:    "node",
	Returns: "node",
	Params:  []lang.Param{{Name: "target", Kind: KindTarget, Doc: "name, GUID, GID or LID of the node or of one of its ports; or a node or port of another fabric"}},
	Doc: `Returns the node of this fabric with a name, GUID, GID or LID.
It fails if no node or more than one node matches.`,
	Example: `
> f = discover()
> f.node("leaf-1").lid
1
> f.node(13) == f.cas[0], f.node(f.cas[0].guid) == f.cas[0]
(True, True)
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Target starlark.Value }) (starlark.Value, error) {
		t := FindValue(c.Recv.(*Fabric).Fabric, a.Target)
		if t.Err != nil {
			return nil, lang.ParamError("target", "%w", t.Err)
		}
		return Node{t.Node}, nil
	}),
}

// FindValue returns the node or port of f that v names: by name, GUID, GID or LID, or as
// a node or port of another fabric. A LID names the node.
func FindValue(f *fabric.Fabric, v starlark.Value) Target {
	switch v := v.(type) {
	case starlark.Int:
		lid, err := lang.ToInt(v)
		if err == nil && lid > 0 && lid <= int(mad.MaxUnicastLID) {
			if p := f.PortByLID(mad.LID(lid)); p != nil {
				return NodeTarget(p.Node())
			}
		}
		return missing(v.String(), "the fabric has no LID %s%s", v, asGUID(v))
	case starlark.String:
		return FindIn(f, string(v))
	case Node:
		return sameIn(f, v.Node)
	case Port:
		t := sameIn(f, v.Node())
		if t.Err == nil && t.Node.Port(v.Num()) != nil {
			t = portTarget(t.Node.Port(v.Num()))
		}
		return t
	}
	return missing(v.Type(), "got %s, want a name, a GUID, a GID, a LID, a node or a port", v.Type())
}

// sameIn returns the node of f that is the same as n.
func sameIn(f *fabric.Fabric, n *fabric.Node) Target {
	if n.Fabric() == f {
		return NodeTarget(n)
	}
	for _, m := range f.NodeByGUID(n.GUID()) {
		if m.Same(n) {
			return NodeTarget(m)
		}
	}
	return missing(n.Label(), "the fabric has no node %s", n.Label())
}
