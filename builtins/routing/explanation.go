package routing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/change"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/opensm"
	"fabsh/fabric/routing/routes"
)

// PathHopType is the type of the elements of the result of routes.explain().
var PathHopType = &lang.ResultType{
	Name:      "path_hop",
	Doc:       "A switch on a path, and why it has its port. Loads are routes between all CAs and routers, per capacity as in balance().",
	Important: []string{"port", "rule", "peer"},
	Members: []lang.ResultMember{
		{Name: "switch", Type: "node", Doc: "the switch", Long: true},
		{Name: "port", Type: "port", Doc: "the port that packets leave by; None: the switch drops them, or the path ends at it"},
		{Name: "peer", Type: "port", Doc: "the port at the other end, or None"},
		{Name: "left", Type: "int", Doc: "links from the switch to the switch of the destination, along the path; None: packets do not arrive"},
		{Name: "routes", Doc: "load of the port; None: it leads to no switch"},
		{Name: "alternatives", Type: "dict", Doc: "other ports on shortest paths, as the engine counts distances, in its order of preference: a dict of port name to load (GUID/NUMBER of ports of switches with the same name)"},
		{Name: "rule", Type: "string", Doc: "the rule of the engine that gives the port, or what is known of it"},
	},
}

// explainMethod is routes.explain(): the rules by which a path was chosen.
var explainMethod = lang.Builtin{
	Name:    "explain",
	Returns: "list of path_hop",
	Params: []lang.Param{
		{Name: "source", Kind: topology.KindTarget, Doc: "a LID, a port or node with a LID, or a name or GUID of one"},
		{Name: "destination", Kind: topology.KindTarget, Doc: "another"},
	},
	Doc: `Explains why packets from one LID to another take their path: a list of path_hop, one for each switch on it.
The rule of the engine is computed again, and stated where it gives the port of the tables. The ports of d-mod-k, dor, torus-2qos and of the policies "hash" and "first" are checked so. Of choices by load the loads at the end are shown. Where the rule gives another port, or the tables were read or changed, the text states that.
For tables that were read, the rule names the engine of OpenSM that makes them, if made_by() finds one; this is not tested on more than 2,000 LIDs.
Where switches choose among ports, the path is that of static ports. trace() shows the path alone.`,
	Example: `
> t = discover().graph().route("ftree")
> for h in t.explain("node-0001", "node-0008"): print(h.port.name, h.rule)
leaf-1/8 d-mod-k up: digit 3 of number 7 (7 / 1 modulo 4)
spine-4/2 the only next hop down
leaf-2/4 the destination is on this switch
> t.explain("node-0001", "node-0008")[0].alternatives
{"leaf-1/5": 28, "leaf-1/6": 28, "leaf-1/7": 28}
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Source, Destination starlark.Value }) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		source, err := firstLID(v.graph.g.Fabric(), a.Source)
		if err != nil {
			return nil, lang.ParamError("source", "%w", err)
		}
		destination, err := firstLID(v.graph.g.Fabric(), a.Destination)
		if err != nil {
			return nil, lang.ParamError("destination", "%w", err)
		}
		var e *engines.Explanation
		maker := ""
		err = c.Block(func(ctx context.Context) (err error) {
			if e, err = engines.Explain(ctx, v.Tables, source, destination); err == nil && len(e.Hops) > 0 {
				maker, err = makerOf(ctx, v.Tables)
			}
			return err
		})
		if err != nil {
			return nil, computeError(c, err)
		}
		return lang.List(e.Hops, func(h engines.Reason) starlark.Value { return pathHop(e, h, maker) }), nil
	}),
}

// pathHop returns the value of a hop. maker is what made_by finds; "": nothing.
func pathHop(e *engines.Explanation, h engines.Reason, maker string) starlark.Value {
	g := e.Path.Graph()
	n := g.Switches()[h.Switch]
	var port, peer, left, load starlark.Value = starlark.None, starlark.None, starlark.None, starlark.None
	if p := n.Port(int(h.Out)); p != nil && h.Out > 0 {
		port = topology.PortOf(p)
		if q := p.Peer(); q != nil {
			peer = topology.PortOf(q)
		}
	}
	if h.Left >= 0 {
		left = starlark.MakeInt(h.Left)
	}
	if target := g.Target(int32(h.Switch), h.Out); target.IsChannel() {
		load = loadOf(e.Loads[target.Channel()])
	}
	others := new(starlark.Dict)
	for _, p := range h.Next {
		if p != h.Out {
			others.SetKey(portKey(n.Port(int(p))), loadOf(e.Loads[g.Target(int32(h.Switch), p).Channel()]))
		}
	}
	rule := h.Rule
	if maker != "" && h.Unknown {
		rule += "; " + maker
	}
	return lang.NewResult(PathHopType, topology.NodeOf(n), port, peer, left, load, others, starlark.String(rule))
}

// madeByMost is up to how many LIDs explain tests which engine of OpenSM makes tables: about a second.
const madeByMost = 2000

// makerOf describes the engines of OpenSM that make tables that were read; "": none, or not tested.
func makerOf(ctx context.Context, r *routes.Routes) (string, error) {
	if engines.BasisOf(r) != nil || !slices.Contains([]string{"", routes.FromFile, routes.FromSwitches}, r.Engine) || len(r.Graph().Dests()) > madeByMost {
		return "", nil
	}
	var names []string
	for _, name := range opensm.Engines() {
		made, _, err := change.MadeBy(ctx, r, change.ManagerRouting{Engines: []string{name}})
		if err != nil {
			return "", err
		}
		if made {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return "", nil
	case 1:
		return fmt.Sprintf("OpenSM's %s makes these tables", names[0]), nil
	}
	return fmt.Sprintf("OpenSM's %s and %s make these tables", strings.Join(names[:len(names)-1], ", "), names[len(names)-1]), nil
}
