package records

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// AttributesNamed returns the attributes and headers with a name, an older name, or a
// type's name; several if classes share it.
func AttributesNamed(name string) []*mad.Attribute { return slices.Clone(attributesByName()[name]) }

// AttributeNamesIn returns the names of the attributes of a class or range, in
// alphabetical order.
func AttributeNamesIn(c mad.ClassInfo) (names []string) {
	for _, a := range mad.Attributes() {
		if info, _ := a.Class.Info(); info == c && a.Version == a.Class.Version() {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// AttributesHelp returns the help of all attributes with one name. Attributes with equal
// fields share one section.
func AttributesHelp(all []*mad.Attribute) string {
	var parts []string
	for len(all) > 0 {
		same := func(a *mad.Attribute) bool { return a.Doc == all[0].Doc && len(a.Fields) == len(all[0].Fields) }
		var group, rest []*mad.Attribute
		for _, a := range all {
			if same(a) {
				group = append(group, a)
			} else {
				rest = append(rest, a)
			}
		}
		parts = append(parts, groupHelp(group))
		all = rest
	}
	return strings.Join(parts, "\n")
}

// FieldHelp returns the help of a field.
func FieldHelp(a *mad.Attribute, f *mad.Field) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%s (%s): ", a.Name, f.Script, f.Name)
	if f.Count > 1 {
		fmt.Fprintf(&b, "%d times ", f.Count)
	}
	fmt.Fprintf(&b, "%s at bit %d (byte %d", plural.Count(f.Bits, "bit", "bits"), f.Offset, f.Offset/8)
	if f.Offset%8 != 0 {
		fmt.Fprintf(&b, ", bit %d from the left", f.Offset%8)
	}
	fmt.Fprintf(&b, "), section %s of the specification\n%s\n", a.Section, f.Doc)
	for _, base := range AttributesNamed(a.Name) {
		for _, v := range base.Variants {
			if v.Name == a.Variant && base.WithVariant(v.Name) == a {
				fmt.Fprintf(&b, "Present in variant %s%s.\n", a.Variant, whenWords(base, v))
			}
		}
	}
	if f.Words != nil {
		fmt.Fprintf(&b, "Words: %s.\n", strings.Join(WordsOf(f.Words), ", "))
	}
	for _, text := range []string{
		writeWords(a, f),
		keyWords(f),
		componentWords(a, f),
	} {
		if text != "" {
			b.WriteString(text + "\n")
		}
	}
	if !a.Confirmed {
		b.WriteString("The attribute's layout is unconfirmed.\n")
	}
	return b.String()
}

// ModifierWords returns the parts of the attribute modifier: "out_port, in_port".
func ModifierWords(attr *mad.Attribute) string {
	if len(attr.Modifier) == 0 {
		return "none"
	}
	var words []string
	for _, p := range attr.Modifier {
		words = append(words, p.Name)
	}
	return strings.Join(words, ", ")
}

// ClassHelp returns the help of a management class, or of a range of classes: who defines
// these also defines their methods.
func ClassHelp(c mad.ClassInfo) string {
	var b strings.Builder
	numbers := fmt.Sprintf("class %#02x", uint8(c.First))
	var versions []uint8
	switch {
	case c.First != c.Last:
		numbers = fmt.Sprintf("classes %#02x to %#02x", uint8(c.First), uint8(c.Last))
	case c.First == mad.ClassSubnAdm:
		versions = []uint8{2, 1}
	default:
		versions = []uint8{c.First.Version()}
	}
	fmt.Fprintf(&b, "%s\n\nManagement %s: %s.\n%s.\n", c.Name, numbers, c.Doc, strings.ToUpper(c.Support[:1])+c.Support[1:])
	if c.Last.WasReserved() {
		b.WriteString("Version 1.0 of the specification reserves classes 0x20 to 0x80.\n")
	}
	for _, v := range versions {
		fmt.Fprintf(&b, "\nMethods of class version %d\n", v)
		var rows []lang.Fact
		for _, m := range mad.Methods(c.First, v) {
			doc := m.Doc
			if c.First == mad.ClassSubnAdm {
				doc += map[bool]string{true: " (required)", false: " (optional)"}[m.Required]
			}
			rows = append(rows, lang.Fact{Name: fmt.Sprintf("  %#02x %s", uint8(m.Method), m.Name), Value: starlark.String(doc)})
		}
		b.WriteString(lang.Aligned(rows))
	}
	title := "\nAttributes\n"
	for _, a := range mad.Attributes() {
		if of, _ := a.Class.Info(); of.First == c.First.Family() {
			fmt.Fprintf(&b, "%s  %#04x %s%s\n", title, uint16(a.ID), a.Name, requestWords(a))
			title = ""
		}
	}
	return b.String()
}

// ClassNames returns other names of a class.
func ClassNames(c mad.Class) []string {
	switch c {
	case mad.ClassSubn:
		return []string{"SM", "SMA", "SMI", "SMP"}
	case mad.ClassSubnAdm:
		return []string{"SA"}
	case mad.ClassPerf:
		return []string{"PMA", "PM"}
	case mad.ClassBM:
		return []string{"BMA"}
	case mad.ClassDevMgt:
		return []string{"DM"}
	case mad.ClassComMgt:
		return []string{"CM"}
	case mad.ClassCongestion:
		return []string{"CCA", "congestion control"}
	}
	return nil
}

// TrapHelp returns the help of a trap.
func TrapHelp(number uint16) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Trap %d: %s\n", number, TrapSummary(number))
	for _, v := range notices(uint64(number)) {
		fmt.Fprintf(&b, "\n%s\nFields of Notice.data_details:\n%s", v.Layout.Doc, fieldRows(v.Layout, "  ."))
	}
	fmt.Fprintf(&b, "\nTo subscribe to its reports: sa_subscribe(trap=%d)\n", number)
	return b.String()
}

// TrapSummary returns what a trap reports, by class if several have the number.
func TrapSummary(number uint16) string {
	var docs []string
	for _, i := range mad.Traps() {
		if i.Number != number {
			continue
		}
		if i.Class != mad.ClassSubn {
			i.Name += " (" + i.Class.String() + ")"
		}
		docs = append(docs, i.Name)
	}
	return strings.Join(docs, "; ")
}

// MethodUse is a method in a class.
type MethodUse struct {
	Name    string // with the class: "SubnAdmGetTable"
	Class   mad.Class
	Version uint8
	Info    mad.MethodInfo
	Verb    string // the function that sends it, or receives its data
}

// MethodUses lists the methods of all classes that have their own number.
func MethodUses() (list []MethodUse) {
	for _, c := range mad.Classes() {
		if c.First != c.Last || c.First != c.First.Family() {
			continue
		}
		versions := []uint8{c.First.Version()}
		if c.First == mad.ClassSubnAdm {
			versions = []uint8{2, 1}
		}
		for _, v := range versions {
			for _, m := range mad.Methods(c.First, v) {
				list = append(list, MethodUse{c.Name + m.Name, c.First, v, m, methodFunction(c.First, v, m.Method)})
			}
		}
	}
	return list
}

// MethodHelp returns the help of methods of one name.
func MethodHelp(name string, uses []MethodUse) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Method %s\n\n", name)
	var rows []lang.Fact
	for _, u := range uses {
		what := u.Name
		if u.Version != u.Class.Version() {
			what += fmt.Sprintf(", class version %d", u.Version)
		}
		rows = append(rows, lang.Fact{Name: "  " + what, Value: starlark.String(fmt.Sprintf("%#02x%s: %s: %s", uint8(u.Info.Method), responseWords(u), u.Info.Doc, u.Verb))})
	}
	b.WriteString(lang.Aligned(rows))
	fmt.Fprintf(&b, "\nThe last word is the function that sends or receives it: help(%q).\n", uses[0].Verb)
	return b.String()
}

