// Package plural writes numbers with their nouns, for messages. It knows nothing of
// InfiniBand.
package plural

import "strconv"

// Count returns n and its noun: "1 node", "2 nodes". The nouns may have verbs:
// "1 entry differs", "2 entries differ".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
