package records

import (
	"regexp"
	"strings"
	"sync"

	"fabsh/mad"
)

// MaskKeys returns code without the values of key fields in keyword arguments and dicts:
// m_key=...
func MaskKeys(code string) string { return keyValues().ReplaceAllString(code, "$1...") }

var keyValues = sync.OnceValue(func() *regexp.Regexp {
	names := map[string]bool{}
	var words []string
	for _, a := range mad.Attributes() {
		for i := range a.Flat() {
			if f := &a.Flat()[i]; f.Key && !names[f.Script] {
				names[f.Script] = true
				words = append(words, f.Script)
			}
		}
	}
	return regexp.MustCompile(`(\b(?:` + strings.Join(words, "|") + `)["']?\s*[=:]\s*)[^\s=,)}][^,)}]*`)
})
