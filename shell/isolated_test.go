package shell_test

import (
	"path"
	"strconv"
	"strings"
	"testing"
)

// TestIsolated requires a TestMain that isolates the tests of each package that starts
// programs, or opens sessions.
func TestIsolated(t *testing.T) {
	starts, isolated := map[string]bool{}, map[string]bool{}
	for file := range goFiles(t) {
		pkg := path.Dir(file.name)
		if !file.isTest {
			continue
		}
		starts[pkg] = starts[pkg] || strings.HasPrefix(pkg, "shell")
		for _, spec := range file.syntax.Imports {
			switch imported, _ := strconv.Unquote(spec.Path.Value); imported {
			case "os/exec", "fabsh/shell/session":
				starts[pkg] = true
			case "fabsh/fabric/hermetic", "fabsh/mad/umad/umadtest": // the tests of umadtest run in a virtual machine
				isolated[pkg] = true
			}
		}
	}
	isolated["mad/umad/umadtest"] = true
	for pkg := range starts {
		if starts[pkg] && !isolated[pkg] {
			t.Errorf("%s: its tests use files and the environment of the user; its TestMain must use fabric/hermetic", pkg)
		}
	}
}