// responseWords returns the name and number of the response to a method, if it has one.
func responseWords(u MethodUse) string {
	if !u.Info.Answered {
		return ""
	}
	response := u.Info.Method.ResponseTo()
	return fmt.Sprintf(", response %s %#02x", response.Name(u.Class, u.Version), uint8(response))
}

// StatusHelp returns the help of the statuses of responses.
func StatusHelp(list []mad.StatusInfo) string {
	var b strings.Builder
	b.WriteString("Status of a response, as in the attribute .status of an error value:\n\n")
	var rows []lang.Fact
	for _, s := range list {
		of := ""
		if s.Class != 0 {
			of = " (" + s.Class.String() + ")"
		}
		rows = append(rows, lang.Fact{Name: "  " + s.Name, Value: starlark.String(fmt.Sprintf("%#04x%s: %s", uint16(s.Status), of, s.Doc))})
	}
	b.WriteString(lang.Aligned(rows))
	b.WriteString("\nOther values of .status: \"timed out\", no answer to any attempt; \"unsupported\", a register that the device does not have.\n")
	return b.String()
}

// attributesByName returns the attributes and headers by all their names.
var attributesByName = sync.OnceValue(func() map[string][]*mad.Attribute {
	all := map[string][]*mad.Attribute{}
	for _, a := range append(mad.Attributes(), mad.Headers()...) {
		names := append([]string{a.Name, TypeName(a)}, a.Aliases...)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			all[name] = append(all[name], a)
		}
	}
	return all
})

