// Package datagrams has the builtins that send MADs: requests of all management
// classes, whole tables, links, subscriptions. The content of requests is here; their
// addressing and sending is in builtins/topology, reading and writing of tables and
// ports in fabric/device.
//
// Each builtin has a struct of its arguments, which embeds the arguments that builtins
// share. Errors about arguments end the script. If one of many targets fails, the failure is
// a value in its place (topology.Results).
//
// A targetRequest sends a request to many targets. A tableKind describes a kind of whole
// table, such as LFTKind, whose values are wholeTables; they never change.
package datagrams

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// targetRequest is a request of a class to the targets of a call, with the result of
// each.
type targetRequest struct {
	c       *lang.Call
	class   mad.Class
	local   *engine.Port
	targets []topology.Target
	many    bool
	values  []starlark.Value // nil for a target that is not done
	// addressed, if not nil, is called last for an addressed request, and may change it.
	addressed func(call *engine.Call) error
}

// resolve resolves the targets in the argument target, and the service levels of the
// paths to them.
func (a *targetRequest) resolve(target starlark.Value) (err error) {
	r := &topology.Resolver{Call: a.c}
	if a.targets, a.many, err = r.Targets(target); err != nil {
		return err
	}
	if a.local, err = r.LocalPort(); err != nil {
		return err
	}
	a.values = make([]starlark.Value, len(a.targets))
	lids := make([]mad.LID, len(a.targets))
	for i := range a.targets {
		t := &a.targets[i]
		lids[i] = t.LID
		if a.class.Family() == mad.ClassSubn {
			err = t.Reachable()
		} else {
			err = t.NeedsLID()
		}
		if err != nil {
			a.values[i] = lang.NewFailure(topology.FailedRequest(a.c, t, err))
		}
	}
	if a.class.Family() == mad.ClassSubn { // SMPs use VL 15, which has no service levels
		return nil
	}
	return topology.LearnPaths(a.c, a.local, lids)
}

// send sends a request, which put writes, to all targets that are not done,
// and waits for the answers.
func (a *targetRequest) send(put func(i int, call *engine.Call)) ([]engine.Call, error) {
	calls := make([]engine.Call, len(a.targets))
	var open []*engine.Call
	var targets []*topology.Target // of open
	client := topology.EnvOf(a.c.Runtime()).SA
	for i := range a.targets {
		if a.values[i] != nil {
			continue
		}
		put(i, &calls[i])
		if a.class.Family() == mad.ClassSubn {
			a.targets[i].AddressSMP(&calls[i]) // resolve has checked that it is reachable
		} else if err := client.PutGMP(&calls[i], a.local, a.targets[i].LID); err != nil {
			return nil, err
		}
		if a.addressed != nil {
			if err := a.addressed(&calls[i]); err != nil {
				return nil, err
			}
		}
		calls[i].Guard = a.targets[i].Dest().Guard
		open, targets = append(open, &calls[i]), append(targets, &a.targets[i])
	}
	switch a.class.Family() {
	case mad.ClassSubn, mad.ClassSubnAdm, mad.ClassPerf:
		return calls, topology.SendProbes(a.c, open)
	}
	return calls, topology.SendOptional(a.c, a.class, targets, open)
}

// answered reports whether target i is not done and err is nil. If err is not nil, the
// target is then done.
func (a *targetRequest) answered(i int, err error) bool {
	if a.values[i] != nil {
		return false
	}
	if err != nil {
		a.values[i] = topology.Failed(a.c, &a.targets[i], err)
	}
	return err == nil
}

// results returns the result of the builtin.
func (a *targetRequest) results() (starlark.Value, error) { return topology.Results(a.values, a.many) }

// AttributeNames lists the attributes of the current version of a class, in the order of
// their numbers.
func AttributeNames(class mad.Class) []string {
	var names []string
	for _, a := range mad.Attributes() {
		if a.Class.Family() == class.Family() && a.Version == class.Version() {
			names = append(names, a.Name)
		}
	}
	return names
}

