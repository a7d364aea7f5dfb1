package shell

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkStart is a whole process, from start to exit. The program is built
// for it, for the test's own binary is larger and starts more slowly.
func BenchmarkStart(b *testing.B) {
	path := filepath.Join(b.TempDir(), "fabsh")
	if out, err := exec.Command("go", "build", "-o", path, "./fabsh").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for b.Loop() {
		if out, err := exec.Command(path, "-F", "sim:ring:n=2", "-c", "1").CombinedOutput(); err != nil || string(out) != "1\n" {
			b.Fatalf("%v: %s", err, out)
		}
	}
}
