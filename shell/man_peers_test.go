package shell

import (
	"path/filepath"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestManLint: mandoc has no warning about any man page.
func TestManLint(t *testing.T) {
	pages, err := filepath.Glob(manDir + "/*")
	if err != nil || len(pages) == 0 {
		t.Fatal("no man pages", err)
	}
	c := ibsimtest.Command(t, "mandoc", append([]string{"-T", "lint", "-W", "warning"}, pages...)...)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
