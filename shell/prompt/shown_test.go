package prompt

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestShown: text that was copied from the screen gets a hint what to write; statements with
// an error do not.
func TestShown(t *testing.T) {
	r, out := openTest(t, "-F", "sim:fattree:k=4,levels=2", "-q")
	answer := func(line string) string {
		out.Reset()
		r.read(newPlainReader(strings.NewReader(line+"\n")), true)
		r.loop()
		_, hint, _ := strings.Cut(out.String(), "hint: ")
		return strings.TrimSpace(hint)
	}
	for _, test := range [][2]string{
		{"leaf-1/1", `if this is text, write it in quotes: "leaf-1/1"`}, // no fabric is known
		{"f = discover()", ""},
		{"leaf-1", `leaf-1 is a switch; write f.node("leaf-1"), or "leaf-1" as a target`},
		{"leaf-1/1", `leaf-1/1 is a port; write f.node("leaf-1").ports[1], or "leaf-1/1" as a target`},
		{"node-0001", `node-0001 is a node; write f.node("node-0001"), or "node-0001" as a target`},
		{"leaf-1/1 - node-0001 HCA-1/1", `leaf-1/1 - node-0001 HCA-1/1 is a link; write f.node("leaf-1").ports[1].link`},
		{"leaf-1/1 - leaf-2/1", `leaf-1/1 - leaf-2/1 are ports; write f.node("leaf-1").ports[1] and f.node("leaf-2").ports[1]`},
		{"leaf-1/3: the link is down", `leaf-1/3 is a port; write f.node("leaf-1").ports[3], or "leaf-1/3" as a target`},
		{"LID 12", "write LIDs as numbers: 12"},
		{"-", "- stands for no value: None"},
		{"hdr", `hdr is a value of best_speed, enabled_speed, link_speed_ext_active, others; write it in quotes: "hdr"`},
		{"link.down", `help link.down explains it; as text, write it in quotes: "link.down"`},
		{"mtu", "mtu is an attribute of records; write value.mtu"},
		{"links", "links is an attribute of fabric; write discover().links"},
		{"14 nodes (6 switches)", `if this is text, write it in quotes: "14 nodes (6 switches)"`},
		{"discovr", ""},
		{"x = 4y", ""},
		{"f.node(", ""},
		{"1 +", ""},
		{"for p in f.ports print(p)", ""},
		{"import os", `there is no import; write load("file.star", "name"); json, math, re and time are predeclared`},
	} {
		if got := answer(test[0]); got != test[1] {
			t.Errorf("%s:\n got %s\nwant %s", test[0], got, test[1])
		}
	}
}

// TestNodeWords: hosts are proposed by their first word.
func TestNodeWords(t *testing.T) {
	r, _ := openTest(t, "-F", "sim:ring:n=2", "-q")
	if got := NodeWords(r.Session); got != nil {
		t.Errorf("without a fabric: %q", got)
	}
	r.read(newPlainReader(strings.NewReader("f = discover()\n")), true)
	r.loop()
	if diff := cmp.Diff([]string{"node-0001", "node-0002", "switch-1", "switch-2"}, NodeWords(r.Session)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
