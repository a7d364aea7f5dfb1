package session

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
	if got := (&Settings{}).StateDir(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := (&Settings{State: "here"}).StateDir(); got != "here" {
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

func TestXDG(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	t.Setenv("XDG_STATE_HOME", "")
	if got, want := StateFile("history"), "/home/u/.local/state/fabsh/history"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Setenv("XDG_STATE_HOME", "/state")
	if got, want := StateFile("history"), "/state/fabsh/history"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Setenv("XDG_CONFIG_HOME", "relative")
	if got, want := ConfigFile("rc.star"), "/home/u/.config/fabsh/rc.star"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Setenv("HOME", "")
	if got := StateFile("history"); got != "/state/fabsh/history" {
		t.Errorf("got %s", got)
	}
	if got := ConfigFile("rc.star"); got != "" {
		t.Errorf("got %s", got)
	}
}
