package shell

import (
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
		{"help slep", `nothing is named "slep" (did you mean sleep?); help() lists what there is`},
		{"ibhosts", "ibhosts: here, discover().cas"},
		{"ibdiagnet -r --ls 10", `ibdiagnet: here, load("@examples//first_look.star", "main"); main(); get_routes().verify() judges the routing`},
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
	r, out := openTest(t, "-F", "sim:ring:n=2", "-t", "10")
	for _, tt := range []string{
		"f = discover(); f.switches[0].nmae\n                                  ^\n",
		"smp_get(\"NodeInfo\", 999)\n    ^\n",
		"x = [1, 2]; x[ 7]\n                   ^\n",
		"f.dump(kind=3)\n      ^\n",
		"1 + \"a\"\n      ^\n",
		"nodes\n    ^\nhint: nodes is of fabric: write discover().nodes\n",
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
