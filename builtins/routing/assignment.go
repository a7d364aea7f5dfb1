package routing

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/mad"
)

// assignMethod is routes.assign(): entries chosen among the next hops.
var assignMethod = lang.Builtin{
	Name: "assign",
	Params: []lang.Param{
		{Name: "hops", Kind: kindHops, Doc: "the distances that define the next hops, from graph.hops() or graph.updown()"},
		{Name: "lids", Kind: kindLIDs, Default: "None", Keyword: true, Doc: "LIDs to assign (default: all); the entries of others are kept"},
		{Name: "policy", Kind: lang.KindChoice, Default: `"least_loaded"`, Keyword: true, Doc: engines.PolicyDoc},
		{Name: "scope", Kind: lang.KindChoice, Default: `"global"`, Keyword: true, Doc: engines.ScopeDoc},
		{Name: "seed", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "seed of random choices"},
		{Name: "weight", Kind: kindDict("a dict of LID to weight"), Default: "None", Keyword: true, Doc: "a dict of LID to its weight as load (default: 1 for LIDs of CAs and routers, else 0)"},
		{Name: "keep", Kind: kindRoutes, Default: "None", Keyword: true, Doc: "routes whose entries are kept where they are still next hops"},
		{Name: "order", Kind: kindOrder, Default: "None", Keyword: true, Doc: `for "dmodk": LIDs in the order of their numbers from 0, or a function of a LID that returns its number (default: each class as in graph.order())`},
		{Name: "divider", Kind: kindDict("a dict of switch to number"), Default: "None", Keyword: true, Doc: `for "dmodk": a dict of switch to the weight of its digit (default: that of a fat tree)`},
		{Name: "prefer", Kind: lang.KindFunction, Default: "None", Keyword: true, Doc: "a function of two switches and the ports of the first to the second; it returns all or some of these ports, preferred ones first. If it has a fourth parameter, it is called for each LID and receives the LID: the LIDs of one port (LMC) can then use different planes"},
	},
	Doc: `Fills in the next hop to each LID, one of those that the distances allow.
Packets to a LID without a next hop are dropped. The paths to the LIDs of one port share as few links as possible, unless prefer, order, divider or the policy determine them.`,
	Example: `
> g = discover().graph(); t = g.routes()
> t.assign(g.hops(), policy="dmodk")
> t.congestion("shift").max
1
`,
	Run: editing(func(c *lang.Call, v *Routes, a *assignArgs) (starlark.Value, error) {
		o := engines.AssignOptions{Policy: a.Policy, Scope: a.Scope, Seed: uint64(a.Seed), LIDs: a.LIDs, Keep: a.Keep}
		var err, failed error
		if a.Order != nil {
			o.Number = lidNumbers(c.Thread, a.Order, &failed)
		}
		if o.Weight, err = lidWeights(a.Weight, v.graph.g); err != nil {
			return nil, lang.ParamError("weight", "%w", err)
		}
		if o.Divider, err = dividersOf(a.Divider, v.graph); err != nil {
			return nil, lang.ParamError("divider", "%w", err)
		}
		if a.Prefer != nil {
			o.PerLID = acceptsArgs(a.Prefer, 4)
			o.Prefer = preferenceOf(c.Thread, a.Prefer, o.PerLID, v.graph, &failed)
		}
		if err = engines.Assign(c.Fiber().Context, v.Tables, a.Hops.h, o); failed != nil {
			err = failed
		}
		if err != nil {
			return nil, computeError(c, err)
		}
		return starlark.None, nil
	}),
}

// assignArgs are the arguments of assign; nil means not given.
type assignArgs struct {
	Hops          *hopsValue
	LIDs          []mad.LID
	Order         starlark.Value // a list of LIDs, or a function of one
	Policy, Scope string
	Seed          int
	Weight        *starlark.Dict // of LIDs, ports or nodes to ints
	Keep          *routes.Routes
	Divider       *starlark.Dict // of switches to ints
	Prefer        starlark.Callable
}

// lidWeights returns the weights of LIDs as load, from the dict of the parameter weight;
// nil without one. A LID that is not in it has the default weight of Assign: 1 on CAs and
// routers, else 0.
func lidWeights(d *starlark.Dict, g *graph.Graph) (func(mad.LID) int, error) {
	if d == nil {
		return nil, nil
	}
	weights := map[mad.LID]int{}
	for _, kv := range d.Items() {
		lids, err := lidsOf([]starlark.Value{kv[0]})
		if err != nil {
			return nil, err
		}
		w, err := lang.ToInt(kv[1])
		if err == nil && w < 0 {
			err = fmt.Errorf("%d is negative", w)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", lang.Brief(kv[0]), err)
		}
		for _, lid := range lids {
			weights[lid] = w
		}
	}
	return func(lid mad.LID) int {
		if w, ok := weights[lid]; ok {
			return w
		}
		if t := g.TerminalByLID(lid); t >= 0 && g.Terminals()[t].Class&graph.ClassSwitch == 0 {
			return 1
		}
		return 0
	}, nil
}

