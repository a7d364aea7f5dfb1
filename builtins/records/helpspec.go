package records

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/mad"
)

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

// verbs has the functions that send a method, by class.
var verbs = map[mad.Class]map[mad.Method]string{
	mad.ClassSubn: {mad.MethodGet: "smp_get", mad.MethodSet: "smp_set", mad.MethodTrap: "sa_subscribe", mad.MethodTrapRepress: "sa_subscribe"},
	mad.ClassSubnAdm: {mad.MethodGet: "sa_get", mad.MethodGetTable: "sa_gettable", mad.MethodSet: "sa_set", mad.MethodDelete: "sa_delete",
		mad.MethodGetMulti: "sa_getmulti", mad.MethodGetTraceTable: "sa_gettrace", mad.MethodReport: "sa_subscribe"},
	mad.ClassPerf: {mad.MethodGet: "perf_get", mad.MethodSet: "perf_set"},
	0:             {mad.MethodGet: "mad_get", mad.MethodSet: "mad_set"},
}

// verbOf returns the function that sends a method in a class, or receives its data.
func verbOf(c mad.Class, version uint8, m mad.Method) string {
	list, ok := verbs[c.Family()]
	if !ok {
		list = verbs[0]
	}
	if c == mad.ClassSubnAdm && version == 1 {
		list = nil
	}
	return cmp.Or(list[m], "mad_send")
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
				list = append(list, MethodUse{c.Name + m.Name, c.First, v, m, verbOf(c.First, v, m.Method)})
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
		rows = append(rows, lang.Fact{Name: "  " + what, Value: starlark.String(fmt.Sprintf("%#02x: %s: %s", uint8(u.Info.Method), u.Info.Doc, u.Verb))})
	}
	b.WriteString(lang.Aligned(rows))
	fmt.Fprintf(&b, "\nThe last word is the function that sends or receives it: help(%q).\n", uses[0].Verb)
	return b.String()
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
