package shell_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layers are the packages from top to bottom: each may import those of the
// lines below its own. A * stands for any one name.
var layers = [][]string{
	{"shell/fabsh"},
	{"shell"},
	{"shell/exporter", "shell/manual", "shell/top", "shell/tour"},
	{"builtins"},
	{"builtins/pictures"},
	{"builtins/audits", "builtins/hosts"},
	{"builtins/datagrams", "builtins/routing"},
	{"builtins/changes"},
	{"builtins/topology"},
	{"builtins/records"},
	{"builtins/lang"},
	{"fabric/change/apply"},
	{"fabric/page"},
	{"fabric/diff", "fabric/export", "fabric/hosts", "fabric/picture"},
	{"fabric/audit"},
	{"fabric/sim/server"},
	{"fabric/change", "fabric/sim"},
	{"fabric/change/plan"},
	{"fabric/change/order", "fabric/routing/chain", "fabric/routing/paths"},
	{"fabric/discover", "fabric/routing"},
	{"fabric/format", "fabric/routing/lanes", "fabric/sa", "fabric/sim/generate", "fabric/sim/registers", "fabric/stored"},
	{"fabric"},
	{"mad/capture", "mad/ibsim", "mad/umad", "mad/ibsim/ibsimtest", "mad/umad/umadtest"}, // transports, and what tests need: peers, a kernel
	{"mad/engine", "mad/ibsim/wire"},
	{"mad"},
	{"mad/internal/gen"},
	{"mad/internal/*"},
	{"scripts", "examples"}, // files, embedded
}

// reserved are imports, with all below them, that only some packages, or files
// of them, may have in other than tests.
var reserved = map[string][]string{
	"C":                          nil,
	"unsafe":                     {"builtins/lang/replace.go", "mad/umad", "mad/internal/nowait", "fabric/sim/server/socket_linux.go"}, // system calls
	"log":                        nil,
	"log/slog":                   {"shell", "shell/exporter"}, // what the exporter toolkit logs to
	"net/http":                   {"shell/exporter"},
	"testing":                    {"mad/ibsim/ibsimtest", "mad/umad/umadtest"},
	"os/exec":                    {"shell", "mad/ibsim/ibsimtest", "mad/umad/umadtest"},
	"os/signal":                  {"shell"},
	"syscall":                    {"shell", "builtins/lang/*files.go", "fabric/audit/lock.go", "fabric/format/load.go", "fabric/format/target.go", "fabric/format/temp.go", "mad/*", "mad/internal/nowait", "mad/ibsim/ibsimtest", "mad/umad/umadtest"},
	"golang.org/x/sys":           {"shell/terminal*.go", "shell/system_*.go", "mad/*", "mad/umad/umadtest", "fabric/sim/server/socket_linux.go"},
	"golang.org/x/term":          {"shell/terminal*.go", "shell/top/terminal.go"},
	"go.starlark.net":            {"shell", "shell/tour", "builtins", "builtins/*"},
	"github.com/chzyer/readline": {"shell"},
	"github.com/spf13/cobra":     {"shell"},
	"fabsh/mad/ibsim":            {"shell"}, // whoever opens transports
	"fabsh/mad/ibsim/ibsimtest":  nil,
	"fabsh/mad/ibsim/wire":       {"mad/ibsim", "fabric/sim/server"}, // the two ends of its sockets
	"fabsh/mad/umad":             {"shell"},
	"fabsh/mad/umad/umadtest":    nil,
	"fabsh/scripts":              {"builtins"},
	"fabsh/examples":             {"builtins"},
}

