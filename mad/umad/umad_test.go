package umad

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// echo answers a request with its data and the name.
func echo(name string) func([]byte) [][]byte {
	return func(written []byte) [][]byte {
		m := slices.Clone(written[headerSize:])
		m[3] |= byte(mad.Response)
		copy(m[64:], name)
		binary.BigEndian.PutUint32(m[8:], 0x32) // the kernel's part of the transaction ID
		b := entry(0, m)
		copy(b[offQP:][:4], written[offQP:]) // the answer comes from the queue pair of the request
		return [][]byte{b}
	}
}

// planarized is an engine on both halves of a port, each of which answers with
// its name.
func planarized(t *testing.T) (*engine.Engine, map[string]*fakeFile) {
	tr, files := openFake(t, fakePort("mlx5_0/1", "active gsi", 0x11, 0)+fakePort("smi1/2", "active", 0x11, 1), Options{})
	for name, f := range files {
		f.answer = echo(name)
	}
	e := engine.New(tr, engine.Options{Write: true}) // not all requests of the tests make sense
	t.Cleanup(func() { e.Close() })
	return e, files
}

func calls(n int, classes ...mad.Class) (list []*engine.Call) {
	for range n {
		for _, c := range classes {
			d := request(c, 0)
			call := &engine.Call{To: d.Address}
			copy(call.MAD[:], d.MAD)
			list = append(list, call)
		}
	}
	return list
}

func TestPlanarized(t *testing.T) {
	e, _ := planarized(t)
	list := calls(50, mad.ClassSubn, mad.ClassSubnDirected, mad.ClassPerf)
	if err := e.Do(t.Context(), list...); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, c := range list {
		name, _, _ := strings.Cut(string(c.MAD[64:72]), "\x00")
		got[fmt.Sprintf("%v by %s, error %v", mad.Class(c.MAD[mad.ClassOffset]), name, c.Err)]++
	}
	want := map[string]int{
		"Subn by umad1, error <nil>":         50,
		"SubnDirected by umad1, error <nil>": 50,
		"Perf by umad0, error <nil>":         50,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The directed routes of a planarized port begin at its half for subnet
// management; all else is the other half's.
func TestPlanarizedPort(t *testing.T) {
	e, _ := planarized(t)
	p, err := e.Port()
	if got, want := fmt.Sprintf("%s/%d LID %d, error %v", p.Device, p.Num, p.LID, err), "mlx5_0/2 LID 31, error <nil>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A device that goes ends all that waits, and all that comes later.
func TestRemoval(t *testing.T) {
	for _, half := range []string{"umad0", "umad1"} {
		e, files := planarized(t)
		for _, f := range files {
			f.answer = nil
		}
		list := calls(10, mad.ClassSubn, mad.ClassSubnAdm)
		done := make(chan error)
		go func() { done <- e.Do(context.Background(), list...) }()
		files[half].fail(syscall.EIO)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		later := calls(1, mad.ClassPerf)
		e.Do(t.Context(), later...)
		for _, c := range append(list, later...) {
			var pe *fs.PathError
			if !errors.As(c.Err, &pe) || pe.Err != syscall.EIO || !strings.Contains(c.Err.Error(), ": the device was removed or reset") {
				t.Errorf("%s: %v", half, c.Err)
			}
		}
	}
}

func TestPortRemoved(t *testing.T) {
	tr, _ := openFake(t, fakePort("mlx5_0/1", "active", 0x11, 0), Options{})
	tr.sys = fakeSys(t, "")
	_, err := tr.Port()
	const want = "mlx5_0/1: the device was removed or reset, or its driver unloaded (open /sys/class/infiniband/mlx5_0/ports/1/lid: file does not exist); start again when it is back"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Close wakes whoever waits, with one device or two.
func TestClose(t *testing.T) {
	single := fakePort("mlx5_0/1", "active", 0x11, 0)
	pair := fakePort("mlx5_0/1", "active gsi", 0x11, 0) + fakePort("smi1/2", "active", 0x11, 1)
	for _, tree := range []string{single, pair} {
		tr, files := openFake(t, tree, Options{})
		for _, f := range files { // pumps have something in hand
			f.queue <- entry(0, numbered(256))
			f.queue <- entry(0, numbered(256))
		}
		var d engine.Datagram
		for range 2 * len(files) {
			if err := tr.Recv(&d); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error)
		go func() { done <- tr.Recv(&d) }()
		tr.Close()
		if err := <-done; err != engine.ErrClosed {
			t.Errorf("got %v, want %v", err, engine.ErrClosed)
		}
		tr.Close() // again
	}
}

func TestString(t *testing.T) {
	tr, _ := openFake(t, fakePort("mlx5_0/1", "active", 0x11, 0), Options{})
	pair, _ := openFake(t, fakePort("mlx5_0/1", "active gsi", 0x11, 0)+fakePort("smi1/2", "active", 0x11, 1), Options{})
	if got, want := fmt.Sprint(tr, pair), "mlx5_0/1 mlx5_0/1+smi1/2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func BenchmarkSend(b *testing.B) {
	tr, files := openFake(b, fakePort("mlx5_0/1", "active", 0x11, 0), Options{})
	f := silentFile{files["umad0"]}
	tr.gsi.file = f
	d := request(mad.ClassPerf, 0)
	for b.Loop() {
		if err := tr.Send(d); err != nil {
			b.Fatal(err)
		}
	}
}

// silentFile takes all and keeps nothing.
type silentFile struct{ *fakeFile }

func (silentFile) Write(b []byte) (int, error) { return len(b), nil }
