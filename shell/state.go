package shell

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"fabsh/fabric/audit"
	"fabsh/fabric/format"
)

// systemState is where root keeps what one run needs of the run before (Filesystem
// Hierarchy Standard, /var/lib).
const systemState = "/var/lib/fabsh"

// stateDir is the folder for what one run needs of the run before: --state, else
// that of the system for root, and of the user for others. Empty: there is none.
func (s *settings) stateDir() string {
	switch {
	case s.state != "":
		return s.state
	case os.Geteuid() == 0:
		return systemState
	}
	return stateFile("")
}

// jobOf names what a script keeps: it is the script's name, "shell" of what is
// none.
func jobOf(script string) string {
	name := strings.TrimSuffix(filepath.Base(script), ".star")
	if script == "" || name == "" {
		return "shell"
	}
	return audit.JobOf(name)
}

// openRegular opens a file that the command line does not name, which must be a
// regular one: it waits for nobody.
func openRegular(path string) (*os.File, error) {
	f, err := format.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("is a folder")}
	}
	return f, nil
}

// maxOwn is how long the program's own files may be, in bytes: those of settings,
// of statements to begin with, and of the history.
const maxOwn = 16 << 20

// readOwn reads a file of the program's own as a whole.
func readOwn(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := format.Bounded(f, path, maxOwn)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
