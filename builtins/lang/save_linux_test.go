package lang

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// TestRenameNew: an existing file is not replaced.
func TestRenameNew(t *testing.T) {
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, name := range []string{"temp", "old"} {
		if err := dir.WriteFile(name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := renameNew(dir, "temp", "old"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over an existing file: %v", err)
	}
	if data, err := dir.ReadFile("old"); string(data) != "old" {
		t.Errorf("the existing file: %q, %v", data, err)
	}
	if err := renameNew(dir, "temp", "new"); err != nil {
		t.Error(err)
	}
	if data, err := dir.ReadFile("new"); string(data) != "temp" {
		t.Errorf("the new file: %q, %v", data, err)
	}
}
