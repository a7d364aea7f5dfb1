//go:build !kerneltest

package umad

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// socketFile is a device whose kernel is the other end of a socket: a real
// descriptor, which waits in the runtime's poller.
type socketFile struct {
	*os.File
	fakeFile
}

func (s *socketFile) Read(b []byte) (int, error)  { return s.File.Read(b) }
func (s *socketFile) Write(b []byte) (int, error) { return s.File.Write(b) }
func (s *socketFile) Close() error                { return s.File.Close() }

// socketPair makes a device, and its kernel.
func socketPair(t *testing.T) (*socketFile, *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &socketFile{File: os.NewFile(uintptr(fds[0]), "umad")}, os.NewFile(uintptr(fds[1]), "kernel")
}

// descriptors lists what is open.
func descriptors(t *testing.T) (list []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		target, _ := os.Readlink("/proc/self/fd/" + e.Name())
		list = append(list, target)
	}
	slices.Sort(list)
	return list
}

// TestLeaks: sessions on real descriptors, over a fabric that loses a fifth of
// all, end in each way that one can, again and again, and leave nothing open.
func TestLeaks(t *testing.T) {
	session := func(how int, r *rand.Rand) {
		sys := fakeSys(t, fakePort("mlx5_0/1", "active gsi", 0x11, 0)+fakePort("smi1/2", "active", 0x11, 1))
		gsi, smi, err := sys.choose(Options{})
		if err != nil {
			t.Fatal(err)
		}
		var kernels []*os.File
		var running sync.WaitGroup
		tr, err := open(sys, gsi, smi, func(path string) (file, error) {
			if how == 3 && len(kernels) == 1 {
				return nil, syscall.EACCES // of the second half
			}
			f, kernel := socketPair(t)
			kernels = append(kernels, kernel)
			chance := rand.New(rand.NewPCG(r.Uint64(), 0))
			running.Go(func() { serveSocket(kernel, chance) })
			return f, nil
		})
		defer running.Wait()
		defer func() {
			for _, k := range kernels {
				k.Close()
			}
		}()
		if how == 3 {
			if err == nil {
				t.Error("opened without permission")
			}
			return
		}
		e := engine.New(tr, engine.Options{Timeout: 5 * time.Millisecond})
		defer e.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wait := time.Duration(r.Int64N(int64(10 * time.Millisecond)))
		switch how {
		case 1: // interrupted
			time.AfterFunc(wait, cancel)
		case 2: // the device goes
			kernel := kernels[r.IntN(2)]
			time.AfterFunc(wait, func() { kernel.Close() })
		}
		list := calls(50, mad.ClassSubn, mad.ClassPerf)
		e.Do(ctx, list...)
		for _, c := range list {
			if c.Err != nil && how == 0 && !errors.Is(c.Err, engine.ErrTimeout) {
				t.Error(c.Err)
			}
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it closes what nobody knows any more
	r := rand.New(rand.NewPCG(1, 0))
	for how := range 4 { // what the first ones make stays: the runtime's poller
		session(how, r)
	}
	before, goroutines := descriptors(t), runtime.NumGoroutine()
	for i := range 200 {
		session(i%4, r)
	}
	if after := descriptors(t); len(after) > len(before) {
		t.Errorf("open are %d descriptors, before %d: %q", len(after), len(before), after)
	}
	if n := runtime.NumGoroutine(); n > goroutines+20 { // some are on their last steps
		t.Errorf("%d goroutines, before %d", n, goroutines)
	}
}

// serveSocket answers what comes, but for what is lost.
func serveSocket(kernel *os.File, r *rand.Rand) {
	b := make([]byte, headerSize+mad.Size)
	for {
		n, err := kernel.Read(b)
		if err != nil || n == 0 {
			return
		}
		if r.Float64() < 0.36 { // 20 % each way
			continue
		}
		m := slices.Clone(b[headerSize:n])
		m[3] |= byte(mad.Response)
		if _, err := kernel.Write(entry(0, m)); err != nil {
			return
		}
	}
}
