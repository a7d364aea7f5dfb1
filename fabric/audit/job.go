package audit

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// JobOf makes the name of a job of texts. Characters that do not belong in a file name become _,
// and what would be too long ends in a digest of the whole.
func JobOf(texts ...string) string {
	whole := strings.Join(texts, "+")
	name := strings.Map(func(r rune) rune {
		if CheckJob("x"+string(r)) != nil {
			return '_'
		}
		return r
	}, whole)
	if strings.HasPrefix(name, ".") {
		name = "_" + name[1:]
	}
	if len(name) > maxJob {
		h := fnv.New64a()
		h.Write([]byte(whole))
		name = fmt.Sprintf("%s-%016x", name[:maxJob-17], h.Sum64())
	}
	return name
}

// maxJob is how long the name of a job may be, in bytes.
const maxJob = 128

// CheckJob returns nil if text is valid as the name of a job and of a file.
func CheckJob(text string) error {
	if text == "" || len(text) > maxJob || text[0] == '.' || strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+,", r))
	}) {
		return fmt.Errorf("invalid job name %q; use up to %d letters, digits, - _ + , and . (not first)", text, maxJob)
	}
	return nil
}
