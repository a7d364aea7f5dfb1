package discover

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what was got to the golden files")

// golden is a file of expected outputs, by name.
type golden struct {
	path string
	a    *txtar.Archive
}

func loadGolden(t *testing.T, path string) *golden {
	t.Helper()
	g := &golden{path, new(txtar.Archive)}
	if *update {
		t.Cleanup(func() {
			if err := os.WriteFile(path, txtar.Format(g.a), 0o666); err != nil {
				t.Error(err)
			}
		})
		return g
	}
	var err error
	if g.a, err = txtar.ParseFile(path); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *golden) check(t *testing.T, name, got string) {
	t.Helper()
	want := ""
	for _, f := range g.a.Files {
		if f.Name == name {
			want = string(f.Data)
		}
	}
	if want == "" && *update {
		g.a.Files = append(g.a.Files, txtar.File{Name: name, Data: []byte(got)})
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}
