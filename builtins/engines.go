package builtins

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

var routeMethod = Builtin{
	Name: "route",
	Params: []Param{
		{Name: "engine", Kind: KindChoice, Doc: `"minhop", "updn", "dnup", "ftree", "dor", "sssp", "nue" or "file"`},
		{Name: "roots", Kind: KindItems, Default: "None", Keyword: true, Doc: "the switches at the top: nodes, GUIDs or names; else they are found"},
		{Name: "policy", Kind: KindChoice, Default: "None", Keyword: true, Doc: policyWords + "; else dmodk on fat trees, elsewhere least_loaded"},
		{Name: "scope", Kind: KindChoice, Default: "None", Keyword: true, Doc: scopeWords},
		{Name: "seed", Kind: KindInt, Default: "None", Keyword: true, Doc: "of what goes by chance"},
		{Name: "keep", Kind: KindAny, Default: "None", Keyword: true, Doc: "routes whose entries stay where they are next hops still"},
		{Name: "given", Kind: KindAny, Default: "None", Keyword: true, Doc: `the routes that "file" takes`},
	},
	Doc: `Computes all tables by an engine: routes.
minhop: shortest paths, evenly spread. updn: up*/down*, from the roots. dnup: the same, seen from the switches with CAs. ftree: d-mod-k on fat trees, also with parts missing. dor: dimension order, by port. sssp: shortest paths, balanced over the whole network. nue: no credit loops on any topology. file: tables as they are given.
An engine that does not apply fails, and says which condition does not hold, and where; so does one that is given an option it does not heed.`,
	Example: `
> g = discover().graph()
> g.route("ftree")
routes(ftree, 12 switches, LIDs 1..44)
> g.route("updn", roots=g.switches[:4]).verify().ok
True
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*graphValue)
		engines := routing.Engines()
		i := slices.IndexFunc(engines, func(e routing.Engine) bool { return e.Name == c.Text("engine") })
		if i < 0 {
			var names []string
			for _, e := range engines {
				names = append(names, e.Name)
			}
			return nil, c.paramError("engine", "there is no %q%s: use one of %s", c.Text("engine"), fabric.DidYouMean(c.Text("engine"), names), strings.Join(names, ", "))
		}
		for _, name := range []string{"roots", "policy", "scope", "seed", "keep", "given"} {
			if c.Has(name) && !slices.Contains(engines[i].Heeds, name) {
				return nil, c.paramError(name, "%s does not heed it; it heeds %s", engines[i].Name, orNothing(engines[i].Heeds))
			}
		}
		o := routing.Options{Policy: c.Text("policy"), Scope: c.Text("scope"), Seed: uint64(c.Int("seed"))}
		var err error
		if o.Roots, err = c.switches(v, "roots"); err != nil {
			return nil, err
		}
		if c.Has("roots") && len(o.Roots) == 0 {
			return nil, c.paramError("roots", "it is empty")
		}
		if o.Keep, err = c.routesOf("keep"); err != nil {
			return nil, err
		}
		if o.Given, err = c.routesOf("given"); err != nil {
			return nil, err
		}
		r, err := routing.Compute(c.fiber().ctx, v.g, engines[i].Name, o)
		if err != nil {
			return nil, c.computed(err)
		}
		return newRoutes(r, v), nil
	},
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

var assignMethod = Builtin{
	Name: "assign",
	Params: []Param{
		{Name: "hops", Kind: KindAny, Doc: "the distances that say which next hops there are, as of graph.hops() or graph.updown()"},
		{Name: "lids", Kind: KindItems, Default: "None", Keyword: true, Doc: "which are to be assigned; else all. The entries of others stay"},
		{Name: "policy", Kind: KindChoice, Default: `"least_loaded"`, Keyword: true, Doc: policyWords},
		{Name: "scope", Kind: KindChoice, Default: `"global"`, Keyword: true, Doc: scopeWords},
		{Name: "seed", Kind: KindInt, Default: "0", Keyword: true, Doc: "of what goes by chance"},
		{Name: "weight", Kind: KindAny, Default: "None", Keyword: true, Doc: "a dict of LID to how much it counts as load; those not in it count 1 if a CA's or router's, else 0"},
		{Name: "keep", Kind: KindAny, Default: "None", Keyword: true, Doc: "routes whose entries stay where they are next hops still"},
		{Name: "order", Kind: KindItems, Default: "None", Keyword: true, Doc: `of "dmodk": LIDs in the order in which they are numbered from 0; else each class as in graph.order()`},
		{Name: "divider", Kind: KindAny, Default: "None", Keyword: true, Doc: `of "dmodk": a dict of switch to the weight of the digit it goes by; else that of a fat tree`},
		{Name: "prefer", Kind: KindFunction, Default: "None", Keyword: true, Doc: "a function of two switches and the ports of the first to the second, which returns these in another order, or some of them"},
	},
	Doc: `Fills in the next hops to LIDs, one of those that the distances allow.
A LID without one is dropped.`,
	Example: `
> g = discover().graph(); t = g.routes()
> t.assign(g.hops(), policy="dmodk")
> t.congestion("shift").max
1
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*routesValue)
		if err := v.checkMutable(); err != nil {
			return nil, c.computed(err)
		}
		h, ok := c.Value("hops").(*hopsValue)
		if !ok {
			return nil, c.paramError("hops", "got %s, want hops", c.Value("hops").Type())
		}
		o := routing.AssignOptions{Policy: c.Text("policy"), Scope: c.Text("scope"), Seed: uint64(c.Int("seed"))}
		var err error
		if o.LIDs, err = c.optionalLIDs("lids"); err != nil {
			return nil, err
		}
		if o.Keep, err = c.routesOf("keep"); err != nil {
			return nil, err
		}
		if o.Weight, err = c.lidWeights(v.graph.g); err != nil {
			return nil, err
		}
		if o.Number, err = c.lidNumbers(); err != nil {
			return nil, err
		}
		if o.Divider, err = c.dividers(v.graph); err != nil {
			return nil, err
		}
		var failed error
		if c.Has("prefer") {
			o.Prefer = c.preference(v.graph, &failed)
		}
		if err = v.r.Assign(c.fiber().ctx, h.h, o); failed != nil {
			err = failed
		}
		if err != nil {
			return nil, c.computed(err)
		}
		return starlark.None, nil
	},
}

