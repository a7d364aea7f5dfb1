package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEquivalent: command lines of smpquery have equivalents that can be typed.
func TestEquivalent(t *testing.T) {
	for line, want := range map[string]string{
		"smpquery nodeinfo 1":            `smp_get("NodeInfo", 1)`,
		"smpquery NI 0x1f":               `smp_get("NodeInfo", 0x1f)`,
		"smpquery portinfo 3 1":          `smp_get("PortInfo", 3, 1)`,
		"smpquery -D nodeinfo 0,1":       `smp_get("NodeInfo", dr("0,1"))`,
		"smpquery -G nodeinfo 0x2c90300": `smp_get("NodeInfo", "0x2c90300")`,
		"smpquery nodedesc leaf-1":       `smp_get("NodeDescription", "leaf-1")`,
		"smpquery pkeys 3 1":             `get_pkeys(3, 1)`,
		"smpquery":                       `smp_get("PortInfo", target, port)`,
		"smpquery nodeinfo":              `smp_get("PortInfo", target, port)`,
		"smpquery nodeinfo 1 x":          `smp_get("PortInfo", target, port)`,
		"smpquery nonsense 1":            `smp_get("PortInfo", target, port)`,
		"ibdiagnet -r":                   "audit; fabsh audit in a shell; get_routes().verify() judges the routing alone",
		"none x":                         "",
	} {
		name, words, _ := strings.Cut(line, " ")
		if got := ToolEquivalent(name, words); got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}

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
	other := []string{"opensm", "osmtest", "ibsim", "ibsim-run", "slurmctld-wlm", "slurmd-wlm", "slurmstepd-wlm", "munged", "mungekey", "makewhatis", "mandocd", "mcatman"} // of other packages
	for _, name := range names {
		if !slices.Contains(other, name) && ToolHint(name) == "" {
			t.Errorf("nothing is said of %s", name)
		}
	}
	for _, name := range names {
		if s := ToolHint(name); strings.HasSuffix(s, ".") {
			t.Errorf("%s: %q ends in a full stop", name, s)
		}
	}
}
