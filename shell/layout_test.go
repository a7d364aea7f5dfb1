package shell_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layers returns the packages of ARCHITECTURE.md from top to bottom: each may
// import the packages of the layers below its own. An indented line belongs to the layer
// of the line above it. A * stands for any one name.
func layers(t *testing.T) [][]string {
	layers, _ := describedLayers(t)
	return layers
}

// describedLayers also returns the description of each package.
func describedLayers(t *testing.T) (layers [][]string, about map[string]string) {
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\n```layers\n")
	list, _, ok := strings.Cut(list, "\n```\n")
	if !ok {
		t.Fatal("ARCHITECTURE.md: no list of layers")
	}
	about = map[string]string{}
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if len(words) > 0 {
			about[words[0]] = strings.Join(words[1:], " ")
		}
		switch {
		case len(words) == 0:
		case len(words) < 2:
			t.Errorf("ARCHITECTURE.md: %s: no description", words[0])
		case strings.HasPrefix(line, " "):
			layers[len(layers)-1] = append(layers[len(layers)-1], words[0])
		default:
			layers = append(layers, words[:1])
		}
	}
	return layers, about
}

// reserved are imports, with all below them, that only some packages, or files
// of them, may have in other than tests.
var reserved = map[string][]string{
	"C":                          nil,
	"unsafe":                     {"builtins/lang/dialect.go", "mad/umad", "mad/internal/nowait", "fabric/sim/server/socket_linux.go", "fabric/sim/run"}, // system calls
	"log":                        nil,
	"log/slog":                   {"shell/command/exporter.go", "shell/command/mcpserve.go", "shell/exporter", "shell/mcp"}, // what the exporter toolkit logs to
	"net/http":                   {"shell/exporter", "shell/mcp", "shell/serve", "shell/command/serve.go"},
	"testing":                    {"fabric/routing/routingtest", "fabric/localhost/hosttest", "fabric/jsonfile/jsonfiletest", "mad/ibsim/ibsimtest", "mad/umad/umadtest"},
	"os/exec":                    {"shell/command/changeapply.go", "shell/command/mcpserve.go", "shell/command/sim.go", "shell/command/trial.go", "shell/session/console.go", "shell/session/nvlink.go", "mad/ibsim/ibsimtest", "mad/umad/umadtest"},
	"os/signal":                  {"shell/session", "fabric/sim/run"},
	"syscall":                    {"fabric/routing/routingtest", "shell/cli.go", "shell/command", "shell/session", "builtins/lang/files.go", "fabric/format/file.go", "fabric/change/apply/opensm.go", "mad/*", "mad/internal/nowait", "mad/ibsim/ibsimtest", "mad/umad/umadtest", "fabric/sim/run"},
	"golang.org/x/sys":           {"shell/session/terminal.go", "shell/session/system_*.go", "builtins/lang/save_linux.go", "mad/*", "mad/umad/umadtest", "fabric/sim/server/socket_linux.go", "fabric/sim/run", "fabric/history/remote_linux.go"},
	"golang.org/x/term":          {"shell/session/terminal.go", "shell/top/terminal.go"},
	"go.starlark.net":            {"shell/command", "shell/session/program.go", "shell/prompt", "shell/tour", "shell/lsp", "shell/mcp", "shell/serve", "builtins", "builtins/*"},
	"github.com/chzyer/readline": {"shell/prompt"},
	"github.com/spf13/cobra":     {"shell", "shell/command"},
	"fabsh/mad/ibsim":            {"shell/session", "fabric/sim/server"}, // what opens transports, and the other end of the sockets
	"fabsh/fabric/hermetic":      nil,                                    // tests alone
	"fabsh/mad/ibsim/ibsimtest":  nil,
	"fabsh/mad/umad":             {"shell/command", "shell/session", "fabric/localhost", "fabric/localhost/hosttest"},
	"fabsh/mad/umad/umadtest":    nil,
	"fabsh/scripts":              {"builtins/script"},
	"fabsh/examples":             {"builtins/script"},

	"database/sql":                    {"fabric/history"},
	"github.com/google/jsonschema-go": {"shell/mcp"},
	"github.com/modelcontextprotocol": {"shell/mcp"},
}

