package datagrams

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// variantParam selects the layout of an attribute whose data does not indicate it.
var variantParam = lang.Param{Name: "variant", Kind: lang.KindText, Default: "None", Keyword: true, Doc: `layout of the attribute if its data does not indicate it: "lanes" or "rs_fec" for PortExtendedSpeedsCounters`}

// perfArgs are the arguments that all requests of performance management share.
type perfArgs struct {
	Attr    string
	Target  starlark.Value
	Port    *int
	Variant *string
}

// perfGetArgs are the arguments of perf_get.
type perfGetArgs struct {
	perfArgs
	Modifier int
}

// PerfGet is perf_get, which reads records of an attribute of performance management.
var PerfGet = lang.Builtin{
	Name:    "perf_get",
	Returns: "record of attr",
	Group:   GroupMAD,
	Params: []lang.Param{
		{Name: "attr", Kind: records.KindPerfAttribute, Doc: `name of an attribute: "PortCounters"`},
		{Name: "target", Kind: topology.KindTarget, Doc: "one target or an iterable of them"},
		{Name: "port", Kind: topology.KindPort, Default: "None", Doc: "port number, if the target names none; 255 is the sum of all ports"},
		{Name: "modifier", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "the attribute modifier"},
		variantParam,
	},
	Doc: `Reads an attribute of performance management.
Requests go to the LID of the target, on the service level that the subnet administrator reports for the path.
A session that reads a file with counters (snapshot --all, ibdiagnet2.db_csv) returns these.`,
	Example: `
> sw = discover().switches[0]
> perf_get("PortCounters", sw.ports[3]).symbol_error_counter
0
> [c.port_select for c in perf_get("PortCounters", sw.ports)]
[1, 2, 3, 4, 5, 6, 7, 8]
`,
	Run: lang.Do(func(c *lang.Call, a *perfGetArgs) (starlark.Value, error) {
		attr, err := attributeOf(mad.ClassPerf, a.Attr)
		if err != nil {
			return nil, err
		}
		if err := mad.Allowed(attr.Class, attr.Version, mad.MethodGet, attr.ID); err != nil {
			return nil, lang.Errorf("%w", err)
		}
		modifier, err := modifierOf(a.Modifier)
		if err != nil {
			return nil, err
		}
		as, err := a.variant(attr, modifier)
		if err != nil {
			return nil, err
		}
		p, err := newPerfTargets(c, &a.perfArgs, attr)
		if err != nil {
			return nil, err
		}
		if modifier == 0 {
			if err := p.reuse(as); err != nil {
				return nil, err
			}
		}
		env, began := topology.EnvOf(c.Runtime()), time.Now()
		keeping := env.Keeping()
		calls, err := p.send(mad.MethodGet, modifier, nil)
		if err != nil {
			return nil, err
		}
		for i := range calls {
			if !p.answered(i, calls[i].Err) {
				continue
			}
			r := records.New(as(calls[i].Data()), calls[i].Data())
			if modifier == 0 {
				env.RecentReads.KeepCounters(keeping, &p.targets[i], attr, p.ports[i], r.Data, began)
			}
			p.values[i] = p.answer(i, r)
		}
		topology.Observe(c, attr, p.targets, p.values)
		return p.results()
	}),
}

// perfTargets are the targets and ports of a call about an attribute of performance
// management.
type perfTargets struct {
	*targetRequest
	attr  *mad.Attribute
	ports []int // by target
}

// newPerfTargets resolves the targets and the ports.
func newPerfTargets(c *lang.Call, a *perfArgs, attr *mad.Attribute) (*perfTargets, error) {
	r := &targetRequest{c: c, class: mad.ClassPerf}
	if err := r.resolve(a.Target); err != nil {
		return nil, err
	}
	p := &perfTargets{r, attr, make([]int, len(r.targets))}
	for i := range r.targets {
		port, err := a.port(c, attr, &r.targets[i])
		if err != nil {
			return nil, err
		}
		p.ports[i] = port
	}
	return p, nil
}

