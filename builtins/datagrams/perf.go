package datagrams

import (
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
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
		calls, err := p.send(mad.MethodGet, modifier, nil)
		if err != nil {
			return nil, err
		}
		for i := range calls {
			if p.answered(i, calls[i].Err) {
				p.values[i] = p.answer(i, records.New(as(calls[i].Data()), calls[i].Data()))
			}
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