// groupHelp returns the help of attributes that have equal fields.
func groupHelp(group []*mad.Attribute) string {
	a := group[0]
	var b strings.Builder
	b.WriteString(a.Name)
	if len(a.Aliases) > 0 {
		fmt.Fprintf(&b, " (formerly %s)", strings.Join(a.Aliases, ", "))
	}
	fmt.Fprintf(&b, "\n\n%s\n\n", a.Doc)
	for _, a := range group {
		if a.Register != 0 {
			fmt.Fprintf(&b, "Register %#04x of Mellanox' and NVIDIA's devices, %s; reg_get(%q, target) reads it.\n", a.Register, plural.Count(a.Size, "byte", "bytes"), a.Name)
			if a.Confirmed {
				fmt.Fprintf(&b, "Source of its layout: %s.\n", strings.Join(a.Sources, "; "))
			}
			continue
		}
		if a.Class == 0 {
			fmt.Fprintf(&b, "A part of a MAD or of an attribute, %s, section %s of the specification.\n", plural.Count(a.Size, "byte", "bytes"), a.Section)
			continue
		}
		fmt.Fprintf(&b, "Class %v, attribute %#04x%s, section %s of the specification.\n", a.Class, uint16(a.ID), requestWords(a), a.Section)
		if len(a.Modifier) > 0 {
			fmt.Fprintf(&b, "Attribute modifier: %s.\n", ModifierWords(a))
		}
		b.WriteString(requestLimits(a))
	}
	if a.SMOwned {
		b.WriteString("A subnet manager sets it and expects no other changes.\n")
	}
	switch {
	case a.State && a.Configuration:
		b.WriteString("In class version 1 it is state and configuration: not only the subnet manager may create and change it.\n")
	case a.State:
		b.WriteString("In class version 1 it is state: it can be read but not changed.\n")
	}
	for _, a := range group {
		b.WriteString(requirement(a))
	}
	if !a.Confirmed {
		fmt.Fprintf(&b, "Layout unconfirmed: its only source is %s.\n", strings.Join(a.Sources, "; "))
	}
	b.WriteString("\nFields\n" + fieldRows(a, "  ."))
	var shown []mad.Variant
	for _, a := range group {
		for _, v := range a.Variants {
			if slices.ContainsFunc(shown, func(w mad.Variant) bool { return sameVariant(v, w) }) {
				continue
			}
			shown = append(shown, v)
			fmt.Fprintf(&b, "\nVariant %s of .%s%s%s\n", v.Name, v.Field, ownerWords(group, v), whenWords(a, v))
			b.WriteString(v.Layout.Doc + "\n")
			if a.Confirmed && !v.Layout.Confirmed {
				fmt.Fprintf(&b, "Layout unconfirmed: its only source is %s.\n", strings.Join(v.Layout.Sources, "; "))
			}
			b.WriteString(fieldRows(v.Layout, "  ."))
		}
	}
	return b.String()
}

// sameVariant reports whether v and w have one layout and apply under equally many conditions.
func sameVariant(v, w mad.Variant) bool { return v.Layout == w.Layout && len(v.When) == len(w.When) }

