package tools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAllTools: of every tool of infiniband-diags and ibutils there is
// something to say.
func TestAllTools(t *testing.T) {
	var names []string
	for _, pattern := range []string{"../../.peers/usr/sbin/*", "../../.peers/usr/bin/ib*"} {
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
		if !slices.Contains(other, name) && Hint(name) == "" {
			t.Errorf("nothing is said of %s", name)
		}
	}
	for _, name := range names {
		if s := Hint(name); strings.HasSuffix(s, ".") {
			t.Errorf("%s: %q ends in a full stop", name, s)
		}
	}
}
