package builtins

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/fabric"
)

// ShippedDoc is a shipped script, and the first line of its docstring.
type ShippedDoc struct {
	Name, Doc string
	// Deep: of an audit, that it reads whole tables, so it is no standard one.
	Deep bool
	// Options are the flags of a kind of topology.
	Options []string
}

// Folders of shipped scripts.
const (
	policyFolder   = "routing"
	auditFolder    = "audit"
	reportFolder   = "report"
	topologyFolder = "topology"
)

// shipped are the scripts of a folder of @std//, by name.
func shipped(folder string) []ShippedDoc { return shippedIn[folder]() }

// shippedIn has a function for each folder. The scripts are in the program, so what
// they say is read once.
var shippedIn = map[string]func() []ShippedDoc{
	policyFolder:   readOnce(policyFolder),
	auditFolder:    readOnce(auditFolder),
	reportFolder:   readOnce(reportFolder),
	topologyFolder: readOnce(topologyFolder),
}

func readOnce(folder string) func() []ShippedDoc {
	return sync.OnceValue(func() []ShippedDoc { return readShipped(folder) })
}

// readShipped reads what is said of scripts from their text: nothing of them runs.
func readShipped(folder string) []ShippedDoc {
	var list []ShippedDoc
	entries, _ := fs.ReadDir(library(), folder)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".star")
		if !ok {
			continue
		}
		src, _ := fs.ReadFile(library(), path.Join(folder, e.Name()))
		d := ShippedDoc{Name: name}
		if folder == topologyFolder {
			d.Options = ProgramOf(e.Name(), string(src), topologyEntry).Options
		}
		head, _, _ := bytes.Cut(src, []byte("\ndef ")) // the rest says nothing of the script, and takes time
		if file, err := lang.Dialect.Parse(e.Name(), head, 0); err == nil {
			d.Doc, _, _ = strings.Cut(docstring(file), "\n")
			d.Deep = slices.ContainsFunc(file.Stmts, setsDeep)
		}
		list = append(list, d)
	}
	return list
}

// docstring is the text that a file begins with; "" where it begins otherwise.
func docstring(file *syntax.File) string {
	if len(file.Stmts) > 0 {
		if x, ok := file.Stmts[0].(*syntax.ExprStmt); ok {
			if text, ok := x.X.(*syntax.Literal); ok && text.Token == syntax.STRING {
				return fmt.Sprint(text.Value)
			}
		}
	}
	return ""
}

// setsDeep: the statement is `deep = True`.
func setsDeep(s syntax.Stmt) bool {
	a, ok := s.(*syntax.AssignStmt)
	if !ok {
		return false
	}
	name, ok := a.LHS.(*syntax.Ident)
	value, isName := a.RHS.(*syntax.Ident)
	return ok && isName && name.Name == "deep" && value.Name == "True"
}

// shippedPath is the script that name means: a .star file, or a shipped one of
// folder. what is what such scripts are called.
func shippedPath(folder, what, name string) (string, error) {
	if isScript(name) {
		return name, nil
	}
	var names []string
	for _, p := range shipped(folder) {
		if p.Name == name {
			return "@std//" + folder + "/" + name + ".star", nil
		}
		names = append(names, p.Name)
	}
	return "", fmt.Errorf("no %s %q%s: use a .star file, or one of %s", what, name, fabric.DidYouMean(name, names), strings.Join(names, ", "))
}

// isScript: name is a file's, not that of a shipped script.
func isScript(name string) bool {
	return strings.HasSuffix(name, ".star") || strings.ContainsAny(name, "/@")
}

// function runs the top level of a script and finds the function of that name.
func (s *Session) function(t *starlark.Thread, script, src, name string) (*starlark.Function, *syntax.File, starlark.StringDict, error) {
	file, prog, err := s.compile(script, src)
	if err != nil {
		return nil, nil, nil, err
	}
	globals, err := prog.Init(t, s.predeclared)
	if err != nil {
		return nil, nil, nil, err
	}
	fn, _ := globals[name].(*starlark.Function)
	return fn, file, globals, nil
}
