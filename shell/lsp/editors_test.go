package lsp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/syntax"

	"fabsh"
	"fabsh/builtins/check"
)

// editors is the folder of what editors need.
const editors = "../../examples/editors"

func readEditorFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(editors, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEditorGuide: the guide shows the files of examples/editors.
func TestEditorGuide(t *testing.T) {
	guide, err := os.ReadFile("../../builtins/LANGUAGE.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, language := range map[string]string{"neovim.lua": "lua", "fabsh.el": "elisp", "helix.toml": "toml"} {
		if block := "```" + language + "\n" + readEditorFile(t, name) + "```\n"; !strings.Contains(string(guide), block) {
			t.Errorf("LANGUAGE.md does not show %s as it is", name)
		}
	}
}

// TestExtension: the extension has the version of the program, and its grammar the keywords of the language.
func TestExtension(t *testing.T) {
	var about struct {
		Version, Main string
		Scripts       map[string]string
		Dependencies  map[string]string
		Contributes   struct {
			Languages     []struct{ ID, Configuration string }
			Grammars      []struct{ Language, ScopeName, Path string }
			Configuration struct {
				Properties map[string]struct{ Scope string }
			}
		}
	}
	if err := json.Unmarshal([]byte(readEditorFile(t, "vscode/package.json")), &about); err != nil {
		t.Fatal(err)
	}
	if want, _, _ := strings.Cut(fabsh.Version, "-"); about.Version != want {
		t.Errorf("version %s, want %s", about.Version, want)
	}
	if len(about.Scripts) > 0 {
		t.Errorf("scripts that npm would run: %v", about.Scripts)
	}
	for name, p := range about.Contributes.Configuration.Properties {
		if p.Scope != "machine" {
			t.Errorf("%s: scope %s; a workspace could name a program to run", name, p.Scope)
		}
	}
	for _, version := range about.Dependencies {
		if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version) {
			t.Errorf("version %s of a dependency is not exact", version)
		}
	}
	var lock struct {
		Version  string
		Packages map[string]struct{ Integrity, Resolved string }
	}
	if err := json.Unmarshal([]byte(readEditorFile(t, "vscode/package-lock.json")), &lock); err != nil || lock.Version != about.Version {
		t.Errorf("package-lock.json: version %s, want %s; %v", lock.Version, about.Version, err)
	}
	for name, p := range lock.Packages {
		if name != "" && (!strings.HasPrefix(p.Integrity, "sha512-") || p.Resolved != "") {
			t.Errorf("package-lock.json: %s: integrity %q, resolved %q", name, p.Integrity, p.Resolved)
		}
	}
	language := about.Contributes.Languages[0]
	for _, name := range []string{about.Main, language.Configuration} {
		readEditorFile(t, filepath.Join("vscode", name))
	}
	grammar := about.Contributes.Grammars[0]
	var rules struct {
		ScopeName  string
		Patterns   []rule
		Repository map[string]rule
	}
	if err := json.Unmarshal([]byte(readEditorFile(t, filepath.Join("vscode", grammar.Path))), &rules); err != nil {
		t.Fatal(err)
	}
	if rules.ScopeName != grammar.ScopeName || grammar.Language != language.ID {
		t.Errorf("scope %s of %s, want %s of %s", rules.ScopeName, grammar.Language, grammar.ScopeName, language.ID)
	}
	var known, found []string
	for token := syntax.AND; token <= syntax.WHILE; token++ {
		if token != syntax.NOT_IN { // two words
			known = append(known, token.String())
		}
	}
	for _, word := range known {
		if !check.IsKeyword(word) {
			t.Errorf("%s is not proposed", word)
		}
	}
	for _, r := range rules.Repository {
		r.check(t, rules.Repository)
	}
	for _, r := range rules.Repository["code"].Patterns {
		if words, ok := strings.CutPrefix(r.Match, `\b(?:`); ok && (strings.HasPrefix(r.Name, "keyword.") || strings.HasPrefix(r.Name, "storage.")) {
			words, _, _ = strings.Cut(words, ")")
			found = append(found, strings.Split(words, "|")...)
		}
	}
	slices.Sort(known)
	slices.Sort(found)
	if diff := cmp.Diff(known, found); diff != "" {
		t.Errorf("keywords of the grammar: -want +got\n%s", diff)
	}
}

// rule is a rule of a TextMate grammar.
type rule struct {
	Include, Name, Match, Begin, End string
	Patterns                         []rule
}

// check compiles the patterns of a rule, which are of the common part of the syntaxes of Oniguruma and Go.
func (r rule) check(t *testing.T, repository map[string]rule) {
	t.Helper()
	for _, pattern := range []string{r.Match, r.Begin, r.End} {
		if _, err := regexp.Compile(pattern); err != nil {
			t.Error(err)
		}
	}
	if name, ok := strings.CutPrefix(r.Include, "#"); ok && repository[name].Patterns == nil {
		t.Errorf("no rule %s", name)
	}
	for _, inner := range r.Patterns {
		inner.check(t, repository)
	}
}
