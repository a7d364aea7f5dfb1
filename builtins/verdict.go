package builtins

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/fabric/routing"
)

// verdictType describes the results of verify.
var verdictType = &resultType{
	name: "verdict",
	doc:  "Whether packets arrive, and whether they may deadlock: of static forwarding tables, between the endpoints that it names.",
	members: []resultMember{
		{name: "ok", doc: "all that must arrive does, and cannot deadlock; None where that is unknown, for switches route adaptively"},
		{name: "policy", doc: `what made the tables: an engine, a script; "file", "live"; None if nothing is known`},
		{name: "judged", doc: `what was judged: "static forwarding tables, SL 0"`},
		{name: "endpoints", doc: "between which ports, and how many"},
		{name: "pairs", doc: "pairs of an endpoint and a LID of another"},
		{name: "unreachable", doc: "of these, how many must reach each other and do not"},
		{name: "excused", doc: "how many do not, but need not by require"},
		{name: "loops", doc: "pairs whose packets go round in circles"},
		{name: "acyclic", doc: "there are no credit loops"},
		{name: "max_hops", doc: "links on the longest path, those of the end ports included"},
		{name: "hops", doc: "pairs by number of links on the path, from 0"},
		{name: "detours", doc: "pairs by how many links more than necessary they take, from 0"},
		{name: "channels", doc: "links, one way, that paths take, counted for each virtual lane", long: true},
		{name: "waits", doc: "pairs of these of which one may wait for the other", long: true},
		{name: "cycle", doc: "a credit loop, link by link; empty if there is none", long: true},
		{name: "broken", doc: "examples of pairs that do not reach each other, and why", long: true},
		{name: "notes", doc: "what else to know", long: true},
	},
}

// verdictValue is the value `verdict`.
type verdictValue struct {
	*result
	v *routing.Verdict
}

// WrapVerdict is v as scripts see it.
func WrapVerdict(v *routing.Verdict) starlark.Value { return newVerdict(v) }

func newVerdict(v *routing.Verdict) *verdictValue {
	ok := starlark.Value(starlark.Bool(v.OK()))
	if v.Adaptive == routing.AdaptiveOn {
		ok = starlark.None
	}
	var broken, cycle []string
	for i := range v.Broken {
		broken = append(broken, brokenText(&v.Broken[i]))
	}
	for line := range strings.Lines(routing.Walk(v.Cycle)) {
		cycle = append(cycle, strings.TrimSuffix(line, "\n"))
	}
	return &verdictValue{v: v, result: newResult(verdictType,
		ok, textOrNone(v.Engine), starlark.String(v.Policy), starlark.String(v.Endpoints),
		starlark.MakeInt64(v.Pairs), starlark.MakeInt64(v.Unreachable), starlark.MakeInt64(v.Excused), starlark.MakeInt64(v.Loops),
		starlark.Bool(v.Acyclic), starlark.MakeInt(v.MaxHops), integers(v.Hops), integers(v.Detours),
		starlark.MakeInt(v.Channels), starlark.MakeInt(v.Waits), texts(cycle), texts(broken), texts(v.Notes))}
}

// display writes the finding first, then the figures, then examples.
func (x *verdictValue) display() string {
	v := x.v
	word := "not ok"
	switch {
	case v.Adaptive == routing.AdaptiveOn:
		word = "unknown"
	case v.OK():
		word = "ok"
	}
	rows := []fact{{name: "verdict", value: starlark.String(word)}}
	for _, f := range x.facts() {
		if f.name != "ok" && !f.code && (f.name != "excused" || v.Excused > 0) {
			rows = append(rows, f)
		}
	}
	var b strings.Builder
	b.WriteString(aligned(rows))
	if len(v.Cycle) > 0 {
		b.WriteString("a credit loop:\n")
		for line := range strings.Lines(routing.Walk(v.Cycle)) {
			b.WriteString("  " + oneLine(strings.TrimSuffix(line, "\n")) + "\n")
		}
	}
	if len(v.Broken) > 0 {
		b.WriteString("pairs that do not reach each other, such as:\n")
		for i := range v.Broken {
			b.WriteString("  " + oneLine(brokenText(&v.Broken[i])) + "\n")
		}
	}
	for _, note := range v.Notes {
		b.WriteString("note: " + oneLine(note) + "\n")
	}
	return b.String()
}

