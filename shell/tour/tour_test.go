package tour

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestParse(t *testing.T) {
	const first = "= intro\n\nHello.\n\n= One\ncheck: fabric\nname: f\nkind: fabric\nkeep: f = g()\nanswer: a\nhint: b: c\ndone: d\n\nType:\n\n  f = g()\n\n"
	intro, steps, outro, err := parse(first + "= outro\n\nThe end.\n\nReally.\n")
	if err != nil || intro != "Hello." || outro != "The end.\n\nReally." || len(steps) != 1 {
		t.Fatalf("got %q, %v, %q, %v", intro, steps, outro, err)
	}
	s := steps[0]
	if s.check == nil || s.title != "One" || s.asks != "Type:\n\n  f = g()" || s.hint != "b: c" || s.answer != "a" || s.done != "d" || s.name != "f" || s.kind != "fabric" || s.keep != "f = g()" {
		t.Errorf("got %+v", s)
	}
	for text, want := range map[string]string{
		"":    "got 0 sections",
		first: "got 2 sections",
		strings.Replace(first, "hint: b: c\n", "", 1) + "= outro\n\n.":                `step "One": incomplete`,
		strings.Replace(first, "check: fabric", "check: nothing", 1) + "= outro\n\n.": `step "One": incomplete`,
		strings.Replace(first, "hint: b", "hnit: b", 1) + "= outro\n\n.":              `step "One": unknown line "hnit: b: c"`,
		strings.Replace(first, "name: f\n", "", 1) + "= outro\n\n.":                   `step "One": incomplete`,
	} {
		if _, _, _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// TestState: where the tour was left comes back, and what is no state is told.
func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "tour")
	if at, err := load(path); at != 0 || err != nil {
		t.Errorf("no file: %d, %v", at, err)
	}
	for _, at := range []int{0, 3, len(script().steps)} {
		if err := save(path, at); err != nil {
			t.Fatal(err)
		}
		if got, err := load(path); got != at || err != nil {
			t.Errorf("%d: %d, %v", at, got, err)
		}
	}
	for _, text := range []string{"", "{", `{"schema":"fabsh.tour/1","step":0}`, `{"schema":"fabsh.tour/1","step":10}`, `{"schema":"fabsh.tour/2","step":1}`, strings.Repeat("[", 1<<20)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if at, err := load(path); at != 0 || err == nil {
			t.Errorf("%.40q: %d, %v", text, at, err)
		}
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(pipe); err == nil {
		t.Error("a pipe is read")
	}
	if err := save(pipe, 1); err == nil {
		t.Error("a pipe is written")
	}
	if err := save(filepath.Join("/proc/none", "tour"), 1); err == nil {
		t.Error("/proc is written")
	}
	if err := save("", 1); err == nil {
		t.Error("nowhere is written")
	}
}
