package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"fabsh/fabric/format"
)

// partSuffix ends the name of a recording that is being written. An incomplete
// recording of a killed session keeps it, so that it does not look complete.
const partSuffix = ".part"

// recordFile is a recording that is being written. Until Close it is FILE.part; an
// existing recording at FILE is unchanged until then.
type recordFile struct {
	f    *os.File
	path string
	mode fs.FileMode // of the file that is replaced; 0: no file is replaced
	size int64       // of all complete packets, in bytes
	err  error       // of a write: the recording has ended
}

// createRecording starts a recording at path. Pipes and devices are written directly.
func createRecording(path string) (io.WriteCloser, error) {
	target, err := format.Target(path)
	if err != nil {
		return nil, err
	}
	r := &recordFile{path: target}
	switch st, err := os.Stat(target); {
	case err == nil && !st.Mode().IsRegular():
		return format.Create(path)
	case err == nil:
		r.mode = st.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if r.f, err = createPart(target + partSuffix); errors.Is(err, fs.ErrNotExist) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist} // the directory is missing
	}
	return r, err
}

// createPart creates the file at path, which this process locks. A file left by a
// killed session is replaced.
func createPart(path string) (*os.File, error) {
	if old, err := format.OpenPlain(path, os.O_RDONLY); err == nil {
		err = syscall.Flock(int(old.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			old.Close()
			return nil, fmt.Errorf("%s: another session is writing this recording; choose another file", path)
		}
		os.Remove(path)
		old.Close()
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o666)
	if err == nil {
		syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // file systems without locks
	}
	return f, err
}

// Write writes one packet. After an error, the partial packet is removed, and nothing
// more is written.
func (r *recordFile) Write(b []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.f.Write(b)
	if err != nil {
		r.err = err
		r.f.Truncate(r.size)
		return 0, err
	}
	r.size += int64(n)
	return n, nil
}

// Close ends the recording, and gives it its name unless a packet is missing.
func (r *recordFile) Close() error {
	err := r.err
	if err == nil && r.mode != 0 {
		err = r.f.Chmod(r.mode)
	}
	if err == nil {
		err = r.f.Sync() // otherwise a crash of the machine could leave an empty file
	}
	if err == nil {
		err = os.Rename(r.f.Name(), r.path)
	}
	r.f.Close()
	if err != nil {
		return fmt.Errorf("--record %s: incomplete recording, kept in %s: %w", r.path, r.f.Name(), err)
	}
	return nil
}

// discard removes a recording that has not started.
func (r *recordFile) discard() {
	os.Remove(r.f.Name())
	r.f.Close()
}
