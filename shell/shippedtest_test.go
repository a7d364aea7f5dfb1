package shell

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestShippedScripts: the shipped scripts test themselves.
func TestShippedScripts(t *testing.T) {
	t.Parallel()
	want := "23 tests in 4 scripts: 23 passed\n[exit status 0]\n"
	if diff := cmp.Diff(want, outcome(fabsh(t, nil, "test", "../scripts"))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
