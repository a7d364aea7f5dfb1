package umad

import (
	"encoding/binary"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"testing"
)

// fakeFile is a kernel that does as the test says.
type fakeFile struct {
	answer func(written []byte) [][]byte // what can be read after a write
	refuse error                         // to write and register
	// refuseAgents, to register alone.
	refuseAgents error

	mu       sync.Mutex
	requests [][requestSize]byte
	ended    []uint32 // agents
	written  [][]byte

	queue   chan []byte
	current []byte // read, but it did not fit
	failed  chan error
}

func newFakeFile() *fakeFile {
	return &fakeFile{queue: make(chan []byte, 100), failed: make(chan error, 1)}
}

func (f *fakeFile) beforeWait(func() (again bool)) (ok bool) { return false }

func (f *fakeFile) register(r *[requestSize]byte) error {
	err := f.refuse
	if f.refuseAgents != nil {
		err = f.refuseAgents
	}
	if err != nil {
		return os.NewSyscallError("ioctl", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, *r)
	binary.NativeEndian.PutUint32(r[:], uint32(len(f.requests)-1))
	return nil
}

func (f *fakeFile) unregister(agent uint32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, agent)
	return nil
}

func (f *fakeFile) Write(b []byte) (int, error) {
	if f.refuse != nil {
		return 0, &fs.PathError{Op: "write", Path: "/dev/infiniband/umad0", Err: f.refuse}
	}
	f.mu.Lock()
	f.written = append(f.written, append([]byte(nil), b...))
	f.mu.Unlock()
	if f.answer != nil {
		for _, a := range f.answer(b) {
			f.queue <- a
		}
	}
	return len(b), nil
}

// Read is like the kernel's: what does not fit stays, and its start is there.
func (f *fakeFile) Read(b []byte) (int, error) {
	if f.current == nil {
		select {
		case f.current = <-f.queue:
		case err := <-f.failed:
			f.failed <- err
			return 0, &fs.PathError{Op: "read", Path: "/dev/infiniband/umad0", Err: err}
		}
	}
	n := copy(b, f.current)
	if n < len(f.current) {
		return 0, &fs.PathError{Op: "read", Path: "/dev/infiniband/umad0", Err: syscall.ENOSPC}
	}
	f.current = nil
	return n, nil
}

func (f *fakeFile) Close() error {
	f.fail(os.ErrClosed)
	return nil
}

func (f *fakeFile) fail(err error) {
	select {
	case f.failed <- err:
	default:
	}
}

// openFake opens the ports that o chooses of tree; files are by umad's name.
func openFake(t testing.TB, tree string, o Options) (*Transport, map[string]*fakeFile) {
	t.Helper()
	sys := fakeSys(t, tree)
	gsi, smi, err := sys.choose(o)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*fakeFile{}
	tr, err := open(sys, gsi, smi, func(path string) (file, error) {
		f := newFakeFile()
		files[path[len(deviceFolder):]] = f
		return f, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr, files
}

// choose finds the port for o in the files of s.
func (s sysfs) choose(o Options) (gsi, smi port, err error) {
	all, err := s.ports()
	if err != nil {
		return gsi, smi, err
	}
	return choose(all, o)
}
