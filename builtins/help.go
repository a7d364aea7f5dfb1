package builtins

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/hosts"
	"fabsh/builtins/lang"
	"fabsh/builtins/pictures"
	"fabsh/builtins/records"
	"fabsh/builtins/routing"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
)

// helpBuiltin is help().
var helpBuiltin = lang.Builtin{
	Name:   "help",
	Group:  lang.GroupRest,
	Params: []lang.Param{{Name: "topic", Kind: lang.KindTopic, Default: "None", Doc: `a function or other value, or a name: "PortInfo", "PortInfo.M_Key"`}},
	Doc: `Prints help on a function, an attribute, a field, a type or a value.
Without a topic it prints the overview. At the prompt, help alone will do.`,
	Example: `
> help("PortInfo.LMC")
PortInfo.lmc (LMC): 3 bits at bit 277 (byte 34, bit 5 from the left), section 14.2.5.6 of the specification
LMC is the number of low LID bits the port ignores: it answers to 2^LMC LIDs.
In a Set it is written: smp_set sends what it read unless it is named.
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Topic starlark.Value }) (starlark.Value, error) {
		text, err := sessionOf(c.Runtime()).helpOn(a.Topic)
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		c.Fiber().Print(c.Runtime().Fit(text))
		return starlark.None, nil
	}),
	Bare: func(r *lang.Runtime) error { return r.Emit(r.People(), r.Fit(sessionOf(r).overview())) },
}

// Help renders help on a name; empty: the overview.
func (s *Session) Help(topic string) (string, error) {
	if topic == "" {
		return s.Fit(s.overview()), nil
	}
	text, err := s.helpOnName(topic)
	return s.Fit(text), err
}

// helpOn renders help on a value; nil: the overview.
func (s *Session) helpOn(v starlark.Value) (string, error) {
	switch v := v.(type) {
	case nil, starlark.NoneType:
		return s.overview(), nil
	case starlark.String:
		return s.helpOnName(string(v))
	case *lang.Function:
		return v.Help(), nil
	case *starlark.Function:
		return lang.FunctionHelp(v), nil
	case *starlark.Builtin:
		return fmt.Sprintf("%s is a function of the Starlark language: see https://starlark-lang.org\n", v.Name()), nil
	case *records.Record:
		return records.AttributesHelp([]*mad.Attribute{v.Attribute}), nil
	case lang.Documented:
		return v.TypeDoc().Help(), nil
	case *starlarkstruct.Module:
		return lang.ModuleHelp(v), nil
	case starlark.HasAttrs:
		return fmt.Sprintf("%s\n\nIt has: %s\n", v.Type(), strings.Join(v.AttrNames(), ", ")), nil
	}
	return fmt.Sprintf("%s: a value of the Starlark language\n", v.Type()), nil
}

// helpOnName finds what a name stands for: a global name, an attribute, a
// field, a type.
func (s *Session) helpOnName(name string) (string, error) {
	if v, ok := s.predeclared[name]; ok {
		return s.helpOn(v)
	}
	if v, ok := starlark.Universe[name]; ok {
		return s.helpOn(v)
	}
	if text := toolHint(name); text != "" {
		return fmt.Sprintf("%s: here, %s\n", name, text), nil
	}
	if all := records.AttributesNamed(name); len(all) > 0 {
		return records.AttributesHelp(all), nil
	}
	for _, c := range mad.Classes() {
		if c.Name == name && c.First == c.Last {
			return records.ClassHelp(c), nil
		}
	}
	for _, d := range typeDocs() {
		if d.Name == name {
			return d.Help(), nil
		}
	}
	base, part, isPart := strings.Cut(name, ".")
	if isPart {
		if text, err := s.helpOnPart(base, part); text != "" || err != nil {
			return text, err
		}
	} else {
		base = ""
	}
	candidates := s.Topics(base)
	if len(candidates) == 0 {
		candidates = s.Topics(fabric.Nearest(base, s.Topics("")))
	}
	return "", fmt.Errorf("nothing is named %q%s; help() lists what there is", name, fabric.DidYouMean(name, candidates))
}

// helpOnPart is help on a field of an attribute, a member of a type or of a
// module; empty if there is none.
func (s *Session) helpOnPart(base, part string) (string, error) {
	for _, a := range records.AttributesNamed(base) {
		if f := records.FieldNamed(a, part); f != nil {
			return records.FieldHelp(a, f), nil
		}
		for _, v := range a.Variants {
			if f := records.FieldNamed(v.Layout, part); f != nil {
				in := a.WithVariant(v.Name)
				return records.FieldHelp(in, in.Field(f.Script)), nil
			}
		}
	}
	for _, d := range typeDocs() {
		for _, m := range d.Members {
			if d.Name != base || m.ShortName() != part {
				continue
			}
			if m.Method != nil {
				return (&lang.Function{Builtin: m.Method}).Help(), nil
			}
			return fmt.Sprintf("%s.%s: %s\n", base, m.Name, m.Doc), nil
		}
	}
	if m, ok := s.predeclared[base].(*starlarkstruct.Module); ok && m.Members[part] != nil {
		return s.helpOn(m.Members[part])
	}
	return "", nil
}

// Topics are the names that help knows: global names, attributes and types;
// or, with a base, which is one of these, the names of its parts.
func (s *Session) Topics(base string) []string {
	var names []string
	if base == "" {
		names = slices.Concat(s.predeclared.Keys(), starlark.Universe.Keys())
		names = append(names, datagrams.AllAttributeNames()...)
		for _, a := range mad.Headers() {
			names = append(names, a.Name)
		}
		for _, c := range mad.Classes() {
			if c.First == c.Last {
				names = append(names, c.Name)
			}
		}
		for _, d := range typeDocs() {
			names = append(names, d.Name)
		}
	}
	for _, a := range records.AttributesNamed(base) {
		names = append(names, partsOf(base, a)...)
		for _, v := range a.Variants {
			names = append(names, partsOf(base, v.Layout)...)
		}
	}
	for _, d := range typeDocs() {
		for _, m := range d.Members {
			if d.Name == base {
				names = append(names, base+"."+m.ShortName())
			}
		}
	}
	if m, ok := s.predeclared[base].(*starlarkstruct.Module); ok {
		for _, name := range m.Members.Keys() {
			names = append(names, base+"."+name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// partsOf are the fields of an attribute, as help takes them: base.field.
func partsOf(base string, a *mad.Attribute) (names []string) {
	for i := range a.Flat() {
		names = append(names, base+"."+a.Flat()[i].Name)
	}
	return names
}

// overview lists the global names by group.
func (s *Session) overview() string {
	var b strings.Builder
	width := 0
	for _, f := range s.builtins {
		width = max(width, len(f.Name))
	}
	for _, group := range groups {
		fmt.Fprintf(&b, "%s\n", group)
		for _, f := range s.builtins {
			if f.Group == group {
				fmt.Fprintf(&b, "  %-*s  %s\n", width, f.Name, f.Summary())
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString("Modules\n  expect, fs, hostlist, json, math, re, time, yaml\n\n")
	b.WriteString(`More: help(smp_get), help("PortInfo"), help("PortInfo.M_Key"), help("node"), help(value)` + "\n")
	b.WriteString("Attributes, by class (help takes both)\n")
	rows := make([]lang.Fact, 0, len(mad.Classes()))
	for _, c := range mad.Classes() {
		if names := records.AttributeNamesIn(c); len(names) > 0 {
			rows = append(rows, lang.Fact{Name: "  " + c.Name, Value: starlark.String(strings.Join(names, ", "))})
		}
	}
	b.WriteString(lang.Aligned(rows))
	var reports []string
	for _, d := range ShippedReports() {
		reports = append(reports, d.Name)
	}
	b.WriteString("Reports, by these names at the prompt: " + strings.Join(reports, ", ") + "\n")
	b.WriteString(`Examples: load("@examples//first_look.star", "main"), then main()` + "\n")
	return b.String()
}

// typeDocs describe all types of values but attribute records.
func typeDocs() []lang.TypeDoc {
	return []lang.TypeDoc{
		topology.FabricType.TypeDoc(), topology.NodeType.TypeDoc(), portsDoc(), topology.PortType.TypeDoc(), topology.LinkType.TypeDoc(),
		topology.ProblemType.TypeDoc(), topology.DiffType.TypeDoc(), topology.ChangeType.TypeDoc(), topology.RouteType.TypeDoc(), datagrams.LFTKind.TypeDoc(), datagrams.MFTKind.TypeDoc(), datagrams.SL2VLKind.TypeDoc(), datagrams.VLArbKind.TypeDoc(), datagrams.PKeysKind.TypeDoc(), datagrams.GUIDsKind.TypeDoc(), recordDoc(), failureDoc(),
		routing.GraphType.TypeDoc(), routing.HopsType.TypeDoc(), routing.TreeType.TypeDoc(), routing.RoutesType.TypeDoc(), routing.RowType.TypeDoc(), routing.VerdictType.TypeDoc(), routing.FailureType.TypeDoc(),
		routing.PathType.TypeDoc(), routing.GraphPathType.TypeDoc(), routing.CongestionType.TypeDoc(), routing.BalanceType.TypeDoc(), routing.DiffType.TypeDoc(), changes.PlanType.TypeDoc(), changes.RoundType.TypeDoc(), changes.SetType.TypeDoc(),
		audits.FindingType.TypeDoc(), audits.MetricType.TypeDoc(), datagrams.SubscriptionType.TypeDoc(), audits.PortRatesType.TypeDoc(), audits.BERType.TypeDoc(), audits.RunType.TypeDoc(), hosts.GroupsType.TypeDoc(), hosts.GroupType.TypeDoc(), pictures.MatrixType.TypeDoc(), pictures.PartType.TypeDoc(), datagrams.LostType.TypeDoc(), topology.SimType.TypeDoc(),
	}
}

// portsDoc describes the value `ports`, which has no attributes.
func portsDoc() lang.TypeDoc {
	return lang.TypeDoc{Name: "ports", Doc: "The ports of a node: ports[3] is port 3, [0] a switch's port 0. It iterates over the external ports, len counts them, and `in` takes a port."}
}

// recordDoc describes all records alike.
func recordDoc() lang.TypeDoc {
	return lang.TypeDoc{
		Name:    "record",
		Doc:     "An attribute as it was read; its type is the attribute's name: port_info. Its fields have the specification's names in snake case. A field with words also has its number: port_state and port_state_code. Records of the subnet administrator show the fields of the attribute inside flat, and the attribute whole: r.port_info.",
		Members: append(slices.Clone(records.OriginMembers), lang.MemberDoc{Name: records.ReplaceMethod.Signature(), Doc: records.ReplaceMethod.Summary(), Method: &records.ReplaceMethod}),
	}
}

// failureDoc describes the value `error`.
func failureDoc() lang.TypeDoc {
	return lang.TypeDoc{
		Name:   "error",
		Schema: "error/1",
		Doc:    "What became of a target that failed. It is falsy; reading any other attribute raises the failure.",
		Members: []lang.MemberDoc{
			{Name: "op", Column: true, Doc: `what was asked: "SubnGet(NodeInfo)"`},
			{Name: "target", Column: true, Doc: "of whom, as the script named it"},
			{Name: "status", Column: true, Doc: `why it failed: "timed out", "no records"`},
			{Name: "message", Column: true, Doc: "all of it in a line"},
		},
	}
}