// environment are names through which a program meets its environment, its
// terminal, its end.
var environment = map[string][]string{
	"os":  {"Args", "Environ", "Exit", "ExpandEnv", "Getenv", "LookupEnv", "Setenv", "Stderr", "Stdin", "Stdout", "Unsetenv"},
	"fmt": {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// facesPeople are the packages that may: the program, and what tests run in and with.
var facesPeople = []string{"shell", "shell/fabsh", "shell/session", "shell/prompt", "shell/command", "shell/command/*", "mad/ibsim/ibsimtest", "mad/umad/umadtest", "fabric/hermetic", "fabric/sim/run"}

// writing are the functions that open files to write, or change directories. Files that users name,
// and those of fabsh itself, are written by fabric/format, which follows no links of others.
var writing = map[string][]string{
	"os": {"Create", "CreateTemp", "Mkdir", "MkdirAll", "OpenFile", "Rename", "Symlink", "WriteFile"},
}

// writers are who may use them: in directories that they have created or locked (sim/run, the
// journal, the .part of a recording, the database of a history), in the current one (fabsh new), below an os.Root, and what
// is not a regular file (/dev/tty, devices).
var writers = []string{
	"fabric/format", "fabric/history", "fabric/sim/run", "fabric/change/apply/journal.go", "shell/session/connect.go", "shell/session/files.go", "shell/command/scripts.go",
	"mad/umad", "mad/umad/umadtest", "mad/ibsim/ibsimtest", "mad/internal/gen", "fabric/hermetic", "fabric/localhost/hosttest",
}

// textsOnly skips a test that only reads texts, and starts nothing at the same time:
// with the race detector, thus in the short tests, it finds nothing and takes minutes.
func textsOnly(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("reads texts only")
	}
}

// TestLayout keeps the packages as ARCHITECTURE.md draws them.
func TestLayout(t *testing.T) {
	textsOnly(t)
	layers, found := layers(t), map[string]bool{}
	layer := func(pkg string) int {
		return slices.IndexFunc(layers, func(line []string) bool {
			return slices.ContainsFunc(line, func(pattern string) bool { return match(pattern, pkg) })
		})
	}
	for file := range goFiles(t) {
		pkg := path.Dir(file.name)
		own := layer(pkg)
		if own < 0 {
			t.Errorf("%s: package %s is not in ARCHITECTURE.md", file.name, pkg)
			continue
		}
		for _, pattern := range layers[own] {
			found[pattern] = found[pattern] || match(pattern, pkg)
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
		if !file.isTest && !slices.ContainsFunc(facesPeople, file.is) {
			checkUnused(t, file, environment, "for package shell only")
		}
		if !file.isTest && !slices.ContainsFunc(writers, file.is) {
			checkUnused(t, file, writing, "for fabric/format only")
		}
	}
	for _, pattern := range slices.Concat(layers...) {
		if !found[pattern] {
			t.Errorf("ARCHITECTURE.md: %s: no such package", pattern)
		}
	}
}

// TestLayersPicture compares shell/layers.svg, the picture of ARCHITECTURE.md, with the list of
// layers; -update writes it.
func TestLayersPicture(t *testing.T) {
	textsOnly(t)
	const name = "layers.svg"
	want := layersPicture(describedLayers(t))
	if flag.Lookup("update").Value.String() == "true" { // declared in package shell
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale; run make generate", name)
	}
}

// layersPicture draws a row of boxes for each layer: a package may import those of the rows
// below its own. The colour of a box is that of its folder at the top level.
func layersPicture(layers [][]string, about map[string]string) string {
	const (
		left, rowHeight, boxHeight, gap = 14, 34, 26, 8
		charWidth                       = 6.7 // of the font at 11 px, on average
		width                           = 1000
	)
	colors := map[string][2]string{ // light: fill and border
		"shell": {"#dbeafe", "#2563eb"}, "builtins": {"#dcfce7", "#16a34a"}, "fabric": {"#fef3c7", "#b45309"}, "mad": {"#fce7f3", "#be185d"},
	}
	var b strings.Builder
	y := 14
	for _, layer := range layers {
		x := float64(left)
		for _, pkg := range layer {
			label := strings.Replace(pkg, "*", "...", 1)
			if pkg == "." {
				label = "fabsh"
			}
			w := float64(len(label))*charWidth + 16
			if x+w > width-left {
				x, y = left+24, y+rowHeight
			}
			top, _, _ := strings.Cut(pkg, "/")
			c, ok := colors[top]
			if !ok {
				c = [2]string{"#f1f5f9", "#64748b"}
			}
			fmt.Fprintf(&b, "<rect x=\"%.0f\" y=\"%d\" width=\"%.0f\" height=\"%d\" rx=\"4\" fill=\"%s\" stroke=\"%s\"/>\n", x, y, w, boxHeight, c[0], c[1])
			fmt.Fprintf(&b, "<text x=\"%.0f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x+w/2, y+17, label)
			x += w + gap
		}
		if len(layer) == 1 {
			fmt.Fprintf(&b, "<text x=\"%.0f\" y=\"%d\" fill=\"#475569\">%s</text>\n", x+4, y+17, html.EscapeString(about[layer[0]]))
		}
		y += rowHeight
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="system-ui, sans-serif" font-size="11" fill="#0f172a">
<title>The layers of fabsh: a package imports only packages of the rows below its own</title>
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, width, y+6, width, y+6, b.String())
}

// TestLangIsGeneral: the framework of builtins knows nothing of InfiniBand, and
// could serve another product. Of this module it needs the package of plurals alone.
func TestLangIsGeneral(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "fabsh/builtins/lang").Output()
	if err != nil {
		t.Fatal(err)
	}
	general := []string{"fabsh/builtins/lang", "fabsh/fabric/plural"}
	for _, pkg := range strings.Fields(string(out)) {
		if strings.HasPrefix(pkg, "fabsh/") && !slices.Contains(general, pkg) {
			t.Errorf("builtins/lang needs %s", pkg)
		}
	}
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

// checkUnused reports the uses of names of packages in a file.
func checkUnused(t *testing.T, file goFile, names map[string][]string, why string) {
	ast.Inspect(file.syntax, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := s.X.(*ast.Ident); ok && pkg.Obj == nil && slices.Contains(names[pkg.Name], s.Sel.Name) {
			t.Errorf("%s: %s.%s is %s", file.name, pkg.Name, s.Sel.Name, why)
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

// isGenerated reports whether a tool wrote the file.
func (f goFile) isGenerated() bool { return strings.HasPrefix(path.Base(f.name), "z") }

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
			case d.IsDir() && (name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || isModule(name)):
				return fs.SkipDir
			case d.IsDir() || path.Ext(name) != ".go":
				return nil
			}
			syntax, err := parser.ParseFile(set, filepath.Join(root, name), nil, parser.ParseComments)
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

// isModule reports whether a folder below the module's root is a module of its own.
func isModule(name string) bool {
	_, err := os.Stat(filepath.Join(root, name, "go.mod"))
	return name != "." && err == nil
}

// goFileName matches the name of a Go file in a package doc; a * stands for any text.
var goFileName = regexp.MustCompile(`[a-z0-9_*/]+\.go\b`)

// TestPackageDocs: each package has one doc, which names no file that does not exist.
func TestPackageDocs(t *testing.T) {
	textsOnly(t)
	docs, files := map[string]string{}, map[string][]string{}
	for file := range goFiles(t) {
		if file.isTest {
			continue
		}
		dir, name := path.Split(file.name)
		pkg := path.Clean(dir)
		files[pkg] = append(files[pkg], name)
		if doc := file.syntax.Doc; doc != nil {
			if docs[pkg] != "" {
				t.Errorf("%s: package %s has another doc", file.name, pkg)
			}
			docs[pkg] = doc.Text()
		}
	}
	for pkg, names := range files {
		if docs[pkg] == "" {
			t.Errorf("package %s has no doc", pkg)
		}
		for _, pattern := range goFileName.FindAllString(docs[pkg], -1) {
			if !slices.ContainsFunc(names, func(name string) bool { return match(pattern, name) }) {
				t.Errorf("package %s: its doc names %s, which does not exist", pkg, pattern)
			}
		}
	}
}

// imported are the packages that programs of others may import.
var imported = []string{"mad", "mad/engine", "mad/umad", "fabric", "fabric/discover"}

// TestConcurrencyDocs: of each exported type of these packages that has unexported fields
// or is an interface, the doc says whether it is safe for concurrent use, or who may call
// it. Other structs are plain values.
func TestConcurrencyDocs(t *testing.T) {
	textsOnly(t)
	says := regexp.MustCompile(`concurrent\s+use|goroutine`)
	for file := range goFiles(t) {
		if file.isTest || file.isGenerated() || !slices.Contains(imported, path.Dir(file.name)) {
			continue
		}
		for _, d := range file.syntax.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				continue
			}
			for _, s := range decl.Specs {
				spec := s.(*ast.TypeSpec)
				if spec.Name.IsExported() && hasState(spec.Type) && !says.MatchString(decl.Doc.Text()+spec.Doc.Text()) {
					t.Errorf("%s: the doc of %s does not say whether it is safe for concurrent use", file.name, spec.Name)
				}
			}
		}
	}
}

// hasState reports whether a type has methods of unknown types, or fields that only its
// package sees. A blank field is a gap in a layout.
func hasState(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.InterfaceType:
		return true
	case *ast.StructType:
		return slices.ContainsFunc(x.Fields.List, func(f *ast.Field) bool {
			return slices.ContainsFunc(f.Names, func(n *ast.Ident) bool { return !n.IsExported() && n.Name != "_" })
		})
	}
	return false
}

// documentPath matches a path of the module in backquotes; a * stands for any text.
var documentPath = regexp.MustCompile("`((?:mad|fabric|builtins|shell|scripts|examples)/[a-z0-9_*./-]+)`")

// TestDocumentPaths: files and folders that the documents for developers name exist.
func TestDocumentPaths(t *testing.T) {
	for _, document := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"} {
		text, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range documentPath.FindAllSubmatch(text, -1) {
			found, err := filepath.Glob(filepath.Join(root, strings.TrimSuffix(string(m[1]), "/...")))
			if err != nil || len(found) == 0 {
				t.Errorf("%s: %s does not exist", document, m[1])
			}
		}
	}
}

// TestFolders allows the top-level folders of design and no others.
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