// lidNumbers returns a function that returns the number of a LID for d-mod-k: its place in a list,
// 0 if it is not in it; or the result of a function of the script, which is not called again after
// its first failure.
func lidNumbers(t *starlark.Thread, order starlark.Value, failed *error) func(mad.LID) int {
	f, ok := order.(starlark.Callable)
	if !ok {
		lids, err := toLIDs(order)
		if err != nil {
			*failed = err
			return nil
		}
		numbers := map[mad.LID]int{}
		for i, lid := range lids.([]mad.LID) {
			numbers[lid] = i
		}
		return func(lid mad.LID) int { return numbers[lid] }
	}
	return func(lid mad.LID) int {
		if *failed != nil {
			return 0
		}
		answer, err := starlark.Call(t, f, starlark.Tuple{starlark.MakeInt(int(lid))}, nil)
		n := 0
		if err == nil {
			if n, err = lang.ToInt(answer); err != nil || n < 0 || n > maxNumber {
				err = fmt.Errorf("order returned %s for LID %d, want a number, 0..%d", lang.Brief(answer), lid, maxNumber)
			}
		}
		*failed = err
		return n
	}
}

// maxNumber is the highest number of a LID for d-mod-k.
const maxNumber = 1<<31 - 1

// acceptsArgs reports whether a function of a script accepts n arguments.
func acceptsArgs(f starlark.Callable, n int) bool {
	fn, ok := f.(*starlark.Function)
	return ok && (fn.HasVarargs() || fn.NumParams()-fn.NumKwonlyParams() >= n)
}

// dividersOf returns the dividers of switches for d-mod-k, from the dict of the parameter
// divider; nil without one. Switches that are not in it have 1.
func dividersOf(d *starlark.Dict, v *graphValue) (func(int) int, error) {
	if d == nil {
		return nil, nil
	}
	dividers := slices.Repeat([]int{1}, len(v.g.Switches()))
	for _, kv := range d.Items() {
		s, err := v.switchOf(kv[0])
		if err != nil {
			return nil, err
		}
		n, err := lang.ToInt(kv[1])
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s: got %s, want at least 1", lang.Brief(kv[0]), lang.Brief(kv[1]))
		}
		dividers[s] = n
	}
	return func(s int) int { return dividers[s] }, nil
}

// preferenceOf returns a function that calls the script's function prefer, with switches s and d,
// the ports of s to d, and the LID on d if it accepts that. After its first failure it is not called
// again, since no tables are returned then.
func preferenceOf(t *starlark.Thread, prefer starlark.Callable, perLID bool, v *graphValue, failed *error) func(s, d int, lid mad.LID, ports []uint8) []uint8 {
	all := v.g.Switches()
	return func(s, d int, lid mad.LID, ports []uint8) []uint8 {
		if *failed != nil {
			return ports
		}
		list := make([]starlark.Value, len(ports))
		for i, p := range ports {
			list[i] = topology.PortOf(all[s].Port(int(p)))
		}
		args := starlark.Tuple{topology.NodeOf(all[s]), topology.NodeOf(all[d]), starlark.NewList(list)}
		if perLID {
			args = append(args, starlark.MakeInt(int(lid)))
		}
		answer, err := starlark.Call(t, prefer, args, nil)
		if err != nil {
			*failed = err
			return ports
		}
		it, ok := answer.(starlark.Iterable)
		if !ok {
			*failed = fmt.Errorf("prefer returned %s, want a list of ports", answer.Type())
			return ports
		}
		var chosen []uint8
		for _, x := range lang.Collect(it) {
			num, ok := portNumber(x, all[s])
			if !ok || !slices.Contains(ports, num) {
				*failed = fmt.Errorf("prefer returned %s, which is not one of the ports of %s to %s", lang.Brief(x), all[s].Label(), all[d].Label())
				return ports
			}
			chosen = append(chosen, num)
		}
		return chosen
	}
}

