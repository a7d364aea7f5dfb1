package topology

import (
	"errors"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/mad"
)

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
