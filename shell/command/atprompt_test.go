package command

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"fabsh/shell/session"
)

// typedRoot is the root command of a line at the prompt of a session with these flags.
func typedRoot(t *testing.T, flags ...string) *cobra.Command {
	t.Helper()
	p := &session.Program{Settings: new(session.Settings), Console: session.NewConsole(io.Discard, io.Discard)}
	root := rootOf(p)
	if err := root.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	typed := p.Typed(&session.Line{Context: t.Context()})
	c := rootOf(typed)
	typed.Settings.Inherit(p.Settings)
	return c
}

// TestWordsAtPrompt: what may stand behind the commands that run at the prompt too.
func TestWordsAtPrompt(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
	}{
		{"audit --lo", []string{"--load-cache"}},
		{"audit c", []string{"config", "counters"}},
		{"audit counters links co", []string{"config"}},
		{"audit counters --th", []string{"--thresholds"}},
		{"audit counters --baseline no", nil},
		{"audit --fail-on ", []string{"info", "warning", "error", "critical"}},
		{"audit a", []string{"ack", "adaptive"}},
		{"audit ack x --un", []string{"--until"}},
		{"change ap", []string{"apply"}},
		{"change g", nil},
		{"top --by e", []string{"errors"}},
		{"route ftree --ver", []string{"--verify"}},
		{"verify --wr", nil},
		{"sim r", nil},
		{"report html co", []string{"config", "counters"}},
		{"report html a", []string{"adaptive"}},
		{"report ibh", []string{"ibhosts"}},
		{"report ibtracert --m", []string{"--mlid"}},
	} {
		words := strings.Split(test.line, " ")
		got, _ := completeLine(typedRoot(t), words[:len(words)-1], words[len(words)-1])
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", test.line, diff)
		}
	}
}

// TestHereOrThere: each command runs at the prompt, or reports where it runs.
func TestHereOrThere(t *testing.T) {
	var here, there []string
	for _, c := range commands().Commands() {
		if _, ok := annotated(commands(), []string{c.Name()}); ok {
			here = append(here, c.Name())
			continue
		}
		there = append(there, c.Name())
		want := c.Name() + " is not available at the prompt; run `fabsh " + c.Name() + "` in a shell"
		if err := runLine(typedRoot(t), []string{c.Name()}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", c.Name(), err, want)
		}
	}
	if diff := cmp.Diff("audit change decode diff graph remedy report route snapshot top topology verify", strings.Join(here, " ")); diff != "" {
		t.Errorf("here: -want +got\n%s", diff)
	}
	if len(there) == 0 {
		t.Error("all commands run at the prompt")
	}
}

// TestFixedFlags: a line at the prompt changes no setting of its session but the format
// of the output.
func TestFixedFlags(t *testing.T) {
	for _, words := range [][]string{
		{"verify", "--write"}, {"verify", "-F", "sim"}, {"audit", "--write"}, {"audit", "links", "--override-sm"}, {"--write", "verify"},
		{"route", "ftree", "--keys=k"}, {"change", "apply", "x", "--write"}, {"change", "plan", "--write", "x.star", "--out", "y"}, {"report", "iblinkinfo", "--state", "x"},
		{"topology", "slurm", "--record", "x"}, {"graph", "--node-name-map", "x"}, {"diff", "x", "-q"}, {"snapshot", "x", "--plan", "y"},
	} {
		err := runLine(typedRoot(t, "--read-only"), words)
		if err == nil || !strings.Contains(err.Error(), ": cannot be changed in an open session; start another one with fabsh --") {
			t.Errorf("%v: %v", words, err)
		}
	}
}
