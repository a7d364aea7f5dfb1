package format

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// WriteFile makes a file of what write writes: a temporary one in the same
// folder, which then takes the place of the one at path, so that nobody ever
// finds half a file there. After a failure all is as before.
func WriteFile(path string, write func(io.Writer) error) error {
	return WriteChecked(path, write, nil)
}

// WriteChecked is WriteFile; before the temporary file takes its place, check,
// unless it is nil, is given its name. The place must be a file's then.
func WriteChecked(path string, write func(io.Writer) error, check func(name string) error) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link stays one
	}
	mode := os.FileMode(0o644)
	if st, err := os.Stat(path); err == nil {
		if !st.Mode().IsRegular() && check != nil {
			return fmt.Errorf("%s is no regular file, so it cannot be replaced", path)
		}
		if !st.Mode().IsRegular() { // a pipe or terminal cannot be replaced
			return writeThrough(path, write)
		}
		mode = st.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".")
	if err != nil {
		return fmt.Errorf("%s: no temporary file beside it: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	out := bufio.NewWriterSize(f, 1<<16)
	if err := write(out); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	// Or a crash of the machine could leave the new name with nothing in it.
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if check != nil {
		if err := check(f.Name()); err != nil {
			return err
		}
	}
	return os.Rename(f.Name(), path)
}

// writeThrough writes to what is there.
func writeThrough(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = write(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
