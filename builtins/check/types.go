package check

import (
	"fabsh/builtins/accept"
	"slices"
	"strings"
	"sync"

	libmath "go.starlark.net/lib/math"
	libtime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/changes"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/history"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/remedies"
	"fabsh/builtins/routing"
	"fabsh/builtins/topology"
	"fabsh/mad"
)

// Types describes all types of values except attribute records.
func Types() []lang.TypeDoc {
	list := []lang.TypeDoc{
		topology.FabricType.TypeDoc(), topology.NodeType.TypeDoc(), portsDoc(), topology.PortType.TypeDoc(), topology.LinkType.TypeDoc(),
		topology.ProblemType.TypeDoc(), topology.PlaceType.TypeDoc(), topology.CablePlanType.TypeDoc(), topology.PlanConflictType.TypeDoc(), topology.CablingType.TypeDoc(), topology.CablingActionType.TypeDoc(), topology.CablingNameType.TypeDoc(), topology.CablingDeviceType.TypeDoc(), topology.VirtualPortType.TypeDoc(), topology.DiffType.TypeDoc(), topology.ChangeType.TypeDoc(), topology.RouteType.TypeDoc(), datagrams.InventoryType.TypeDoc(), datagrams.LFTKind.TypeDoc(), datagrams.MFTKind.TypeDoc(), datagrams.SL2VLKind.TypeDoc(), datagrams.VLArbKind.TypeDoc(), datagrams.PKeysKind.TypeDoc(), datagrams.GUIDsKind.TypeDoc(), datagrams.ARType.TypeDoc(), datagrams.AREntryType.TypeDoc(), datagrams.PLFTType.TypeDoc(), recordDoc(), failureDoc(),
		routing.GraphType.TypeDoc(), routing.HopsType.TypeDoc(), routing.TreeType.TypeDoc(), routing.RoutesType.TypeDoc(), routing.RowType.TypeDoc(), routing.VerdictType.TypeDoc(), routing.FailureType.TypeDoc(),
		routing.PathType.TypeDoc(), routing.ChoicesType.TypeDoc(), routing.GraphPathType.TypeDoc(), routing.PathHopType.TypeDoc(), routing.CongestionType.TypeDoc(), routing.PhaseLoadType.TypeDoc(), routing.CollisionType.TypeDoc(), routing.BalanceType.TypeDoc(), routing.AdaptiveLoadType.TypeDoc(), routing.DiffType.TypeDoc(), changes.PlanType.TypeDoc(), changes.RoundType.TypeDoc(), changes.EffectType.TypeDoc(), changes.SetType.TypeDoc(),
		audits.FindingType.TypeDoc(), audits.MetricType.TypeDoc(), datagrams.SubscriptionType.TypeDoc(), audits.PortRatesType.TypeDoc(), audits.BERType.TypeDoc(), audits.RunType.TypeDoc(), audits.ThisHostType.TypeDoc(), audits.OwnPortType.TypeDoc(), remedies.ActionType.TypeDoc(), remedies.PastType.TypeDoc(), remedies.LinkType.TypeDoc(), remedies.StepType.TypeDoc(), remedies.ImpactType.TypeDoc(), remedies.JobImpactType.TypeDoc(), routing.HostGroupsType.TypeDoc(), routing.HostGroupType.TypeDoc(), routing.JobType.TypeDoc(), routing.JobTrafficType.TypeDoc(), routing.JobLoadType.TypeDoc(), routing.JobSharedType.TypeDoc(), routing.MeasurementType.TypeDoc(), routing.SuspectsType.TypeDoc(), routing.SuspectFaultType.TypeDoc(), routing.SuspectType.TypeDoc(), routing.NextPairType.TypeDoc(), routing.TenantsType.TypeDoc(), routing.TenantType.TypeDoc(), routing.IsolationType.TypeDoc(), routing.TenantPairType.TypeDoc(), routing.TenantOutsiderType.TypeDoc(), routing.TenantDeviationType.TypeDoc(), audits.MatrixType.TypeDoc(), audits.MatrixPartType.TypeDoc(), datagrams.LostType.TypeDoc(), topology.SimType.TypeDoc(), history.HistoryType.TypeDoc(),
	}
	for _, t := range history.Types {
		list = append(list, t.TypeDoc())
	}
	return append(list, lang.RowTypes()...)
}

