package fabric_test

import (
	"strings"
	"testing"

	"fabsh/fabric"
)

func TestNearest(t *testing.T) {
	for _, test := range []struct{ name, candidates, want string }{
		{"NodeInof", "NodeInfo PortInfo", "NodeInfo"},
		{"portinfo", "NodeInfo PortInfo", "PortInfo"},
		{"nodedsc", "nodes node_desc", "node_desc"},
		{"lit", "lid gid", "lid"}, // one edit of three
		{"gti", "lid gid", ""},    // two
		{"ab", "ba", ""},
		{"tsak", "task", "task"}, // one edit of four: two neighbours changed places
		{"zwölf", "zwolf elf", "zwolf"},
		{"", "lid", ""},
		{"lid", "", ""},
	} {
		candidates := strings.Fields(test.candidates)
		if got := fabric.Nearest(test.name, candidates); got != test.want {
			t.Errorf("%q of %q: got %q, want %q", test.name, candidates, got, test.want)
		}
		hint := ""
		if test.want != "" {
			hint = " (did you mean " + test.want + "?)"
		}
		if got := fabric.DidYouMean(test.name, candidates); got != hint {
			t.Errorf("%q of %q: got %q, want %q", test.name, candidates, got, hint)
		}
	}
}
