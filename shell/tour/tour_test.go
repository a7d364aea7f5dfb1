package tour

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.starlark.net/starlark"

	"fabsh/fabric/jsonfile"
	"fabsh/fabric/jsonfile/jsonfiletest"
	"fabsh/fabric/routing/routes"
)

// TestStateMembers: a file without any one of its members is refused, and the error names it.
func TestStateMembers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tour.json")
	read := func(text []byte) error {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := load(path)
		return err
	}
	jsonfiletest.Members(t, jsonfile.New[state](jsonfile.Limits{}).Members(), read, []byte(`{"schema":"fabsh.tour/1","step":1}`))
}

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

// fakePrompt is a prompt without a fabric.
type fakePrompt struct{}

func (fakePrompt) Globals() starlark.StringDict    { return nil }
func (fakePrompt) Run(string) error                { return nil }
func (fakePrompt) Tables() (*routes.Routes, error) { return nil, errors.New("no fabric") }

// TestAnyLine: lines that do not complete a step get no answer, but once what helps: after the
// first error, or after some lines.
func TestAnyLine(t *testing.T) {
	const help = "\nStep 1 of 8: hint helps, skip goes on.\n"
	ok, failed := Seen{Text: "sim.links"}, Seen{Text: "sim.lnks", Failed: true}
	for _, tt := range []struct {
		lines []Seen
		want  string
	}{
		{[]Seen{ok, ok, ok, ok}, ""},
		{[]Seen{ok, ok, ok, ok, ok, ok, failed}, help},
		{[]Seen{ok, failed, failed, ok, ok, ok}, help},
	} {
		var out strings.Builder
		tr, err := Open(fakePrompt{}, &out, func() int { return 80 }, filepath.Join(t.TempDir(), "tour"), 0)
		if err != nil {
			t.Fatal(err)
		}
		out.Reset()
		for _, line := range tt.lines {
			tr.See(line)
		}
		if got := out.String(); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.lines, got, tt.want)
		}
	}
}

// TestTextWidth: no line is wider than the terminal, unless it is one word, and ... stays whole.
func TestTextWidth(t *testing.T) {
	for _, width := range []int{40, 60, 80, 200} {
		var out strings.Builder
		tr := &Tour{out: &out, width: func() int { return width }}
		tr.say(script().intro)
		for _, s := range script().steps {
			for _, text := range []string{s.asks, s.done, "Hint: " + s.hint, "Type: " + s.answer} {
				tr.say(text)
			}
		}
		tr.say(script().outro)
		tr.say("commands: audit, report, route, change, top, exporter ... and others, such as t = ..., which are many")
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if len(line) >= width && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%d columns: %q", width, line)
			}
			if strings.HasSuffix(line, " .") || strings.HasPrefix(strings.TrimSpace(line), "..") && !strings.HasPrefix(strings.TrimSpace(line), "...") {
				t.Errorf("%d columns: ... is broken: %q", width, line)
			}
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
