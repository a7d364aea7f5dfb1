package plural_test

import (
	"testing"

	"fabsh/fabric/plural"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{-1: "-1 nodes", 0: "0 nodes", 1: "1 node", 2: "2 nodes"} {
		if got := plural.Count(n, "node", "nodes"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
