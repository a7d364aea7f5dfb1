package hermetic

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestControls: tests read only variables that Tests leaves to them. One that it removes would be read as
// never set: a test that starts itself by such a variable starts itself without end.
func TestControls(t *testing.T) {
	read := regexp.MustCompile(`Getenv\("([A-Z_]+)"\)`)
	found := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && len(name) > 2 && name[0] == '.' {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range read.FindAllStringSubmatch(string(text), -1) {
			found++
			if isUsers(m[1]) && m[1] != RootVariable && m[1] != "IBSIM_SOCKNAME" {
				t.Errorf("%s reads %s, which is removed: name it in controls, or otherwise", path, m[1])
			}
		}
		return err
	})
	if err != nil || found < 10 {
		t.Errorf("%d variables: %v", found, err)
	}
}
