package routing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// VerdictType is the type of what routes.verify() returns.
var VerdictType = &lang.ResultType{
	Name:    "verdict",
	Version: 2,
	Doc:     "Whether packets arrive, and whether they may deadlock, by forwarding tables and the choices of adaptive routing, between the endpoints that it names.",
	Members: []lang.ResultMember{
		{Name: "ok", Doc: "True if all required packets arrive and cannot deadlock; None if that is unknown because what switches choose is unknown"},
		{Name: "policy", Doc: `what made the tables: an engine, a script; "file", "live"; None: unknown`},
		{Name: "judged", Doc: `what was judged: "static forwarding tables, SL 0"`},
		{Name: "endpoints", Type: "dict", Doc: "numbers of endpoints: a dict of ports (the total), cas, routers, switches, and each class"},
		{Name: "pairs", Doc: "number of pairs of an endpoint and a LID of another"},
		{Name: "unreachable", Doc: "of these, pairs that must reach each other but do not"},
		{Name: "unreachable_switches", Doc: "pairs of an endpoint and a LID of a switch, which management packets go to, whose packets do not arrive; it does not affect ok"},
		{Name: "excused", Doc: "pairs that do not reach each other and, by require, need not"},
		{Name: "loops", Doc: "pairs whose packets loop"},
		{Name: "acyclic", Doc: "True if there are no credit loops"},
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
		{Name: "lanes", Doc: "number of virtual lanes that the paths can take, from VL 0, by the service levels of the tables"},
	},
}

// verdictValue is the value `verdict`, with a text of its own.
type verdictValue struct {
	*lang.Result
	v *verify.Verdict
}

// WrapVerdict returns v as a value for scripts.
func WrapVerdict(v *verify.Verdict) starlark.Value { return newVerdict(v) }

// newVerdict returns v as a value. ok is None if switches route adaptively.
func newVerdict(v *verify.Verdict) *verdictValue {
	ok := starlark.Value(starlark.Bool(v.OK()))
	if v.Adaptive == verify.AdaptiveUnknown {
		ok = starlark.None
	}
	var broken, cycle, violating []starlark.Value
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
		starlark.Bool(v.Acyclic), starlark.MakeInt(v.MaxHops), lang.Integers(v.Hops), lang.Integers(v.Detours),
		starlark.MakeInt(v.Channels), starlark.MakeInt(v.Dependencies), starlark.MakeInt64(v.Violations),
		starlark.NewList(cycle), starlark.NewList(broken), starlark.NewList(violating), lang.Texts(v.Notes),
		starlark.MakeInt64(v.SwitchPairs), starlark.MakeInt64(v.ToSwitches), lang.Texts(v.LeftOut), disjointValue(v.Disjoint),
		lang.TextOrNone(v.Adaptive.Word()), lang.TextOrNone(v.Reason), starlark.MakeInt(v.Lanes))}
}

// leftOutShown is how many of the omitted ports the text names.
const leftOutShown = 10

// Display writes the finding first, then the figures, then examples.
func (x *verdictValue) Display() string {
	v := x.v
	word := "not ok"
	switch {
	case v.Adaptive == verify.AdaptiveUnknown:
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
	rows := []lang.Fact{{Name: "verdict", Value: starlark.String(word)}}
	for _, f := range x.Facts() {
		switch {
		case f.Name == "ok", f.Code, f.Name == "excused" && v.Excused == 0, f.Name == "violations" && v.Violations == 0,
			f.Name == "unreachable_switches" && v.UnreachableSwitches() == 0, f.Name == "lanes" && v.Lanes == 1,
			f.Name == "switch_pairs", f.Name == "to_switches", f.Name == "disjoint":
			continue
		case f.Name == "endpoints":
			f.Value = starlark.String(v.Endpoints)
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
	if len(v.Cycle) > 0 {
		b.WriteString("a credit loop:\n")
		for line := range strings.Lines(verify.FormatCycle(v.Cycle)) {
			b.WriteString("  " + lang.OneLine(strings.TrimSuffix(line, "\n")) + "\n")
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

// disjointValue returns d as a value for scripts.
func disjointValue(d *verify.Disjointness) starlark.Value {
	if d == nil {
		return starlark.None
	}
	return lang.DictOf("ports", starlark.MakeInt(d.Ports), "lids", starlark.MakeInt(d.LIDs), "pairs", starlark.MakeInt64(d.Pairs), "links", lang.Integers(d.Links), "switches", lang.Integers(d.Switches))
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

func portNames(ports []*fabric.Port) []string {
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = p.Name()
	}
	return names
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
		{Name: "adaptive", Kind: kindAdaptive, Default: "None", Keyword: true, Doc: `whether the switches are known to route adaptively: True makes the verdict unknown, "minimal" and "updown" judge any choice among minimal ports, or among the legal ports of up*/down* (default: what the routes have on it; where they have nothing, a note)`},
	},
	Doc: `Follows the packets between all pairs of endpoints, and returns whether all arrive and none can deadlock: a verdict.
It lists the endpoints that it assumed. Where routes have choices, as of adaptive routing, every choice must arrive and none may loop; for credit loops all of them count at once, for service levels with and without adaptive routing, hashing and fast recovery included. It searches for credit loops among links and virtual lanes, and lists one link by link.
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

	NeverVia, MustVia starlark.Value
}

// requirementOf calls the script's function require. After its first failure it is not
// called again, since no verdict is returned then.
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
