package fabsh

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestChangelog: the first section is of this version, and each section has one line a
// change, under Breaking, New and Fixed alone.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	heading := "## " + Version
	if base, ok := strings.CutSuffix(Version, "-dev"); ok {
		heading = "## " + base + " (in development)"
	}
	version := regexp.MustCompile(`^## (\d+)\.(\d+)\.(\d+)( \(in development\))?$`)
	first, part := "", ""
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		switch {
		case strings.HasPrefix(line, "## "):
			if first == "" {
				first = line
			}
			if part = ""; !version.MatchString(line) {
				t.Errorf("line %d: %q is not a version", i+1, line)
			}
		case strings.HasPrefix(line, "### "):
			if part = line[4:]; part != "Breaking" && part != "New" && part != "Fixed" {
				t.Errorf("line %d: %q is not Breaking, New or Fixed", i+1, part)
			}
		case line != "" && first != "" && (part == "" || !strings.HasPrefix(line, "- ")):
			t.Errorf("line %d: not a change, on one line that begins with \"- \", under Breaking, New or Fixed", i+1)
		}
	}
	if first != heading {
		t.Errorf("the first section is %q, want %q", first, heading)
	}
}

// TestDocuments: README.md is one page, it names all guides, and links of documents lead to
// files that exist.
func TestDocuments(t *testing.T) {
	const page = 6 << 10 // bytes
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(readme) > page {
		t.Errorf("README.md has %d bytes, more than %d", len(readme), page)
	}
	files := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "builtins/COMPATIBILITY.md"}
	err = fs.WalkDir(Documents, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, name)
			if !strings.Contains(string(readme), "("+name+")") {
				t.Errorf("README.md has no link to %s", name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || !strings.Contains(m[1], ".") { // code has the like
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
