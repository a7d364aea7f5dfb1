package shell

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"fabsh/builtins/help"
	"fabsh/shell/command"
	"fabsh/shell/session"
)

var updateMan = flag.Bool("man", false, "write the man pages")

// manDir is where the pages of all commands lie, for packages.
const manDir = "dist/man"

// TestMan: the man pages of commands are made of their help, and those of section 7 of the
// guides. cobra does not make them, for it does not know the flags of commands that share
// them with a script (route, audit, report).
func TestMan(t *testing.T) {
	p := newProgram(session.NewConsole(os.Stdout, os.Stderr))
	root := rootCommand(p)
	root.InitDefaultHelpCmd()
	want := map[string]string{}
	for _, g := range help.Guides() {
		want[g.Page()+".7"] = g.Man()
	}
	var all func(*cobra.Command)
	all = func(c *cobra.Command) {
		want[strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"] = manPage(t, c)
		for _, sub := range c.Commands() {
			if c.Name() != "completion" && !sub.Hidden { // completion's page tells all
				all(sub)
			}
		}
	}
	all(root)
	if *updateMan {
		if err := os.RemoveAll(manDir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(manDir, 0o777); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(manDir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := map[string]string{}
	files, err := filepath.Glob(manDir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(file)] = string(b)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stale: make generate, -want +got\n%s", diff)
	}
	for name, sections := range map[string][]string{
		"fabsh.1":              {"DESCRIPTION", "EXAMPLES", "COMMANDS", "WHICH FABRIC", "SAFETY", "LIMITS", "SEE ALSO"},
		"fabsh-route.1":        {"DESCRIPTION", "USAGE", "EXAMPLES"},
		"fabsh-audit.1":        {"DESCRIPTION", "USAGE", "EXAMPLES"},
		"fabsh-change-plan.1":  {"DESCRIPTION", "USAGE", "EXAMPLES"},
		"fabsh-change-guide.7": {"DESCRIPTION", "PRACTISE A CHANGE", "SEE ALSO"},
	} {
		for _, s := range sections {
			if !strings.Contains(want[name], "\n.SH "+s) {
				t.Errorf("%s has no section %s", name, s)
			}
		}
	}
}

// manPage is the page of c: what its help says before the first heading is the
// description, and each heading is a section, set as it is written (man(7)).
func manPage(t *testing.T, c *cobra.Command) string {
	t.Helper()
	var text bytes.Buffer
	root := c.Root()
	root.SetOut(&text)
	page := strings.ReplaceAll(c.CommandPath(), " ", "-")
	if err := c.Help(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s.SH NAME\n%s \\- %s\n", help.ManTitle(page, 1), help.Roff(page), help.Roff(c.Short))
	b.WriteString(".SH DESCRIPTION\n")
	set := false // as it is written
	gap := false // between paragraphs
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(line, "\n")
		heading, ok := strings.CutSuffix(line, ":")
		switch {
		case ok && line[0] != ' ' && len(line) < 72 && strings.ToUpper(line[:1]) == line[:1]:
			if set {
				b.WriteString(".fi\n")
			}
			fmt.Fprintf(&b, ".SH %s\n.nf\n", help.Roff(strings.ToUpper(heading)))
			set, gap = true, false
		case line == "" && !set:
			gap = true
		default:
			if gap {
				b.WriteString(".PP\n")
			}
			gap = false
			b.WriteString(help.RoffLine(line) + "\n")
		}
	}
	if set {
		b.WriteString(".fi\n")
	}
	b.WriteString(".SH SEE ALSO\n")
	if c.HasParent() {
		fmt.Fprintf(&b, "%s(1); \"fabsh doc\", the reference of the language\n", strings.ReplaceAll(help.Roff(c.Parent().CommandPath()), " ", `\-`))
	} else {
		b.WriteString("\"fabsh doc\", the reference of the language; a page of each command, such as fabsh\\-audit(1)\n")
	}
	return b.String()
}

// TestManual: the page has all commands, and is the same each time.
func TestManual(t *testing.T) {
	var pages [2]string
	for i := range pages {
		out, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		p := newProgram(session.NewConsole(out, os.Stderr))
		if err := command.WriteManual(p, rootCommand(p)); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		pages[i] = string(text)
	}
	if pages[0] != pages[1] {
		t.Error("the same manual gives other bytes")
	}
	for _, word := range append(commandNames(), "change apply") {
		if !strings.Contains(pages[0], ">fabsh "+word+"</a></h3>") {
			t.Errorf("the manual lacks the command %s", word)
		}
	}
}

// commandNames returns the names of all commands.
func commandNames() []string {
	root := rootCommand(newProgram(session.NewConsole(os.Stdout, os.Stderr)))
	root.InitDefaultHelpCmd()
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return names
}
