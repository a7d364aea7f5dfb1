package shell

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins"
	"fabsh/mad"
)

// completer proposes what the session knows.
func (s *session) completer(x *interp) *completer {
	return &completer{
		globals:  func() starlark.StringDict { return x.globals },
		keywords: keywordsOf,
		words:    s.wordsFor,
		files:    filesWith,
	}
}

// keywordsOf are the names of a function's parameters, and where it takes an
// attribute's fields by name, the fields of the one that args name.
func keywordsOf(callee starlark.Value, args []string) []string {
	var names []string
	for i, p := range builtins.ParamsOf(callee) {
		switch {
		case p.Kind == builtins.KindFields:
			names = append(names, fieldsNamed(args)...)
		case strings.HasPrefix(p.Name, "*"):
		case i >= len(args) || p.Keyword:
			names = append(names, p.Name)
		}
	}
	return names
}

// fieldsNamed are the fields of the attribute that the first of args names.
func fieldsNamed(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	a := mad.ByName(strings.Trim(args[0], `"'`))
	if a == nil {
		return nil
	}
	var names []string
	for _, f := range a.Flat() {
		names = append(names, f.Script)
	}
	return names
}

// wordsFor are the texts that make sense for an argument.
func (s *session) wordsFor(callee starlark.Value, arg argument) (words []string, isPath bool) {
	params := builtins.ParamsOf(callee)
	i := slices.IndexFunc(params, func(p builtins.Param) bool { return p.Name == arg.keyword })
	if arg.keyword == "" {
		i = arg.index
	}
	if i < 0 || i >= len(params) {
		return nil, false
	}
	switch p := params[i]; p.Kind {
	case builtins.KindSMPAttribute:
		return attributeNames(mad.ClassSubn), false
	case builtins.KindPerfAttribute:
		return attributeNames(mad.ClassPerf), false
	case builtins.KindRecord:
		return attributeNames(mad.ClassSubnAdm), false
	case builtins.KindTarget:
		return s.nodeNames(), false
	case builtins.KindPath:
		return nil, true
	}
	return nil, false
}

// nodeNames are those of the latest fabric.
func (s *session) nodeNames() []string {
	f := s.Fabric()
	if f == nil {
		return nil
	}
	var names []string
	for i := range f.Nodes() {
		if name := f.Nodes()[i].Name(); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func attributeNames(c mad.Class) []string {
	var names []string
	for _, a := range mad.Attributes() {
		if a.Class == c {
			names = append(names, a.Name)
		}
	}
	return names
}

// filesWith are the files and folders that begin with prefix. Hidden ones must
// be asked for.
func filesWith(prefix string) []string {
	dir, base := filepath.Split(prefix)
	if strings.HasPrefix(prefix, "@") {
		return nil
	}
	from := dir
	if from == "" {
		from = "."
	}
	entries, _ := os.ReadDir(from)
	var names []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || base == "" && strings.HasPrefix(name, ".") {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		names = append(names, dir+name)
	}
	return names
}
