package shell

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/help"
	"fabsh/shell/command"
	"fabsh/shell/prompt"
	"fabsh/shell/session"
)

// TestReadme types the console blocks of README.md and of all guides, and compares the
// output.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("checks results only")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"README.md"}
	for _, g := range help.Guides() {
		if g.Name != "formats" && g.Name != "coming-from" { // TestComingFrom
			files = append(files, g.File)
		}
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			dir := t.TempDir() // for the files that are written
			if err := os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")); err != nil {
				t.Fatal(err)
			}
			typeBlocks(t, filepath.Join(root, file), dir)
		})
	}
}

// typeBlocks types the console blocks of a file, in dir.
func typeBlocks(t *testing.T, file, dir string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, renewed := string(data), string(data)
	t.Chdir(dir)
	env := testEnv(t)
	blocks := 0
	for {
		_, rest, ok := strings.Cut(text, "\n```console\n")
		if !ok {
			break
		}
		block, after, _ := strings.Cut(rest, "\n```\n")
		text, blocks = after, blocks+1
		want := block + "\n"
		got := typed(t, dir, env, want)
		if *update {
			renewed = strings.Replace(renewed, want, got, 1)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(renewed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if blocks == 0 {
		t.Error("no console blocks")
	}
}

// TestComingFrom: the commands of the page for those who come from other tools
// are there, with the options that it names.
func TestComingFrom(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	page, err := os.ReadFile("../examples/COMING_FROM.md")
	if err != nil {
		t.Fatal(err)
	}
	env := testEnv(t)
	help := func(words ...string) string {
		return replay(t.TempDir(), env, "$ fabsh "+strings.Join(words, " ")+" --help\n")
	}
	flags, commands := help(), commandNames()
	lines := regexp.MustCompile("`fabsh ([^`]*)`").FindAllStringSubmatch(string(page), -1)
	if len(lines) < 20 {
		t.Fatalf("%d commands", len(lines))
	}
	for _, line := range lines {
		words, known := strings.Fields(strings.TrimPrefix(line[1], "--write ")), flags
		if words[0] == "-F" {
			words = words[2:]
		}
		switch name := words[0]; {
		case slices.Contains(commands, name):
			known += help(name)
			if len(words) > 1 && slices.Contains([]string{"route", "audit", "topology", "report", "change"}, name) && words[1][0] != '-' {
				known += help(name, words[1])
			}
		case name != "-c" && !strings.HasPrefix(name, "@examples//"):
			t.Errorf("%s: no name %s", line[1], name)
		}
		for _, w := range words {
			if strings.HasPrefix(w, "--") && !strings.Contains(known, w) {
				t.Errorf("%s: there is no %s", line[1], w)
			}
		}
	}
}

// typed returns what comes of typing a transcript, in which "$ " begins a line
// for the system's shell and "> " one for fabsh's prompt.
func typed(t *testing.T, dir string, env []string, transcript string) string {
	var out bytes.Buffer
	lines := strings.SplitAfter(transcript, "\n")
	for i := range lines {
		if !strings.HasPrefix(lines[i], "$ ") {
			continue
		}
		var prompted []string
		for j := i + 1; j < len(lines) && !strings.HasPrefix(lines[j], "$ "); j++ {
			for _, p := range []string{"> ", "... "} {
				if l, ok := strings.CutPrefix(lines[j], p); ok {
					prompted = append(prompted, strings.TrimSuffix(l, "\n"))
				}
			}
		}
		if prompted == nil {
			out.WriteString(replay(dir, env, lines[i]))
			continue
		}
		out.WriteString(lines[i])
		atPrompt(t, strings.Fields(lines[i])[2:], prompted, &out)
	}
	return out.String()
}

// atPrompt types lines at the prompt of a session with the given flags.
func atPrompt(t *testing.T, flags, lines []string, out *bytes.Buffer) {
	t.Helper()
	p := testProgram(t, out, flags...)
	s, err := session.Open(t.Context(), p, session.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	prompt.Run(p, s, prompt.Options{Commands: command.AtPrompt(p, rootCommand), Lines: &typist{lines, out}})
}

// typist is somebody typing.
type typist struct {
	lines []string
	echo  io.Writer
}

func (s *typist) ReadLine(prompt string) (string, error) {
	if len(s.lines) == 0 {
		return "", io.EOF
	}
	l := s.lines[0]
	s.lines = s.lines[1:]
	if prompt != "... " {
		prompt = "> "
	}
	io.WriteString(s.echo, strings.TrimRight(prompt+l, " ")+"\n")
	return l, nil
}

func (s *typist) Close() error { return nil }

// testProgram is a program with session flags, that writes to out.
func testProgram(t *testing.T, out io.Writer, flags ...string) *session.Program {
	t.Helper()
	p := newProgram(session.NewConsole(out, out))
	p.Interrupts = session.WatchInterrupts(p.Console)
	t.Cleanup(p.Interrupts.Stop)
	if err := rootCommand(p).ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	return p
}