// portsDoc describes the value `ports`.
func portsDoc() lang.TypeDoc {
	return lang.TypeDoc{Name: "ports", Doc: "The ports of a node: ports[3] is port 3, ports[0] port 0 of a switch. Iteration and len cover the external ports; `in` takes a port.", Members: lang.RowMembers()}
}

// recordDoc describes all records alike.
func recordDoc() lang.TypeDoc {
	return lang.TypeDoc{
		Name:    "record",
		Doc:     "An attribute as it was read. Its type is the attribute's name: port_info. Its fields have the specification's names in snake case. A field with words also has its number: port_state and port_state_code. Records of the subnet administrator have the fields of the attribute inside them, and the whole attribute: r.port_info.",
		Members: append(slices.Clone(records.OriginMembers), lang.MemberDoc{Name: records.ReplaceMethod.Signature(), Doc: records.ReplaceMethod.Summary(), Method: &records.ReplaceMethod}),
	}
}

// failureDoc describes the value `error`.
func failureDoc() lang.TypeDoc {
	return lang.TypeDoc{
		Name:   "error",
		Schema: "error/1",
		Doc:    "The failure of a target. It is falsy; reading any attribute except these raises the failure.",
		Members: []lang.MemberDoc{
			{Name: "op", Type: "string", Column: true, Doc: `the operation: "SubnGet(NodeInfo)"`},
			{Name: "target", Column: true, Doc: "the target, in the words of the script"},
			{Name: "status", Type: "string", Column: true, Doc: `the cause: "timed out", "no records"`},
			{Name: "message", Type: "string", Column: true, Doc: "the whole failure in one line"},
		},
	}
}

// AttrNames lists the declared attributes of the values of a type, by the type's name.
func AttrNames(typ string) []string {
	switch typ {
	case "string":
		return starlark.String("").AttrNames()
	case "bytes":
		return starlark.Bytes("").AttrNames()
	case "list":
		return new(starlark.List).AttrNames()
	case "dict":
		return new(starlark.Dict).AttrNames()
	case "set":
		return new(starlark.Set).AttrNames()
	}
	var names []string
	for _, d := range Types() {
		if d.Name == typ {
			for _, m := range d.Members {
				names = append(names, m.ShortName())
			}
			return names
		}
	}
	for _, a := range records.AttributesNamed(typ) {
		return Example(a).AttrNames()
	}
	return nil
}

// Example returns an empty record of an attribute. Records of subnet administration have
// no target.
func Example(a *mad.Attribute) *records.Record {
	r := records.New(a, nil)
	if a.Class == mad.ClassSubnAdm {
		return r
	}
	return r.WithOrigin(records.Origin{Of: starlark.None, LID: starlark.None, Port: starlark.None})
}

// hasAttr reports whether values of a type have, or may have, an attribute with a name.
// In place of a record there may be a list, an error or bytes.
func hasAttr(typ, name string) bool {
	if slices.Contains(AttrNames(typ), name) {
		return true
	}
	all := records.AttributesNamed(typ)
	for _, a := range all {
		for _, l := range append([]*mad.Attribute{a}, variantsOf(a)...) {
			if v, err := Example(l).Attr(name); err == nil && v != nil {
				return true
			}
		}
	}
	return len(all) > 0 && (name == "source" || slices.ContainsFunc(records.OriginMembers, func(m lang.MemberDoc) bool { return m.Name == name }) ||
		slices.Contains(starlark.Bytes("").AttrNames(), name) || slices.Contains(new(starlark.List).AttrNames(), name) || slices.Contains(new(lang.Failure).AttrNames(), name))
}

// attrType returns the declared type of an attribute of the values of a type, or its
// method. Both are empty if nothing is declared.
func attrType(typ, name string) (string, *lang.Builtin) {
	if m, ok := declared()[[2]string{typ, name}]; ok {
		return m.Type, m.Method
	}
	for _, a := range records.AttributesNamed(typ) {
		if v, err := Example(a).Attr(name); err == nil && v != nil && v != starlark.None {
			return v.Type(), nil // an empty record has all its parts
		}
	}
	return "", nil
}

