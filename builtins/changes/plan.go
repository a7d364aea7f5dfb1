package changes

import (
	"cmp"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/plural"
)

// Value is the value `plan`. It never changes.
type Value struct {
	*change.Plan
	rounds, sets *starlark.List // made when first read
}

var _ lang.Factual = (*Value)(nil)

// PlanType is the type of plans. It is made by init, because its methods make values of it.
var PlanType *lang.Type[*Value]

func init() {
	PlanType = lang.NewType("plan", "An intended change: its writes, their order, and the result of the proof.",
		lang.Member[*Value]{Name: "source", Type: "string", Column: true, Doc: `its origin: "maintenance.star", "ftree"`, Get: func(v *Value) starlark.Value { return starlark.String(v.From) }},
		lang.Member[*Value]{Name: "ok", Column: true, Doc: "an order was found and proven; None of a plan from a file, which is not verified", Get: func(v *Value) starlark.Value {
			if v.Report == nil {
				return starlark.None
			}
			return starlark.Bool(v.Report.OK)
		}},
		lang.Member[*Value]{Name: "verdict", Type: "string", Column: true, Doc: "the writes, their order and their effect; or why the plan is not ok; of a plan from a file, the writes", Get: func(v *Value) starlark.Value {
			return starlark.String(v.verdict())
		}},
		lang.Member[*Value]{Name: "rounds", Type: "list of plan_round", Column: true, Doc: "the rounds of the forwarding tables, in their order", Get: rounds},
		reportMember("pairs", "pairs of an endpoint and a LID of another whose packets take other links in the end", func(r *change.Report) int64 { return r.Pairs }),
		reportMember("lost", "pairs that have a path and would have none", func(r *change.Report) int64 { return r.Lost }),
		reportMember("gained", "pairs that have no path and would have one", func(r *change.Report) int64 { return r.Gained }),
		reportMember("load_before", "the largest load of a link: pairs of ports, per capacity where rates differ; 0 if no pair takes other links", func(r *change.Report) int64 { return r.LoadBefore }),
		reportMember("load_after", "the same, after the change", func(r *change.Report) int64 { return r.LoadAfter }),
		lang.Member[*Value]{Name: "effect", Type: "link_effect", Column: true, Doc: "the effect of the links that it takes down, predicted; None: it takes no link down", Get: func(v *Value) starlark.Value {
			if v.Report == nil {
				return starlark.None
			}
			return EffectValue(v.Report.Effect)
		}},
		lang.Member[*Value]{Name: "not_judged", Column: true, Doc: "what the proof does not cover, as strings", Get: func(v *Value) starlark.Value {
			if v.Report == nil {
				return lang.Texts(nil)
			}
			return lang.Texts(v.Report.NotJudged)
		}},
		lang.Member[*Value]{Name: "static", Type: "list of string", Column: true, Doc: "the switches whose adaptive routing it disables, which a revert does not restore; None: static routing was not requested", Get: func(v *Value) starlark.Value {
			if !v.Static {
				return starlark.None
			}
			var names []string
			for _, s := range v.Disables {
				names = append(names, cmp.Or(s.Name, s.GUID.String()))
			}
			return lang.Texts(names)
		}},
		lang.Member[*Value]{Name: "certificate", Type: "string", Column: true, Doc: "what its certificate proves, which fabsh change check verifies; None without a certificate", Get: func(v *Value) starlark.Value {
			return lang.TextOrNone(certificateText(v.Certificate))
		}},
		lang.Member[*Value]{Name: "manager", Type: "string", Column: true, Doc: "the subnet manager that was in charge; None: no manager", Get: func(v *Value) starlark.Value {
			if v.Base.Manager == nil {
				return starlark.None
			}
			return starlark.String(v.Base.Manager.String())
		}},
		lang.Member[*Value]{Name: "sets", Type: "list of planned_set", Column: true, Doc: "the writes, in the order of the requests", Get: sets},
		lang.Member[*Value]{Method: &verifyMethod},
		lang.Member[*Value]{Method: &saveMethod},
		lang.Member[*Value]{Method: &applyMethod},
	)
}

// reportMember returns a member that is a figure of the report; None without a report.
func reportMember(name, doc string, of func(*change.Report) int64) lang.Member[*Value] {
	return lang.Member[*Value]{Name: name, Type: "int", Column: true, Doc: doc, Get: func(v *Value) starlark.Value {
		if v.Report == nil {
			return starlark.None
		}
		return starlark.MakeInt64(of(v.Report))
	}}
}

