package fabric

import "strings"

// DidYouMean is " (did you mean x?)" with the candidate nearest to name, for
// the end of a message; "" where none is near.
func DidYouMean(name string, candidates []string) string {
	if c := Nearest(name, candidates); c != "" {
		return " (did you mean " + c + "?)"
	}
	return ""
}

// Nearest is the candidate that takes the fewest edits, fewer than half of name's
// length; case and underscores do not count. "": none is near.
func Nearest(name string, candidates []string) string {
	fold := func(s string) []rune { return []rune(strings.ToLower(strings.ReplaceAll(s, "_", ""))) }
	from := fold(name)
	best, bestEdits := "", (len(from)+1)/2
	for _, c := range candidates {
		to := fold(c)
		if max(len(to)-len(from), len(from)-len(to)) >= bestEdits {
			continue // and a name of megabytes takes no time
		}
		if n := edits(from, to); n < bestEdits {
			best, bestEdits = c, n
		}
	}
	return best
}

// edits is the Levenshtein distance of a and b, with the transposition of two
// neighbours as one edit (the optimal string alignment distance).
func edits(a, b []rune) int {
	older, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			substitute := prev[j]
			if a[i] != b[j] {
				substitute++
			}
			row[j+1] = min(substitute, prev[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
		older, prev, row = prev, row, older
	}
	return prev[len(b)]
}
