package shell

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"fabsh/builtins/check"
	"fabsh/builtins/help"
)

// TestDocumentLines types each line of code of README.md and of all guides that is no console
// block, which TestReadme types: what is fenced, and what is indented by four. Commands that read
// or change what is not there are typed with --help, which refuses unknown flags.
func TestDocumentLines(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"README.md", "builtins/COMPATIBILITY.md"}
	for _, g := range help.Guides() {
		if g.Name != "formats" { // its lines are those of files, which the readers' tests read
			files = append(files, g.File)
		}
	}
	typed := 0
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range codeBlocks(string(data)) {
			typed++
			if err := typeCode(t, root, b); err != nil {
				t.Errorf("%s:%d: %v", file, b.line, err)
			}
		}
	}
	if typed < 15 {
		t.Errorf("%d blocks", typed)
	}
}

// codeBlock is a block of code of a document.
type codeBlock struct {
	language string // "" if it is indented, or has none
	text     string
	line     int // of the document
}

// codeBlocks returns the blocks of a document, without console blocks.
func codeBlocks(text string) (blocks []codeBlock) {
	fenced, indented := false, false
	for i, line := range strings.Split(text, "\n") {
		language, isFence := strings.CutPrefix(line, "```")
		code, isCode := strings.CutPrefix(line, "    ")
		switch {
		case isFence && !fenced:
			blocks = append(blocks, codeBlock{language: language, line: i + 2})
			fenced, indented = true, false
		case isFence:
			fenced = false
		case fenced:
			blocks[len(blocks)-1].text += line + "\n"
		case isCode && !indented:
			blocks = append(blocks, codeBlock{text: code + "\n", line: i + 1})
			indented = true
		case isCode:
			blocks[len(blocks)-1].text += code + "\n"
		default:
			indented = false
		}
	}
	return slices.DeleteFunc(blocks, func(b codeBlock) bool {
		return b.language == "console" || b.language == "layers" || b.language == "words"
	})
}

// typeCode types a block.
func typeCode(t *testing.T, root string, b codeBlock) error {
	switch b.language {
	case "json":
		var v any
		return json.Unmarshal([]byte(b.text), &v)
	case "yaml":
		var v any
		return yaml.Unmarshal([]byte(b.text), &v)
	case "lua", "toml", "sql", "py", "elisp": // configurations of editors, and questions to databases
		return nil
	case "python":
		path := filepath.Join(t.TempDir(), "x.star")
		if err := os.WriteFile(path, []byte(b.text), 0o600); err != nil {
			return err
		}
		if out := replay(t.TempDir(), testEnv(t), "$ fabsh check "+path+"\n"); strings.Contains(out, "exit status") {
			return fmt.Errorf("%s", out)
		}
		return nil
	}
	var atPromptLines []string
	for line := range strings.Lines(b.text) {
		line = strings.TrimSpace(line)
		command, isCommand := commandOf(line)
		switch {
		case line == "":
		case isCommand:
			if err := typeCommand(t, root, command); err != nil {
				return err
			}
		default:
			atPromptLines = append(atPromptLines, line)
		}
	}
	if len(atPromptLines) > 0 {
		var out bytes.Buffer
		atPrompt(t, []string{"-F", "sim", "--virtual-time"}, atPromptLines, &out)
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "error") || strings.HasPrefix(line, "<prompt>") || strings.HasPrefix(line, "fabsh:") || strings.Contains(line, "<prompt>:") {
				return fmt.Errorf("%s", out.String())
			}
		}
	}
	return nil
}

// Parts of a line of a crontab or of a shell that are not the command.
var (
	linePrompt  = regexp.MustCompile(`^\$ `)
	lineTimes   = regexp.MustCompile(`^[*/0-9]+ (\* ?){4}\s+`)
	lineSetting = regexp.MustCompile(`^[A-Z_]+=\S+ `)
	lineRest    = regexp.MustCompile(`\s+(#|\|\|?|>|&).*$`)
)

// commandOf returns the command that a line is; false: it is for the prompt.
func commandOf(line string) (string, bool) {
	for _, part := range []*regexp.Regexp{linePrompt, lineTimes, lineSetting, lineRest} {
		line = part.ReplaceAllString(line, "")
	}
	word, rest, _ := strings.Cut(line, " ")
	if word == "ibsim-run" {
		return rest, true
	}
	if word == "sudo" {
		return commandOf(rest)
	}
	return line, word == "fabsh" || word == "make" || word == "apt" || word == "opensm" || check.ToolHint(word) != ""
}

// typeCommand types a command.
func typeCommand(t *testing.T, root, command string) error {
	words := strings.Fields(command)
	switch {
	case words[0] == "make":
		makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
		if err == nil && !strings.Contains(string(makefile), "\n"+words[1]+":") {
			return fmt.Errorf("%s: no such target", command)
		}
		return err
	case words[0] != "fabsh":
		return nil // a program of another project, which is known
	}
	// A script of the reader is one of ours here.
	command = regexp.MustCompile(` /[\w/.-]+\.star`).ReplaceAllString(command, " examples/links.star")
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")); err != nil {
		return err
	}
	elsewhere := regexp.MustCompile(`(^| )(change|exporter|serve|mcp|sim|top|lsp|tour|trial|remedy)( |$)|file:|ibsim:|umad:|[ =]/|route ftree`)
	if !elsewhere.MatchString(strings.Replace(command, "-F sim ", "", 1)) {
		out := replay(dir, append(testEnv(t), "FABSH_FABRIC=sim"), "$ "+strings.Replace(command, "fabsh ", "fabsh --virtual-time ", 1)+"\n")
		if regexp.MustCompile(`\[exit status [^1]\]`).MatchString(out) {
			return fmt.Errorf("%s", out)
		}
		return nil
	}
	command, _, _ = strings.Cut(command, " --run ")
	out := replay(dir, testEnv(t), "$ "+command+" --help\n")
	if strings.Contains(out, "[exit status") || !strings.Contains(out, "Usage:") && !strings.Contains(out, "usage:") && !strings.Contains(out, "\nsim ") && !strings.Contains(out, "fabric: ") {
		return fmt.Errorf("%s", out)
	}
	return nil
}