// reuse makes the values of targets from counters that an earlier session has read.
func (p *perfTargets) reuse(as func(data []byte) *mad.Attribute) error {
	env := topology.EnvOf(p.c.Runtime())
	for i := range p.targets {
		if p.values[i] != nil {
			continue
		}
		data, again := env.RecentCounters(&p.targets[i], p.attr, p.ports[i])
		switch {
		case again:
			return &lang.ExitError{} // the server repeats the call without recent counters
		case data != nil:
			p.values[i] = p.answer(i, records.New(as(data), data))
		}
	}
	return nil
}

// send sends a request to all targets that have not failed; data, if any, is the
// attribute without its port.
func (p *perfTargets) send(m mad.Method, modifier uint32, data func(i int) []byte) ([]engine.Call, error) {
	return p.targetRequest.send(func(i int, call *engine.Call) {
		content := make([]byte, mad.ClassPerf.DataSize())
		if data != nil {
			copy(content, data(i))
		}
		if f := p.attr.Field("port_select"); f != nil {
			f.SetUint(content, uint64(p.ports[i]))
		}
		call.PutPerf(m, p.attr.ID, modifier, content)
		if m == mad.MethodSet {
			call.Retries = -1 // a second request would clear what was counted after the first
		}
	})
}

// answer returns the answer of target i, with its origin.
func (p *perfTargets) answer(i int, r *records.Record) *records.Record {
	port := topology.NoPortGiven
	if p.attr.Field("port_select") != nil {
		port = p.ports[i]
	}
	return p.targets[i].Answer(r, port)
}

// variant returns the function that determines the layout of an answer: the layout that
// the call names, or the one that the data indicates.
func (a *perfArgs) variant(attr *mad.Attribute, modifier uint32) (func(data []byte) *mad.Attribute, error) {
	if a.Variant == nil {
		return func(data []byte) *mad.Attribute { return attr.Resolve(data, modifier) }, nil
	}
	if as := attr.WithVariant(*a.Variant); as != nil {
		return func([]byte) *mad.Attribute { return as }, nil
	}
	var names []string
	for _, v := range attr.Variants {
		names = append(names, v.Name)
	}
	if len(names) == 0 {
		return nil, lang.ParamError("variant", "%s has only one layout; leave variant out", attr.Name)
	}
	return nil, lang.ParamError("variant", "%s has no variant %q; supported: %s", attr.Name, *a.Variant, strings.Join(names, ", "))
}

// port returns the port of the counters.
func (a *perfArgs) port(c *lang.Call, attr *mad.Attribute, t *topology.Target) (int, error) {
	if attr.Field("port_select") == nil {
		if a.Port != nil {
			return 0, lang.Errorf("%s does not belong to a port; leave port out", attr.Name)
		}
		return 0, nil
	}
	if a.Port != nil && *a.Port == mad.AllPorts {
		return mad.AllPorts, nil
	}
	return portOf(c, attr, a.Port, t)
}

// perfSetArgs are the arguments of perf_set.
type perfSetArgs struct {
	perfGetArgs
	Fields []starlark.Tuple
}

// PerfSet is perf_set, which sets fields of an attribute of performance management.
var PerfSet = lang.Builtin{
	Name:    "perf_set",
	Returns: "record of attr",
	Group:   GroupMAD,
	Params: []lang.Param{
		{Name: "attr", Kind: records.KindPerfAttribute, Doc: `name of an attribute: "PortCounters"`},
		{Name: "target", Kind: topology.KindTarget, Doc: "one target or an iterable of them"},
		{Name: "port", Kind: topology.KindPort, Default: "None", Doc: "port number, if the target names none; 255 means all ports"},
		{Name: "modifier", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "the attribute modifier"},
		variantParam,
		{Name: "**fields", Kind: records.KindFields, Doc: "fields to set and their new values, as words or numbers"},
	},
	Doc: `Sets counters, or another attribute of performance management.
Only the named counters change. The other fields of any other attribute are sent with the values that were read. It returns the attribute, read back. A request that is not answered is not sent again; the attribute that is read back shows its effect. It requires --write; a refusal ends the script with status 2.`,
	Example: `
> p = discover().switches[0].ports[3]
> perf_set("PortCounters", p, symbol_error_counter=7).symbol_error_counter
7
`,
	Run: lang.Do(func(c *lang.Call, a *perfSetArgs) (starlark.Value, error) {
		attr, err := a.settable()
		if err != nil {
			return nil, err
		}
		given := make([]byte, attr.Size)
		var named []*mad.Field
		for _, kv := range a.Fields {
			f, err := records.SetNamed(attr, given, string(kv[0].(starlark.String)), kv[1])
			if err != nil {
				return nil, lang.Errorf("%w", err)
			}
			if f.Script == "port_select" {
				return nil, lang.Errorf("give the port in the parameter port: %s(%q, target, 1)", c.Name, attr.Name)
			}
			named = append(named, f)
		}
		if len(named) == 0 {
			return nil, lang.Errorf("nothing to set; name fields, %s(%q, target, field=value)", c.Name, attr.Name)
		}
		modifier, err := modifierOf(a.Modifier)
		if err != nil {
			return nil, err
		}
		return runPerfChange(c, &a.perfArgs, &perfChange{attr: attr, modifier: modifier, data: given, named: named})
	}),
}

