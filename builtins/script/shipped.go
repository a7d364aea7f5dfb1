package script

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/afero"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	values "fabsh/builtins/routing"
	"fabsh/examples"
	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/scripts"
)

// packages are the embedded trees that load finds by name.
var packages = sync.OnceValue(func() map[string]fs.FS {
	return map[string]fs.FS{"@std": library(), "@examples": examples.FS}
})

// library is the shipped library: the scripts of fabsh/scripts, and for each routing engine
// the policy that runs it, which is made from its declaration.
var library = sync.OnceValue(func() fs.FS {
	made := afero.NewMemMapFs()
	for _, e := range engines.All() {
		afero.WriteFile(made, path.Join(string(Policies), e.Name+".star"), []byte(values.EnginePolicy(&e)), 0o444)
	}
	return afero.NewIOFS(afero.NewCopyOnWriteFs(afero.FromIOFS{FS: scripts.FS}, made))
})

// Folder is a directory of @std// with scripts of one kind.
type Folder string

// The folders.
const (
	Audits     Folder = "audit"
	Reports    Folder = "report"
	Remedies   Folder = "remedy"
	Policies   Folder = "routing"
	Topologies Folder = "topology"
	Scenarios  Folder = "scenario"
	Profiles   Folder = "accept"
)

// kinds are the names of the kinds of scripts in errors.
var kinds = map[Folder]string{Audits: "audit", Reports: "report", Remedies: "remedy", Policies: "routing policy", Topologies: "kind of topology", Scenarios: "scenario", Profiles: "acceptance profile"}

// TopologyEntry is the function of a kind of topology that returns the file. RemedyEntry is the
// function of a remedy that returns its actions.
const (
	TopologyEntry = "topology"
	RemedyEntry   = "remedy"
)

// entryOf are the entry functions of scripts that only commands call.
var entryOf = map[Folder]string{Topologies: TopologyEntry, Remedies: RemedyEntry}

// Doc is a shipped script, and the first line of its docstring.
type Doc struct {
	Name, Doc string
	// Deep reports that an audit reads whole tables, so it is not in the standard set.
	Deep bool
	// Host reports that an audit judges the host instead of a fabric, so it runs alone.
	Host bool
	// Named reports that an audit runs only if it is named, not with the standard set or --deep.
	Named bool
	// Options are the flags of a kind of topology, or of a remedy.
	Options []string
}

// InSet reports whether an audit runs if none is named, or with deep: if --deep is given.
func (d Doc) InSet(deep bool) bool { return (deep || !d.Deep) && !d.Host && !d.Named }

// Shipped lists the scripts of the folder, by name.
func (f Folder) Shipped() []Doc { return shippedIn[f]() }

// Names lists the names of the folder's scripts.
func (f Folder) Names() []string {
	var names []string
	from := fs.FS(scripts.FS)
	if f == Policies {
		from = library() // those of engines are made
	}
	entries, _ := fs.ReadDir(from, string(f))
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".star"); ok {
			names = append(names, name)
		}
	}
	return names
}

// Source returns the text of a shipped script.
func (f Folder) Source(name string) (string, error) {
	b, err := fs.ReadFile(library(), path.Join(string(f), name+".star"))
	return string(b), err
}

// Locate returns the script of a name: a .star file, or a shipped one of the folder.
func (f Folder) Locate(name string) (string, error) {
	if isScriptFile(name) {
		return name, nil
	}
	names := f.Names()
	if slices.Contains(names, name) {
		return "@std//" + string(f) + "/" + name + ".star", nil
	}
	return "", fmt.Errorf("%[2]q: unknown %[1]s%[3]s; use a .star file, or one of %[4]s", kinds[f], name, fabric.DidYouMean(name, names), strings.Join(names, ", "))
}

// IsReport reports whether a shipped report has the name.
func IsReport(name string) bool {
	_, err := fs.Stat(scripts.FS, path.Join(string(Reports), name+".star"))
	return err == nil && !isScriptFile(name)
}

// isScriptFile reports whether name names a file, not a shipped script.
func isScriptFile(name string) bool {
	return strings.HasSuffix(name, ".star") || strings.ContainsAny(name, "/@")
}

// shippedIn has a function for each folder. The scripts are embedded, so they are read once.
var shippedIn = map[Folder]func() []Doc{
	Audits:     readOnce(Audits),
	Reports:    readOnce(Reports),
	Remedies:   readOnce(Remedies),
	Policies:   readOnce(Policies),
	Topologies: readOnce(Topologies),
	Scenarios:  readOnce(Scenarios),
	Profiles:   readOnce(Profiles),
}