// ownerWords returns the classes of the group that have variant v; empty if all have it.
func ownerWords(group []*mad.Attribute, v mad.Variant) string {
	var names []string
	for _, a := range group {
		if slices.ContainsFunc(a.Variants, func(w mad.Variant) bool { return sameVariant(v, w) }) {
			name := a.Class.String()
			if a.Version != a.Class.Version() {
				name += fmt.Sprintf(" version %d", a.Version)
			}
			names = append(names, name)
		}
	}
	if len(names) == len(group) {
		return ""
	}
	return " in class " + strings.Join(names, ", ")
}

// whenWords returns when a variant applies.
func whenWords(a *mad.Attribute, v mad.Variant) string {
	if len(v.When) == 0 {
		return fmt.Sprintf(", if variant=%q is given", v.Name)
	}
	var parts []string
	for _, c := range v.When {
		name := c.Name
		switch f := a.Field(c.Name); {
		case c.Modifier:
			name = "the modifier's " + name
		case f != nil && f.Bits > 64:
			name = "the number in the first two bytes of " + name
		}
		var ranges []string
		for _, r := range c.Values {
			switch {
			case r[0] == r[1]:
				ranges = append(ranges, numberWords(a, c, r[0]))
			case !c.Modifier && r[0] == 0 && r[1] == a.Field(c.Name).Max():
				ranges = append(ranges, "any other") // than the values of the variants before
			default:
				ranges = append(ranges, fmt.Sprintf("%s to %s", numberWords(a, c, r[0]), numberWords(a, c, r[1])))
			}
		}
		parts = append(parts, name+" is "+strings.Join(ranges, " or "))
	}
	return ", if " + strings.Join(parts, " and ")
}

// numberWords returns a value of a condition as text.
func numberWords(a *mad.Attribute, c mad.Condition, n uint64) string {
	f := a.Field(c.Name)
	switch {
	case c.Modifier || f == nil:
		return fmt.Sprint(n)
	case f.Words != nil:
		return f.Words.Text(n)
	case f.Hex:
		return fmt.Sprintf("%#0*x", (f.Bits+3)/4, n)
	}
	return fmt.Sprint(n)
}

// fieldRows returns the fields, one in each line: name and doc.
func fieldRows(a *mad.Attribute, prefix string) string {
	var rows []lang.Fact
	for i := range a.Flat() {
		f := &a.Flat()[i]
		name := prefix + f.Script
		for _, other := range otherNames(f) {
			name += " or " + prefix[len(prefix)-1:] + other
		}
		rows = append(rows, lang.Fact{Name: name, Value: starlark.String(f.Doc)})
	}
	return lang.Aligned(rows)
}

// otherNames returns the names of a field except its first.
func otherNames(f *mad.Field) []string {
	if f.Vendor == "" {
		return f.Also
	}
	return append(slices.Clone(f.Also), mad.SnakeName(f.Vendor))
}

// writeWords returns the effect of a Set on the field.
func writeWords(a *mad.Attribute, f *mad.Field) string {
	if a.Class == 0 {
		return ""
	}
	settable := slices.Contains(a.Methods, mad.MethodSet)
	subn := a.Class.Family() == mad.ClassSubn
	switch {
	case !settable:
		return "The attribute cannot be set."
	case f.ReadOnly:
		return "Read-only: agents ignore it in a Set."
	case a == mad.AttrSMInfo:
		return "Read-only: in a Set it describes the sender, and the modifier is the request."
	case f.NoChange && subn:
		return "In a Set, 0 means no change: smp_set sends 0 unless the field is named."
	case f.W1C && subn:
		return "In a Set, 1 clears or triggers it: smp_set sends 0 unless the field is named."
	case subn:
		return "A Set writes it: smp_set sends the value that it has read unless the field is named."
	}
	return "A Set writes it."
}

// keyWords returns how a key is shown.
func keyWords(f *mad.Field) string {
	if f.Key {
		return `A key: it is shown as "hidden", or "none" if it is 0.`
	}
	return ""
}

// componentWords returns the bits of a field in the component mask (IBA 15.2.1.1).
func componentWords(a *mad.Attribute, f *mad.Field) string {
	if f.Component < 0 || a.Class != mad.ClassSubnAdm {
		return ""
	}
	if f.Components > 1 {
		return fmt.Sprintf("Queries can select records by it: bits %d to %d of the component mask.", f.Component, f.Component+f.Components-1)
	}
	return fmt.Sprintf("Queries can select records by it: bit %d of the component mask.", f.Component)
}