// RoundType is the type of a plan's rounds.
var RoundType = &lang.ResultType{
	Name: "plan_round",
	Doc:  "A round of writes: in any order, all of them read back before the next round.",
	Members: []lang.ResultMember{
		{Name: "blocks", Doc: "how many blocks of forwarding tables"},
		{Name: "switches", Doc: "on how many switches"},
		{Name: "lanes", Doc: "the round consists of the writes of SL2VL"},
		{Name: "wait", Doc: "seconds to wait after it, until packets on old paths have left"},
	},
}

// SetType is the type of a plan's writes.
var SetType = &lang.ResultType{
	Name:      "planned_set",
	Doc:       "One Set of a plan.",
	Important: []string{"attribute", "target", "change", "modifier"},
	Members: []lang.ResultMember{
		{Name: "attribute", Doc: `"LinearForwardingTable"`},
		{Name: "target", Type: "string", Doc: "the name of the node"},
		{Name: "guid", Type: "string", Doc: "its GUID"},
		{Name: "modifier", Doc: "the attribute modifier: the block, the port"},
		{Name: "change", Doc: `the change: "64..127: 3 entries", "port_physical_state 5 to 3"`},
		{Name: "line", Doc: "the position in the script; None: unknown"},
		{Name: "before", Doc: "the block before, bytes; None where fields are changed", Long: true},
		{Name: "after", Doc: "the block after, bytes; None where fields are changed", Long: true},
		{Name: "route", Doc: "the directed route to the node when the plan was made", Long: true},
	},
}

func (v *Value) String() string {
	return "plan(" + v.From + ", " + plural.Count(len(v.Sets), "Set", "Sets") + ")"
}
func (v *Value) Type() string                             { return "plan" }
func (v *Value) Freeze()                                  {}
func (v *Value) Truth() starlark.Bool                     { return true }
func (v *Value) Hash() (uint32, error)                    { return 0, lang.Unhashable(v) }
func (v *Value) AttrNames() []string                      { return PlanType.Names }
func (v *Value) TypeDoc() lang.TypeDoc                    { return PlanType.TypeDoc() }
func (v *Value) Schema() string                           { return PlanType.Schema() }
func (v *Value) Facts() []lang.Fact                       { return PlanType.Facts(v) }
func (v *Value) Attr(name string) (starlark.Value, error) { return PlanType.Attr(v, name) }

func rounds(v *Value) starlark.Value {
	if v.rounds != nil {
		return v.rounds
	}
	var list []starlark.Value
	for _, r := range v.ordered() {
		list = append(list, lang.NewResult(RoundType, starlark.MakeInt(r.Blocks), starlark.MakeInt(r.Switches), starlark.Bool(r.Lanes), starlark.Float(r.Drain.Seconds())))
	}
	v.rounds = starlark.NewList(list)
	v.rounds.Freeze()
	return v.rounds
}

func sets(v *Value) starlark.Value {
	if v.sets != nil {
		return v.sets
	}
	var list []starlark.Value
	for i := range v.Sets {
		s := &v.Sets[i]
		route := starlark.Value(starlark.None)
		if len(s.Routes) > 0 {
			route = starlark.String(s.Routes[0].String())
		}
		list = append(list, lang.NewResult(SetType, starlark.String(s.Attr.Name), starlark.String(s.Name), topology.GUIDValue(s.Node), starlark.MakeUint64(uint64(s.Modifier)), starlark.String(s.Changed()), lang.TextOrNone(s.Line), lang.OrNone(s.Fields == nil, starlark.Bytes(s.Old)), lang.OrNone(s.Fields == nil, starlark.Bytes(s.New)), route))
	}
	v.sets = starlark.NewList(list)
	v.sets.Freeze()
	return v.sets
}

// setsShown is the maximum number of Sets that the text names.
const setsShown = 20

// verdict returns the verdict in one line, or, for a plan from a file, its writes.
func (v *Value) verdict() string {
	if v.Report == nil {
		return v.Unverified()
	}
	return v.Line(v.Report)
}

// ordered returns the rounds.
func (v *Value) ordered() []change.Extent {
	if v.Report == nil {
		return v.Extents()
	}
	return v.Report.Rounds
}

// certificateText describes what a certificate proves; "": no certificate.
func certificateText(c *certificate.Certificate) string {
	switch {
	case c == nil:
		return ""
	case c.AcceptCreditLoops:
		return "delivery; not credit loops, which were accepted"
	case c.Lanes > 1:
		return "delivery, and no new credit loop on any virtual lane"
	}
	return "delivery, and no new credit loop"
}

