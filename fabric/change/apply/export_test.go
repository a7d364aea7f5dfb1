package apply

import (
	"os"
	"syscall"
)

// What tests call by itself.
var (
	Find       = journalsOf
	FormatLine = formatLine
	Unended    = unended
	ReadStaged = readStaged
)

// FillAfter has the disk of j be full after so many more records.
func (j *Journal) FillAfter(records int) { j.f = &fullDisk{file: j.f, left: records} }

type fullDisk struct {
	file
	left int
}

func (d *fullDisk) WriteAt(b []byte, at int64) (int, error) {
	if d.left--; d.left < 0 {
		n, _ := d.file.WriteAt(b[:len(b)/2], at)
		return n, &os.PathError{Op: "write", Path: "journal", Err: syscall.ENOSPC}
	}
	return d.file.WriteAt(b, at)
}
