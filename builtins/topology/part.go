package topology

import (
	"fmt"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/mad"
)

// FindPart returns the node or the port of f that v names: a node or a port, of any sweep; a LID; or a name, a
// GUID, NODE/PORT, or a link, "PORT - PORT". A LID of a CA or router, or a GUID of its port, is its port.
func FindPart(f *fabric.Fabric, v starlark.Value) (*fabric.Node, *fabric.Port, error) {
	var t Target
	switch v := v.(type) {
	case Port:
		if same := f.NodeByGUID(v.Node().GUID()); len(same) == 1 && v.Num() <= same[0].NumPorts() {
			return nil, same[0].Port(v.Num()), nil
		}
		return nil, nil, fmt.Errorf("the fabric does not have %s", v.Port.Label())
	case Node:
		if same := f.NodeByGUID(v.Node.GUID()); len(same) == 1 {
			return same[0], nil, nil
		}
		return nil, nil, fmt.Errorf("the fabric does not have %s", v.Node.Label())
	case starlark.Int:
		lid, err := lang.ToInt(v)
		if err != nil || lid < 1 || lid > int(mad.MaxUnicastLID) {
			return nil, nil, fmt.Errorf("LID %s is out of range, 1..%d", v, mad.MaxUnicastLID)
		}
		p := f.PortByLID(mad.LID(lid))
		switch {
		case p == nil:
			return nil, nil, fmt.Errorf("the fabric has no LID %d", lid)
		case p.Node().IsSwitch():
			return p.Node(), nil, nil
		}
		return nil, p, nil
	case starlark.String:
		name := string(v)
		if a, b, ok := strings.Cut(name, " - "); ok {
			if t = FindIn(f, name); t.Err != nil {
				return linkIn(f, name, a, b)
			}
		} else if t = FindIn(f, name); t.Err != nil {
			if lid, err := strconv.ParseUint(name, 0, 16); err == nil { // the words of a report are texts
				return FindPart(f, starlark.MakeUint64(lid))
			}
		}
	default:
		return nil, nil, fmt.Errorf("got %s, want a node or a port, or the name, GUID or LID of one", v.Type())
	}
	switch {
	case t.Err != nil:
		return nil, nil, t.Err
	case t.Node == nil:
		return nil, nil, fmt.Errorf("the fabric does not have %s", t.Label)
	case t.Port > 0:
		return nil, t.Node.Port(t.Port), nil
	}
	return t.Node, nil, nil
}

// linkIn returns a port of the link between two ports.
func linkIn(f *fabric.Fabric, name, a, b string) (*fabric.Node, *fabric.Port, error) {
	_, p, err := FindPart(f, starlark.String(a))
	if err != nil {
		return nil, nil, err
	}
	_, q, err := FindPart(f, starlark.String(b))
	if err != nil {
		return nil, nil, err
	}
	if p == nil || q == nil || p.Peer() != q {
		return nil, nil, fmt.Errorf("%q is not a link of the fabric; want PORT - PORT, the ends of one", name)
	}
	return nil, p, nil
}
