//go:build linux

package shell

import (
	"fmt"
	"html"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fabsh/shell/tour"
)

// TestSessionPicture compares tour/session.svg, the picture of the prompt in README.md, with what
// the prompt prints for the answers of the tour; -update writes it.
func TestSessionPicture(t *testing.T) {
	const name = "tour/session.svg"
	steps, err := os.ReadFile("tour/steps.txt")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, title := range []string{"Discover the fabric", "A fault found by an audit", "A policy verified", "A plan, proven and applied"} {
		m := regexp.MustCompile(`(?m)^= ` + title + `$(?s:.*?)^answer: (.*)$`).FindStringSubmatch(string(steps))
		if m == nil {
			t.Fatalf("the tour has no answer of the step %q", title)
		}
		if lines = append(lines, m[1]); len(lines) == 1 {
			lines = append(lines, "f")
		}
	}
	screen := startTerminalOf(t, terminalOf{home: t.TempDir(), columns: 92, pager: "cat"}, "-F", tour.Fabric, "--virtual-time")
	vt := &vt{columns: 92}
	for _, line := range lines {
		vt.write(screen.expect("rw> "))
		screen.send(line + "\r")
		vt.write(screen.expect(line + "\r\n"))
	}
	vt.write(strings.TrimSuffix(screen.expect("rw> "), "rw> "))
	screen.send(ctrlD)
	screen.exit(0)
	var rows []string
	for _, row := range vt.rows {
		rows = append(rows, strings.TrimRight(string(row), " "))
	}
	want := terminalPicture(rows)
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s is stale, %v; run make generate", name, err)
	}
}

// terminalPicture draws a session. Its statements appear one by one; a viewer without animations
// shows all of them.
func terminalPicture(rows []string) string {
	const (
		lineHeight, left, top = 17, 14, 24
		charWidth             = 7.3 // of a font of 12 px, at most
	)
	typed := regexp.MustCompile(`^(sim( \S+)* r[ow]> )(.+)$`)
	rows = rows[slices.IndexFunc(rows, typed.MatchString):] // behind the greeting
	var body strings.Builder
	columns, height, statements := 0, 0, 0
	for i, row := range rows {
		y := top + lineHeight*i
		class := ""
		switch word, _, _ := strings.Cut(row, " "); strings.TrimSuffix(word, ":") {
		case "critical", "error":
			class = ` class="error"`
		}
		if m := typed.FindStringSubmatch(row); m != nil {
			if statements > 0 {
				body.WriteString("</g>\n")
			}
			fmt.Fprintf(&body, "<g class=\"statement\" style=\"animation-delay:%.1fs\">\n", 1.5*float64(statements))
			statements++
			fmt.Fprintf(&body, "<text x=\"%d\" y=\"%d\"><tspan class=\"prompt\">%s</tspan><tspan class=\"typed\">%s</tspan></text>\n", left, y, html.EscapeString(m[1]), html.EscapeString(m[3]))
		} else if strings.Trim(row, " ") != "" && !regexp.MustCompile(`^sim( \S+)* $`).MatchString(row+" ") {
			fmt.Fprintf(&body, "<text x=\"%d\" y=\"%d\"%s>%s</text>\n", left, y, class, html.EscapeString(row))
		} else {
			continue
		}
		columns, height = max(columns, len([]rune(row))), y+lineHeight
	}
	width := 2*left + int(charWidth*float64(columns))
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="12" fill="#d7dde3" xml:space="preserve">
<title>A session: a sweep, an audit that finds a link with errors, and a policy that is verified and applied</title>
<style>
text{white-space:pre}.prompt{fill:#8b98a5}.typed{fill:#fff;font-weight:bold}.error{fill:#ffa07a}
.statement{animation:appear 1ms backwards}@keyframes appear{from{opacity:0}}
@media (prefers-reduced-motion:reduce){.statement{animation:none}}
</style>
<rect width="100%%" height="100%%" rx="6" fill="#14181c"/>
%s</g>
</svg>
`, width, height, body.String())
}
