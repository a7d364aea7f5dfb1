package prompt

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/lang"
)

// TestQuestions: what people type who want to know something.
func TestQuestions(t *testing.T) {
	r, out := openTest(t, "-F", "sim:ring:n=2")
	ask := func(line string) string {
		out.Reset()
		r.read(newPlainReader(strings.NewReader(line+"\n")), true)
		r.loop()
		first, _, _ := strings.Cut(out.String(), "\n")
		return first
	}
	ask("def mine(a):\n    \"\"\"Is mine.\"\"\"\n\nf = discover()")
	for _, tt := range [][2]string{
		{"help sleep", "sleep(duration)"},
		{"help PortInfo.LMC", "PortInfo.lmc (LMC): 3 bits at bit 277 (byte 34, bit 5 from the left), section 14.2.5.6 of the specification"},
		{"sleep?", "sleep(duration)"},
		{"?sleep", "sleep(duration)"},
		{"sleep??", "sleep(duration)"},
		{"?", "The fabric"},
		{"mine?", "mine(a)"},
		{"help mine", "mine(a)"},
		{"f?", "fabric"},
		{"f.switches[0]?", "node"},
		{"f.dump?", `dump(kind="ibnetdiscover", *, chassis=False)`},
		{"help slep", `unknown topic "slep" (did you mean sleep?); search with help("search slep")`},
		{"ibhosts", "name             lid  ports  up  to          guid"},
		{"ibtracert 3 'node-0002 HCA-1'", "hop  from               entry     to                 state   width  speed  from_guid           from_num  to_guid             to_num"},
		{"ibroute --multicast switch-1", "mlid  ports  next  mgids"},
		{"ibtracert 3 nobody", `ibtracert: unknown node "nobody"; if it is new, run discover() again`},
		{"ibtracert 3 'node", "ibtracert: missing closing quote '"},
		{"ibhosts --up", "ibhosts: --up: unknown flag"},
		{"help ibhosts", "ibhosts: type discover().cas; its report is fabsh report ibhosts, at the prompt ibhosts"},
		{"ibdiagnet -r --ls 10", `ibdiagnet: -r: unknown flag`},
		{"smpquery nodeinfo 1", `smpquery nodeinfo 1: type smp_get("NodeInfo", 1)`},
		{"smpquery -c portinfo 5 0,1 2", `smpquery -c portinfo 5 0,1 2: type smp_get("PortInfo", lid=5, route="0,1", port=2)`},
		{"iblinkinfo switch-1", "a           a_lid  b                  b_lid  width  speed  state   best  a_guid              a_num  b_guid              b_num"},
		{"ibnodes", "ibnodes: type discover().nodes"},
		{"ibnetdiscover", `ibnetdiscover: type discover().dump("ibnetdiscover"); with -g, discover().dump("ibnetdiscover", chassis=True)`},
		{"ibdiagui", "ibdiagui: no graphical interface; discover() returns the fabric, and help() lists what it has"},
		{"jobs --jobs none.csv --placement", "jobs: load_jobs: none.csv: no such file"},
		{"jobs = 3", ""},
		{"jobs", "3"},
		{"ibhosts = 3", ""},
		{"ibhosts", "3"},
		{"nods", "<prompt>:1:1: undefined: nods"},
		{"nodes", "<prompt>:1:1: undefined: nodes"},
		{"minne(1)", "<prompt>:1:1: undefined: minne (did you mean mine?)"},
		{"f.switches[0].nmae", "node has no .nmae field or method (did you mean .name?)"},
	} {
		if got := ask(tt[0]); got != tt[1] {
			t.Errorf("%s: got %q, want %q", tt[0], got, tt[1])
		}
	}
}

// TestNoQuestions: a pipe asks nothing.
func TestNoQuestions(t *testing.T) {
	for _, line := range []string{"ibhosts", "help sleep", "sleep?", "?"} {
		r, _ := openTest(t, "-F", "sim:ring:n=2")
		r.read(newPlainReader(strings.NewReader(line+"\n")), false)
		if got := r.loop(); got != lang.StatusUsage {
			t.Errorf("%s: exit status %d", line, got)
		}
	}
}

// TestCarets: the caret stands below the token that is meant.
func TestCarets(t *testing.T) {
	r, out := openTest(t, "-F", "sim:ring:n=2", "-t", "100")
	for _, tt := range []string{
		"f = discover(); f.switches[0].nmae\n                                  ^\n",
		"smp_get(\"NodeInfo\", 999)\n    ^\n",
		"x = [1, 2]; x[ 7]\n                   ^\n",
		"f.dump(kind=3)\n      ^\n",
		"1 + \"a\"\n      ^\n",
		"for x in y\n              ^\n",
		"if f(1) # so\n                ^\n",
		"nodes\n    ^\nhint: nodes is an attribute of fabric and history; write discover().nodes\n",
	} {
		out.Reset()
		code, want, _ := strings.Cut(tt, "\n")
		r.read(newPlainReader(strings.NewReader(code+"\n")), false)
		r.loop()
		if got := out.String(); !strings.HasSuffix(got, "    "+code+"\n"+want) {
			t.Errorf("%s: got\n%s", code, got)
		}
	}
}