// AllAttributeNames lists the attributes of all classes, with their other names.
func AllAttributeNames() []string {
	var names []string
	for _, a := range mad.Attributes() {
		names = append(append(names, a.Name), a.Aliases...)
	}
	return names
}

// OtherAttributeNames lists the attributes of the classes without their own builtins,
// for mad_get.
func OtherAttributeNames() []string {
	var names []string
	for _, a := range mad.Attributes() {
		if getterOf(a.Class) == "mad_get" && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}

// attributeOf returns the attribute of a class that the argument attr names.
func attributeOf(class mad.Class, name string) (*mad.Attribute, error) {
	a, err := attributeNamed(class, name)
	if err != nil {
		return nil, lang.ParamError("attr", "%w", err)
	}
	return a, nil
}

// attributeNamed finds an attribute of a class by its exact name.
func attributeNamed(class mad.Class, name string) (*mad.Attribute, error) {
	if a := mad.LookupName(class, name); a != nil {
		return a, nil
	}
	if other := mad.ByName(name); other != nil {
		return nil, fmt.Errorf("%s is an attribute of class %v, not %v; use %s", name, other.Class, class, getterOf(other.Class))
	}
	return nil, fmt.Errorf("unknown attribute %q%s", name, fabric.DidYouMean(name, AttributeNames(class)))
}

// getterOf returns the name of the builtin that reads attributes of a class.
func getterOf(class mad.Class) string {
	switch class.Family() {
	case mad.ClassSubn:
		return "smp_get"
	case mad.ClassPerf:
		return "perf_get"
	case mad.ClassSubnAdm:
		return "sa_get or sa_gettable"
	}
	return "mad_get"
}

// setterOf returns the name of the builtin that sets attributes of a class.
func setterOf(class mad.Class) string {
	switch class.Family() {
	case mad.ClassSubn:
		return "smp_set"
	case mad.ClassPerf:
		return "perf_set"
	case mad.ClassSubnAdm:
		return "sa_set"
	}
	return "mad_set"
}

// modifierOf converts the argument modifier, the whole attribute modifier.
func modifierOf(n int) (uint32, error) {
	if n < 0 || int64(n) > 0xffffffff {
		return 0, lang.ParamError("modifier", "got %d, want 0..0xffffffff", n)
	}
	return uint32(n), nil
}

// partArg is an argument for a part of an attribute modifier.
type partArg struct {
	name string
	n    *int // nil: not given
}

// parts returns the arguments for the parts of modifiers.
func (a *smpArgs) parts() []partArg {
	return []partArg{{"port", a.Port}, {"block", a.Block}, {"position", a.Position}, {"in_port", a.InPort}, {"out_port", a.OutPort}}
}

// modifier returns the attribute modifier from the arguments and the target.
func (a *smpArgs) modifier(c *lang.Call, attr *mad.Attribute, t *topology.Target) (uint32, error) {
	if a.Modifier != nil {
		for _, arg := range a.parts() {
			if arg.n != nil {
				return 0, lang.Errorf("modifier is the whole attribute modifier: give it or %s, not both", arg.name)
			}
		}
		return modifierOf(*a.Modifier)
	}
	if attr.UnknownModifier {
		if e := topology.EnvOf(c.Runtime()).Engine; e != nil && e.Traits().Simulated {
			return 0, nil // of the simulated agents, the first block
		}
		return 0, lang.Errorf("%s %s: no public source has the modifier of this attribute; give modifier=", attr.Name, t.Label)
	}
	var modifier uint32
	for _, part := range attr.Modifier {
		n, err := a.modifierPart(c, attr, part.Name, t)
		if err != nil {
			return 0, err
		}
		if most := 1<<part.Bits - 1; n < 0 || n > most {
			return 0, lang.ParamError(part.Name, "got %d, want 0..%d", n, most)
		}
		modifier |= uint32(n) << part.Shift
	}
	for _, arg := range a.parts() {
		known := slices.ContainsFunc(attr.Modifier, func(p mad.ModifierPart) bool { return p.Name == arg.name })
		if arg.n != nil && !known {
			return 0, lang.Errorf("%s: unsupported modifier %s; supported: %s", attr.Name, arg.name, records.ModifierWords(attr))
		}
	}
	return modifier, nil
}

// modifierPart returns one part of the modifier. A port must be given, by the target or
// by an argument, because 0 is a port too; the default block is the first.
func (a *smpArgs) modifierPart(c *lang.Call, attr *mad.Attribute, name string, t *topology.Target) (int, error) {
	isCA := t.Node != nil && !t.Node.IsSwitch()
	switch name {
	case "port":
		if attr == mad.AttrPKeyTable && isCA { // the modifier has a port only for switches (IBA 14.2.5.7)
			return 0, nil
		}
		return portOf(c, attr, a.Port, t)
	case "in_port", "out_port":
		arg := a.InPort
		if name == "out_port" {
			arg = a.OutPort
		}
		switch {
		case arg != nil:
			return *arg, checkPort(name, *arg, t)
		case isCA: // a CA has one mapping, without ports
			return 0, nil
		case name == "out_port" && t.Port != topology.NoPortGiven:
			return t.Port, nil
		}
		return 0, lang.Errorf("%s requires %s: %s(%q, target, in_port=0, out_port=1)", attr.Name, name, c.Name, attr.Name)
	case "form":
		return mad.GeneralInfoFormCapabilities, nil
	case "position":
		if a.Position != nil {
			return *a.Position, nil
		}
	case "block":
		switch {
		case attr == mad.AttrVLArbitrationTable && a.Block == nil:
			return 1, nil
		case a.Block == nil:
			return 0, nil
		case attr == mad.AttrVLArbitrationTable && (*a.Block < 1 || *a.Block > 4):
			return 0, lang.ParamError("block", "got %d, want 1 or 2 (low priority), 3 or 4 (high priority)", *a.Block)
		}
		return *a.Block, nil
	}
	return 0, nil
}

// modifierPort returns the port in an attribute modifier; topology.NoPortGiven if it has
// none.
func modifierPort(attr *mad.Attribute, modifier uint32) int {
	for _, part := range attr.Modifier {
		if part.Name == "port" {
			return int(modifier >> part.Shift & (1<<part.Bits - 1))
		}
	}
	return topology.NoPortGiven
}

// portOf returns the port from the argument port, which is nil if not given, or from the
// target. attr is nil if the call names no attribute.
func portOf(c *lang.Call, attr *mad.Attribute, port *int, t *topology.Target) (int, error) {
	switch {
	case port != nil && t.Port != topology.NoPortGiven && t.Port != *port:
		return 0, lang.Errorf("the target is %s, but the argument port is %d", t.Label, *port)
	case port != nil:
		return *port, checkPort("port", *port, t)
	case t.Port != topology.NoPortGiven || t.Err != nil:
		return max(t.Port, 0), nil
	case attr == nil:
		return 0, lang.Errorf("missing port: neither the target (%s) nor an argument names one; write %s(target, 1)", t.Label, c.Name)
	}
	return 0, lang.Errorf("%s requires a port: neither the target (%s) nor an argument names one; write %s(%q, target, 1)", attr.Name, t.Label, c.Name, attr.Name)
}

// checkPort checks a port number if the number of ports is known. Port 0 of a CA is the
// port that receives the request.
func checkPort(param string, n int, t *topology.Target) error {
	switch {
	case n < 0 || n > 255:
		return lang.ParamError(param, "got %d, want 0..255", n)
	case t.Node != nil && n != 0 && t.Node.Port(n) == nil:
		return lang.ParamError(param, "%w", topology.NoSuchPort(t.Node, fmt.Sprint(n)))
	}
	return nil
}

// statistics is the value `stats`, the statistics of an engine.
type statistics struct{ engine.Stats }

var (
	_ starlark.HasAttrs = statistics{}
	_ lang.Factual      = statistics{}
)

// Stats is stats(), which returns the statistics of the engine.
var Stats = lang.Builtin{
	Name:  "stats",
	Group: lang.GroupRest,
	Doc: `Returns statistics of this session: MADs sent and received, the limits of MADs in flight, and round-trip times.
"smp", "sa" and "gmp" are subnet management, subnet administration, and performance management with all other classes. Each has the window, the limit of MADs in flight, which follows the round-trip times, and the median, 90 % and 99 % quantiles of the round-trip times, in microseconds (at most a quarter too high). "foreign" counts ignored datagrams: answers from another sender than the target, or for another port or block, and Reports and traps from others than the subnet administrator or the issuer.
Counts and times are never part of other values, which are the same in every run.`,
	Example: `
> stats().timed_out
0
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		e, err := topology.EngineOf(c)
		if err != nil {
			return nil, err
		}
		return statistics{e.Stats()}, nil
	}),
}

func (s statistics) String() string {
	return fmt.Sprintf("stats(sent=%d, answered=%d, timed_out=%d)", s.Sent, s.Answered, s.TimedOut)
}
func (s statistics) Type() string          { return "stats" }
func (s statistics) Freeze()               {}
func (s statistics) Truth() starlark.Bool  { return true }
func (s statistics) Hash() (uint32, error) { return topology.HashUint64(s.Sent), nil }
func (s statistics) Schema() string        { return "stats/1" }

// Facts returns the fields of mad.Counts with their names in snake case, and the figures of
// each class.
func (s statistics) Facts() []lang.Fact {
	v := reflect.ValueOf(s.Counts)
	var out []lang.Fact
	for i := range v.NumField() {
		out = append(out, lang.Fact{Name: mad.SnakeName(v.Type().Field(i).Name), Value: starlark.MakeUint64(v.Field(i).Uint())})
	}
	for _, class := range []struct {
		name string
		engine.ClassStats
	}{{"smp", s.SMP}, {"sa", s.SA}, {"gmp", s.GMP}} {
		out = append(out,
			lang.Fact{Name: class.name + "_window", Value: starlark.MakeInt(class.Window)},
			lang.Fact{Name: class.name + "_round_trips", Value: starlark.MakeUint64(class.RoundTrips)},
			lang.Fact{Name: class.name + "_p50_us", Value: starlark.MakeInt64(class.P50.Microseconds())},
			lang.Fact{Name: class.name + "_p90_us", Value: starlark.MakeInt64(class.P90.Microseconds())},
			lang.Fact{Name: class.name + "_p99_us", Value: starlark.MakeInt64(class.P99.Microseconds())},
			lang.Fact{Name: class.name + "_max_us", Value: starlark.MakeInt64(class.Max.Microseconds())})
	}
	return out
}

// StatsDoc describes the value stats; help(stats) explains its names.
func StatsDoc() lang.TypeDoc {
	d := lang.TypeDoc{Name: "stats", Schema: statistics{}.Schema(), Doc: "Statistics of the engine; help(stats) explains the numbers. Times are in microseconds."}
	for _, f := range (statistics{}).Facts() {
		d.Members = append(d.Members, lang.MemberDoc{Name: f.Name, Column: true, Doc: strings.ReplaceAll(f.Name, "_", " ")})
	}
	return d
}

// Attr returns a fact by name.
func (s statistics) Attr(name string) (starlark.Value, error) {
	for _, f := range s.Facts() {
		if f.Name == name {
			return f.Value, nil
		}
	}
	return nil, nil
}

func (s statistics) AttrNames() []string { return lang.ColumnsOf([][]lang.Fact{s.Facts()}) }
