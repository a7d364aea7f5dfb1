package shell_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A wordRule is a line of the list of words in CONTRIBUTING.md.
type wordRule struct {
	pattern *regexp.Regexp
	instead string
	prose   bool // applies to texts for users, not to comments
}

// wordException is a text that may contain a word of the list.
type wordException struct{ file, text, reason string }

// wordExceptions are the texts that the rules do not apply to. A file is a path,
// a pattern of path/filepath, or "" for all; a text is a part of the line.
var wordExceptions = []wordException{}

// wordsPending are paths whose texts have not been revised yet.
var wordsPending = []string{}

// revised reports whether the rules apply to a file. FABSH_WORDS limits them to
// paths that begin so, pending ones included.
func revised(name string) bool {
	if only := os.Getenv("FABSH_WORDS"); only != "" {
		return strings.HasPrefix(name, only)
	}
	return !slices.ContainsFunc(wordsPending, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// wordRules reads the list of words in CONTRIBUTING.md: a regular expression, two
// spaces or more, and what to write instead. A line that begins with "prose" is for
// texts that users see, not for comments.
func wordRules(t *testing.T) []wordRule {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\n```words\n")
	list, _, ok := strings.Cut(list, "\n```\n")
	if !ok {
		t.Fatal("CONTRIBUTING.md: no list of words")
	}
	var rules []wordRule
	for line := range strings.Lines(list) {
		word, instead, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("CONTRIBUTING.md: list of words: %q has no replacement", line)
		}
		word, prose := strings.CutPrefix(word, "prose ")
		rules = append(rules, wordRule{regexp.MustCompile(`(?i)\b(?:` + word + `)\b`), strings.TrimSpace(instead), prose})
	}
	return rules
}

// A passage is a text to check, with its position.
type passage struct {
	file    string
	line    int
	text    string
	comment bool
}

// passages returns the texts of a file: string literals and comments of Go, whole
// lines of everything else but the list of words.
func passages(t *testing.T, name string) []passage {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	var found []passage
	if filepath.Ext(name) != ".go" {
		line, inList := 0, false
		for text := range strings.Lines(string(content)) {
			line++
			inList = inList && text != "```\n" || text == "```words\n"
			if inList {
				continue
			}
			found = append(found, passage{name, line, strings.TrimSpace(text), false})
		}
		return found
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	add := func(at token.Pos, text string, comment bool) {
		line := set.Position(at).Line
		for text := range strings.Lines(text) {
			found = append(found, passage{name, line, strings.TrimSpace(text), comment})
			line++
		}
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if !strings.HasPrefix(comment.Text, "//go:") && !strings.HasPrefix(comment.Text, "//mad:") {
				add(comment.Pos(), comment.Text, true)
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if node.Kind == token.STRING {
				add(node.Pos(), node.Value, false)
			}
		}
		return true
	})
	return found
}

// written returns the files that people wrote and that others read: programs,
// scripts and documents, without tests, test data and generated files.
func written(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" || base == "dist" && name == "dist") {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(name) {
		case ".go":
			if strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "z") {
				return nil
			}
		case ".star", ".md", ".txt", ".html", ".tmpl":
		default:
			return nil
		}
		names = append(names, filepath.ToSlash(name))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestWords finds words of the list in CONTRIBUTING.md, in texts and comments.
func TestWords(t *testing.T) {
	textsOnly(t)
	rules, used := wordRules(t), map[wordException]bool{}
	for _, name := range written(t) {
		if !revised(name) {
			continue
		}
		for _, p := range passages(t, name) {
			for _, rule := range rules {
				word := rule.pattern.FindString(p.text)
				if word == "" || rule.prose && p.comment {
					continue
				}
				i := slices.IndexFunc(wordExceptions, func(x wordException) bool {
					ok, _ := filepath.Match(x.file, p.file)
					return (ok || x.file == "") && strings.Contains(p.text, x.text)
				})
				if i >= 0 {
					used[wordExceptions[i]] = true
					continue
				}
				t.Errorf("%s:%d: %q; write %s: %s", p.file, p.line, word, rule.instead, p.text)
			}
		}
	}
	for _, x := range wordExceptions {
		if !used[x] && os.Getenv("FABSH_WORDS") == "" {
			t.Errorf("exception %q (%s) is not needed", x.text, x.reason)
		}
	}
}

var (
	labelled = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9.]*: `)
	fullStop = regexp.MustCompile(`[.!]$`)
)

// TestDocComments checks that doc comments have Go's form, "Name verbs ...", not
// "name: it is so".
func TestDocComments(t *testing.T) {
	textsOnly(t)
	for file := range goFiles(t) {
		if file.isTest || !revised(file.name) {
			continue
		}
		check := func(name string, doc *ast.CommentGroup) {
			if doc == nil {
				return
			}
			text := doc.Text()
			if labelled.MatchString(text) && strings.HasPrefix(text, name+":") {
				first, _, _ := strings.Cut(text, "\n")
				t.Errorf("%s: write %q as \"%s verbs ...\"", file.name, first, name)
			}
		}
		for _, decl := range file.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				check(decl.Name.Name, decl.Doc)
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						check(spec.Name.Name, decl.Doc)
						check(spec.Name.Name, spec.Doc)
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							check(name.Name, decl.Doc)
							check(name.Name, spec.Doc)
						}
					}
				}
			}
		}
	}
}

// TestErrorStrings checks that errors begin in lower case and have no full stop, so
// that they can be parts of others.
func TestErrorStrings(t *testing.T) {
	textsOnly(t)
	for file := range goFiles(t) {
		if file.isTest || !revised(file.name) {
			continue
		}
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			text, isText := call.Args[0].(*ast.BasicLit)
			if !ok || !isText || fun.Sel.Name != "Errorf" && fun.Sel.Name != "New" || fmt.Sprint(fun.X) != "fmt" && fmt.Sprint(fun.X) != "errors" {
				return true
			}
			s := strings.Trim(text.Value, "\"`")
			if fullStop.MatchString(s) {
				t.Errorf("%s: error %q ends with a full stop", file.name, s)
			}
			return true
		})
	}
}
