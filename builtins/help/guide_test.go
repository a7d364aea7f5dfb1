package help

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `# Title
<!-- help: sample-guide, sample -->

First sentence, with ` + "`code *x*`" + ` and **bold words**. Second
sentence, [a file](FILE.md), [a site](https://example.org).

<!-- A remark. -->
## Part
<!-- help: part, piece -->

- an item that is
  continued
- another

| key | action |
|---|---|
| ` + "`a\\|b`" + ` | does this and that and more |

    indented code

### Below

` + "```sh" + `
# no heading
.request
` + "```" + `
`

// findGuide returns the guide with a name, nil if the name is unknown.
func findGuide(name string) *Guide {
	if i := slices.IndexFunc(Guides(), func(g Guide) bool { return g.Name == name }); i >= 0 {
		return &Guides()[i]
	}
	return nil
}

// TestText: a guide as text of two widths.
func TestText(t *testing.T) {
	g := parseGuide("sample.md", sample)
	const want = `TITLE

First sentence, with code *x* and bold words. Second sentence, a file, a site (https://example.org).

Part
----

- an item that is continued
- another

  key  action
  a|b  does this and that and more

  indented code

Below
-----

  # no heading
  .request
`
	if diff := cmp.Diff(want, g.Text(0)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	const narrow = `Part
----

- an item that
  is continued
- another

  key  action
  a|b  does this
       and that
       and more

  indented code

Below
-----

  # no heading
  .request
`
	if diff := cmp.Diff(narrow, g.PartText(1, 16)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if g.Name != "sample-guide" || g.Summary() != "First sentence, with code *x* and bold words." {
		t.Errorf("%s: %q", g.Name, g.Summary())
	}
	if diff := cmp.Diff([]string{"part", "piece"}, g.Parts[1].Names); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestMan: a guide as a man page.
func TestMan(t *testing.T) {
	g := parseGuide("sample.md", sample)
	_, got, _ := strings.Cut(g.Man(), "\n") // the first line has the version
	const want = `.SH NAME
fabsh\-sample\-guide \- title
.SH DESCRIPTION
First sentence, with \fBcode *x*\fR and \fBbold words\fR. Second sentence, a
file, a site (https://example.org).
.SH PART
.IP \(bu 2
an item that is continued
.IP \(bu 2
another
.TP 16
key
action
.TP 16
\fBa|b\fR
does this and that and more
.PP
.RS 2
.nf
indented code
.fi
.RE
.SS Below
.RS 2
.nf
# no heading
\&.request
.fi
.RE
.SH SEE ALSO
fabsh(1); "fabsh help guides", all guides
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestAll: each guide has a name, a summary, and names of parts that are words.
func TestAll(t *testing.T) {
	if len(Guides()) < 8 {
		t.Errorf("%d guides", len(Guides()))
	}
	for _, g := range Guides() {
		if g.Name == "" || g.Summary() == "" || findGuide(g.Name) == nil {
			t.Errorf("%s: name %q, summary %q", g.File, g.Name, g.Summary())
		}
	}
}

// FuzzBlocks: any document has a text and a man page.
func FuzzBlocks(f *testing.F) {
	f.Add(sample)
	f.Add("```\n")
	f.Add("| a |\n- |\n|\n")
	f.Fuzz(func(t *testing.T, text string) {
		g := parseGuide("x.md", text)
		g.Text(20)
		g.Man()
		for i := range g.Parts {
			g.Own(i, 0)
			g.PartText(i, 40)
		}
	})
}

// TestSearchForms: a search finds the forms of a word, and the words of fabsh for those of users.
func TestSearchForms(t *testing.T) {
	for word, want := range map[string]string{"flapping": "flap", "flapped": "flap", "errors": "error", "retries": "retry", "routing": "rout", "class": "class", "press": "press", "bring": "bring", "ports": "port", "vf": "vf", "failed": "fail"} {
		if got := stem(word); got != want {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
	l := &Library{Shell: true}
	for query, want := range map[string]string{
		"flapping": "link.flap", "broken": "degraded", "slow": "slower", "reseat": "cable", "reseated": "cable", "VF": "virtual", "SR-IOV": "virtual", "ipoib": "multicast",
		"xlsx": "csv", "history": "history", "dashboards": "monitoring-guide", "how do I": "examples-guide",
	} {
		found, err := l.Search(query, 0)
		if err != nil || !strings.Contains(strings.ToLower(found), want) {
			t.Errorf("%s: %v, want %s among\n%s", query, err, want, found)
		}
	}
}

// TestManualChapters: no two chapters have one name, and the guides come first.
func TestManualChapters(t *testing.T) {
	guides, others, err := Manual(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range slices.Concat(guides, others) {
		if seen[c.Title] {
			t.Errorf("two chapters are called %s", c.Title)
		}
		seen[c.Title] = true
	}
	if len(guides) != len(Guides()) {
		t.Errorf("%d guides", len(guides))
	}
}
