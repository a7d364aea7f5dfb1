package builtins

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/check"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/mad/ibsim/ibsimtest"
)

// listNames prints the names that a stub file declares, as Python reads it.
const listNames = `
import ast, sys
for n in ast.parse(open(sys.argv[1]).read()).body:
    if isinstance(n, ast.FunctionDef):
        print(n.name, *[a.arg for a in n.args.posonlyargs + n.args.args + n.args.kwonlyargs])
    if isinstance(n, ast.ClassDef) and not n.name.startswith("_module_"):
        for m in n.body:
            if isinstance(m, ast.FunctionDef) and m.name != "__getattr__":
                print(n.name + "." + m.name)
            if isinstance(m, ast.AnnAssign):
                print(n.name + "." + m.target.id)
`

// TestStubs: Python reads the declarations for type checkers, which have all functions with
// their parameters, and all members of types.
func TestStubs(t *testing.T) {
	s, err := NewSession(SessionOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	file := filepath.Join(t.TempDir(), help.StubsFile)
	if err := os.WriteFile(file, []byte(help.Stubs(s.Interpreter.Globals)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := ibsimtest.Command(t, "python3", "-c", listNames, file).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for name, v := range s.Interpreter.Globals {
		if f, ok := v.(*lang.Function); ok {
			line := name
			for _, p := range f.Params {
				if !strings.HasPrefix(p.Name, "*") {
					line += " " + p.Name
				}
			}
			want[line] = true
		}
	}
	for _, d := range check.Types() {
		for _, m := range d.Members {
			want["_"+d.Name+"."+m.ShortName()] = true
		}
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
