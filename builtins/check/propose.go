package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/mad"
)

// KeywordsOf returns the names of a function's parameters; if it takes an attribute's
// fields by name, also the fields of the attribute that args name.
func KeywordsOf(callee starlark.Value, args []string) []string {
	var names []string
	for i, p := range paramsOf(callee) {
		switch {
		case p.Kind == records.KindFields:
			if a := attributeNamed(args); a != nil {
				for _, f := range a.Flat() {
					if a.Register == 0 || !f.ReadOnly && !f.W1C { // of a register, the fields that select
						names = append(names, f.Script)
					}
				}
			}
		case strings.HasPrefix(p.Name, "*"):
		case i >= len(args) || p.Keyword:
			names = append(names, p.Name)
		}
	}
	return names
}

// attributeNamed returns the attribute that the first of args names; nil: none.
func attributeNamed(args []string) *mad.Attribute {
	if len(args) == 0 {
		return nil
	}
	name := strings.Trim(args[0], `"'`)
	return cmp.Or(mad.ByName(name), mad.RegisterNamed(name))
}

// Known are the texts that a session knows besides the declarations.
type Known struct {
	Topics  func(base string) []string  // of help
	Targets func(typed string) []string // names of nodes and ports; nil: none are known
	Names   func() []string             // names of nodes; nil: none are known
}

// Words returns the texts that are valid for an argument.
func (k Known) Words(callee starlark.Value, arg callArgument) (words []string, isPath bool) {
	params := paramsOf(callee)
	i := len(arg.Before)
	if arg.Keyword != "" {
		i = slices.IndexFunc(params, func(p lang.Param) bool { return p.Name == arg.Keyword })
		if i < 0 {
			return fieldWords(attributeNamed(arg.Before), arg.Keyword), false
		}
	}
	if i >= len(params) {
		return nil, false
	}
	switch p := params[i]; p.Kind {
	case records.KindSMPAttribute:
		return datagrams.AttributeNames(mad.ClassSubn), false
	case records.KindPerfAttribute:
		return datagrams.AttributeNames(mad.ClassPerf), false
	case records.KindRecord:
		return datagrams.AttributeNames(mad.ClassSubnAdm), false
	case records.KindRegister:
		return datagrams.RegisterNames(), false
	case records.KindAttribute:
		return datagrams.OtherAttributeNames(), false
	case lang.KindTopic:
		base, _, isPart := strings.Cut(arg.Typed, ".")
		if !isPart {
			base = ""
		}
		return k.Topics(base), false
	case topology.KindTarget:
		if k.Targets != nil {
			return k.Targets(arg.Typed), false
		}
	case lang.KindChoice:
		return quotedWords(p.Doc), false
	case lang.KindPath:
		return nil, true
	default:
		if p.Kind != nil && p.Kind.Names { // or one of its words
			words := quotedWords(p.Doc)
			if k.Names != nil {
				words = append(words, k.Names()...)
			}
			return words, false
		}
	}
	return nil, false
}

// fieldWords returns the words of an enumerated field.
func fieldWords(a *mad.Attribute, field string) []string {
	if a == nil {
		return nil
	}
	for _, f := range a.Flat() {
		if f.Script == field && f.Words != nil {
			return slices.Sorted(maps.Keys(f.Words.Code))
		}
	}
	return nil
}

// quotedWords returns the words between double quotes in doc.
func quotedWords(doc string) []string {
	var words []string
	for i, part := range strings.Split(doc, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		}
	}
	return words
}
