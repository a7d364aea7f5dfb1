package shell

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fabsh/builtins/help"
	"fabsh/shell/command"
	"fabsh/shell/prompt"
	"fabsh/shell/session"
	"fabsh/shell/tour"
)

// TestTypedBack types every cell of every table of the README and the guides into a prompt:
// each is a value, or an error with a hint. Names of nodes and ports are also targets.
func TestTypedBack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	cells := map[string][]string{} // by the fabric
	for _, file := range append([]string{"README.md"}, guideFiles()...) {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, rest := range strings.Split("\n"+string(data), "\n```console\n")[1:] {
			block, _, _ := strings.Cut(rest, "\n```\n")
			spec := ""
			for line := range strings.Lines(block) {
				if words, ok := strings.CutPrefix(line, "$ "); ok {
					if spec = simOf(words); strings.Contains(words, "fabsh help") {
						spec = "" // its output has no tables
					}
				}
				if spec != "" {
					cells[spec] = append(cells[spec], cellsOf(line)...)
				}
			}
		}
	}
	total := 0
	for spec, list := range cells {
		slices.Sort(list)
		list = slices.Compact(list)
		total += len(list)
		typeBack(t, list, "-F", spec, "-t", "100")
	}
	if total < 300 {
		t.Errorf("only %d cells", total)
	}
}

// TestTypedBackRows compares the columns of tables at the prompt with what they show: select
// finds the row of each cell.
func TestTypedBackRows(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	total := 0
	for _, file := range append([]string{"README.md"}, guideFiles()...) {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, rest := range strings.Split("\n"+string(data), "\n```console\n")[1:] {
			block, _, _ := strings.Cut(rest, "\n```\n")
			for _, transcript := range strings.Split("\n"+block, "\n$ ")[1:] {
				total += compareRows(t, transcript)
			}
		}
	}
	for _, list := range []string{"f.nodes", "f.switches", "f.cas", "f.links", "f.ports", `f.node("leaf-1").ports`, "get_routes()", "f.problems", `perf_rates(f.switches[0].ports)`, "sa_gettable('NodeRecord')"} {
		var out bytes.Buffer
		atPrompt(t, []string{"-F", "sim:fattree:k=4,levels=2", "--virtual-time", "-q"}, []string{"f = discover()", list}, &out)
		total += compareRows(t, "fabsh -F sim:fattree:k=4,levels=2 --virtual-time -q\n"+out.String())
	}
	if total < 100 {
		t.Errorf("only %d cells", total)
	}
}

// compareRows types the statements of a transcript, and compares the cells of the tables in it;
// it returns the number of those that are found.
func compareRows(t *testing.T, transcript string) int {
	command, rest, _ := strings.Cut(transcript, "\n")
	var lines, heading []string
	cells := 0
	for line := range strings.Lines(rest) {
		row := cellsOf(line)
		switch typed, ok := strings.CutPrefix(line, "> "); {
		case ok:
			lines, heading = append(lines, "_ = 0", strings.TrimSuffix(typed, "\n")), nil
		case strings.HasPrefix(line, "... ") && lines != nil && heading == nil && row == nil:
			lines = append(lines, strings.TrimSuffix(line[len("... "):], "\n"))
		case lines == nil || row == nil:
		case heading == nil:
			heading = row
			lines = append(lines, "rows = _")
		case len(row) == len(heading):
			for i, cell := range row {
				cells++
				var finds []string
				for _, l := range literals(cell) {
					finds = append(finds, fmt.Sprintf("rows.select(%q)", heading[i]+" == "+l))
				}
				lines = append(lines, fmt.Sprintf(`print("not rows" if not hasattr(rows, "select") else "found" if %s else %q)`, strings.Join(finds, " or "), "not found: "+heading[i]+" == "+cell))
			}
		}
	}
	if cells == 0 {
		return 0
	}
	var out bytes.Buffer
	atPrompt(t, strings.Fields(command)[1:], lines, &out)
	found := strings.Count(out.String(), "\nfound\n")
	if other := strings.Count(out.String(), "\nnot rows\n"); found+other != cells { // records and columns of commands
		t.Errorf("%s: %d of %d cells found:\n%s", command, found, cells-other, &out)
	}
	return found
}

// literals returns the literals of the language that a cell may be.
func literals(cell string) []string {
	switch _, err := strconv.ParseFloat(cell, 64); {
	case cell == "-":
		return []string{"None"}
	case strings.HasPrefix(cell, "0x"): // a GUID is text
		return []string{strconv.Quote(cell), cell}
	case err == nil || cell == "True" || cell == "False" || cell[0] == '[':
		return []string{cell}
	}
	return []string{strconv.Quote(cell)}
}

// TestTypedBackTour does the same with what the steps of the tour show.
func TestTypedBackTour(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	t.Chdir(t.TempDir())
	var out bytes.Buffer
	atPrompt(t, []string{"-F", tour.Fabric, "--virtual-time"}, tour.Answers(), &out)
	var list []string
	for line := range strings.Lines(out.String()) {
		list = append(list, cellsOf(line)...)
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) < 20 {
		t.Errorf("only %d cells in\n%s", len(list), &out)
	}
	typeBack(t, list, "-F", tour.Fabric, "--virtual-time")
}

func guideFiles() (files []string) {
	for _, g := range help.Guides() {
		files = append(files, g.File)
	}
	return files
}

// simOf returns the simulated fabric of a command line, sim if it has another or none.
func simOf(line string) string {
	if m := regexp.MustCompile(`-F (sim:[^ \n.]*)[ \n]`).FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return "sim"
}

// cellsOf returns the cells of a line of a table; none if it is not one.
func cellsOf(line string) []string {
	for _, typed := range []string{"$ ", "> ", "... ", "#", "def ", "load("} {
		if strings.HasPrefix(line, typed) {
			return nil
		}
	}
	cells := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
	if len(cells) < 2 || strings.HasPrefix(strings.TrimLeft(cells[1], " "), "#") {
		return nil
	}
	return cells
}

// typeBack types cells at the prompt of a session, each alone, and as a target if the fabric has it.
func typeBack(t *testing.T, cells []string, flags ...string) {
	var out bytes.Buffer
	p := testProgram(t, &out, append(flags, "-q")...)
	s, err := session.Open(t.Context(), p, session.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	answer := func(line string) string {
		out.Reset()
		prompt.Run(p, s, prompt.Options{Commands: command.AtPrompt(p, rootCommand), Lines: &typist{[]string{line}, io.Discard}})
		return out.String()
	}
	answer("f = discover()")
	for _, cell := range cells {
		answer := answer(cell)
		failed := strings.Contains(answer, "undefined: ") || strings.Contains(answer, "syntax error: ")
		hinted := strings.Contains(answer, "hint: ") || strings.Contains(answer, "did you mean ")
		if failed && !hinted || strings.TrimSpace(answer) == "" && cell != "None" && cell != "pass" { // a statement
			t.Errorf("%q of %s is answered %q", cell, flags[1], answer)
		}
	}
}
