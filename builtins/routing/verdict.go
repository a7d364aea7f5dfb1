package routing

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing"
)

// VerdictType is the type of what routes.verify() returns.
var VerdictType = &lang.ResultType{
	Name: "verdict",
	Doc:  "Whether packets arrive, and whether they may deadlock: of static forwarding tables, between the endpoints that it names.",
	Members: []lang.ResultMember{
		{Name: "ok", Doc: "all that must arrive does, and cannot deadlock; None where that is unknown, for switches route adaptively"},
		{Name: "policy", Doc: `what made the tables: an engine, a script; "file", "live"; None if nothing is known`},
		{Name: "judged", Doc: `what was judged: "static forwarding tables, SL 0"`},
		{Name: "endpoints", Doc: "between which ports, and how many"},
		{Name: "pairs", Doc: "pairs of an endpoint and a LID of another"},
		{Name: "unreachable", Doc: "of these, how many must reach each other and do not"},
		{Name: "excused", Doc: "how many do not, but need not by require"},
		{Name: "loops", Doc: "pairs whose packets go round in circles"},
		{Name: "acyclic", Doc: "there are no credit loops"},
		{Name: "max_hops", Doc: "links on the longest path, those of the end ports included"},
		{Name: "hops", Doc: "pairs by number of links on the path, from 0"},
		{Name: "detours", Doc: "pairs by how many links more than necessary they take, from 0"},
		{Name: "channels", Doc: "links, one way, that paths take, counted for each virtual lane", Long: true},
		{Name: "waits", Doc: "pairs of these of which one may wait for the other", Long: true},
		{Name: "cycle", Doc: "a credit loop, link by link; empty if there is none", Long: true},
		{Name: "broken", Doc: "examples of pairs that do not reach each other, and why", Long: true},
		{Name: "notes", Doc: "what else to know", Long: true},
	},
}

// verdictValue is the value `verdict`, with a text of its own.
type verdictValue struct {
	*lang.Result
	v *routing.Verdict
}

// WrapVerdict is v as scripts see it.
func WrapVerdict(v *routing.Verdict) starlark.Value { return newVerdict(v) }

// newVerdict is v as a result. ok is None where switches route adaptively.
func newVerdict(v *routing.Verdict) *verdictValue {
	ok := starlark.Value(starlark.Bool(v.OK()))
	if v.Adaptive == routing.AdaptiveOn {
		ok = starlark.None
	}
	var broken, cycle []string
	for i := range v.Broken {
		broken = append(broken, brokenText(&v.Broken[i]))
	}
	for line := range strings.Lines(routing.FormatCycle(v.Cycle)) {
		cycle = append(cycle, strings.TrimSuffix(line, "\n"))
	}
	return &verdictValue{v: v, Result: lang.NewResult(VerdictType,
		ok, textOrNone(v.Engine), starlark.String(v.Judged), starlark.String(v.Endpoints),
		starlark.MakeInt64(v.Pairs), starlark.MakeInt64(v.Unreachable), starlark.MakeInt64(v.Excused), starlark.MakeInt64(v.Loops),
		starlark.Bool(v.Acyclic), starlark.MakeInt(v.MaxHops), lang.Integers(v.Hops), lang.Integers(v.Detours),
		starlark.MakeInt(v.Channels), starlark.MakeInt(v.Dependencies), lang.Texts(cycle), lang.Texts(broken), lang.Texts(v.Notes))}
}

// Display writes the finding first, then the figures, then examples.
func (x *verdictValue) Display() string {
	v := x.v
	word := "not ok"
	switch {
	case v.Adaptive == routing.AdaptiveOn:
		word = "unknown"
	case v.OK():
		word = "ok"
	}
	rows := []lang.Fact{{Name: "verdict", Value: starlark.String(word)}}
	for _, f := range x.Facts() {
		if f.Name != "ok" && !f.Code && (f.Name != "excused" || v.Excused > 0) {
			rows = append(rows, f)
		}
	}
	var b strings.Builder
	b.WriteString(lang.Aligned(rows))
	if len(v.Cycle) > 0 {
		b.WriteString("a credit loop:\n")
		for line := range strings.Lines(routing.FormatCycle(v.Cycle)) {
			b.WriteString("  " + lang.OneLine(strings.TrimSuffix(line, "\n")) + "\n")
		}
	}
	if len(v.Broken) > 0 {
		b.WriteString("pairs that do not reach each other, such as:\n")
		for i := range v.Broken {
			b.WriteString("  " + lang.OneLine(brokenText(&v.Broken[i])) + "\n")
		}
	}
	for _, note := range v.Notes {
		b.WriteString("note: " + lang.OneLine(note) + "\n")
	}
	return b.String()
}

// brokenText is a pair that does not reach each other, and why.
func brokenText(b *routing.BrokenPair) string {
	return fmt.Sprintf("%s to LID %d: %s", b.From.Label(), b.LID, b.Why)
}

// verifyMethod is routes.verify(): reachability, and cycles in the channel dependency
// graph.
var verifyMethod = lang.Builtin{
	Name:    "verify",
	Returns: "verdict",
	Params: []lang.Param{
		endpointsParam,
		{Name: "require", Kind: lang.KindFunction, Default: "None", Keyword: true, Doc: "a function of two ports: whether the first must reach the second; else all must. It is asked only about pairs that do not"},
		{Name: "union", Kind: kindRoutes, Default: "None", Keyword: true, Doc: "routes that may be in force beside these, while one takes the other's place: credit loops of any mixture count"},
		{Name: "examples", Kind: lang.KindInt, Default: "10", Keyword: true, Doc: "how many broken pairs are told"},
		{Name: "adaptive", Kind: lang.KindBool, Default: "None", Keyword: true, Doc: "whether the switches are known to route adaptively: then the verdict is unknown; else a note says that nobody knows"},
	},
	Doc: `Follows the packets between all pairs of endpoints, and says whether all arrive and none can deadlock: a verdict.
It judges static tables, and names the endpoints it assumed. Credit loops are looked for among links and virtual lanes; one that is found is told link by link.`,
	Example: `
> v = discover().graph().route("ftree").verify()
> v.ok, v.unreachable, v.acyclic, v.max_hops
(True, 0, True, 4)
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
		o := routing.VerifyOptions{Endpoints: class, Examples: a.Examples, Union: a.Union}
		switch {
		case a.Adaptive == nil:
		case *a.Adaptive:
			o.Adaptive = routing.AdaptiveOn
		default:
			o.Adaptive = routing.AdaptiveOff
		}
		var failed error
		if a.Require != nil {
			o.Require = requirementOf(c.Thread, a.Require, &failed)
		}
		j, err := v.Tables.Verify(c.Fiber().Context, o)
		if failed != nil {
			err = failed
		}
		if err != nil {
			return nil, computeError(c, err)
		}
		return newVerdict(j), nil
	}),
}

// verifyArgs are the arguments of verify. What is nil was not given.
type verifyArgs struct {
	endpointsArg
	Require  starlark.Callable
	Union    *routing.Routes
	Examples int
	Adaptive *bool
}

// requirementOf calls the script's function require. After its first failure
// it is not called again: the verdict is not returned then.
func requirementOf(t *starlark.Thread, require starlark.Callable, failed *error) func(src, dst *routing.Terminal) bool {
	return func(src, dst *routing.Terminal) bool {
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