// readOnce returns a function that reads the docs of scripts from their text, without running
// them.
func readOnce(f Folder) func() []Doc {
	return sync.OnceValue(func() []Doc {
		var list []Doc
		for _, name := range f.Names() {
			src, _ := f.Source(name)
			d := Doc{Name: name}
			if entry := entryOf[f]; entry != "" {
				d.Options = ProgramOf(name+".star", src, entry).Options
			}
			if file, err := lang.Dialect.Parse(name+".star", headOf([]byte(src)), 0); err == nil {
				d.Doc, _, _ = strings.Cut(Docstring(file), "\n")
				d.Deep = setsTrue(file, "deep")
				d.Host = setsTrue(file, "host")
				d.Named = setsTrue(file, "named")
			}
			list = append(list, d)
		}
		return list
	})
}

// Docstring returns the text at the beginning of a file, "" if it begins otherwise.
func Docstring(file *syntax.File) string {
	if len(file.Stmts) > 0 {
		if x, ok := file.Stmts[0].(*syntax.ExprStmt); ok {
			if text, ok := x.X.(*syntax.Literal); ok && text.Token == syntax.STRING {
				return fmt.Sprint(text.Value)
			}
		}
	}
	return ""
}

// JudgesHost reports whether the audit with that text judges the host instead of a fabric: it
// sets host to True.
func JudgesHost(src string) bool {
	file, err := lang.Dialect.Parse("", headOf([]byte(src)), 0)
	return err == nil && setsTrue(file, "host")
}

// headOf returns the text of a script before its functions, which take time to parse.
func headOf(src []byte) []byte {
	head, _, _ := bytes.Cut(src, []byte("\ndef "))
	return head
}

// setsTrue reports whether a statement of a file is `name = True`.
func setsTrue(file *syntax.File, name string) bool {
	return slices.ContainsFunc(file.Stmts, func(s syntax.Stmt) bool {
		a, ok := s.(*syntax.AssignStmt)
		if !ok {
			return false
		}
		to, ok := a.LHS.(*syntax.Ident)
		value, isName := a.RHS.(*syntax.Ident)
		return ok && isName && to.Name == name && value.Name == "True"
	})
}

// Program describes a script, as far as possible without running it.
type Program struct {
	Name    string // as the command line takes it: @examples//links.star
	Doc     string // the first line of its docstring
	Options []string
	// Switches are the options without a value: of parameters whose default is True or False.
	Switches []string
	// Entry reports whether it defines main, audit, route, or an entry passed to ProgramOf.
	Entry bool
	// Known reports whether the options are. Those of an entry function that the script does not
	// define itself, such as one that it loads, are not.
	Known bool
	// Broken reports that it cannot run: its text has errors.
	Broken bool
}

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
// other functions that make it a program, besides entryNames.
func ProgramOf(name, src string, entries ...string) Program {
	p := Program{Name: name}
	file, err := lang.Dialect.Parse(name, src, 0)
	if err != nil {
		p.Broken = true
		return p
	}
	p.Doc, _, _ = strings.Cut(Docstring(file), "\n")
	entries = slices.Concat(entryNames, entries)
	for _, entry := range entries {
		for _, stmt := range file.Stmts {
			if def, ok := stmt.(*syntax.DefStmt); ok && def.Name.Name == entry {
				p.Entry, p.Known = true, true
				p.Options, p.Switches = optionsOf(def, file)
				return p
			}
		}
	}
	p.Known = !slices.ContainsFunc(file.Stmts, func(s syntax.Stmt) bool { return bindsAny(s, entries) })
	return p
}

// bindsAny reports whether a statement gives one of the names a value.
func bindsAny(s syntax.Stmt, names []string) (found bool) {
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.LoadStmt:
			found = found || slices.ContainsFunc(n.To, func(to *syntax.Ident) bool { return slices.Contains(names, to.Name) })
		case *syntax.AssignStmt:
			to, ok := n.LHS.(*syntax.Ident)
			found = found || ok && slices.Contains(names, to.Name)
		case *syntax.DefStmt:
			found = found || slices.Contains(names, n.Name.Name)
			return false
		}
		return true
	})
	return found
}

// optionsOf returns the flags of the keyword-only parameters of an entry function, and those among
// them that are switches. A bool that is True by default is turned off.
func optionsOf(def *syntax.DefStmt, file *syntax.File) (flags, switches []string) {
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
			switch valueIn(file, x.Y) {
			case "True":
				flag = "--no-" + flag[2:]
				switches = append(switches, flag)
			case "False":
				switches = append(switches, flag)
			}
			flags = append(flags, flag)
		}
	}
	return flags, switches
}

// valueIn returns the name that x is, or that a statement of the file gives the name x: True, False
// or another; "": x is an expression.
func valueIn(file *syntax.File, x syntax.Expr) string {
	name, ok := x.(*syntax.Ident)
	if !ok {
		return ""
	}
	for _, s := range file.Stmts {
		if a, ok := s.(*syntax.AssignStmt); ok {
			to, isName := a.LHS.(*syntax.Ident)
			if v, ok := a.RHS.(*syntax.Ident); ok && isName && to.Name == name.Name {
				return v.Name
			}
		}
	}
	return name.Name
}
