package routing

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/verify"
)

// viaDoc is the help of a parameter of rules.
const viaDoc = "a tuple (sources, destinations, via), or a list of such tuples; each member is a node, a port, a name, or a list of these; None as sources or destinations means all ports of CAs and routers, and via can also be links"

// viaRules returns the rules of an argument: one tuple, or a list of them.
func viaRules(g *graph.Graph, param string, v starlark.Value, must bool) ([]verify.ViaRule, error) {
	if v == nil {
		return nil, nil
	}
	list := []starlark.Value{v}
	if l, ok := v.(*starlark.List); ok {
		list = lang.Collect(l)
	}
	var rules []verify.ViaRule
	for i, v := range list {
		t, ok := v.(starlark.Tuple)
		if !ok || len(t) != 3 {
			return nil, lang.ParamError(param, "rule %d: got %s, want (sources, destinations, via)", i, lang.Brief(v))
		}
		rule := verify.ViaRule{Must: must}
		var err error
		if rule.From, err = terminalsOf(g, t[0]); err != nil {
			return nil, lang.ParamError(param, "rule %d, sources: %w", i, err)
		}
		if rule.To, err = terminalsOf(g, t[1]); err != nil {
			return nil, lang.ParamError(param, "rule %d, destinations: %w", i, err)
		}
		if err = viaOf(g, t[2], &rule); err != nil {
			return nil, lang.ParamError(param, "rule %d, via: %w", i, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// targetsIn returns the nodes and ports of a fabric that v names: one value, or an
// iterable of them. A node has the port NoPortGiven.
func targetsIn(f *fabric.Fabric, v starlark.Value) ([]topology.Target, error) {
	list := []starlark.Value{v}
	if it, ok := v.(starlark.Iterable); ok {
		list = lang.Collect(it)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the list is empty; a rule needs members")
	}
	var out []topology.Target
	for _, v := range list {
		if l, ok := v.(topology.Link); ok {
			v = topology.PortOf(l.A)
		}
		t := topology.FindValue(f, v)
		if t.Err != nil {
			return nil, t.Err
		}
		out = append(out, t)
	}
	return out, nil
}

// terminalsOf returns the ports with LIDs that v names; None means all of CAs and routers.
func terminalsOf(g *graph.Graph, v starlark.Value) ([]int, error) {
	var list []int
	if v == starlark.None {
		for i := range g.Terminals() {
			if g.Terminals()[i].IsEndpoint(0) {
				list = append(list, i)
			}
		}
		return list, nil
	}
	targets, err := targetsIn(g.Fabric(), v)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		before := len(list)
		for i := range g.Terminals() {
			p := g.Terminals()[i].Port
			if g.Terminals()[i].Count > 0 && p.Node() == t.Node && (t.Port == topology.NoPortGiven || t.Node.IsSwitch() || p.Num() == t.Port) {
				list = append(list, i)
			}
		}
		if len(list) == before {
			return nil, fmt.Errorf("%s has no LID in use", t.Label)
		}
	}
	return list, nil
}

// viaOf adds the nodes and ports that v names to a rule.
func viaOf(g *graph.Graph, v starlark.Value, rule *verify.ViaRule) error {
	targets, err := targetsIn(g.Fabric(), v)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if t.Port == topology.NoPortGiven {
			rule.Nodes = append(rule.Nodes, t.Node)
		} else {
			rule.Ports = append(rule.Ports, t.Node.Port(t.Port))
		}
	}
	return nil
}
