package check

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// queries are the operations of smpquery with their abbreviations (rdma-core smpquery.c,
// match_op), and the function that reads the same.
var queries = []struct{ name, short, here string }{
	{"nodeinfo", "NI", `smp_get("NodeInfo", %s)`},
	{"nodedesc", "ND", `smp_get("NodeDescription", %s)`},
	{"portinfo", "PI", `smp_get("PortInfo", %s)`},
	{"portinfoextended", "PIE", `smp_get("PortInfoExtended", %s)`},
	{"switchinfo", "SI", `smp_get("SwitchInfo", %s)`},
	{"mlnxextportinfo", "MEPI", `smp_get("ExtendedPortInfo", %s)`},
	{"pkeys", "PKEY", `get_pkeys(%s)`},
	{"sl2vl", "SL2VL", `get_sl2vl(%s)`},
	{"vlarb", "VLARB", `get_vlarb(%s)`},
	{"guids", "GI", `get_guids(%s)`},
}

// toolNumber matches what Starlark reads as a number.
var toolNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(0|[1-9][0-9]*|0x[0-9a-fA-F]{1,4})$`) })

// ToolEquivalent returns what to type instead of a tool with the words of its command line; that
// of the tool alone if the words have no equivalent, and "" if name is not a tool.
func ToolEquivalent(name, words string) string {
	if name == "smpquery" {
		if here := smpquery(strings.Fields(words)); here != "" {
			return here
		}
	}
	return ToolHint(name)
}

// smpquery returns the equivalent of smpquery with words; "": they have none.
func smpquery(words []string) string {
	direct := false
	words = slices.DeleteFunc(words, func(w string) bool {
		direct = direct || w == "-D" || w == "--Direct"
		return strings.HasPrefix(w, "-")
	})
	if len(words) < 2 || len(words) > 3 {
		return ""
	}
	for _, q := range queries {
		if !strings.EqualFold(words[0], q.name) && !strings.EqualFold(words[0], q.short) {
			continue
		}
		target := words[1]
		switch {
		case direct:
			target = "dr(" + strconv.Quote(target) + ")"
		case !toolNumber().MatchString(target):
			target = strconv.Quote(target)
		}
		if len(words) == 3 {
			if !toolNumber().MatchString(words[2]) {
				return ""
			}
			target += ", " + words[2]
		}
		return fmt.Sprintf(q.here, target)
	}
	return ""
}