// portNumber returns the number of a port of n, 0..254; x is such a port or an int. 255 in
// a table means no port.
func portNumber(x starlark.Value, n *fabric.Node) (num uint8, ok bool) {
	switch x := x.(type) {
	case topology.Port:
		return uint8(x.Num()), x.Node() == n
	case starlark.Int:
		i, err := lang.ToInt(x)
		return uint8(i), err == nil && 0 <= i && i <= 254
	}
	return 0, false
}

// ssspMethod is routes.sssp(): single-source shortest paths, destination by
// destination, with weights that grow by the routes on a channel.
var ssspMethod = lang.Builtin{
	Name: "sssp",
	Params: []lang.Param{
		{Name: "weights", Kind: kindDict("a dict of port to number"), Default: "None", Doc: "a dict of port to the initial cost of its outgoing link (default: 1); None: shortest paths have priority"},
		{Name: "lids", Kind: kindLIDs, Default: "None", Doc: "the LIDs, in this order (default: all)"},
	},
	Doc: `Gives each LID in turn the cheapest paths; their cost then rises by the routes on them.
It returns a dict of port to the cost of its outgoing link afterwards, for the next call.`,
	Example: `
> g = discover().graph(); t = g.routes()
> used = t.sssp({}, g.lids("cn"))
> t.verify().unreachable
0
`,
	Run: editing(func(c *lang.Call, v *Routes, a *struct {
		Weights *starlark.Dict
		LIDs    []mad.LID
	}) (starlark.Value, error) {
		g := v.graph.g
		usual := int64(1)
		if a.Weights == nil {
			// A hop costs more than all routes together could add, so that paths
			// stay shortest; 2^40 leaves room for the sum over a path in an int64.
			routes := int64(len(g.LIDs(0))) * int64(len(g.Terminals()))
			usual = min(routes*int64(len(g.Switches())+1), 1<<40)
		}
		weight, err := channelWeights(g, a.Weights, usual)
		if err != nil {
			return nil, lang.ParamError("weights", "%w", err)
		}
		if err := engines.SSSP(c.Fiber().Context, v.Tables, weight, a.LIDs); err != nil {
			return nil, computeError(c, err)
		}
		used := starlark.NewDict(len(weight))
		for ch, w := range weight {
			used.SetKey(topology.PortOf(g.ChannelPort(ch)), starlark.MakeInt64(w))
		}
		return used, nil
	}),
}

// turnWords describe the values of a parameter of turns.
const turnWords = "tuples of three switches: from, at, to"

// nueMethod is routes.nue(): some LIDs by the engine nue, beside others.
var nueMethod = lang.Builtin{
	Name: "nue",
	Params: []lang.Param{
		{Name: "lids", Kind: kindLIDs, Default: "None", Keyword: true, Doc: "LIDs to route (default: all); the entries of others are kept"},
		{Name: "turns", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: "turns of the paths of other packets, " + turnWords + " (default: those to the other LIDs of these routes). [] means no turns, as for LIDs with a virtual lane of their own"},
	},
	Doc: `Fills in paths to LIDs that close no credit loop, neither among them nor with given turns, as the engine nue does.
It returns the number of LIDs without such a path from some switch with CAs; these get no entries. With turns=[] it is 0 in a connected network.`,
	Example: `
> g = discover().graph(); t = g.route("updn")
> t.nue(lids=g.lids("cn")[:8])
0
> t.verify().ok
True
`,
	Run: editing(func(c *lang.Call, v *Routes, a *struct {
		LIDs  []mad.LID
		Turns *[]starlark.Value
	}) (starlark.Value, error) {
		var turns []graph.Turn
		if a.Turns != nil {
			var err error
			if turns, err = v.graph.turnsOf(*a.Turns); err != nil {
				return nil, lang.ParamError("turns", "%w", err)
			}
		}
		n, err := search.Nue(c.Fiber().Context, v.Tables, a.LIDs, turns)
		if err != nil {
			return nil, computeError(c, err)
		}
		return starlark.MakeInt(n), nil
	}),
}

// turnsOf returns the turns of a parameter, in a slice that is not nil.
func (v *graphValue) turnsOf(items []starlark.Value) ([]graph.Turn, error) {
	turns := make([]graph.Turn, len(items))
	for i, x := range items {
		row, ok := x.(starlark.Tuple)
		if !ok || len(row) != 3 {
			return nil, fmt.Errorf("element %d: got %s, want three switches: (from, at, to)", i, lang.Brief(x))
		}
		for k, at := range []*int{&turns[i].From, &turns[i].At, &turns[i].To} {
			var err error
			if *at, err = v.switchOf(row[k]); err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
		}
	}
	return turns, nil
}
