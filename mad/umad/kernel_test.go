//go:build linux && (amd64 || arm64)

package umad

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// These tests run on the simulated subnet of fabsh sim --run; and with the tag kerneltest
// in a virtual machine, on the kernel's own ib_umad, over Soft-RoCE: make kernel-test.

// toSelf is the address of tr's own port. The first GID: answers over the
// others, which stand for IPv4 addresses, are not matched by the kernel.
func toSelf(t *testing.T, tr *Transport) engine.Address {
	t.Helper()
	p, err := tr.Port()
	if err != nil {
		t.Fatal(err)
	}
	return engine.Address{LID: p.LID, QP: 1, HasGRH: true, GID: mad.MakeGID(p.GIDPrefix, p.PortGUID), HopLimit: 64}
}

// vendor is a class that the kernel has nothing to do with.
const vendor mad.Class = 0x09

// vendorGets are n requests, numbered in their data.
func vendorGets(to engine.Address, n int) (calls []*engine.Call) {
	for i := range n {
		c := &engine.Call{To: to}
		h := mad.Header{Class: vendor, ClassVersion: 1, Method: mad.MethodGet, Attribute: 0x10}
		h.Put(c.MAD[:])
		binary.BigEndian.PutUint32(c.MAD[64:], uint32(i))
		calls = append(calls, c)
	}
	return calls
}

// double answers with twice the number.
func double(m []byte) []byte {
	binary.BigEndian.PutUint32(m[64:], 2*binary.BigEndian.Uint32(m[64:]))
	return m
}

func newEngine(t *testing.T, tr engine.Transport, o engine.Options) *engine.Engine {
	o.Write = true // of vendor's requests it is not known what they do
	e := engine.New(tr, o)
	t.Cleanup(func() { e.Close() })
	return e
}

func TestKernelRoundTrips(t *testing.T) {
	tr := openHost(t)
	serve(t, tr, vendor, double)
	for _, window := range []int{1, 32, 2000} {
		again, err := Open(Options{Device: hostDevice})
		if err != nil {
			t.Fatal(err)
		}
		e := newEngine(t, again, engine.Options{Window: window, Timeout: 5 * time.Second})
		calls := vendorGets(toSelf(t, tr), max(200, 2*window))
		began := time.Now()
		if err := e.Do(t.Context(), calls...); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		for i, c := range calls {
			if got := binary.BigEndian.Uint32(c.MAD[64:]); c.Err != nil || got != uint32(2*i) {
				t.Fatalf("call %d: got %d, error %v", i, got, c.Err)
			}
		}
		t.Logf("window %d: %d in %v, %.0f/s", window, len(calls), took.Round(time.Millisecond), float64(len(calls))/took.Seconds())
	}
}

// The kernel gives back a request that nobody answers: its header, and nothing
// for those that expect no answer.
func TestKernelTimeout(t *testing.T) {
	tr := openHost(t)
	serve(t, tr, vendor, func([]byte) []byte { return nil })
	to := toSelf(t, tr)
	for i, timeout := range []time.Duration{0, time.Second, 100 * time.Millisecond} {
		c := vendorGets(to, 1)[0]
		binary.BigEndian.PutUint64(c.MAD[8:], 0xffffffff00000000|uint64(i))
		if err := tr.Send(&engine.Datagram{Address: to, Timeout: timeout, MAD: c.MAD[:]}); err != nil {
			t.Fatal(err)
		}
	}
	var d engine.Datagram
	for _, want := range []uint32{2, 1} {
		if err := tr.Recv(&d); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%d, %d bytes, undelivered %v, %v", binary.BigEndian.Uint32(d.MAD[12:]), len(d.MAD), d.Undelivered, d.Address)
		if want := fmt.Sprintf("%d, 24 bytes, undelivered true, %v", want, to); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// The engine's timers rule, and its retries are its own.
func TestKernelRetries(t *testing.T) {
	tr := openHost(t)
	var seen sync.Map
	serve(t, tr, vendor, func(m []byte) []byte {
		n := binary.BigEndian.Uint32(m[64:])
		if _, again := seen.LoadOrStore(n, true); n%2 == 0 || again && n%3 != 0 {
			return double(m)
		}
		return nil
	})
	e := newEngine(t, tr, engine.Options{Timeout: 500 * time.Millisecond, Retries: 2})
	calls := vendorGets(toSelf(t, tr), 12)
	if err := e.Do(t.Context(), calls...); err != nil {
		t.Fatal(err)
	}
	for i, c := range calls {
		switch wantTimeout := i%2 == 1 && i%3 == 0; {
		case wantTimeout && (!errors.Is(c.Err, engine.ErrTimeout) || c.Attempts != 3 || c.Elapsed < 1500*time.Millisecond):
			t.Errorf("call %d: %d attempts in %v, %v", i, c.Attempts, c.Elapsed, c.Err)
		case !wantTimeout && c.Err != nil:
			t.Errorf("call %d: %v", i, c.Err)
		}
	}
}

// A storm of requests that nobody asked for does not starve answers.
func TestKernelUnsolicited(t *testing.T) {
	tr := openHost(t)
	serve(t, tr, vendor, double)
	stop, err := tr.Accept(vendor, mad.MethodReport)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	e := newEngine(t, tr, engine.Options{Timeout: 10 * time.Second})
	to := toSelf(t, tr)
	another, err := Open(Options{Device: hostDevice})
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close()
	report := vendorGets(to, 1)[0]
	report.MAD[3] = byte(mad.MethodReport)
	var flood sync.WaitGroup
	over := make(chan struct{})
	flood.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
				another.Send(&engine.Datagram{Address: to, MAD: report.MAD[:]})
			}
			if i%64 == 63 { // the simulated device is as fast as this loop: no other goroutine would run
				time.Sleep(time.Millisecond)
			}
		}
	})
	for e.Stats().Unsolicited == 0 {
		time.Sleep(time.Millisecond) // polls: nothing signals the count
	}
	const least = 500 // Reports beside the answers
	answers := 0
	for began := time.Now(); answers == 0 || e.Stats().Unsolicited < least; {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d Reports in a minute", e.Stats().Unsolicited)
		}
		calls := vendorGets(to, 500)
		if err := e.Do(t.Context(), calls...); err != nil {
			t.Fatal(err)
		}
		for i, c := range calls {
			if got := binary.BigEndian.Uint32(c.MAD[64:]); c.Err != nil || got != uint32(2*i) {
				t.Fatalf("call %d: got %d, error %v", i, got, c.Err)
			}
		}
		answers += len(calls)
	}
	close(over)
	flood.Wait()
	t.Logf("%d answers, beside %d Reports", answers, e.Stats().Unsolicited)
}

