package routing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// VerdictType is the type of the result of routes.verify().
var VerdictType = &lang.ResultType{
	Name:    "verdict",
	Version: 2,
	Doc:     "Whether packets arrive, and whether they may deadlock, by forwarding tables and the choices of adaptive routing, between the endpoints that it names.",
	Members: []lang.ResultMember{
		{Name: "ok", Doc: "True if all required packets arrive and cannot deadlock; None if that is unknown, because what switches choose is, or the virtual lanes"},
		{Name: "policy", Doc: `what made the tables: an engine, a script; "file", "live"; None: unknown`},
		{Name: "judged", Doc: `what was judged: "static forwarding tables, SL 0"`},
		{Name: "endpoints", Type: "dict", Doc: "numbers of endpoints: a dict of ports (the total), cas, routers, switches, and each class"},
		{Name: "pairs", Doc: "number of pairs of an endpoint and a LID of another"},
		{Name: "unreachable", Doc: "of these, pairs that must reach each other but do not"},
		{Name: "unreachable_switches", Doc: "pairs of an endpoint and a LID of a switch, which management packets go to, whose packets do not arrive; it does not affect ok"},
		{Name: "excused", Doc: "pairs that do not reach each other and, by require, need not"},
		{Name: "loops", Doc: "pairs whose packets loop"},
		{Name: "acyclic", Doc: "True if there are no credit loops; None if they are not judged: acyclic_reason"},
		{Name: "max_hops", Doc: "number of links on the longest path, with those of the end ports"},
		{Name: "hops", Doc: "pairs by number of links on the path, from 0"},
		{Name: "detours", Doc: "pairs by the number of excess links, from 0"},
		{Name: "channels", Doc: "directed links that paths take, counted for each virtual lane", Long: true},
		{Name: "waits", Doc: "pairs of these channels in which one may wait for the other", Long: true},
		{Name: "violations", Doc: "pairs whose paths break never_via or must_via"},
		{Name: "cycle", Type: "list of dict", Doc: "a credit loop, link by link: dicts of port, peer, vl, and a lid that packets on it go to; empty without one", Long: true},
		{Name: "broken", Type: "list of dict", Doc: "examples of pairs that do not reach each other: dicts of source, guid, lid, why", Long: true},
		{Name: "violating", Type: "list of dict", Doc: "examples of paths that break a rule: dicts of rule (\"never_via\" or \"must_via\"), number (of the rule, from 0), source, guid, lid, path (names of ports)", Long: true},
		{Name: "notes", Doc: "other remarks", Long: true},
		{Name: "switch_pairs", Doc: "pairs of an endpoint and a LID of a switch, which management packets go to"},
		{Name: "to_switches", Doc: "of these, pairs whose packets arrive; it does not affect ok"},
		{Name: "left_out", Type: "list of string", Doc: "ports that could not be judged, with the reason: without a LID, or with a LID that another port has too", Long: true},
		{Name: "disjoint", Type: "dict", Doc: "if ports have several LIDs (LMC), how separate the paths to the LIDs of one port are, else None: a dict of ports and lids; pairs, of a source and such a port on another switch; and links and switches, lists of the numbers of these pairs by how many of their paths share no link, or no switch, from 0; by static ports alone, also where switches route adaptively"},
		{Name: "adaptive", Doc: `adaptive routing of the switches: "off", "on", "mixed", or "unknown"; None: not determined`, Long: true},
		{Name: "adaptive_reason", Type: "string", Doc: "why it is mixed or unknown; else None", Long: true},
		{Name: "lanes", Doc: "number of virtual lanes that the paths use"},
		{Name: "apart", Doc: "of the unreachable pairs, those in different parts of a split network"},
		{Name: "parts", Type: "list of dict", Doc: "the parts of a split network with endpoints, the largest first: dicts of nodes (their number), name (of the first node), and cut, names of ports without a link that packets between it and the largest are sent to; empty if all is connected", Long: true},
		{Name: "acyclic_reason", Type: "string", Doc: "why credit loops are not judged; else None", Long: true},
		{Name: "unjudged", Doc: "pairs whose packets come to a switch of no_table"},
		{Name: "no_table", Type: "list of string", Doc: "switches whose table the file does not have: what they do with packets is unknown", Long: true},
	},
}

