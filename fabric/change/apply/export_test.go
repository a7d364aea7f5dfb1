package apply

import (
	"os"
	"syscall"
)

// What tests call by itself.
var (
	Find       = journalsOf
	FormatLine = formatLine
	Unended    = openChange
	ReadStaged = readStaged
)

// FillAfter has the disk of j be full after so many more records.
func (j *Journal) FillAfter(records int) { j.f = &fullDisk{journalFile: j.f, left: records} }

type fullDisk struct {
	journalFile
	left int
}

func (d *fullDisk) WriteAt(b []byte, at int64) (int, error) {
	if d.left--; d.left < 0 {
		n, _ := d.journalFile.WriteAt(b[:len(b)/2], at)
		return n, &os.PathError{Op: "write", Path: "journal", Err: syscall.ENOSPC}
	}
	return d.journalFile.WriteAt(b, at)
}