// Display writes the verdict first, then figures, rounds and Sets. What a file records
// of the proof is marked as such: only a check against the fabric shows whether it
// holds.
func (v *Value) Display() string {
	var b strings.Builder
	for line := range strings.Lines(v.verdict() + "\n") {
		b.WriteString(lang.OneLine(strings.TrimSuffix(line, "\n")) + "\n")
	}
	fmt.Fprintf(&b, "made from: %s\n", lang.OneLine(v.From))
	if v.Base.Manager != nil {
		fmt.Fprintf(&b, "subnet manager: %v\n", v.Base.Manager)
	} else {
		b.WriteString("subnet manager: none\n")
	}
	for i, round := range v.ordered() {
		fmt.Fprintf(&b, "round %d: ", i+1)
		if round.Lanes {
			b.WriteString("virtual lanes of service levels")
		} else if i == 0 && len(v.Disables) > 0 {
			b.WriteString("adaptive routing is disabled: " + plural.Count(round.Blocks, "block", "blocks") + " on " + plural.Count(round.Switches, "switch", "switches") + ", written unchanged")
		} else {
			b.WriteString(plural.Count(round.Blocks, "block", "blocks") + " on " + plural.Count(round.Switches, "switch", "switches"))
		}
		if round.Drain > 0 {
			fmt.Fprintf(&b, ", then a wait of %v", round.Drain)
		}
		b.WriteString("\n")
	}
	if v.Static {
		b.WriteString(lang.OneLine("static routing: "+cmp.Or(v.Disabled(), "adaptive routing was off")) + "\n")
	}
	if text := certificateText(v.Certificate); text != "" {
		b.WriteString("certificate: " + text + "\n")
	}
	v.displayReport(&b)
	for i := range v.Sets[:min(len(v.Sets), setsShown)] {
		s := &v.Sets[i]
		line := ""
		if s.Line != "" {
			line = "  (" + s.Line + ")"
		}
		b.WriteString(lang.OneLine(fmt.Sprintf("%s: %s: %s%s", s.Label(), s.Attr.Name, s.Changed(), line)) + "\n")
	}
	if more := len(v.Sets) - setsShown; more > 0 {
		fmt.Fprintf(&b, "and %s: see .sets, or -o json\n", plural.Count(more, "more Set", "more Sets"))
	}
	return b.String()
}

// displayReport writes the figures of the report, or what the file recorded of them.
func (v *Value) displayReport(b *strings.Builder) {
	r, prefix := v.Report, ""
	if r == nil {
		r, prefix = v.Recorded, "recorded, not verified here: "
	}
	if r == nil {
		return
	}
	if v.Report == nil && !r.OK {
		b.WriteString(prefix + lang.OneLine("not ok: "+r.Reason) + "\n")
	}
	if len(r.Rounds) > 0 {
		fmt.Fprintf(b, "%spairs: %d rerouted, %d lost, %d gained\n", prefix, r.Pairs, r.Lost, r.Gained)
		if r.Pairs > 0 && r.LoadAfter > 0 {
			fmt.Fprintf(b, "%slargest load: %d before, %d after\n", prefix, r.LoadBefore, r.LoadAfter)
		}
	}
	if r.OldLoop != "" {
		b.WriteString(prefix + "credit loop of the tables in force: remains " + lang.OneLine(r.OldLoop) + "\n")
	}
	if r.Effect != nil {
		for _, line := range r.Effect.Lines() {
			b.WriteString(prefix + lang.OneLine(line) + "\n")
		}
	}
	for _, note := range r.NotJudged {
		b.WriteString(prefix + "not judged: " + lang.OneLine(note) + "\n")
	}
}