// verdictValue is the value `verdict`, with a text of its own.
type verdictValue struct {
	*lang.Result
	v *verify.Verdict
}

// WrapVerdict returns v as a value for scripts.
func WrapVerdict(v *verify.Verdict) starlark.Value { return newVerdict(v) }

// newVerdict returns v as a value. ok is None if the choices of adaptive routing or the virtual lanes are unknown.
func newVerdict(v *verify.Verdict) *verdictValue {
	ok, acyclic := starlark.Value(starlark.Bool(v.OK())), starlark.Value(starlark.Bool(v.Acyclic))
	if unknown(v) {
		ok = starlark.None
	}
	if v.LoopUnknown != "" {
		acyclic = starlark.None
	}
	var broken, cycle, violating, parts []starlark.Value
	for i := range v.Parts {
		p := &v.Parts[i]
		first := p.Part.Nodes[0]
		parts = append(parts, lang.DictOf("nodes", starlark.MakeInt(len(p.Part.Nodes)), "name", starlark.String(cmp.Or(first.Name(), first.GUID().String())), "cut", lang.Texts(portNames(p.Cut))))
	}
	for i := range v.Broken {
		b := &v.Broken[i]
		broken = append(broken, lang.DictOf("source", starlark.String(b.From.Name()), "guid", topology.GUIDValue(b.From.GUID()), "lid", starlark.MakeInt(int(b.LID)), "why", starlark.String(b.Why)))
	}
	for _, w := range v.Cycle {
		cycle = append(cycle, lang.DictOf("port", starlark.String(w.Port.Name()), "peer", starlark.String(w.Port.Peer().Name()), "vl", starlark.MakeInt(int(w.VL)), "lid", starlark.MakeInt(int(w.LID))))
	}
	for i := range v.Violating {
		x := &v.Violating[i]
		path := x.Path.Ports()
		violating = append(violating, lang.DictOf("rule", starlark.String(ruleWord(x)), "number", starlark.MakeInt(x.Rule), "source", starlark.String(path[0].Name()), "guid", topology.GUIDValue(path[0].GUID()), "lid", starlark.MakeInt(int(x.Path.LID)), "path", lang.Texts(portNames(path))))
	}
	return &verdictValue{v: v, Result: lang.NewResult(VerdictType,
		ok, lang.TextOrNone(v.Engine), starlark.String(v.Judged), endpointsValue(v),
		starlark.MakeInt64(v.Pairs), starlark.MakeInt64(v.Unreachable), starlark.MakeInt64(v.UnreachableSwitches()), starlark.MakeInt64(v.Excused), starlark.MakeInt64(v.Loops),
		acyclic, starlark.MakeInt(v.MaxHops), lang.Integers(v.Hops), lang.Integers(v.Detours),
		starlark.MakeInt(v.Channels), starlark.MakeInt(v.Dependencies), starlark.MakeInt64(v.Violations),
		starlark.NewList(cycle), starlark.NewList(broken), starlark.NewList(violating), lang.Texts(v.Notes),
		starlark.MakeInt64(v.SwitchPairs), starlark.MakeInt64(v.ToSwitches), lang.Texts(v.LeftOut), disjointValue(v.Disjoint),
		lang.TextOrNone(v.Adaptive.Word()), lang.TextOrNone(v.Reason), starlark.MakeInt(v.Lanes), starlark.MakeInt64(v.Apart), starlark.NewList(parts), lang.TextOrNone(v.LoopUnknown), starlark.MakeInt64(v.Unjudged), lang.Texts(v.NoTable))}
}

// unknown reports whether it is unknown if v is ok: packets that do not arrive are known.
func unknown(v *verify.Verdict) bool {
	return v.Adaptive == verify.AdaptiveUnknown || (v.LoopUnknown != "" || v.Unjudged > 0) && !v.Wrong()
}

