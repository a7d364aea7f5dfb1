package script

import (
	"io/fs"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
)

// Program describes a script, as far as possible without running it.
type Program struct {
	Name    string // as the command line takes it: @examples//links.star
	Doc     string // the first line of its docstring
	Options []string
	// Entry reports whether it defines main, audit, route, or an entry passed to ProgramOf.
	// If not, its options are unknown.
	Entry bool
}

// TestPrefix begins the names of tests; SimParam is the parameter whose default names a
// test's simulated fabric.
const (
	TestPrefix = "test_"
	SimParam   = "sim"
)

// Programs lists the embedded scripts that can be run, by name.
func Programs() []Program {
	var list []Program
	for name, tree := range packages() {
		for _, file := range filesOf(tree) {
			src, err := fs.ReadFile(tree, file)
			if p := ProgramOf(name+"//"+file, string(src)); err == nil && p.Entry {
				list = append(list, p)
			}
		}
	}
	slices.SortFunc(list, func(a, b Program) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// ProgramOf reads a script without running it. A script with errors has no entry. entries are
// other functions that make it a program, besides EntryNames.
func ProgramOf(name, src string, entries ...string) Program {
	p := Program{Name: name}
	file, err := lang.Dialect.Parse(name, src, 0)
	if err != nil {
		return p
	}
	p.Doc, _, _ = strings.Cut(Docstring(file), "\n")
	for _, entry := range slices.Concat(entryNames, entries) {
		for _, stmt := range file.Stmts {
			if def, ok := stmt.(*syntax.DefStmt); ok && def.Name.Name == entry {
				p.Entry, p.Options = true, optionsOf(def)
				return p
			}
		}
	}
	return p
}

// optionsOf returns the flags of the keyword-only parameters of an entry function. A bool that
// is True by default is turned off.
func optionsOf(def *syntax.DefStmt) []string {
	var flags []string
	keyword := false
	for _, param := range def.Params {
		switch x := param.(type) {
		case *syntax.UnaryExpr:
			keyword = keyword || x.Op == syntax.STAR
		case *syntax.Ident:
			if keyword {
				flags = append(flags, FlagName(x.Name))
			}
		case *syntax.BinaryExpr:
			name, ok := x.X.(*syntax.Ident)
			if !keyword || !ok {
				continue
			}
			flag := FlagName(name.Name)
			if v, ok := x.Y.(*syntax.Ident); ok && v.Name == "True" {
				flag = "--no-" + flag[2:]
			}
			flags = append(flags, flag)
		}
	}
	return flags
}
