// Package guide has the guides: documents in Markdown, also shown on a terminal and as man
// pages. A comment <!-- help: NAMES --> below a heading gives the names by which help
// finds the part below that heading.
//
//	guide.go     the guides and their parts
//	markdown.go  blocks of Markdown, and the text in them
//	text.go      a part as text of some width
//	roff.go      a guide as a man page

package help

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"fabsh"
)

// Guide is a document.
type Guide struct {
	Name  string      // of the topic: "change-guide"
	File  string      // below the root of the module
	Parts []GuidePart // the first is the whole guide, with the text above the second heading
}

// GuidePart is a heading and the text below it.
type GuidePart struct {
	Title  string
	Level  int      // of the heading: 1 is the guide's own
	Names  []string // topics
	Blocks []Block  // up to the next heading
	Guide  string   // name of the guide
}

// Title returns the title of the guide.
func (g *Guide) Title() string { return g.Parts[0].Title }

// Summary returns the first sentence of the guide.
func (g *Guide) Summary() string { return g.Parts[0].Summary() }

// Summary returns the first sentence of the part, "" if it has no prose.
func (p *GuidePart) Summary() string {
	for _, b := range p.Blocks {
		if b.Kind == blockProse || b.Kind == blockItem {
			text := plainText(b.Text)
			if i := strings.Index(text, ". "); i >= 0 {
				text = text[:i+1]
			}
			return text
		}
	}
	return ""
}

// guideOrder is the order of the guides; the others follow by file name.
var guideOrder = []string{"shell-guide", "language-guide", "script-guide", "routing-guide", "change-guide", "sim-guide", "monitoring-guide"}

// Guides returns the guides. The caller must not change them.
func Guides() []Guide { return all() }

var all = sync.OnceValue(func() (list []Guide) {
	// Embedded documents can be read.
	fs.WalkDir(fabsh.Documents, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			text, _ := fs.ReadFile(fabsh.Documents, name)
			list = append(list, parse(name, string(text)))
		}
		return err
	})
	rank := func(g Guide) int {
		if i := slices.Index(guideOrder, g.Name); i >= 0 {
			return i
		}
		return len(guideOrder)
	}
	slices.SortStableFunc(list, func(a, b Guide) int { return rank(a) - rank(b) })
	return list
})

// Find returns the guide of a name, nil if the name is unknown.
func findGuide(name string) *Guide {
	if i := slices.IndexFunc(Guides(), func(g Guide) bool { return g.Name == name }); i >= 0 {
		return &Guides()[i]
	}
	return nil
}

// parse splits a document at its headings.
func parse(file, text string) Guide {
	g := Guide{File: file}
	for _, b := range blocks(text) {
		switch last := len(g.Parts) - 1; {
		case b.Kind == blockHeading:
			g.Parts = append(g.Parts, GuidePart{Title: plainText(b.Text), Level: b.Level})
		case last < 0:
		case b.Kind == Names:
			g.Parts[last].Names = splitNames(b.Text)
		default:
			g.Parts[last].Blocks = append(g.Parts[last].Blocks, b)
		}
	}
	if len(g.Parts) == 0 {
		g.Parts = []GuidePart{{Title: file, Level: 1}}
	}
	if names := g.Parts[0].Names; len(names) > 0 {
		g.Name = names[0]
	}
	for i := range g.Parts {
		g.Parts[i].Guide = g.Name
	}
	return g
}

// splitNames splits a list with commas.
func splitNames(text string) (names []string) {
	for name := range strings.SplitSeq(text, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// below returns the indexes of part i and of the parts below its heading.
func (g *Guide) below(i int) []GuidePart {
	end := i + 1
	for end < len(g.Parts) && (i == 0 || g.Parts[end].Level > g.Parts[i].Level) {
		end++
	}
	return g.Parts[i:end]
}