// perfClearArgs are the arguments of perf_clear.
type perfClearArgs struct {
	perfArgs
	Counters starlark.Value
}

// PerfClear is perf_clear, which sets counters to 0.
var PerfClear = lang.Builtin{
	Name:    "perf_clear",
	Returns: "record of attr",
	Group:   GroupMAD,
	Params: []lang.Param{
		{Name: "attr", Kind: records.KindPerfAttribute, Doc: `name of an attribute: "PortCounters"`},
		{Name: "target", Kind: topology.KindTarget, Doc: "one target or an iterable of them"},
		{Name: "port", Kind: topology.KindPort, Default: "None", Doc: "port number, if the target names none; 255 clears the counters of all ports"},
		{Name: "counters", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "names of the counters to clear: one, or a list (default: all of the attribute)"},
		variantParam,
	},
	Doc: `Clears counters of performance management.
It returns the attribute, read back; with traffic, the counters have increased again. A request that is not answered is not sent again, because it would clear what was counted after the first. It requires --write; a refusal ends the script with status 2.`,
	Example: `
> p = discover().switches[0].ports[3]
> c = perf_set("PortCounters", p, symbol_error_counter=7, link_downed_counter=1)
> c = perf_clear("PortCounters", p, counters=["symbol_error_counter"])
> (c.symbol_error_counter, c.link_downed_counter)
(0, 1)
> [c.link_downed_counter for c in perf_clear("PortCounters", discover().switches[0].ports)]
[0, 0, 0, 0, 0, 0, 0, 0]
`,
	Run: lang.Do(func(c *lang.Call, a *perfClearArgs) (starlark.Value, error) {
		attr, err := a.settable()
		if err != nil {
			return nil, err
		}
		change := &perfChange{attr: attr, data: make([]byte, attr.Size)}
		all := CounterNames(attr)
		if len(all) == 0 {
			return nil, lang.Errorf("%s has no counters", attr.Name)
		}
		names := all
		if a.Counters != nil {
			if names, err = textsOf("counters", a.Counters); err != nil {
				return nil, err
			}
		}
		for _, name := range names {
			if !slices.Contains(all, name) {
				return nil, lang.ParamError("counters", "%s has no counter %q%s", attr.Name, name, fabric.DidYouMean(name, all))
			}
			change.named = append(change.named, attr.Field(name))
		}
		switch {
		case len(names) == 0:
			return nil, lang.ParamError("counters", "the list is empty; name at least one, or leave it out")
		case a.Counters == nil && len(attr.Variants) > 0: // the counters of other variants are unknown
			f := attr.Field("counter_select")
			f.SetUint(change.data, f.Max())
		}
		return runPerfChange(c, &a.perfArgs, change)
	}),
}

// settable returns the attribute that the arguments name, which must support Set.
func (a *perfArgs) settable() (*mad.Attribute, error) {
	attr, err := attributeOf(mad.ClassPerf, a.Attr)
	if err != nil {
		return nil, err
	}
	if err := mad.Allowed(attr.Class, attr.Version, mad.MethodSet, attr.ID); err != nil {
		return nil, lang.Errorf("%w", err)
	}
	as, err := a.variant(attr, 0)
	if err != nil || a.Variant == nil {
		return attr, err
	}
	return as(nil), nil
}