func TestSplitWords(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []string
		err  string
	}{
		{"", nil, ""},
		{"  5  12\t", []string{"5", "12"}, ""},
		{`"node 1" 'it"s' --by="a b"`, []string{"node 1", `it"s`, "--by=a b"}, ""},
		{`a"" ""`, []string{"a", ""}, ""},
		{`"node 1`, nil, `missing closing quote "`},
	} {
		got, err := splitWords(tt.line)
		if fmt.Sprint(got) != fmt.Sprint(tt.want) || len(got) != len(tt.want) || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%q: got %q, %v, want %q, %s", tt.line, got, err, tt.want, tt.err)
		}
	}
}

// TestReportAtPrompt: a report that says that something is wrong does not end the
// prompt, and is no error.
func TestReportAtPrompt(t *testing.T) {
	r, out := openTest(t, "-F", "sim:ring:n=2")
	r.read(newPlainReader(strings.NewReader("f = discover()\nset_lft(f.switches[0], {4: None})\nibtracert 1 4\n1 + 1\n")), true)
	if got := r.loop(); got != lang.StatusClean || !strings.HasSuffix(out.String(), "1 to 4: switch-1 drops LID 4: its table has no port for it\n2\n") {
		t.Errorf("exit status %d: %s", got, out)
	}
}

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
		{"links", "links is an attribute of fabric, cabling_action, link_effect and others; write discover().links"},
		{"14 nodes (6 switches)", `if this is text, write it in quotes: "14 nodes (6 switches)"`},
		{"discovr", ""},
		{"exit 5", "exit is a function; write exit(...), with texts in quotes"},
		{"f.nodes | grep leaf", `there are no pipes; f.nodes.select("type == 'switch'"), sort and count do this`},
		{"f.nodes > x", `there is no redirection; write save(f.nodes, "x.csv")`},
		{"select * from nodes", `there is no SQL; f.nodes.select("type == 'switch'"), sort, group and count do this`},
		{"x = 4y", ""},
		{"f.node(", ""},
		{"1 +", "an expression is missing after +"},
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
hint: 2 nodes are named "two words"; use a GUID, one of 0x0000000000000011, 0x0000000000000021
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

// TestHints: the hint for a line with an error names what to type.
func TestHints(t *testing.T) {
	r, out := openTest(t, "-F", "sim:ring:n=2")
	r.commands.Names = map[string]bool{"audit": true, "verify": true}
	r.Explainer.IsCommand = func(name string) bool { return r.commands.Names[name] }
	for _, tt := range [][2]string{
		{"audit(x)", "audit is a command; write words after it and no parentheses, as in a shell: audit counters"},
		{`x = audit("counters")`, "audit is a command; write words after it and no parentheses, as in a shell: audit counters"},
		{"print(verify())", "verify is a command; write words after it and no parentheses, as in a shell: verify; as code, get_routes().verify()"},
		{"audit | head", "the prompt has no pipes and redirections; run `fabsh audit | head` in a shell"},
		{"audit > x.txt", "the prompt has no pipes and redirections; run `fabsh audit > x.txt` in a shell"},
		{`[].where("lid == 1")`, `rows.select("lid > 10 and type == 'ca'") selects rows`},
		{"[].head(3)", "rows[:10] are the first ten"},
		{`[].order_by("lid")`, `rows.sort("name", reverse=True) sorts rows`},
		{"[].length()", "len(x) is the number of items"},
		{"f.nodes", "define it first: f = discover()"},
		{"f", "define it first: f = discover()"},
		{"len(f.links)", "define it first: f = discover()"},
		{"g.paths(1, 2)", "define it first: g = discover().graph()"},
		{"3]", "] has no [ before it: type the whole expression, or remove it"},
		{"sleep(1))", ") has no ( before it: type the whole expression, or remove it"},
		{"discover().links[0].", "a name is missing after the dot; TAB lists the names, dir(discover().links[0]) too"},
		{".nodes", "a value is missing before the dot: VALUE.nodes, or _.nodes for the last value"},
		{"x =", "an expression is missing after ="},
		{"1 +", "an expression is missing after +"},
		{"1 ==", "an expression is missing after =="},
		{"True and", "an expression is missing after and"},
		{"not", "an expression is missing after not"},
		{"== 3", "a value is missing before =="},
		{"and True", "a value is missing before and"},
		{`"abc`, "the closing quote is missing"},
	} {
		out.Reset()
		r.read(newPlainReader(strings.NewReader(tt[0]+"\n")), true)
		r.loop()
		if _, got, _ := strings.Cut(out.String(), "hint: "); strings.TrimSpace(got) != tt[1] {
			t.Errorf("%s: got %s, want %q", tt[0], out, tt[1])
		}
	}
}
