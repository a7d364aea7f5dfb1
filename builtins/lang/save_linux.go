package lang

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames a file of dir. It does not replace another file, unless the file system
// cannot guarantee that (renameat2(2): EINVAL without RENAME_NOREPLACE).
func renameNew(dir *os.Root, from, to string) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	at := int(d.Fd())
	switch err := unix.Renameat2(at, from, at, to, unix.RENAME_NOREPLACE); {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return dir.Rename(from, to)
	default:
		return &fs.PathError{Op: "rename", Path: to, Err: err}
	}
}