// Sessions that end in all ways leave no descriptor open.
func TestKernelDescriptors(t *testing.T) {
	tr := openHost(t)
	serve(t, tr, vendor, double)
	to := toSelf(t, tr)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it closes what nobody knows any more
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := open()
	for i := range 50 {
		again, err := Open(Options{Device: hostDevice})
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(again, engine.Options{Write: true, Timeout: 5 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		if i%2 == 1 {
			time.AfterFunc(time.Millisecond, cancel)
		}
		e.Do(ctx, vendorGets(to, 10)...)
		cancel()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if _, err := Open(Options{Device: "nosuch"}); err == nil {
			t.Error("there is a device nosuch")
		}
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors are open, before %d", after, before)
	}
}

// serve has handle answer requests of a class on the device that tr is on. What
// it returns is the answer, longer than
// mad.Size if the kernel is to cut it in segments, nil if there is none.
func serve(t *testing.T, tr *Transport, class mad.Class, handle func(m []byte) []byte) {
	t.Helper()
	f, err := openFile(tr.gsi.path())
	if err != nil {
		t.Fatal(err)
	}
	r := agentRequest(class, false)
	for _, method := range []mad.Method{mad.MethodGet, mad.MethodGetTable, mad.MethodGetMulti} {
		acceptMethod(&r, method)
	}
	if err := f.register(&r); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		b := make([]byte, headerSize+1<<20)
		for {
			n, err := f.Read(b)
			if err != nil {
				return
			}
			m := handle(b[headerSize:n])
			if m == nil {
				continue
			}
			m[3] |= byte(mad.Response)
			clear(b[offTimeout:offQP])
			// Segments without an ACK are sent again after 2 s. (A timeout
			// of less would make that never: mad_rmpp.c, send_next_seg,
			// leaves an absolute time where the relative one should be.)
			binary.NativeEndian.PutUint32(b[offRetries:], 20)
			if _, err := f.Write(append(b[:headerSize:headerSize], m...)); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		f.Close()
		done.Wait()
	})
}

// A class and method that another program takes.
func TestKernelTaken(t *testing.T) {
	first := openHost(t)
	second, err := Open(Options{Device: hostDevice})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	stop, err := first.Accept(vendor, mad.MethodReport)
	if err != nil {
		t.Fatal(err)
	}
	const want = hostDevice + "/1: another program receives each Report of class Vendor(0x09) at this port (a subnet manager the traps, an event daemon the Reports), and the kernel delivers them to only one; stop it (fuser -v /dev/infiniband/umad0 shows who has the device open), or use another port (-C, -P) (ioctl: invalid argument)"
	if _, err := second.Accept(vendor, mad.MethodReport); fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	stop()
	if _, err := second.Accept(vendor, mad.MethodReport); err != nil {
		t.Errorf("when it is free again: %v", err)
	}
}

func TestKernelClose(t *testing.T) {
	tr := openHost(t)
	done := make(chan error)
	go func() { done <- tr.Recv(new(engine.Datagram)) }()
	time.Sleep(50 * time.Millisecond) // by then Recv waits in the kernel's poll, which nothing shows
	tr.Close()
	if err := <-done; err != engine.ErrClosed {
		t.Errorf("got %v, want %v", err, engine.ErrClosed)
	}
}