// lidWeights reads the parameter weight.
func (c *call) lidWeights(g *routing.Graph) (func(mad.LID) int, error) {
	if !c.Has("weight") {
		return nil, nil
	}
	d, ok := c.Value("weight").(*starlark.Dict)
	if !ok {
		return nil, c.paramError("weight", "got %s, want a dict of LID to weight", c.Value("weight").Type())
	}
	weights := map[mad.LID]int{}
	for _, kv := range d.Items() {
		lids, err := c.lids("weight", []starlark.Value{kv[0]})
		if err != nil {
			return nil, err
		}
		w, err := toInt(kv[1])
		if err == nil && w < 0 {
			err = fmt.Errorf("%d is negative", w)
		}
		if err != nil {
			return nil, c.paramError("weight", "%s: %w", brief(kv[0]), err)
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
func (c *call) lidNumbers() (func(mad.LID) int, error) {
	order, err := c.optionalLIDs("order")
	if err != nil || order == nil {
		return nil, err
	}
	numbers := map[mad.LID]int{}
	for i, lid := range order {
		numbers[lid] = i
	}
	return func(lid mad.LID) int { return numbers[lid] }, nil
}

// dividers reads the parameter divider.
func (c *call) dividers(v *graphValue) (func(int) int, error) {
	if !c.Has("divider") {
		return nil, nil
	}
	d, ok := c.Value("divider").(*starlark.Dict)
	if !ok {
		return nil, c.paramError("divider", "got %s, want a dict of switch to number", c.Value("divider").Type())
	}
	dividers := make([]int, len(v.g.Switches()))
	for _, kv := range d.Items() {
		s, err := v.switchOf(kv[0])
		if err != nil {
			return nil, c.paramError("divider", "%w", err)
		}
		n, err := toInt(kv[1])
		if err != nil || n < 1 {
			return nil, c.paramError("divider", "%s: got %s, want at least 1", brief(kv[0]), brief(kv[1]))
		}
		dividers[s] = n
	}
	return func(s int) int { return max(1, dividers[s]) }, nil
}

// preference calls the script's function prefer. After its first failure all
// stays as it is.
func (c *call) preference(v *graphValue, failed *error) func(s, d int, ports []uint8) []uint8 {
	all := v.g.Switches()
	return func(s, d int, ports []uint8) []uint8 {
		if *failed != nil {
			return ports
		}
		var list []starlark.Value
		for _, p := range ports {
			list = append(list, port{all[s].Port(int(p))})
		}
		answer, err := starlark.Call(c.thread, c.Value("prefer"), starlark.Tuple{node{all[s]}, node{all[d]}, starlark.NewList(list)}, nil)
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
		for _, x := range collect(it) {
			num := -1
			switch x := x.(type) {
			case port:
				if x.Node() == all[s] {
					num = x.Num()
				}
			case starlark.Int:
				num, _ = toInt(x)
			}
			if num < 0 || !slices.Contains(ports, uint8(num)) || num > 254 {
				*failed = fmt.Errorf("prefer returned %s, which is none of the ports it was given, of %s to %s", brief(x), all[s].Label(), all[d].Label())
				return ports
			}
			chosen = append(chosen, uint8(num))
		}
		return chosen
	}
}

var ssspMethod = Builtin{
	Name: "sssp",
	Params: []Param{
		{Name: "weights", Kind: KindAny, Default: "None", Doc: "a dict of port to what the way out of it costs at first, 1 where it is not in it; None: shortest paths go before all"},
		{Name: "lids", Kind: KindItems, Default: "None", Doc: "which, and in which order; else all"},
	},
	Doc: `Gives each LID in turn the cheapest paths, which then cost more by the routes on them.
It returns a dict of port to what the way out of it costs afterwards, for the next call.`,
	Example: `
> g = discover().graph(); t = g.routes()
> used = t.sssp({}, g.lids("cn"))
> t.verify().unreachable
0
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*routesValue)
		if err := v.checkMutable(); err != nil {
			return nil, c.computed(err)
		}
		g := v.graph.g
		// A hop costs more than all routes together could.
		first := int64(len(g.LIDs(0))) * int64(len(g.Terminals())) * int64(len(g.Switches())+1)
		if c.Has("weights") {
			first = 1
		}
		weight, err := c.channelWeights(g, min(first, 1<<40))
		if err != nil {
			return nil, err
		}
		lids, err := c.optionalLIDs("lids")
		if err != nil {
			return nil, err
		}
		if err := v.r.SSSP(c.fiber().ctx, weight, lids); err != nil {
			return nil, c.computed(err)
		}
		used := starlark.NewDict(len(weight))
		for ch, w := range weight {
			used.SetKey(port{g.ChannelPort(ch)}, starlark.MakeInt64(w))
		}
		return used, nil
	},
}