// environment are names through which a program meets its environment, its
// terminal, its end: package shell's alone.
var environment = map[string][]string{
	"os":  {"Args", "Environ", "Exit", "ExpandEnv", "Getenv", "LookupEnv", "Setenv", "Stderr", "Stdin", "Stdout", "Unsetenv"},
	"fmt": {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// TestLayout keeps the packages as the README draws them.
func TestLayout(t *testing.T) {
	for file := range goFiles(t) {
		pkg := path.Dir(file.name)
		own := layer(pkg)
		if own < 0 {
			t.Errorf("%s: package %s is in no layer", file.name, pkg)
			continue
		}
		if file.syntax.Name.Name == "main" && pkg != "shell/fabsh" {
			t.Errorf("%s: package main; shell/fabsh is the only one", file.name)
		}
		for _, spec := range file.syntax.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if ours, ok := strings.CutPrefix(imported, "fabsh/"); ok && layer(ours) <= own && !file.isTest {
				t.Errorf("%s: imports %s, which is not below it", file.name, imported)
			}
			if owners, ok := owners(imported); ok && !file.isTest && !slices.ContainsFunc(owners, file.is) {
				t.Errorf("%s: imports %s, which is for %q only", file.name, imported, owners)
			}
		}
		if own > layer("shell") && !file.isTest && !file.is("mad/ibsim/ibsimtest") && !file.is("mad/umad/umadtest") {
			checkNoEnvironment(t, file)
		}
	}
}

// TestLangIsGeneral: the framework of builtins knows nothing of InfiniBand, and
// could serve another product.
func TestLangIsGeneral(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "fabsh/builtins/lang").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		if strings.HasPrefix(pkg, "fabsh/") && pkg != "fabsh/builtins/lang" {
			t.Errorf("builtins/lang needs %s", pkg)
		}
	}
}

// layer is the index in layers of package pkg, -1 if there is none.
func layer(pkg string) int {
	return slices.IndexFunc(layers, func(line []string) bool {
		return slices.ContainsFunc(line, func(pattern string) bool { return match(pattern, pkg) })
	})
}

// owners are who may import what reserves an import; the longest name decides.
func owners(imported string) (owners []string, ok bool) {
	for p := imported; p != "."; p = path.Dir(p) {
		if owners, ok = reserved[p]; ok {
			return owners, true
		}
	}
	return nil, false
}

func checkNoEnvironment(t *testing.T, file goFile) {
	ast.Inspect(file.syntax, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := s.X.(*ast.Ident); ok && pkg.Obj == nil && slices.Contains(environment[pkg.Name], s.Sel.Name) {
			t.Errorf("%s: %s.%s is for package shell only", file.name, pkg.Name, s.Sel.Name)
		}
		return true
	})
}

type goFile struct {
	name   string // below the module's root
	isTest bool
	syntax *ast.File
}

// is: the file has the name or is of the package that pattern describes.
func (f goFile) is(pattern string) bool {
	return match(pattern, f.name) || match(pattern, path.Dir(f.name))
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// root is the module's folder, seen from this package's.
const root = ".."

// goFiles are all of the module, in the order of their names.
func goFiles(t *testing.T) iter.Seq[goFile] {
	return func(yield func(goFile) bool) {
		set := token.NewFileSet()
		err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
				return fs.SkipDir
			case d.IsDir() || path.Ext(name) != ".go":
				return nil
			}
			syntax, err := parser.ParseFile(set, filepath.Join(root, name), nil, 0)
			if err == nil && !yield(goFile{name, strings.HasSuffix(name, "_test.go"), syntax}) {
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestFileSizes: one idea a file, and a package that can be looked over.
// Generated files and tests do not count.
func TestFileSizes(t *testing.T) {
	const lines, files = 400, 52
	count := map[string]int{}
	for file := range goFiles(t) {
		if file.isTest || strings.HasPrefix(path.Base(file.name), "z") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, file.name))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(b, []byte("\n")); n > lines {
			t.Errorf("%s has %d lines, more than %d", file.name, n, lines)
		}
		if count[path.Dir(file.name)]++; count[path.Dir(file.name)] == files+1 {
			t.Errorf("%s has more than %d files", path.Dir(file.name), files)
		}
	}
}

// TestFolders: what the README lists, and no more.
func TestFolders(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "dist" { // what make dist makes
			got = append(got, e.Name())
		}
	}
	want := []string{"builtins", "examples", "fabric", "mad", "scripts", "shell"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("top-level folders: -want +got\n%s", diff)
	}
}

// TestMainIsShort: all that can be tested is in package shell.
func TestMainIsShort(t *testing.T) {
	b, err := os.ReadFile("fabsh/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(b, []byte("\n")); lines > 15 {
		t.Errorf("fabsh/main.go has %d lines, more than 15", lines)
	}
}