func brokenText(b *routing.Broken) string {
	return fmt.Sprintf("%s to LID %d: %s", b.From.Label(), b.LID, b.Why)
}

var verifyMethod = Builtin{
	Name: "verify",
	Params: []Param{
		{Name: "endpoints", Kind: KindChoice, Default: "None", Keyword: true, Doc: "between which ports: " + classWords + "; else all ports of CAs and routers"},
		{Name: "require", Kind: KindFunction, Default: "None", Keyword: true, Doc: "a function of two ports: whether the first must reach the second; else all must. It is asked only about pairs that do not"},
		{Name: "union", Kind: KindAny, Default: "None", Keyword: true, Doc: "routes that may be in force beside these, while one takes the other's place: credit loops of any mixture count"},
		{Name: "examples", Kind: KindInt, Default: "10", Keyword: true, Doc: "how many broken pairs are told"},
		{Name: "adaptive", Kind: KindBool, Default: "None", Keyword: true, Doc: "whether the switches are known to route adaptively: then the verdict is unknown; else a note says that nobody knows"},
	},
	Doc: `Follows the packets between all pairs of endpoints, and says whether all arrive and none can deadlock: a verdict.
It judges static tables, and names the endpoints it assumed. Credit loops are looked for among links and virtual lanes; one that is found is told link by link.`,
	Example: `
> v = discover().graph().route("ftree").verify()
> v.ok, v.unreachable, v.acyclic, v.max_hops
(True, 0, True, 4)
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*routesValue)
		class, err := c.endpoints()
		if err != nil {
			return nil, err
		}
		o := routing.VerifyOptions{Endpoints: class, Examples: c.Int("examples")}
		if o.Examples < 1 {
			return nil, c.paramError("examples", "got %d, want at least 1", o.Examples)
		}
		if o.With, err = c.routesOf("union"); err != nil {
			return nil, err
		}
		switch {
		case !c.Has("adaptive"):
		case c.Bool("adaptive"):
			o.Adaptive = routing.AdaptiveOn
		default:
			o.Adaptive = routing.AdaptiveOff
		}
		var failed error
		if c.Has("require") {
			o.Require = func(src, dst *routing.Terminal) bool {
				if failed != nil {
					return true
				}
				var answer starlark.Value
				answer, failed = starlark.Call(c.thread, c.Value("require"), starlark.Tuple{port{src.Port}, port{dst.Port}}, nil)
				return failed != nil || bool(answer.Truth())
			}
		}
		j, err := v.r.Verify(c.fiber().ctx, o)
		if failed != nil {
			err = failed
		}
		if err != nil {
			return nil, c.computed(err)
		}
		return newVerdict(j), nil
	},
}

var failureType = &resultType{
	name: "link_failure",
	doc:  "What the failure of one link between switches would break.",
	members: []resultMember{
		{name: "link", doc: "one of its ports"},
		{name: "peer", doc: "the other"},
		{name: "pairs", doc: "pairs of an endpoint and a LID of another whose packets take it, until tables are changed"},
		{name: "cuts", doc: "no tables help: it is the only way between two parts of the network"},
		{name: "lost", doc: "then, pairs of endpoints that it parts"},
	},
}

var failuresMethod = Builtin{
	Name:   "fail_each_link",
	Params: []Param{{Name: "endpoints", Kind: KindChoice, Default: "None", Keyword: true, Doc: "between which ports: " + classWords + "; else all ports of CAs and routers"}},
	Doc:    "Says what each single failure of a link between switches would break: a list of link_failure, by their first port.",
	Example: `
> t = discover().graph().route("ftree")
> [f for f in t.fail_each_link() if f.cuts]
[]
`,
	fn: func(c *call) (starlark.Value, error) {
		class, err := c.endpoints()
		if err != nil {
			return nil, err
		}
		list, err := c.recv.(*routesValue).r.FailEachLink(c.fiber().ctx, class)
		if err != nil {
			return nil, c.computed(err)
		}
		return failuresOf(list), nil
	},
}

func failuresOf(list []routing.LinkFailure) *starlark.List {
	values := make([]starlark.Value, len(list))
	for i, f := range list {
		values[i] = newResult(failureType, starlark.String(f.Port.Name()), starlark.String(f.Port.Peer().Name()),
			starlark.MakeInt64(f.Pairs), starlark.Bool(f.Cuts), starlark.MakeInt64(f.Lost))
	}
	return starlark.NewList(values)
}