// Member returns the declaration of an attribute or method of the values of a type.
func Member(typ, name string) (m lang.MemberDoc, ok bool) {
	m, ok = declared()[[2]string{typ, name}]
	return m, ok
}

// declared returns the members of all types, by type and name.
var declared = sync.OnceValue(func() map[[2]string]lang.MemberDoc {
	all := map[[2]string]lang.MemberDoc{}
	for _, d := range Types() {
		for _, m := range d.Members {
			all[[2]string{d.Name, m.ShortName()}] = m
		}
	}
	return all
})

// Words returns the words that an attribute of the values of a type may have, sorted as
// declared; nil if it may have any text.
func Words(typ, name string) []string {
	if m, ok := declared()[[2]string{typ, name}]; ok {
		return m.Words
	}
	for _, a := range records.AttributesNamed(typ) {
		for _, l := range append([]*mad.Attribute{a}, variantsOf(a)...) {
			for i := range l.Flat() {
				if f := &l.Flat()[i]; f.Words != nil && f.Count == 1 && (f.Script == name || slices.Contains(f.Also, name)) {
					return records.WordsOf(f.Words)
				}
			}
		}
	}
	return nil
}

// variantsOf returns the other layouts of an attribute.
func variantsOf(a *mad.Attribute) []*mad.Attribute {
	var list []*mad.Attribute
	for _, v := range a.Variants {
		list = append(list, v.Layout)
	}
	return list
}

// elementType returns the declared type of the elements of a value of a type.
func elementType(typ string) string {
	switch {
	case typ == "ports", typ == "path":
		return "port"
	case typ == "string":
		return "string"
	case len(records.AttributesNamed(typ)) > 0:
		return typ // for many targets the result is a list
	}
	return ""
}

// resultType returns the declared type of a function's result. text returns the literal
// of an argument by the position and name of its parameter; empty: unknown.
func resultType(b *lang.Builtin, text func(position int, name string) string) string {
	param, ok := strings.CutPrefix(b.Returns, "record of ")
	if !ok {
		param, ok = strings.CutPrefix(b.Returns, "list of record of ")
	}
	if !ok {
		return b.Returns
	}
	for i, p := range b.Params {
		if p.Name != param {
			continue
		}
		name := text(i, p.Name)
		if name == "" {
			name = strings.Trim(p.Default, `"`)
		}
		return strings.TrimSuffix(b.Returns, "record of "+param) + name
	}
	return ""
}

// FieldWords returns the possible words of all attributes of records and other values
// whose value is always one of these or a tuple of them, by the attribute's name.
func FieldWords() map[string]lang.FieldWords {
	all := map[string]lang.FieldWords{}
	texts := map[string]bool{} // names of attributes that can be any text
	add := func(name string, words []string, mask bool) {
		w, ok := all[name]
		for _, word := range words {
			if !slices.Contains(w.Words, word) {
				w.Words = append(w.Words, word)
			}
		}
		w.Mask = mask && (!ok || w.Mask)
		if ok && w.Mask != mask {
			texts[name] = true // a word in one type, a tuple in another
		}
		all[name] = w
	}
	for _, a := range layouts() {
		for i := range a.Flat() {
			f := &a.Flat()[i]
			for _, name := range append([]string{f.Script}, f.Also...) {
				switch {
				case f.Words != nil && f.Count == 1:
					add(name, records.WordsOf(f.Words), f.Type == mad.FieldTypeMask)
				case f.Type != mad.FieldTypeUint && f.Type != mad.FieldTypeLID || f.Key || f.Count > 1:
					texts[name] = true
				}
			}
		}
	}
	for _, d := range Types() {
		for _, m := range d.Members {
			if m.Words != nil {
				add(m.ShortName(), m.Words, false)
			} else if m.Method == nil {
				texts[m.Name] = true
			}
		}
	}
	for name := range texts {
		delete(all, name)
	}
	return all
}