// Plan is plan().
var Plan = lang.Builtin{
	Name:    "plan",
	Returns: "plan",
	Group:   topology.GroupFabric,
	Params: []lang.Param{
		{Name: "fn", Kind: lang.KindFunction, Doc: "the function whose writes are recorded"},
		{Name: "*args", Kind: lang.KindAny, Doc: "its arguments"},
		{Name: "static", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "plan static routing: a write of a forwarding table disables the adaptive routing of the switch"},
	},
	Doc: `Runs a function with its writes recorded instead of sent, and returns a plan.
Writes of set_*, port_* and smp_set are recorded, and reads return the written values; effects of a write, such as a link that goes down, do not happen, and nothing waits for them. It needs no --write. Requests that cannot be part of a plan are refused: sa_set, mad_send, perf_clear and others. Then the fabric is swept again, and an order is searched and proven. It cannot be called inside parallel(); parallel() inside is allowed.
Where adaptive routing is on, packets do not follow the forwarding table, and a write of it may disable adaptive routing: such a plan is refused without static=True. With it the plan disables adaptive routing first, in an order proven for all choices of the switches, and .static has them; a revert does not restore it.`,
	Example: `
> f = discover()
> p = plan(lambda: port_disable(f.switches[0].ports[5]))
> p.ok, len(p.sets), p.sets[0].change
(True, 1, "port 5: port_physical_state link_up to disabled")
> smp_get("PortInfo", f.switches[0].ports[5]).port_physical_state
"link_up"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		FN     starlark.Callable
		Args   starlark.Tuple
		Static bool
	}) (starlark.Value, error) {
		return Made(c, c.Name, a.Static, func() error {
			_, err := starlark.Call(c.Thread, a.FN, a.Args, nil)
			return err
		})
	}),
}

// Made returns a proven plan of the writes of fn; static requests static routing.
func Made(c *lang.Call, from string, static bool, fn func() error) (starlark.Value, error) {
	p, err := recordPlan(c, from, static, fn)
	if err != nil {
		return nil, err
	}
	if err := provePlan(c, p); err != nil {
		return nil, err
	}
	return &Value{Plan: p}, nil
}

// verifyMethod is plan.verify().
var verifyMethod = lang.Builtin{
	Name:    "verify",
	Returns: "plan",
	Doc: `Sweeps the fabric again, finds and proves an order, and returns the plan with the result.
If the fabric has changed since, that is an error, which lists the changes.`,
	Example: `
> p = plan(lambda: set_lft(discover().switches[0], {40: None}))
> p.verify().ok
False
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		p := *c.Recv.(*Value).Plan
		now, err := newPlan(c, nil, p.From)
		if err != nil {
			return nil, err
		}
		if since := p.Base.Since(&now.Base); len(since) > 0 {
			return nil, c.Refuse("the plan is stale: %s; make the plan again", lang.OneLine(strings.Join(since[:min(len(since), 5)], "; ")))
		}
		if err := provePlan(c, &p); err != nil {
			return nil, err
		}
		return &Value{Plan: &p}, nil
	}),
}

// saveMethod is plan.save().
var saveMethod = lang.Builtin{
	Name:   "save",
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file, below --out"}},
	Doc:    "Writes the plan to a file, for fabsh change show and apply. It returns the path.",
	Example: `
> plan(lambda: set_lft(discover().switches[0], {40: None})).save("m.plan")
"out/m.plan"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Path string }) (starlark.Value, error) {
		var b strings.Builder
		if err := c.Recv.(*Value).Write(&b); err != nil {
			return nil, lang.Errorf("%w", err)
		}
		path, err := c.Runtime().Files.Write(a.Path, []byte(b.String()))
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return starlark.String(path), nil
	}),
}

// EffectType is the type of the effect of links that go down.
var EffectType = &lang.ResultType{
	Name: "link_effect",
	Doc:  "The predicted effect of links that go down. Pairs are those of a port of a CA or router and a LID of another one.",
	Members: []lang.ResultMember{
		{Name: "links", Type: "list of string", Doc: `the links: "leaf-2/7 - spine-1/2"`},
		{Name: "engine", Type: "string", Doc: "the engine of OpenSM that makes the predicted tables, of several those with the largest load; None: the current tables are repaired, or stay"},
		{Name: "through", Doc: "pairs whose packets take the links now"},
		{Name: "lost", Doc: "pairs that have a path and would have none"},
		{Name: "rerouted", Doc: "pairs that would take another path"},
		{Name: "out_of_reach", Doc: "pairs that have a path, and an end that the subnet manager would no longer reach"},
		{Name: "ended", Doc: "pairs that would end because a host keeps another port in place of one that goes down; they are not lost"},
		{Name: "kept", Type: "list of string", Doc: "these other ports: b/1 in place of a/1"},
		{Name: "load_before", Doc: "the largest load of a link: pairs of ports, per capacity where rates differ"},
		{Name: "load_after", Doc: "the same, after the change"},
		{Name: "idle_links", Doc: "links between switches that stay up and would fall out of use"},
		{Name: "idle_switches", Type: "list of string", Doc: "switches that would fall out of use"},
		{Name: "credit_loop", Type: "string", Doc: "a credit loop of the predicted tables; None: they have none"},
		{Name: "refusal", Type: "string", Doc: "why the links should stay up: a node loses its last path, packets could deadlock; None: no reason"},
		{Name: "text", Type: "list of string", Doc: "the effect in words"},
	},
}

// EffectValue returns e as a value; None: no link goes down.
func EffectValue(e *change.Effect) starlark.Value {
	if e == nil {
		return starlark.None
	}
	number := starlark.MakeInt64
	return lang.NewResult(EffectType, lang.Texts(e.Links), lang.TextOrNone(e.Engine), number(e.Through), number(e.Lost), number(e.Rerouted), number(e.OutOfReach), number(e.Ended), lang.Texts(e.Kept), number(e.LoadBefore), number(e.LoadAfter), starlark.MakeInt(e.IdleLinks), lang.Texts(e.IdleSwitches),
		lang.TextOrNone(e.CreditLoop), lang.TextOrNone(e.Refusal()), lang.Texts(e.Lines()))
}
