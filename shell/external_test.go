package shell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExternalModule builds, vets and runs a program of another module, which imports the
// packages of mad and fabric as a library. It needs no network: all that they depend on
// is in the module cache, for this test was built with it.
func TestExternalModule(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, content := range map[string][]byte{
		"main.go": read("testdata/external/main.go"),
		"go.mod":  append(read("testdata/external/go.mod.txt"), fmt.Appendf(nil, "\nreplace fabsh => %q\n", root)...),
		"go.sum":  read(filepath.Join(root, "go.sum")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("vet", "./...")
	run("build", "-o", "external", ".")
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "external")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := `local node: ca with 1 port
refused: true
fabric: 14 nodes (6 switches, 8 CAs), 16 links, complete
56 pairs, 0 unreachable, acyclic: true
`
	if d := cmp.Diff(want, string(out)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
