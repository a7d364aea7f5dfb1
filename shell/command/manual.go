package command

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strings"

	"fabsh/builtins/help"
)

//go:embed manual.css
var manualStyle string

//go:embed manual.js
var manualScript string

// writeManual writes all help as one page of HTML, which can be searched, and needs neither
// a network nor scripts to be read. The same chapters give the same bytes.
func writeManual(w io.Writer, version string, chapters []help.Chapter) error {
	b := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintf(b, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>fabsh: the manual</title>
<style>%s</style>
</head>
<body>
<header>
<h1>fabsh: the manual</h1>
<p>All pages of <code>help</code>, on one page. %s.</p>
<p id="search" role="search" hidden><label for="words">Search</label> <input id="words" type="search" autocomplete="off" spellcheck="false" placeholder="words, such as smp_get or link width"> <span id="found" role="status"></span></p>
</header>
<nav aria-label="Contents">
`, hashed(manualStyle), hashed(manualScript), manualStyle, html.EscapeString(version))
	for i, c := range chapters {
		fmt.Fprintf(b, "<details><summary><a href=\"#c%d\">%s</a> (%d)</summary><p>", i+1, html.EscapeString(c.Title), len(c.Topics))
		for _, t := range c.Topics {
			fmt.Fprintf(b, "<a href=\"#%s\">%s</a> ", manualID(i, t.Name), html.EscapeString(t.Name))
		}
		b.WriteString("</p></details>\n")
	}
	b.WriteString("</nav>\n<main>\n")
	for i, c := range chapters {
		fmt.Fprintf(b, "<section id=\"c%d\">\n<h2>%s</h2>\n", i+1, html.EscapeString(c.Title))
		if c.Doc != "" {
			fmt.Fprintf(b, "<p>%s</p>\n", html.EscapeString(c.Doc))
		}
		for _, t := range c.Topics {
			at := manualID(i, t.Name)
			fmt.Fprintf(b, "<article id=\"%s\">\n<h3><a href=\"#%s\">%s</a></h3>\n<pre tabindex=\"0\">%s</pre>\n</article>\n", at, at, html.EscapeString(t.Name), html.EscapeString(strings.TrimRight(t.Text, "\n")))
		}
		b.WriteString("</section>\n")
	}
	fmt.Fprintf(b, "</main>\n<script>%s</script>\n</body>\n</html>\n", manualScript)
	return b.Flush()
}

// manualID returns the id of a topic: two chapters may have topics of the same name, and
// names differ in case.
func manualID(chapter int, name string) string {
	return fmt.Sprintf("c%d-%s", chapter+1, html.EscapeString(strings.ReplaceAll(name, " ", "-")))
}

// hashed returns the source of a Content-Security-Policy that allows only this text.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
