package builtins

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/mad"
)

// allPorts is the port number that stands for all (IBA 16.1.3.5 AllPortSelect).
const allPorts = 255

var perfGetBuiltin = Builtin{
	Name:  "perf_get",
	Group: groupMAD,
	Params: []Param{
		{Name: "attr", Kind: KindPerfAttribute, Doc: `name of an attribute: "PortCounters"`},
		{Name: "target", Kind: KindTarget, Doc: "one target or an iterable of them"},
		{Name: "port", Kind: KindPort, Default: "None", Doc: "port number, where the target names none; 255 sums up all ports"},
		{Name: "modifier", Kind: KindInt, Default: "0", Keyword: true, Doc: "the attribute modifier"},
		{Name: "variant", Kind: KindText, Default: "None", Keyword: true, Doc: `which of its layouts the attribute has, where it does not tell: "lanes" or "rs_fec" of PortExtendedSpeedsCounters`},
	},
	Doc: `Reads an attribute of performance management.
Requests go to the LID of the target, on the service level that the subnet administrator gives for the path.`,
	Example: `
> sw = discover().switches[0]
> perf_get("PortCounters", sw.ports[3]).symbol_error_counter
0
> [c.port_select for c in perf_get("PortCounters", sw.ports)]
[1, 2, 3, 4, 5, 6, 7, 8]
`,
	fn: func(c *call) (starlark.Value, error) {
		attr, err := c.attribute(mad.ClassPerf)
		if err != nil {
			return nil, err
		}
		if err := mad.Allowed(attr.Class, attr.Version, mad.MethodGet, attr.ID); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		modifier := c.Int("modifier")
		if modifier < 0 || int64(modifier) > 0xffffffff {
			return nil, c.paramError("modifier", "got %d, want 0..0xffffffff", modifier)
		}
		as, err := c.variantOf(attr, uint32(modifier))
		if err != nil {
			return nil, err
		}
		r := &resolver{c: c}
		targets, many, err := r.targets(c.Value("target"))
		if err != nil {
			return nil, err
		}
		local, err := r.localPort()
		if err != nil {
			return nil, err
		}
		lids := make([]mad.LID, len(targets))
		ports := make([]int, len(targets))
		for i := range targets {
			lids[i] = targets[i].lid
			if ports[i], err = c.perfPort(attr, &targets[i]); err != nil {
				return nil, err
			}
		}
		if err := c.serviceLevels(local, lids); err != nil {
			return nil, err
		}
		values := make([]starlark.Value, len(targets))
		calls := make([]mad.Call, len(targets))
		var open []*mad.Call
		for i := range targets {
			t := &targets[i]
			if err := t.needsLID(); err != nil {
				values[i] = newFailure(c.failed(t, err))
				continue
			}
			var data [192]byte
			if f := attr.Field("port_select"); f != nil {
				f.SetUint(data[:], uint64(ports[i]))
			}
			calls[i].PutPerf(mad.MethodGet, attr.ID, uint32(modifier), data[:])
			c.addressGMP(&calls[i], local, t.lid)
			open = append(open, &calls[i])
		}
		if err := c.transact(open); err != nil {
			return nil, err
		}
		for i := range targets {
			switch {
			case values[i] != nil:
			case calls[i].Err != nil:
				values[i] = newFailure(c.failed(&targets[i], calls[i].Err))
			default:
				values[i] = newRecord(as(calls[i].Data()), calls[i].Data())
			}
		}
		return results(values, many)
	},
}

// variantOf says which layout an answer has: the one that the call names, or
// that the answer itself tells.
func (c *call) variantOf(attr *mad.Attribute, modifier uint32) (func(data []byte) *mad.Attribute, error) {
	if !c.Has("variant") {
		return func(data []byte) *mad.Attribute { return attr.Of(data, modifier) }, nil
	}
	name := c.Text("variant")
	if a := attr.As(name); a != nil {
		return func([]byte) *mad.Attribute { return a }, nil
	}
	var names []string
	for _, v := range attr.Variants {
		names = append(names, v.Name)
	}
	if len(names) == 0 {
		return nil, c.paramError("variant", "%s has but one layout: leave it out", attr.Name)
	}
	return nil, c.paramError("variant", "%s has no variant %q: it has %s", attr.Name, name, strings.Join(names, ", "))
}

// perfPort is the port whose counters are meant.
func (c *call) perfPort(attr *mad.Attribute, t *target) (int, error) {
	if attr.Field("port_select") == nil {
		if c.Has("port") {
			return 0, fmt.Errorf("%s: %s is not a port's: leave port out", c.Name, attr.Name)
		}
		return 0, nil
	}
	if c.Has("port") && c.Int("port") == allPorts {
		return allPorts, nil
	}
	return c.portOf(attr, t, false)
}

// needsLID: general management packets go by LID.
func (t *target) needsLID() error {
	switch {
	case t.err != nil:
		return t.err
	case t.lid != 0:
		return nil
	case t.node == nil:
		return &targetError{msg: `only subnet management goes by directed route: use the LID, smp_get("PortInfo", route, 0).lid`}
	}
	return &targetError{msg: "it has no LID: a subnet manager must give it one first"}
}