// requestWords returns the methods, for each version of the class.
func requestWords(a *mad.Attribute) string {
	names := func(version uint8) string {
		var list []string
		for _, m := range a.MethodsIn(version) {
			list = append(list, m.Name(a.Class, version))
		}
		return strings.Join(list, ", ")
	}
	var text string
	if len(a.Methods) > 0 {
		text = ", methods " + names(a.Version)
	}
	if len(a.Methods1) > 0 {
		text += ", in class version 1 " + names(1)
	}
	return text
}

// requestLimits returns what limits requests of an attribute: capabilities of the device,
// and modifiers that are not public.
func requestLimits(a *mad.Attribute) string {
	var b strings.Builder
	if by := a.AnnouncedBy(); by != "" {
		fmt.Fprintf(&b, "It is requested only from devices of NVIDIA or Mellanox with %s.\n", by)
	}
	if a.UnknownModifier {
		b.WriteString("No public source has its modifier: give modifier=.\n")
	}
	if a.InferredModifier {
		b.WriteString("The modifier is an inference, and only for the first table: no public source has all of it. For another table, give modifier=.\n")
	}
	if a.Older {
		b.WriteString("A newer attribute has the same number: only the name selects this one.\n")
	}
	return b.String()
}

// requirement returns whether a subnet administrator must support the attribute, in
// version 1 of its class; there is no public source for version 2.
func requirement(a *mad.Attribute) string {
	bit := "is_subnet_optional_records_supported"
	switch {
	case len(a.Methods1) == 0:
		return ""
	case a.Required:
		return "A subnet administrator of class version 1 must support it.\n"
	case a.Name == "MCGroupRecord" || a.Name == "MCMemberRecord":
		bit = "is_ud_multicast_supported"
	}
	return "Optional for a subnet administrator of class version 1: its ClassPortInfo.capability_mask has " + bit + " if it supports it.\n"
}

// notices returns the variants of Notice that a trap number selects, each once, with the
// first class that has it.
func notices(number uint64) (list []mad.Variant) {
	for _, a := range AttributesNamed("Notice") {
		for _, v := range a.Variants {
			known := slices.ContainsFunc(list, func(w mad.Variant) bool { return w.Layout == v.Layout })
			if !known && slices.Contains(trapsOf(v), number) {
				list = append(list, v)
			}
		}
	}
	return list
}

// trapsOf returns the trap numbers that select a variant.
func trapsOf(v mad.Variant) (numbers []uint64) {
	for _, c := range v.When {
		if c.Name != "trap_number" {
			continue
		}
		for _, r := range c.Values {
			for n := r[0]; n <= r[1] && n-r[0] < 64; n++ {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers
}

// methodFunctions has the functions that send a method, by class.
var methodFunctions = map[mad.Class]map[mad.Method]string{
	mad.ClassSubn: {mad.MethodGet: "smp_get", mad.MethodSet: "smp_set", mad.MethodTrap: "sa_subscribe", mad.MethodTrapRepress: "sa_subscribe"},
	mad.ClassSubnAdm: {mad.MethodGet: "sa_get", mad.MethodGetTable: "sa_gettable", mad.MethodSet: "sa_set", mad.MethodDelete: "sa_delete",
		mad.MethodGetMulti: "sa_getmulti", mad.MethodGetTraceTable: "sa_gettrace", mad.MethodReport: "sa_subscribe"},
	mad.ClassPerf: {mad.MethodGet: "perf_get", mad.MethodSet: "perf_set"},
	0:             {mad.MethodGet: "mad_get", mad.MethodSet: "mad_set"},
}

// methodFunction returns the function that sends a method in a class, or receives its data.
func methodFunction(c mad.Class, version uint8, m mad.Method) string {
	list, ok := methodFunctions[c.Family()]
	if !ok {
		list = methodFunctions[0]
	}
	if c == mad.ClassSubnAdm && version == 1 {
		list = nil
	}
	return cmp.Or(list[m], "mad_send")
}
