package datagrams

import (
	"fmt"
	"slices"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/mad"
)

// modifierOf converts the argument modifier, the whole attribute modifier.
func modifierOf(n int) (uint32, error) {
	if n < 0 || int64(n) > 0xffffffff {
		return 0, lang.ParamError("modifier", "got %d, want 0..0xffffffff", n)
	}
	return uint32(n), nil
}

// partArg is an argument for a part of an attribute modifier.
type partArg struct {
	name string
	n    *int // nil: not given
}

// parts returns the arguments for the parts of modifiers.
func (a *smpArgs) parts() []partArg {
	return []partArg{{"port", a.Port}, {"block", a.Block}, {"position", a.Position}, {"in_port", a.InPort}, {"out_port", a.OutPort}}
}

// modifier returns the attribute modifier from the arguments and the target.
func (a *smpArgs) modifier(c *lang.Call, attr *mad.Attribute, t *topology.Target) (uint32, error) {
	if a.Modifier != nil {
		for _, arg := range a.parts() {
			if arg.n != nil {
				return 0, lang.Errorf("modifier is the whole attribute modifier: give it or %s, not both", arg.name)
			}
		}
		return modifierOf(*a.Modifier)
	}
	if attr.UnknownModifier {
		if e := topology.EnvOf(c.Runtime()).Engine; e != nil && e.Traits().Simulated {
			return 0, nil // of the simulated agents, the first block
		}
		return 0, lang.Errorf("%s %s: no public source has the modifier of this attribute; give modifier=", attr.Name, t.Label)
	}
	var modifier uint32
	for _, part := range attr.Modifier {
		n, err := a.modifierPart(c, attr, part.Name, t)
		if err != nil {
			return 0, err
		}
		if most := 1<<part.Bits - 1; n < 0 || n > most {
			return 0, lang.ParamError(part.Name, "got %d, want 0..%d", n, most)
		}
		modifier |= uint32(n) << part.Shift
	}
	for _, arg := range a.parts() {
		known := slices.ContainsFunc(attr.Modifier, func(p mad.ModifierPart) bool { return p.Name == arg.name })
		if arg.n != nil && !known {
			return 0, lang.Errorf("%s: unsupported modifier %s; supported: %s", attr.Name, arg.name, records.ModifierWords(attr))
		}
	}
	return modifier, nil
}

// modifierPart returns one part of the modifier. A port must be given, by the target or
// by an argument, because 0 is a port too; the default block is the first.
func (a *smpArgs) modifierPart(c *lang.Call, attr *mad.Attribute, name string, t *topology.Target) (int, error) {
	isCA := t.Node != nil && !t.Node.IsSwitch()
	switch name {
	case "port":
		if attr == mad.AttrPKeyTable && isCA { // the modifier has a port only for switches (IBA 14.2.5.7)
			return 0, nil
		}
		return portOf(c, attr, a.Port, t)
	case "in_port", "out_port":
		arg := a.InPort
		if name == "out_port" {
			arg = a.OutPort
		}
		switch {
		case arg != nil:
			return *arg, checkPort(name, *arg, t)
		case isCA: // a CA has one mapping, without ports
			return 0, nil
		case name == "out_port" && t.Port != topology.NoPortGiven:
			return t.Port, nil
		}
		return 0, lang.Errorf("%s requires %s: %s(%q, target, in_port=0, out_port=1)", attr.Name, name, c.Name, attr.Name)
	case "form":
		return mad.GeneralInfoFormCapabilities, nil
	case "position":
		if a.Position != nil {
			return *a.Position, nil
		}
	case "block":
		switch {
		case attr == mad.AttrVLArbitrationTable && a.Block == nil:
			return 1, nil
		case a.Block == nil:
			return 0, nil
		case attr == mad.AttrVLArbitrationTable && (*a.Block < 1 || *a.Block > 4):
			return 0, lang.ParamError("block", "got %d, want 1 or 2 (low priority), 3 or 4 (high priority)", *a.Block)
		}
		return *a.Block, nil
	}
	return 0, nil
}

// modifierPort returns the port in an attribute modifier; topology.NoPortGiven if it has
// none.
func modifierPort(attr *mad.Attribute, modifier uint32) int {
	for _, part := range attr.Modifier {
		if part.Name == "port" {
			return int(modifier >> part.Shift & (1<<part.Bits - 1))
		}
	}
	return topology.NoPortGiven
}

// portOf returns the port from the argument port, which is nil if not given, or from the
// target. attr is nil if the call names no attribute.
func portOf(c *lang.Call, attr *mad.Attribute, port *int, t *topology.Target) (int, error) {
	switch {
	case port != nil && t.Port != topology.NoPortGiven && t.Port != *port:
		return 0, lang.Errorf("the target is %s, but the argument port is %d", t.Label, *port)
	case port != nil:
		return *port, checkPort("port", *port, t)
	case t.Port != topology.NoPortGiven || t.Err != nil:
		return max(t.Port, 0), nil
	case attr == nil:
		return 0, lang.Errorf("missing port: neither the target (%s) nor an argument names one; write %s(target, 1)", t.Label, c.Name)
	}
	return 0, lang.Errorf("%s requires a port: neither the target (%s) nor an argument names one; write %s(%q, target, 1)", attr.Name, t.Label, c.Name, attr.Name)
}

// checkPort checks a port number if the number of ports is known. Port 0 of a CA is the
// port that receives the request.
func checkPort(param string, n int, t *topology.Target) error {
	switch {
	case n < 0 || n > 255:
		return lang.ParamError(param, "got %d, want 0..255", n)
	case t.Node != nil && n != 0 && t.Node.Port(n) == nil:
		return lang.ParamError(param, "%w", topology.NoSuchPort(t.Node, fmt.Sprint(n)))
	}
	return nil
}
