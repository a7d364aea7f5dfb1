package format

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of formats to FORMATS.md")

// TestGenerated compares the table of formats with that in FORMATS.md.
func TestGenerated(t *testing.T) {
	const (
		path  = "FORMATS.md"
		begin = "<!-- The table of formats, generated from format.go by make generate. -->\n"
		end   = "<!-- End of the table. -->\n"
	)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	above, rest, ok := strings.Cut(string(text), begin)
	table, below, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table, between %s and %s", path, begin, end)
	}
	var want strings.Builder
	want.WriteString("| kind | file | in | out |\n|---|---|---|---|\n")
	word := map[bool]string{true: "yes", false: "no"}
	for _, f := range formats {
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", f.kind, f.file, word[f.reads()], word[f.writes()])
	}
	if *update {
		if err := os.WriteFile(path, []byte(above+begin+want.String()+end+below), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want.String(), table); d != "" {
		t.Errorf("%s is stale, run make generate (-want +got):\n%s", path, d)
	}
}

// TestFormats: every kind is in the table, once and completely, is recognised
// from a sample, and can be found in help if it is written.
func TestFormats(t *testing.T) {
	var kinds []FormatName
	for _, f := range formats {
		kinds = append(kinds, f.kind)
		if f.about == "" || f.file == "" {
			t.Errorf("%s: it is not said what it is: about %q, file %q", f.kind, f.about, f.file)
		}
		if len(f.beginnings) == 0 && f.sniff == nil {
			t.Errorf("%s: nothing recognises it", f.kind)
		}
		recognised := false
		for _, s := range samples {
			recognised = recognised || s.want == f.kind && Recognise([]byte(s.head)) == f.kind
		}
		if !recognised {
			t.Errorf("%s is recognised from none of the samples", f.kind)
		}
		for _, h := range []struct {
			help   string
			writes bool
		}{{DumpHelp(), f.write != nil || f.writeFiles != nil}, {TablesHelp(), f.writeTables != nil}} {
			if n := strings.Count(h.help, strconv.Quote(string(f.kind))); n > 1 || n == 1 != h.writes {
				t.Errorf("%s is %d times in help: %s", f.kind, n, h.help)
			}
		}
	}
	declared := declaredKinds(t)
	slices.Sort(kinds)
	slices.Sort(declared)
	if d := cmp.Diff(declared, kinds); d != "" {
		t.Errorf("constants and the table (-declared +in the table):\n%s", d)
	}
}

// declaredKinds are the values of the package's constants of type Kind, but for
// KindUnknown.
func declaredKinds(t *testing.T) []FormatName {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []FormatName
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Kind" {
				for _, v := range spec.Values {
					if text, err := strconv.Unquote(v.(*ast.BasicLit).Value); err == nil && text != "" {
						kinds = append(kinds, FormatName(text))
					}
				}
			}
			return true
		})
	}
	return kinds
}

// reads reports whether there is a reader of the format.
func (f *fileFormat) reads() bool {
	return f.load != nil || f.system != nil || f.lfts != nil || f.fars != nil || f.hops != nil || f.mfts != nil || f.sl2vls != nil || f.pathSLs != nil || f.guids != nil
}

// writes reports whether there is a writer of the format.
func (f *fileFormat) writes() bool {
	return f.write != nil || f.writeFiles != nil || f.writeTables != nil || f.writeMFTs != nil
}
