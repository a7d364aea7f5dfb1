package help

import (
	"regexp"
	"strings"
	"sync"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
)

// Check is a check of a shipped audit, as the audit's docstring describes it.
type Check struct{ Name, Audit, Text string }

// checkLine is the beginning of a line of a docstring that describes a check.
var checkLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z][a-z0-9]*(?:\.[a-z0-9_]+)+ +|[a-z]+  +)(\S.*)$`)
})

// Checks returns the checks of the shipped audits. Checks on lines that follow each other
// may share a sentence.
func Checks() (list []Check) {
	for _, d := range script.Audits.Shipped() {
		src, err := script.Audits.Source(d.Name)
		if err != nil {
			continue // shipped scripts can be read
		}
		file, err := lang.Dialect.Parse(d.Name, src, 0)
		if err != nil {
			continue
		}
		first := len(list) // of those that share the text
		text := ""
		end := func() {
			for i := first; i < len(list); i++ {
				list[i].Text = text
			}
			first, text = len(list), ""
		}
		for line := range strings.Lines(script.Docstring(file)) {
			line = strings.TrimRight(line, "\n")
			switch m := checkLine().FindStringSubmatch(line); {
			case m != nil:
				if strings.HasSuffix(text, ".") {
					end()
				}
				list = append(list, Check{Name: strings.TrimSpace(m[1]), Audit: d.Name})
				text = strings.TrimSpace(text + " " + m[2])
			case first < len(list) && strings.HasPrefix(line, "  "):
				text += " " + strings.TrimSpace(line)
			default:
				end()
			}
		}
		end()
	}
	return list
}
