package builtins

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fabsh/builtins/program"
	"fabsh/builtins/tools"
)

// TestTools: what is said of each tool can be typed, and does not fail.
func TestTools(t *testing.T) {
	for _, tool := range tools.All() {
		if tool.Here == "" && tool.Note == "" {
			t.Errorf("%s: nothing is said", tool.Name)
		}
		onSim(t, "", nil, func(t *testing.T, f *fixture) {
			code := "target = \"leaf-1\"; port = 1; discover()\n" + tool.Here
			if err := program.RunCode(context.Background(), f.Interpreter, "<tool>", code); err != nil && tool.Name != "vendstat" && tool.Name != "ibccquery" { // which this switch does not have
				t.Errorf("%s: %s", tool.Name, f.Explain(err))
			}
		})
	}
}

// TestAllTools: of every tool of infiniband-diags and ibutils there is
// something to say.
func TestAllTools(t *testing.T) {
	var names []string
	for _, pattern := range []string{"../.peers/usr/sbin/*", "../.peers/usr/bin/ib*"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			names = append(names, filepath.Base(path))
		}
	}
	if len(names) == 0 {
		if os.Getenv("FABSH_PEERS_REQUIRED") == "1" {
			t.Fatal("the peers are not there: make peers")
		}
		t.Skip("the peers are not there: make peers")
	}
	other := []string{"opensm", "osmtest", "ibsim", "ibsim-run", "slurmctld-wlm", "munged", "mungekey"} // of other packages
	for _, name := range names {
		if !slices.Contains(other, name) && tools.Hint(name) == "" {
			t.Errorf("nothing is said of %s", name)
		}
	}
	for _, name := range names {
		if s := tools.Hint(name); strings.HasSuffix(s, ".") {
			t.Errorf("%s: %q ends in a full stop", name, s)
		}
	}
}