// textsOf converts an argument that is a string or an iterable of strings.
func textsOf(param string, v starlark.Value) ([]string, error) {
	values := []starlark.Value{v}
	if it, ok := v.(starlark.Iterable); ok {
		values = lang.Collect(it)
	}
	list := make([]string, len(values))
	for i, v := range values {
		text, ok := starlark.AsString(v)
		if !ok {
			return nil, lang.ParamError(param, "%w", lang.WantType(v, "string"))
		}
		list[i] = text
	}
	return list, nil
}

// CounterNames returns the counters that a Set of the attribute can select.
func CounterNames(attr *mad.Attribute) []string {
	var names []string
	for _, c := range attr.Counters() {
		names = append(names, c.Script)
	}
	return names
}

// perfChange is a Set of some fields of an attribute.
type perfChange struct {
	attr     *mad.Attribute
	modifier uint32
	data     []byte       // the values
	named    []*mad.Field // the fields to set
}

// request returns the data for an agent whose attribute was read as before.
func (p *perfChange) request(before []byte) []byte {
	counters := p.attr.Counters()
	if len(counters) == 0 { // a Set writes all fields
		out := slices.Clone(before[:p.attr.Size])
		for _, f := range p.named {
			copyField(f, out, p.data)
		}
		return out
	}
	out := slices.Clone(p.data)
	for _, c := range counters {
		if slices.Contains(p.named, p.attr.Field(c.Script)) {
			c.Select.SetUint(out, c.Select.Uint(out)|c.Mask())
		}
	}
	return out
}

// runPerfChange reads the attribute, sets it, and reads it back, each step for all
// targets.
func runPerfChange(c *lang.Call, a *perfArgs, change *perfChange) (starlark.Value, error) {
	p, err := newPerfTargets(c, a, change.attr)
	if err != nil {
		return nil, err
	}
	if _, err := topology.MayChange(c, change.attr); err != nil {
		return nil, err
	}
	before, err := p.send(mad.MethodGet, change.modifier, nil)
	if err != nil {
		return nil, err
	}
	for i := range before {
		p.answered(i, before[i].Err)
	}
	sets, err := p.send(mad.MethodSet, change.modifier, func(i int) []byte { return change.request(before[i].Data()) })
	if err != nil {
		return nil, err
	}
	for i := range sets {
		if !engine.Unanswered(sets[i].Err) { // otherwise the read below shows its effect
			p.answered(i, sets[i].Err)
		}
	}
	after, err := p.send(mad.MethodGet, change.modifier, nil)
	if err != nil {
		return nil, err
	}
	var named []string
	for _, f := range change.named {
		named = append(named, f.Script)
	}
	for i := range after {
		if !p.answered(i, after[i].Err) {
			continue
		}
		err := change.compare(before[i].Data(), after[i].Data())
		if err != nil && sets[i].Err != nil {
			err = sets[i].Err
		}
		if p.answered(i, err) {
			p.values[i] = p.answer(i, records.NewAnswer(change.attr, change.modifier, after[i].Data())).ChangedBy(records.Change{Before: before[i].Data(), Fields: named})
		}
	}
	return p.results()
}

// compare checks that the fields have the values that were sent. Counters continue to
// count, so they may be higher; but if all that should be lower are as high as before,
// they were not set.
func (p *perfChange) compare(before, after []byte) error {
	counts := map[string]bool{}
	for _, name := range CounterNames(p.attr) {
		counts[name] = true
	}
	var unchanged *mad.Field
	changed := false
	for _, f := range p.named {
		for e := range f.Count {
			was, want, is := f.UintAt(before, e), f.UintAt(p.data, e), f.UintAt(after, e)
			switch {
			case is == want:
				changed = changed || was != want
			case len(counts) > 0 && !counts[f.Script]: // it selects counters
			case !counts[f.Script], is < want:
				return fmt.Errorf("the Set was sent, but %s is %d, not %d", f.Script, is, want)
			case is >= was && was > want:
				unchanged = f
			default:
				changed = true
			}
		}
	}
	if unchanged != nil && !changed {
		return fmt.Errorf("the Set was sent, but %s is still %d", unchanged.Script, unchanged.Uint(after))
	}
	return nil
}
