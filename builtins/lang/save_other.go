//go:build !linux

package lang

import (
	"os"
)

// renameNew renames a file of dir. It replaces a file that another program has created since
// the caller looked.
func renameNew(dir *os.Root, from, to string) error { return dir.Rename(from, to) }
