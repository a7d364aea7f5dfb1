package prompt

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/datagrams"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/builtins/types"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/shell/session"
)

// completer returns the completer of the session.
func (r *repl) completer() *completer {
	return &completer{
		reports:  reportNames,
		options:  reportOptions,
		commands: r.commands,
		follow: func(words []string, typed string) ([]string, bool) {
			return r.commands.Complete(r.Session, words, typed)
		},
		own:      r.defined,
		globals:  func() starlark.StringDict { return r.interp.globals },
		keywords: keywordsOf,
		words:    func(callee starlark.Value, arg argument) ([]string, bool) { return wordsFor(r.Session, callee, arg) },
		files:    filesWith,
		exports:  r.Interpreter.Exports,
	}
}

func reportNames() []string {
	var names []string
	for _, d := range script.Reports.Shipped() {
		names = append(names, d.Name)
	}
	return names
}

// reportOptions returns the options of a shipped report.
func reportOptions(name string) []string {
	path, _ := script.Reports.Locate(name)
	for _, p := range script.Programs() {
		if p.Name == path {
			return p.Options
		}
	}
	return nil
}

// keywordsOf returns the names of a function's parameters; if it takes an attribute's
// fields by name, also the fields of the attribute that args name.
func keywordsOf(callee starlark.Value, args []string) []string {
	var names []string
	for i, p := range types.ParamsOf(callee) {
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

// wordsFor returns the texts that are valid for an argument.
func wordsFor(s *session.Session, callee starlark.Value, arg argument) (words []string, isPath bool) {
	params := types.ParamsOf(callee)
	i := len(arg.before)
	if arg.keyword != "" {
		i = slices.IndexFunc(params, func(p lang.Param) bool { return p.Name == arg.keyword })
		if i < 0 {
			return fieldWords(attributeNamed(arg.before), arg.keyword), false
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
		base, _, isPart := strings.Cut(arg.typed, ".")
		if !isPart {
			base = ""
		}
		return help.Of(s.Runtime).Topics(base), false
	case topology.KindTarget:
		return targetNames(s, arg.typed), false
	case lang.KindChoice:
		return quotedWords(p.Doc), false
	case lang.KindPath:
		return nil, true
	default:
		if p.Kind != nil && p.Kind.Names { // or one of its words
			return append(quotedWords(p.Doc), nodeNames(s)...), false
		}
	}
	return nil, false
}

// targetNames returns the names of nodes and, after a node's name and a slash, its
// ports: NAME/3.
func targetNames(s *session.Session, typed string) []string {
	names := nodeNames(s)
	i := strings.LastIndexByte(typed, '/')
	f := s.Env.Fabric()
	if i < 0 || f == nil {
		return names
	}
	for n := range f.Nodes() {
		node := &f.Nodes()[n]
		name := lang.OneLine(node.Name())
		if name == "" || name != typed[:i] {
			continue
		}
		for num := range node.NumPorts() + 1 {
			if node.Port(num) != nil {
				names = append(names, fmt.Sprintf("%s/%d", name, num))
			}
		}
	}
	return names
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

// nodeNames returns the names of the latest fabric, escaped as in a string literal,
// because a terminal displays them.
func nodeNames(s *session.Session) []string {
	f := s.Env.Fabric()
	if f == nil {
		return nil
	}
	var names []string
	for i := range f.Nodes() {
		if name := f.Nodes()[i].Name(); name != "" {
			names = append(names, lang.OneLine(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// NodeWords returns the names of the latest fabric as words of a command: hosts by their
// first word, because names with blanks are two words.
func NodeWords(s *session.Session) []string {
	var words []string
	for _, name := range nodeNames(s) {
		if host, ok := fabric.HostName(name); ok {
			name = host
		}
		if !strings.ContainsAny(name, " \t\"'") {
			words = append(words, name)
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// filesWith returns the files and directories that begin with prefix, or the modules of
// a package. Hidden files are included only if prefix begins with a dot.
func filesWith(prefix string) []string {
	if strings.HasPrefix(prefix, "@") {
		return Matching(script.Embedded(), prefix)
	}
	dir, base := filepath.Split(prefix)
	entries, _ := os.ReadDir(cmp.Or(dir, "."))
	var names []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || base == "" && strings.HasPrefix(name, ".") {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		names = append(names, lang.OneLine(dir+name))
	}
	return names
}
