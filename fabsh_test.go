package fabsh

import (
	"os"
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
