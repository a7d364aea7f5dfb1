package sim

import (
	"fmt"
	"strings"
)

// unknown says what would have been known.
func unknown(what, name string, valid []string) error {
	hint := ""
	if near := nearest(name, valid); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	return fmt.Errorf("unknown %s %q%s; there are %s", what, name, hint, strings.Join(valid, ", "))
}

// nearest is the valid name that differs least from name; "" when none is near.
func nearest(name string, valid []string) string {
	best, distance := "", len(name)/2+1
	for _, v := range valid {
		if d := edits(name, v); d < distance {
			best, distance = v, d
		}
	}
	return best
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, above, row[j])
			}
			row[j+1], diagonal = cost, above
		}
	}
	return row[len(b)]
}
