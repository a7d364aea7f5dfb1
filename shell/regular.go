package shell

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"fabsh/fabric/format"
)

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
