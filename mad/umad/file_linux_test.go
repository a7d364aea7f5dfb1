package umad

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readFile returns the whole file, or its first bytes, whatever the size of its buffer.
func TestReadFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{0, 1, 79, 80, 81, 4095, 4096, 4097} {
		for _, text := range []string{strings.Repeat("a", size), strings.Repeat("a", size) + "\n", strings.Repeat("\n", size)} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, most := range []int{1, 80, maxText + 1} {
				b, err := readFile(name, most)
				if want := text[:min(most, len(text))]; err != nil || string(b) != want {
					t.Errorf("%d bytes, at most %d: %d, %v", len(text), most, len(b), err)
				}
			}
		}
	}
	if _, err := readFile(name+"x", 1); !os.IsNotExist(err) {
		t.Error(err)
	}
}