// leftOutShown is the largest number of omitted ports that the text names.
const leftOutShown = 10

// Display writes the finding first, then the figures, then examples.
func (x *verdictValue) Display() string {
	v := x.v
	word := "not ok"
	switch {
	case unknown(v):
		word = "unknown"
	case v.OK():
		word = "ok"
		if among := v.Adaptive.Among(); among != "" {
			word += " under any choice among " + among
		}
		if n := v.UnreachableSwitches(); n > 0 {
			word += fmt.Sprintf("; %d of %d paths to LIDs of switches missing", n, v.SwitchPairs)
		}
	}
	if n := len(v.NoTable); n > 0 {
		word += fmt.Sprintf("; the file has no table of %s: %s; %s not judged", plural.Count(n, "switch", "switches"), some(v.NoTable), plural.Count(int(v.Unjudged), "pair", "pairs"))
	}
	rows := []lang.Fact{{Name: "verdict", Value: starlark.String(word)}}
	for _, f := range x.Facts() {
		switch {
		case f.Name == "ok", f.Code, f.Name == "excused" && v.Excused == 0, f.Name == "violations" && v.Violations == 0,
			f.Name == "unreachable_switches" && v.UnreachableSwitches() == 0, f.Name == "lanes" && v.Lanes == 1,
			f.Name == "apart", f.Name == "unjudged", f.Name == "no_table", f.Name == "switch_pairs", f.Name == "to_switches", f.Name == "disjoint":
			continue
		case f.Name == "endpoints":
			f.Value = starlark.String(v.Endpoints)
		case f.Name == "hops":
			f.Value = starlark.String(pairsBy(v.Hops, func(n int) string { return plural.Count(n, "link", "links") }))
		case f.Name == "detours":
			f.Value = starlark.String(pairsBy(v.Detours, func(n int) string {
				if n == 0 {
					return "none"
				}
				return plural.Count(n, "link", "links") + " longer"
			}))
		}
		rows = append(rows, f)
	}
	var b strings.Builder
	b.WriteString(lang.Aligned(rows))
	if v.SwitchPairs > 0 {
		fmt.Fprintf(&b, "to switches: %d of %d\n", v.ToSwitches, v.SwitchPairs)
	}
	if d := v.Disjoint; d != nil && d.Pairs > 0 {
		fmt.Fprintf(&b, "several LIDs: %d ports, up to %d; of %d pairs, paths without a common link: %s; without a common switch: %s\n", d.Ports, d.LIDs, d.Pairs, byNumber(d.Links), byNumber(d.Switches))
	}
	if len(v.LeftOut) > 0 {
		fmt.Fprintf(&b, "ports left out: %d\n", len(v.LeftOut))
		for _, text := range v.LeftOut[:min(len(v.LeftOut), leftOutShown)] {
			b.WriteString("  " + lang.OneLine(text) + "\n")
		}
		if more := len(v.LeftOut) - leftOutShown; more > 0 {
			fmt.Fprintf(&b, "  and %d more\n", more)
		}
	}
	if v.LoopUnknown != "" {
		b.WriteString("credit loops not judged: " + lang.OneLine(v.LoopUnknown) + "\n")
	}
	if len(v.Cycle) > 0 {
		b.WriteString("a credit loop:\n")
		for line := range strings.Lines(verify.FormatCycle(v.Cycle)) {
			b.WriteString("  " + lang.OneLine(strings.TrimSuffix(line, "\n")) + "\n")
		}
	}
	if len(v.Parts) > 0 {
		fmt.Fprintf(&b, "the network is split; %s in different parts:\n", plural.Count(int(v.Apart), "pair", "pairs"))
		for i := range v.Parts[:min(len(v.Parts), leftOutShown)] {
			b.WriteString("  " + lang.OneLine(partText(&v.Parts[i])) + "\n")
		}
		if more := len(v.Parts) - leftOutShown; more > 0 {
			fmt.Fprintf(&b, "  and %d more\n", more)
		}
	}
	if len(v.Broken) > 0 {
		b.WriteString("pairs that do not reach each other, such as:\n")
		for i := range v.Broken {
			b.WriteString("  " + lang.OneLine(brokenText(&v.Broken[i])) + "\n")
		}
	}
	if len(v.Violating) > 0 {
		b.WriteString("paths that break a rule, such as:\n")
		for i := range v.Violating {
			x := &v.Violating[i]
			fmt.Fprintf(&b, "  %s, rule %d: to LID %d: %s\n", ruleWord(x), x.Rule, x.Path.LID, lang.OneLine(strings.Join(portNames(x.Path.Ports()), " > ")))
		}
	}
	for _, note := range v.Notes {
		b.WriteString("note: " + lang.OneLine(note) + "\n")
	}
	return b.String()
}

