package command

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"testing"

	"fabsh/builtins"
	"fabsh/builtins/help"
)

func manualPage(t *testing.T, chapters []help.Chapter) string {
	t.Helper()
	var b bytes.Buffer
	if err := writeManual(&b, "fabsh <test>", chapters); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestManual: every topic is on the page as text, each link leads somewhere on it, nothing
// is asked of anybody else, and what may run is what the policy says.
func TestManual(t *testing.T) {
	guides, list, err := help.Manual(builtins.Functions())
	if err != nil {
		t.Fatal(err)
	}
	chapters := append(append(guides, list...), help.Chapter{Title: "a <b>", Doc: "x & y", Topics: []help.Topic{{Name: `"><script>alert(1)</script>`, Text: "</pre><img src=x onerror=alert(1)>"}}})
	text := manualPage(t, chapters)
	if text != manualPage(t, chapters) {
		t.Error("the same chapters give other bytes")
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if ids[m[1]] {
			t.Errorf("two of id %q", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(regexp.MustCompile(`(?s)<pre.*?</pre>|<script>.*?</script>`).ReplaceAllString(text, ""), -1) {
		if to, ok := strings.CutPrefix(m[1], "#"); !ok || !ids[to] {
			t.Errorf("a link leads to %q", m[1])
		}
	}
	var shown []string
	for _, m := range regexp.MustCompile(`(?s)<pre tabindex="0">(.*?)</pre>`).FindAllStringSubmatch(text, -1) {
		shown = append(shown, html.UnescapeString(m[1]))
	}
	n := 0
	for _, c := range chapters {
		for _, topic := range c.Topics {
			if strings.TrimSpace(topic.Text) == "" {
				t.Errorf("%s: nothing is said of %s", c.Title, topic.Name)
			}
			if n < len(shown) && shown[n] != strings.TrimRight(topic.Text, "\n") {
				t.Errorf("%s: %q, want %q", topic.Name, shown[n], topic.Text)
			}
			n++
		}
	}
	if n != len(shown) {
		t.Errorf("%d topics of %d", len(shown), n)
	}
	for tag, want := range map[string]int{"<script": 2, // the second is data
		"<style": 1, "<img": 0, "<iframe": 0, "<link": 0} {
		if n := strings.Count(text, tag); n != want {
			t.Errorf("%d of %s, want %d", n, tag, want)
		}
	}
	for _, source := range []string{hashed(manualStyle), hashed(manualScript)} {
		if !strings.Contains(text, "'"+source+"'") {
			t.Errorf("the policy lacks %s", source)
		}
	}
	if !strings.Contains(text, "<script>"+manualScript+"</script>") || !strings.Contains(text, "<style>"+manualStyle+"</style>") {
		t.Error("the script or the style is another than its hash is of")
	}
}
