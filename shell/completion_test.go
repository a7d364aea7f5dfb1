//go:build linux

package shell

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBashCompletion: the script for bash works without the package bash-completion.
func TestBashCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	var script, want strings.Builder
	// The shell would call the function, with the words as readline splits them.
	script.WriteString(`source <(fabsh completion bash)
compopt() { :; }
try() {
	COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9; shift
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	__start_fabsh fabsh
	echo "$COMP_LINE: ${COMPREPLY[*]:0:3}"
}
mkdir mad made
: >mad.key
`)
	for _, c := range []struct{ line, words, want string }{
		{"fabsh aud", "fabsh aud", "audit"},
		{"fabsh audit ", "fabsh audit ''", "ack adaptive config"},
		{"fabsh --color=", "fabsh --color =", "auto always never"},
		{"fabsh --color=al", "fabsh --color = al", "always"},
		{"fabsh  -F sim:ring:n=4 audit count", "fabsh -F sim : ring : n = 4 audit count", "counters"},
		{"fabsh --include ma", "fabsh --include ma", "mad made"},
	} {
		fmt.Fprintf(&script, "try %q %s\n", c.line, c.words)
		fmt.Fprintf(&want, "%s: %s\n", c.line, c.want)
	}
	c := exec.CommandContext(t.Context(), bash, "--norc", "-c", script.String())
	c.Dir, c.Env = dir, testEnv(t)
	out, err := c.CombinedOutput()
	if diff := cmp.Diff(want.String(), string(out)); diff != "" || err != nil {
		t.Errorf("%v -want +got\n%s", err, diff)
	}
}