// some returns the first few of names.
func some(names []string) string {
	const few = 3
	if len(names) > few {
		return strings.Join(names[:few], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// disjointValue returns d as a value for scripts.
func disjointValue(d *verify.Disjointness) starlark.Value {
	if d == nil {
		return starlark.None
	}
	return lang.DictOf("ports", starlark.MakeInt(d.Ports), "lids", starlark.MakeInt(d.LIDs), "pairs", starlark.MakeInt64(d.Pairs), "links", lang.Integers(d.Links), "switches", lang.Integers(d.Switches))
}

// pairsBy lists what a number of links is, and how many pairs have it: "2 links: 96 pairs, 4 links:
// 896 pairs"; "-" without pairs.
func pairsBy(counts []int64, what func(n int) string) string {
	var parts []string
	for n, count := range counts {
		if count > 0 {
			parts = append(parts, what(n)+": "+plural.Count(int(count), "pair", "pairs"))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

// byNumber lists numbers and how many pairs have them: "1 for 96, 2 for 896".
func byNumber(counts []int64) string {
	var parts []string
	for n, count := range counts {
		if count > 0 {
			parts = append(parts, fmt.Sprintf("%d for %d", n, count))
		}
	}
	return strings.Join(parts, ", ")
}

// endpointsValue returns the numbers of endpoints, in total and of each kind.
func endpointsValue(v *verify.Verdict) *starlark.Dict {
	d := lang.DictOf("ports", starlark.MakeInt(v.Terminals), "cas", starlark.MakeInt(v.Counts.CAs), "routers", starlark.MakeInt(v.Counts.Routers), "switches", starlark.MakeInt(v.Counts.Switches))
	classes := starlark.NewDict(len(v.Counts.Classes))
	for _, class := range slices.Sorted(maps.Keys(v.Counts.Classes)) {
		classes.SetKey(starlark.String(class.String()), starlark.MakeInt(v.Counts.Classes[class]))
	}
	d.SetKey(starlark.String("classes"), classes)
	return d
}

// ruleWord returns the parameter with the rule that x breaks.
func ruleWord(x *verify.Violation) string {
	if x.Must {
		return "must_via"
	}
	return "never_via"
}

// portNames returns the names of ports.
func portNames(ports []*fabric.Port) []string {
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = p.Name()
	}
	return names
}

// partText describes a part of a split network, and what cuts it off.
func partText(p *verify.SplitPart) string {
	const most = 4
	if len(p.Cut) == 0 {
		return p.Part.Label()
	}
	text := p.Part.Label() + ", cut off at " + strings.Join(portNames(p.Cut[:min(len(p.Cut), most)]), ", ")
	if more := len(p.Cut) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// brokenText describes a pair that does not reach each other, with the reason.
func brokenText(b *verify.BrokenPair) string {
	return fmt.Sprintf("%s to LID %d: %s", b.From.Label(), b.LID, b.Why)
}

// verifyMethod is routes.verify(): reachability, and cycles in the channel dependency
// graph.
var verifyMethod = lang.Builtin{
	Name:    "verify",
	Returns: "verdict",
	Params: []lang.Param{
		endpointsParam,
		{Name: "require", Kind: lang.KindFunction, Default: "None", Keyword: true, Doc: "a function of two ports that returns whether the first must reach the second (default: all must); it is called only for pairs that do not reach each other"},
		{Name: "union", Kind: kindRoutes, Default: "None", Keyword: true, Doc: "routes that may be active together with these during a change: credit loops of any mixture count"},
		{Name: "never_via", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "rules on what paths must not cross: " + viaDoc},
		{Name: "must_via", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "rules on what paths must cross, at least one element of via; in the same form"},
		{Name: "examples", Kind: lang.KindInt, Default: "10", Keyword: true, Doc: "maximum number of broken pairs to list, and of paths that break a rule"},
		{Name: "lanes", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "whether the virtual lanes of the switches and the service levels of paths are read if the tables close a credit loop without them"},
		{Name: "adaptive", Kind: kindAdaptive, Default: "None", Keyword: true, Doc: `whether the switches are known to route adaptively: True makes the verdict unknown, "minimal" and "updown" judge any choice among minimal ports, or among the legal ports of up*/down* (default: what the routes have on it; where they have nothing, a note)`},
	},
	Doc: `Follows the packets between all pairs of endpoints, and returns whether all arrive and none can deadlock: a verdict.
It lists the endpoints that it assumed. Where routes have choices, as of adaptive routing, every choice must arrive and none may loop; for credit loops all of them count at once, for service levels with and without adaptive routing, hashing and fast recovery included. It searches for credit loops among links and virtual lanes, and lists one link by link.
On one virtual lane, tables of OpenSM's dfsssp, lash, nue with several lanes and torus-2QoS close credit loops. With lanes=True, the SL2VL of the switches and path records decide: all of at most 512 LIDs, else those of at most 4,096 paths that cover the loop. If they cannot be read, or these paths close no loop, acyclic is None, and acyclic_reason states why.
With adaptive="minimal", all minimal ports count at once, so the verdict holds for any choice of the switches, as long as packets keep their virtual lane.
never_via and must_via are rules on the nodes, ports or links that paths cross (a port stands for its link, in both directions). Pairs that do not reach each other break no rule. Where routes have choices, a pair breaks a rule if one of the paths that switches may choose does.`,
	Example: `
> v = discover().graph().route("ftree").verify()
> v.ok, v.unreachable, v.acyclic, v.max_hops
(True, 0, True, 4)
> t = discover().graph().route("ftree")
> t.verify(adaptive="minimal").judged
"static forwarding tables, SL 0, and any choice among minimal ports"
> v = t.verify(never_via=("node-0001 HCA-1", "node-0008 HCA-1", "spine-4"))
> v.ok, v.violations, v.violating[0]["path"][:3]
(False, 1, ["node-0001 HCA-1/1", "leaf-1/1", "leaf-1/8"])
`,
	Run: lang.Do(func(c *lang.Call, a *verifyArgs) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		class, err := a.class(v.graph.g)
		if err != nil {
			return nil, err
		}
		if a.Examples < 1 {
			return nil, lang.ParamError("examples", "got %d, want at least 1", a.Examples)
		}
		o := verify.Options{Endpoints: class, Examples: a.Examples, Union: a.Union}
		if a.Adaptive != nil {
			o.Adaptive = *a.Adaptive
		}
		var failed error
		if a.Require != nil {
			o.Require = requirementOf(c.Thread, a.Require, &failed)
		}
		for _, p := range []struct {
			name string
			v    starlark.Value
			must bool
		}{{"never_via", a.NeverVia, false}, {"must_via", a.MustVia, true}} {
			rules, err := viaRules(v.graph.g, p.name, p.v, p.must)
			if err != nil {
				return nil, err
			}
			o.Via = append(o.Via, rules...)
		}
		defer progress(c, "verifying the tables")()
		j, err := verify.Tables(c.Fiber().Context, v.Tables, o)
		if err == nil && a.Lanes {
			j, err = InLanes(c, v.Tables, o, j)
		}
		if failed != nil {
			err = failed
		}
		if err != nil {
			return nil, computeError(c, err)
		}
		return newVerdict(j), nil
	}),
}

// verifyArgs are the arguments of verify; nil means not given.
type verifyArgs struct {
	endpointsArg
	Require  starlark.Callable
	Union    *routes.Routes
	Examples int
	Adaptive *verify.Adaptive
	Lanes    bool

	NeverVia, MustVia starlark.Value
}

// requirementOf returns a function that calls the script's function require. After its first
// failure it is not called again, since no verdict is returned then.
func requirementOf(t *starlark.Thread, require starlark.Callable, failed *error) func(src, dst *graph.Terminal) bool {
	return func(src, dst *graph.Terminal) bool {
		if *failed != nil {
			return true
		}
		answer, err := starlark.Call(t, require, starlark.Tuple{topology.PortOf(src.Port), topology.PortOf(dst.Port)}, nil)
		if err != nil {
			*failed = err
			return true
		}
		return bool(answer.Truth())
	}
}

// viaDoc is the help of never_via and must_via.
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

// terminalsOf returns the ports with LIDs that v names; None means all ports of CAs and routers.
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

// FailureType is the type of the elements of the result of routes.fail_each_link().
var FailureType = &lang.ResultType{
	Name: "link_failure",
	Doc:  "The effects of the failure of one link between switches.",
	Members: []lang.ResultMember{
		{Name: "link", Type: "string", Doc: "one of its ports"},
		{Name: "peer", Type: "string", Doc: "the other"},
		{Name: "pairs", Doc: "number of pairs of an endpoint and a LID of another that lose packets until tables are changed"},
		{Name: "cuts", Doc: "True if no tables can replace it: it is the only link between two parts of the network"},
		{Name: "lost", Doc: "in that case, number of pairs of endpoints that it separates"},
	},
}

// predictedFailureType is the type of a failure with a prediction.
var predictedFailureType = &lang.ResultType{
	Name: "predicted_failure",
	Doc:  "The effects of the failure of one link between switches, and of the tables that the subnet manager is expected to make then.",
	Members: append(slices.Clone(FailureType.Members),
		lang.ResultMember{Name: "rerouted", Doc: "number of pairs that take another path by the new tables"},
		lang.ResultMember{Name: "load_after", Doc: "the largest load of a link by the new tables: pairs of ports, per capacity where rates differ"},
		lang.ResultMember{Name: "idle_links", Doc: "number of links between switches that fall out of use"},
		lang.ResultMember{Name: "prediction", Type: "string", Doc: "the prediction in words, with the engines that were considered"}),
}

// failuresMethod is routes.fail_each_link().
var failuresMethod = lang.Builtin{
	Name:    "fail_each_link",
	Returns: "list of link_failure",
	Params:  []lang.Param{endpointsParam},
	Doc:     "Returns the effects of each single failure of a link between switches: a list of link_failure, sorted by their first port. Where switches route adaptively, pairs are judged on the choices of packets of reliable connections (RC) with SL 0: pairs are lost whose packets some choice brings to the failed link, at a switch that has no other port for them. Where paths have service levels, or choices depend on input ports, are unknown or loop, static ports are judged.",
	Example: `
> t = discover().graph().route("ftree")
> [f for f in t.fail_each_link() if f.cuts]
[]
`,
	Run: lang.Do(func(c *lang.Call, a *endpointsArg) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		class, err := a.class(v.graph.g)
		if err != nil {
			return nil, err
		}
		defer progress(c, "failing one link after the other")()
		list, _, err := verify.FailEachLink(c.Fiber().Context, v.Tables, class)
		if err != nil {
			return nil, computeError(c, err)
		}
		return wrapFailures(list), nil
	}),
}

// wrapFailures returns a list of results.
func wrapFailures(list []verify.LinkFailure) *starlark.List {
	values := make([]starlark.Value, len(list))
	for i, f := range list {
		fields := []starlark.Value{starlark.String(f.Port.Name()), starlark.String(f.Port.Peer().Name()), starlark.MakeInt64(f.Pairs), starlark.Bool(f.Cuts), starlark.MakeInt64(f.Lost)}
		if p := f.Predicted; p != nil {
			fields = append(fields, starlark.MakeInt64(p.Rerouted), starlark.MakeInt64(p.LoadAfter), starlark.MakeInt64(p.IdleLinks), starlark.String(p.Text))
			values[i] = lang.NewResult(predictedFailureType, fields...)
			continue
		}
		values[i] = lang.NewResult(FailureType, fields...)
	}
	return starlark.NewList(values)
}

// WrapReport returns r as a value to show. Scripts have no such value.
func WrapReport(r *verify.Report) starlark.Value {
	v := &reportValue{routes: newRoutes(r.Routes, newGraph(r.Routes.Graph(), topology.NewFabric(r.Routes.Graph().Fabric())))}
	if r.Verdict != nil {
		v.verdict = newVerdict(r.Verdict)
	}
	if r.Diff != nil {
		v.diff = wrapDiff(r.Routes.Graph(), r.Diff)
	}
	if r.Failures != nil {
		v.failures = wrapFailures(r.Failures)
	}
	return v
}

// ReportDoc describes the output of commands on tables.
func ReportDoc() lang.TypeDoc {
	d := lang.TypeDoc{Name: "policy_report", Schema: (&reportValue{}).Schema(), Doc: "The output of fabsh route, and of fabsh verify with --fail-each-link. Members that were not requested are missing.", Members: []lang.MemberDoc{
		{Name: "policy", Column: true, Doc: "what made the tables"},
		{Name: "switches", Column: true, Doc: "number of switches"},
		{Name: "entries", Column: true, Doc: "number of entries with a port, over all switches"},
	}}
	for _, m := range VerdictType.Members {
		if m.Name != "policy" {
			d.Members = append(d.Members, lang.MemberDoc{Name: m.Name, Column: true, Doc: m.Doc})
		}
	}
	return lang.TypeDoc{Name: d.Name, Schema: d.Schema, Doc: d.Doc, Members: append(d.Members,
		lang.MemberDoc{Name: "diff", Column: true, Doc: "with --diff: a routes_diff"},
		lang.MemberDoc{Name: "failures", Column: true, Doc: "with --fail-each-link: a list of link_failure, or with --manager-engine of predicted_failure"})}
}

// reportValue is a verify.Report in the values of scripts; nil means not requested.
type reportValue struct {
	routes   *Routes
	verdict  *verdictValue
	diff     *lang.Result
	failures *starlark.List
}

var _ lang.Factual = (*reportValue)(nil)

func (r *reportValue) String() string { return r.routes.String() }

func (r *reportValue) Type() string { return "policy_report" }

func (r *reportValue) Freeze() {}

func (r *reportValue) Truth() starlark.Bool { return true }

func (r *reportValue) Hash() (uint32, error) { return 0, lang.Unhashable(r) }

func (r *reportValue) Schema() string { return "policy_report/2" }

func (r *reportValue) Facts() []lang.Fact {
	out := []lang.Fact{
		{Name: "policy", Value: starlark.String(r.routes.Tables.Engine)},
		{Name: "switches", Value: starlark.MakeInt(r.routes.Len())},
		{Name: "entries", Value: starlark.MakeInt(r.routes.Tables.Entries())},
	}
	if r.verdict == nil {
		out = append(out, lang.Fact{Name: "notes", Value: lang.Texts(allNotes(r.routes.Tables))})
	} else {
		for _, f := range r.verdict.Facts() {
			if f.Name != "policy" {
				out = append(out, f)
			}
		}
	}
	if r.diff != nil {
		out = append(out, lang.Fact{Name: "diff", Value: r.diff})
	}
	if r.failures != nil {
		out = append(out, lang.Fact{Name: "failures", Value: r.failures})
	}
	return out
}

func (r *reportValue) Display() string {
	var parts []string
	if r.verdict == nil {
		parts = append(parts, r.routes.Display())
	} else {
		parts = append(parts, r.verdict.Display())
	}
	if r.diff != nil {
		parts = append(parts, "against the current tables:\n"+r.diff.Display())
	}
	if r.failures != nil {
		text := "no link between switches\n"
		if r.failures.Len() > 0 {
			text = lang.RenderText(r.failures)
		}
		parts = append(parts, "if a link fails:\n"+text)
	}
	return strings.Join(parts, "\n")
}
