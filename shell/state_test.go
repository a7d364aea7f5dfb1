package shell

import (
	"os"
	"strings"
	"testing"
)

func TestStateDir(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	want := "/state/fabsh"
	if os.Geteuid() == 0 {
		want = "/var/lib/fabsh"
	}
	if got := (&settings{}).stateDir(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := (&settings{state: "here"}).stateDir(); got != "here" {
		t.Errorf("got %s", got)
	}
	for script, want := range map[string]string{
		"": "shell", "x/links.star": "links", "../..": "_.", "a b\n.star": "a_b_", ".star": "shell", strings.Repeat("x", 200): strings.Repeat("x", 111) + "-6ee14c8caecd5c45",
	} {
		if got := jobOf(script); got != want {
			t.Errorf("%q: %s, want %s", script, got, want)
		}
	}
}
