package check

import (
	"slices"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
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
		"smpquery":                       `smp_get("PortInfo", target, port); with -c, smp_get("PortInfo", lid=5, route="0,1", port=1)`,
		"smpquery nodeinfo":              `smp_get("PortInfo", target, port); with -c, smp_get("PortInfo", lid=5, route="0,1", port=1)`,
		"smpquery nodeinfo 1 x":          `smp_get("PortInfo", target, port); with -c, smp_get("PortInfo", lid=5, route="0,1", port=1)`,
		"smpquery nonsense 1":            `smp_get("PortInfo", target, port); with -c, smp_get("PortInfo", lid=5, route="0,1", port=1)`,
		"ibdiagnet -r":                   "audit; fabsh audit in a shell; get_routes().verify() judges the routing alone; with -c, fabsh audit probe; its report is fabsh report ibdiagnet, at the prompt ibdiagnet",
		"none x":                         "",
	} {
		name, words, _ := strings.Cut(line, " ")
		if got := ToolEquivalent(name, words); got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}

// TestAllTools: each tool of infiniband-diags and ibutils has a hint.
func TestAllTools(t *testing.T) {
	for _, name := range slices.Concat(ibsimtest.Programs(t, "infiniband-diags"), ibsimtest.Programs(t, "ibutils")) {
		switch hint := ToolHint(name); {
		case hint == "":
			t.Errorf("nothing is said of %s", name)
		case strings.HasSuffix(hint, "."):
			t.Errorf("%s: %q ends in a full stop", name, hint)
		}
	}
}
