package routing

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

var RouteMethod = lang.Builtin{
	Name: "route",
	Params: []lang.Param{
		{Name: "engine", Kind: lang.KindChoice, Doc: engineWords()},
		{Name: "roots", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: "the switches at the top: nodes, GUIDs or names; else they are found"},
		{Name: "policy", Kind: lang.KindChoice, Default: "None", Keyword: true, Doc: policyWords + "; else dmodk on fat trees, elsewhere least_loaded"},
		{Name: "scope", Kind: lang.KindChoice, Default: "None", Keyword: true, Doc: scopeWords},
		{Name: "seed", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "of what goes by chance"},
		{Name: "keep", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "routes whose entries stay where they are next hops still"},
		{Name: "given", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: `the routes that "file" takes`},
	},
	Doc: "Computes all tables by an engine: routes.\n" + engineDocs() +
		`An engine that does not apply fails, and says which condition does not hold, and where; so does one that is given an option it does not heed.`,
	Example: `
> g = discover().graph()
> g.route("ftree")
routes(ftree, 12 switches, LIDs 1..44)
> g.route("updn", roots=g.switches[:4]).verify().ok
True
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		names := routing.EngineNames()
		i := slices.Index(names, c.Text("engine"))
		if i < 0 {
			return nil, lang.ParamError("engine", "there is no %q%s: use one of %s", c.Text("engine"), fabric.DidYouMean(c.Text("engine"), names), strings.Join(names, ", "))
		}
		engine := routing.Engines()[i]
		for _, p := range c.Params[1:] { // the options of all engines
			if c.Has(p.Name) && !slices.Contains(engine.Options, p.Name) {
				return nil, lang.ParamError(p.Name, "%s does not heed it; it heeds %s", engine.Name, orNothing(engine.Options))
			}
		}
		o := routing.Options{Policy: c.Text("policy"), Scope: c.Text("scope"), Seed: uint64(c.Int("seed"))}
		var err error
		if o.Roots, err = switchesOf(c, v, "roots"); err != nil {
			return nil, err
		}
		if c.Has("roots") && len(o.Roots) == 0 {
			return nil, lang.ParamError("roots", "it is empty")
		}
		if o.Keep, err = routesOf(c, "keep"); err != nil {
			return nil, err
		}
		if o.Given, err = routesOf(c, "given"); err != nil {
			return nil, err
		}
		r, err := routing.Compute(c.Fiber().Context, v.g, engine.Name, o)
		if err != nil {
			return nil, computeError(c, err)
		}
		return newRoutes(r, v), nil
	}),
}

// engineWords are the names of the engines, as the choice that a parameter has.
func engineWords() string {
	names := routing.EngineNames()
	last := len(names) - 1
	return `"` + strings.Join(names[:last], `", "`) + `" or "` + names[last] + `"`
}

// engineDocs has a line on each engine.
func engineDocs() string {
	var b strings.Builder
	for _, e := range routing.Engines() {
		fmt.Fprintf(&b, "%s: %s\n", e.Name, e.Doc)
	}
	return b.String()
}

func orNothing(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

const (
	policyWords = `how to choose among the next hops: "least_loaded", "scatter" (the same, equal ones by chance), "round_robin", "dmodk", "hash", "first"`
	scopeWords  = `what counts as load: "global", the LIDs that packets come through the switch for; "switch", all, as OpenSM's minhop does`
)

