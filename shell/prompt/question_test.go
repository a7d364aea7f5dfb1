package prompt

import (
	"fmt"
	"strings"
	"testing"

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
		{"f.dump?", `dump(kind="ibnetdiscover")`},
		{"help slep", `unknown topic "slep" (did you mean sleep?); search with help("search slep")`},
		{"ibhosts", "name             lid  ports  up  to          guid"},
		{"ibtracert 3 'node-0002 HCA-1'", "hop  from               entry     to                 state   width  speed  from_guid           from_num  to_guid             to_num"},
		{"ibroute --multicast switch-1", "mlid  ports  next  mgids"},
		{"ibtracert 3 nobody", `ibtracert: unknown node "nobody"; if it is new, run discover() again`},
		{"ibtracert 3 'node", "ibtracert: missing closing quote '"},
		{"ibhosts --up", "ibhosts: unknown option --up"},
		{"help ibhosts", "ibhosts: here, discover().cas; its report is fabsh report ibhosts, at the prompt ibhosts"},
		{"ibdiagnet -r --ls 10", `ibdiagnet: here, audit; fabsh audit in a shell; get_routes().verify() judges the routing alone`},
		{"smpquery nodeinfo 1", `smpquery nodeinfo 1: here, smp_get("NodeInfo", 1)`},
		{"iblinkinfo switch-1", "a           a_lid  b                  b_lid  width  speed  state   best  a_guid              a_num  b_guid              b_num"},
		{"ibnodes", "ibnodes: here, discover().nodes"},
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
		"nodes\n    ^\nhint: nodes is an attribute of fabric; write discover().nodes\n",
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
