package command

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"fabsh/builtins/lang"
	"fabsh/fabric/format"
	"fabsh/fabric/jobs"
)

// jobsFile is the state of a file of jobs that is read again when it has changed.
type jobsFile struct{ last os.FileInfo } // nil: not read, or it was missing

// read returns the jobs of a file, and whether it has changed since it was read last.
func (x *jobsFile) read(path string) (list []jobs.Job, changed bool, err error) {
	st, err := os.Stat(path)
	if err == nil && st.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) != 0 { // it cannot be read again
		err = errors.New(path + ": not a regular file")
	}
	if err != nil {
		x.last = nil
		return nil, true, format.FileError(err)
	}
	if x.last != nil && os.SameFile(st, x.last) && st.ModTime().Equal(x.last.ModTime()) && st.Size() == x.last.Size() {
		return nil, false, nil
	}
	x.last = st
	f, err := os.Open(path)
	if err != nil {
		return nil, true, format.FileError(err)
	}
	defer f.Close()
	list, err = jobs.Read(f, path)
	return list, true, err
}

// maxJobsError limits the text of an error of a file, in bytes.
const maxJobsError = 300

// readJobs reads the file of jobs if it has changed. An error is a note on all pages, until the file is read.
func (x *serving) readJobs() {
	path := x.options.jobs
	if path == "" {
		return
	}
	list, changed, err := x.jobs.read(path)
	switch {
	case err != nil:
		text := lang.OneLine(err.Error())
		if len(text) > maxJobsError {
			text = strings.ToValidUTF8(text[:maxJobsError], "") + "..." // a character may be cut
		}
		x.site.Note("jobs", "Jobs were not read: "+text+". Those that are shown were read before.")
	case changed:
		x.site.Note("jobs", "")
		x.site.SetJobs(list, x.jobs.last.ModTime().Round(0).In(time.Local))
	}
}