var assignMethod = lang.Builtin{
	Name: "assign",
	Params: []lang.Param{
		{Name: "hops", Kind: lang.KindAny, Doc: "the distances that say which next hops there are, as of graph.hops() or graph.updown()"},
		{Name: "lids", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: "which are to be assigned; else all. The entries of others stay"},
		{Name: "policy", Kind: lang.KindChoice, Default: `"least_loaded"`, Keyword: true, Doc: policyWords},
		{Name: "scope", Kind: lang.KindChoice, Default: `"global"`, Keyword: true, Doc: scopeWords},
		{Name: "seed", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "of what goes by chance"},
		{Name: "weight", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "a dict of LID to how much it counts as load; those not in it count 1 if a CA's or router's, else 0"},
		{Name: "keep", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "routes whose entries stay where they are next hops still"},
		{Name: "order", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: `of "dmodk": LIDs in the order in which they are numbered from 0; else each class as in graph.order()`},
		{Name: "divider", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: `of "dmodk": a dict of switch to the weight of the digit it goes by; else that of a fat tree`},
		{Name: "prefer", Kind: lang.KindFunction, Default: "None", Keyword: true, Doc: "a function of two switches and the ports of the first to the second, which returns these in another order, or some of them"},
	},
	Doc: `Fills in the next hops to LIDs, one of those that the distances allow.
A LID without one is dropped.`,
	Example: `
> g = discover().graph(); t = g.routes()
> t.assign(g.hops(), policy="dmodk")
> t.congestion("shift").max
1
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		if err := v.checkMutable(); err != nil {
			return nil, computeError(c, err)
		}
		h, ok := c.Value("hops").(*hopsValue)
		if !ok {
			return nil, lang.ParamError("hops", "got %s, want hops", c.Value("hops").Type())
		}
		o := routing.AssignOptions{Policy: c.Text("policy"), Scope: c.Text("scope"), Seed: uint64(c.Int("seed"))}
		var err error
		if o.LIDs, err = optionalLIDs(c, "lids"); err != nil {
			return nil, err
		}
		if o.Keep, err = routesOf(c, "keep"); err != nil {
			return nil, err
		}
		if o.Weight, err = lidWeights(c, v.graph.g); err != nil {
			return nil, err
		}
		if o.Number, err = lidNumbers(c); err != nil {
			return nil, err
		}
		if o.Divider, err = dividersOf(c, v.graph); err != nil {
			return nil, err
		}
		var failed error
		if c.Has("prefer") {
			o.Prefer = preferenceOf(c, v.graph, &failed)
		}
		if err = v.R.Assign(c.Fiber().Context, h.h, o); failed != nil {
			err = failed
		}
		if err != nil {
			return nil, computeError(c, err)
		}
		return starlark.None, nil
	}),
}

// lidWeights reads the parameter weight.
func lidWeights(c *lang.Call, g *routing.Graph) (func(mad.LID) int, error) {
	if !c.Has("weight") {
		return nil, nil
	}
	d, ok := c.Value("weight").(*starlark.Dict)
	if !ok {
		return nil, lang.ParamError("weight", "got %s, want a dict of LID to weight", c.Value("weight").Type())
	}
	weights := map[mad.LID]int{}
	for _, kv := range d.Items() {
		lids, err := lidsOf(c, "weight", []starlark.Value{kv[0]})
		if err != nil {
			return nil, err
		}
		w, err := lang.ToInt(kv[1])
		if err == nil && w < 0 {
			err = fmt.Errorf("%d is negative", w)
		}
		if err != nil {
			return nil, lang.ParamError("weight", "%s: %w", lang.Brief(kv[0]), err)
		}
		for _, lid := range lids {
			weights[lid] = w
		}
	}
	return func(lid mad.LID) int {
		if w, ok := weights[lid]; ok {
			return w
		}
		if t := g.TerminalByLID(lid); t >= 0 && g.Terminals()[t].Class&routing.ClassSwitch == 0 {
			return 1
		}
		return 0
	}, nil
}

// lidNumbers reads the parameter order.
func lidNumbers(c *lang.Call) (func(mad.LID) int, error) {
	order, err := optionalLIDs(c, "order")
	if err != nil || order == nil {
		return nil, err
	}
	numbers := map[mad.LID]int{}
	for i, lid := range order {
		numbers[lid] = i
	}
	return func(lid mad.LID) int { return numbers[lid] }, nil
}

// dividersOf reads the parameter divider.
func dividersOf(c *lang.Call, v *graphValue) (func(int) int, error) {
	if !c.Has("divider") {
		return nil, nil
	}
	d, ok := c.Value("divider").(*starlark.Dict)
	if !ok {
		return nil, lang.ParamError("divider", "got %s, want a dict of switch to number", c.Value("divider").Type())
	}
	dividers := make([]int, len(v.g.Switches()))
	for _, kv := range d.Items() {
		s, err := v.switchOf(kv[0])
		if err != nil {
			return nil, lang.ParamError("divider", "%w", err)
		}
		n, err := lang.ToInt(kv[1])
		if err != nil || n < 1 {
			return nil, lang.ParamError("divider", "%s: got %s, want at least 1", lang.Brief(kv[0]), lang.Brief(kv[1]))
		}
		dividers[s] = n
	}
	return func(s int) int { return max(1, dividers[s]) }, nil
}

// preferenceOf calls the script's function prefer. After its first failure all
// stays as it is.
func preferenceOf(c *lang.Call, v *graphValue, failed *error) func(s, d int, ports []uint8) []uint8 {
	all := v.g.Switches()
	return func(s, d int, ports []uint8) []uint8 {
		if *failed != nil {
			return ports
		}
		var list []starlark.Value
		for _, p := range ports {
			list = append(list, topology.PortOf(all[s].Port(int(p))))
		}
		answer, err := starlark.Call(c.Thread, c.Value("prefer"), starlark.Tuple{topology.NodeOf(all[s]), topology.NodeOf(all[d]), starlark.NewList(list)}, nil)
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
			num := -1
			switch x := x.(type) {
			case topology.Port:
				if x.Node() == all[s] {
					num = x.Num()
				}
			case starlark.Int:
				num, _ = lang.ToInt(x)
			}
			if num < 0 || !slices.Contains(ports, uint8(num)) || num > 254 {
				*failed = fmt.Errorf("prefer returned %s, which is none of the ports it was given, of %s to %s", lang.Brief(x), all[s].Label(), all[d].Label())
				return ports
			}
			chosen = append(chosen, uint8(num))
		}
		return chosen
	}
}

var ssspMethod = lang.Builtin{
	Name: "sssp",
	Params: []lang.Param{
		{Name: "weights", Kind: lang.KindAny, Default: "None", Doc: "a dict of port to what the way out of it costs at first, 1 where it is not in it; None: shortest paths go before all"},
		{Name: "lids", Kind: lang.KindItems, Default: "None", Doc: "which, and in which order; else all"},
	},
	Doc: `Gives each LID in turn the cheapest paths, which then cost more by the routes on them.
It returns a dict of port to what the way out of it costs afterwards, for the next call.`,
	Example: `
> g = discover().graph(); t = g.routes()
> used = t.sssp({}, g.lids("cn"))
> t.verify().unreachable
0
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		if err := v.checkMutable(); err != nil {
			return nil, computeError(c, err)
		}
		g := v.graph.g
		// A hop costs more than all routes together could.
		first := int64(len(g.LIDs(0))) * int64(len(g.Terminals())) * int64(len(g.Switches())+1)
		if c.Has("weights") {
			first = 1
		}
		weight, err := channelWeights(c, g, min(first, 1<<40))
		if err != nil {
			return nil, err
		}
		lids, err := optionalLIDs(c, "lids")
		if err != nil {
			return nil, err
		}
		if err := v.R.SSSP(c.Fiber().Context, weight, lids); err != nil {
			return nil, computeError(c, err)
		}
		used := starlark.NewDict(len(weight))
		for ch, w := range weight {
			used.SetKey(topology.PortOf(g.ChannelPort(ch)), starlark.MakeInt64(w))
		}
		return used, nil
	}),
}
