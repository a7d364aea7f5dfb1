package gen

import (
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// codeBlocks are the indented lines of mad's package doc, by heading.
func codeBlocks(t *testing.T) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(madDir, "doc.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	heading := ""
	for line := range strings.Lines(f.Doc.Text()) {
		if title, ok := strings.CutPrefix(line, "# "); ok {
			heading = strings.TrimSpace(title)
		} else if code, ok := strings.CutPrefix(line, "\t"); ok {
			blocks[heading] += code
		}
	}
	return blocks
}

// TestGrammar: the package doc of mad describes the directives and options that
// the generator knows, and no others.
func TestGrammar(t *testing.T) {
	known := map[string][]string{
		"Directives":                 slices.Sorted(maps.Keys(directives)),
		"Options of attr and header": keys(attrFlags, attrOptions),
		"Options of variant":         slices.Sorted(maps.Keys(variantOptions)),
		"Options of a field":         keys(fieldFlags, fieldOptions),
	}
	blocks := codeBlocks(t)
	option := regexp.MustCompile(`(?m)^(?://mad:)?([a-z][a-z0-9]*)`)
	for heading, want := range known {
		var got []string
		for _, m := range option.FindAllStringSubmatch(blocks[heading], -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-generator +doc):\n%s", heading, d)
		}
	}

	var names []string
	for _, c := range classes {
		names = append(names, c.name)
	}
	for name, want := range map[string][]string{"class": names, "methods": methods, "v1": methods1} {
		entry := regexp.MustCompile(`(?m)^` + name + `=.*: (.*(?:\n +.*)*)`).FindStringSubmatch(blocks["Options of attr and header"])
		if entry == nil {
			t.Errorf("%s: the doc has no list", name)
			continue
		}
		got := strings.FieldsFunc(entry[1], func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-generator +doc):\n%s", name, d)
		}
	}
}

// keys are the keys of both, sorted.
func keys[F, G any](flags map[string]F, options map[string]G) []string {
	list := slices.AppendSeq(slices.Collect(maps.Keys(flags)), maps.Keys(options))
	slices.Sort(list)
	return list
}

// TestGrammarExample: the generator takes the example of the doc.
func TestGrammarExample(t *testing.T) {
	example := codeBlocks(t)["How to add an attribute"]
	files, err := generate(t, "package mad\n\n"+example)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(files["zthing.go"]), "var AttrLedInfo") {
		t.Errorf("it makes no attribute of the example:\n%s", example)
	}
}