// wordsByType returns the possible words of attributes by type and name, as FieldWords does by
// name.
func wordsByType() map[[2]string]lang.FieldWords {
	all := map[[2]string]lang.FieldWords{}
	for _, a := range mad.Attributes() {
		for i := range a.Flat() {
			if f := &a.Flat()[i]; f.Words != nil && f.Count == 1 {
				for _, name := range append([]string{f.Script}, f.Also...) {
					all[[2]string{records.TypeName(a), name}] = lang.FieldWords{Words: records.WordsOf(f.Words), Mask: f.Type == mad.FieldTypeMask}
				}
			}
		}
	}
	for _, d := range Types() {
		for _, m := range d.Members {
			if m.Words != nil {
				all[[2]string{d.Name, m.ShortName()}] = lang.FieldWords{Words: m.Words}
			}
		}
	}
	return all
}

// AttributeTypes returns the types of the values of all attributes of one name, by the name.
// Names of which a value may be of an unknown type are left out. None is not a type here:
// any attribute may be unknown.
func AttributeTypes() map[string][]string {
	all := map[string][]string{}
	add := func(name, typ string) {
		if !slices.Contains(all[name], typ) {
			all[name] = append(all[name], typ)
		}
	}
	for _, a := range layouts() {
		for i := range a.Flat() {
			f := &a.Flat()[i]
			for _, name := range append([]string{f.Script}, f.Also...) {
				add(name, fieldType(f))
				if f.Words != nil {
					add(name+"_code", codeType(f))
				}
			}
		}
		for i := range a.Fields {
			add(a.Fields[i].Script, fieldType(&a.Fields[i]))
		}
	}
	add("data", "bytes")
	add("source", "int")
	for _, d := range append(Types(), datagrams.StatsDoc(), routing.ReportDoc(), audits.ReportType.TypeDoc(), audits.CoverageType.TypeDoc(), audits.AckType.TypeDoc(), audits.HealthType.TypeDoc(), audits.HostType.TypeDoc(), remedies.RunType.TypeDoc(), remedies.DecisionType.TypeDoc(), remedies.EvidenceType.TypeDoc(), remedies.EvidenceSectionType.TypeDoc(), accept.ResultType.TypeDoc(), accept.ItemType.TypeDoc(), routing.HostsDiffType.TypeDoc(), routing.HostsChangeType.TypeDoc()) {
		for _, m := range d.Members {
			switch {
			case m.Method != nil:
				add(m.ShortName(), methodType)
			case m.Words != nil:
				add(m.Name, "string")
			default:
				add(m.Name, m.Type)
			}
		}
	}
	for _, v := range []starlark.HasAttrs{starlark.String(""), starlark.Bytes(""), new(starlark.List), new(starlark.Dict), new(starlark.Set)} {
		for _, name := range v.AttrNames() {
			add(name, methodType)
		}
	}
	for _, v := range []starlark.HasAttrs{libtime.Time{}, libtime.Duration(0), libtime.Module, libmath.Module} {
		for _, name := range v.AttrNames() {
			add(name, "")
		}
	}
	for name, types := range all {
		if slices.Contains(types, "") {
			delete(all, name)
		}
	}
	return all
}

// fieldType returns the type of a field of a record.
func fieldType(f *mad.Field) string {
	switch {
	case f.Count > 1, f.Type == mad.FieldTypeMask:
		return "tuple"
	case f.Type == mad.FieldTypeStruct:
		return records.TypeName(f.Struct)
	case f.Key:
		return "string"
	case f.Type == mad.FieldTypeBytes:
		return "bytes"
	case f.Type == mad.FieldTypeUint || f.Type == mad.FieldTypeLID:
		if f.Scale > 0 {
			return "float"
		}
		return "int"
	}
	return "string" // texts, GUIDs, GIDs, words
}

// codeType returns the type of the number of a word.
func codeType(f *mad.Field) string {
	if f.Count > 1 {
		return "tuple"
	}
	return "int"
}

// layouts returns all attributes, headers, and the variants of both.
func layouts() []*mad.Attribute {
	list := slices.Concat(mad.Attributes(), mad.Headers())
	for _, a := range list {
		for _, v := range a.Variants {
			list = append(list, v.Layout)
		}
	}
	return list
}
