package prompt

import (
	"os"
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
		{"links", "links is an attribute of fabric and link_effect; write discover().links"},
		{"14 nodes (6 switches)", `if this is text, write it in quotes: "14 nodes (6 switches)"`},
		{"discovr", ""},
		{"exit 5", "exit is a function; write exit(...), with texts in quotes"},
		{"f.nodes | grep leaf", `there are no pipes; f.nodes.select("type == 'switch'"), sort and count do this`},
		{"f.nodes > x", `there is no redirection; write save(f.nodes, "x.csv")`},
		{"select * from nodes", `there is no SQL; f.nodes.select("type == 'switch'"), sort, group and count do this`},
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

// TestShownGUID: a GUID is a number, with a note.
func TestShownGUID(t *testing.T) {
	r, out := openTest(t, "-F", "sim:ring:n=2", "-q")
	r.read(newPlainReader(strings.NewReader("f = discover()\n0x0002c90300100000\n0x0002c903deadbeef\n")), true)
	r.loop()
	want := `note: 0x0002c90300100000 is a switch; write f.node("0x0002c90300100000"), or "0x0002c90300100000" as a target
783964676554752
783968411434735
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestShownSeveral: a name that several nodes have.
func TestShownSeveral(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = `Switch	2 "S-0000000000000001"		# "sw" base port 0 lid 1 lmc 0
[1]	"H-0000000000000011"[1](12) 		# "two words" lid 2 4xHDR
[2]	"H-0000000000000021"[1](22) 		# "two words" lid 3 4xHDR

Ca	1 "H-0000000000000011"		# "two words"
[1](12) 	"S-0000000000000001"[1]		# lid 2 lmc 0 "sw" lid 1 4xHDR

Ca	1 "H-0000000000000021"		# "two words"
[1](22) 	"S-0000000000000001"[2]		# lid 3 lmc 0 "sw" lid 1 4xHDR
`
	if err := os.WriteFile("two.topo", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, out := openTest(t, "-F", "file:two.topo", "-q")
	r.read(newPlainReader(strings.NewReader("two words\n")), true)
	r.loop()
	want := `<prompt>:1:10: syntax error: got identifier, want newline
    two words
             ^
hint: 2 nodes are named "two words"; use a GUID, one of 0x0000000000100000, 0x0000000000100002
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
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
