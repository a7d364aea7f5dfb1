package gen

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the generated files")

const madDir = "../.." // package mad

// TestGenerated compares what the generator makes of package mad with the
// files that are checked in.
func TestGenerated(t *testing.T) {
	files, err := Generate(madDir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		path := filepath.Join(madDir, name)
		if *update {
			if err := os.WriteFile(path, want, 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run make generate", path)
		}
	}
	old, err := filepath.Glob(filepath.Join(madDir, "z*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		if files[filepath.Base(path)] == nil {
			t.Errorf("%s: nothing generates it any more: remove it", path)
		}
	}
}
