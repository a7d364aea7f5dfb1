package nowait

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// pair is two sockets of datagrams that are connected to each other.
func pair(t *testing.T) (a, b *Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if ends[i], err = New(c.(*net.UnixConn)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

// Each message is read once, and before it waits, Read says so.
func TestRead(t *testing.T) {
	a, b := pair(t)
	waits := 0
	later, written := make(chan byte), make(chan error, 1)
	defer close(later)
	go func() {
		for m := range later {
			_, err := a.Write([]byte{m})
			written <- err
		}
	}()
	b.BeforeWait(func() bool {
		if waits++; waits%2 == 0 {
			later <- byte(waits)
			return false
		}
		_, err := a.Write([]byte{byte(waits)}) // what comes meanwhile is noticed
		written <- err
		return waits%3 == 0
	})
	buf := make([]byte, 10)
	for i := range 100 {
		if n, err := b.Read(buf); n != 1 || err != nil || buf[0] != byte(i+1) || waits != i+1 {
			t.Fatalf("%d: read %d bytes, %d: %v; %d waits", i, n, buf[0], err, waits)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	}
}

// What comes while it yields is read, and f is asked again before it waits.
func TestYield(t *testing.T) {
	a, b := pair(t)
	b.YieldBeforeWait()
	time.AfterFunc(time.Minute, b.Interrupt) // else it would wait for ever
	written := make(chan error, 1)
	for want := 1; want <= 2; want++ {
		asked := 0
		b.BeforeWait(func() bool {
			if asked++; asked == want {
				go func() {
					_, err := a.Write([]byte{7})
					written <- err
				}()
			}
			return false
		})
		buf := make([]byte, 10)
		if n, err := b.Read(buf); n != 1 || err != nil || buf[0] != 7 || asked < want {
			t.Fatalf("%d: read %d bytes: %v; asked %d times", want, n, err, asked)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	}
}

// TryWrite fails where the peer does not read; Write waits.
func TestWrite(t *testing.T) {
	a, b := pair(t)
	sent := 0
	message := make([]byte, 256)
	for ; ; sent++ {
		if _, err := a.TryWrite(message); err == syscall.EAGAIN {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if sent == 0 {
		t.Fatal("nothing could be written")
	}
	done := make(chan error)
	go func() {
		_, err := a.Write(message)
		done <- err
	}()
	for range sent + 1 {
		if n, err := b.Read(message); n != 256 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestClosed(t *testing.T) {
	a, b := pair(t)
	closed := make(chan error)
	a.BeforeWait(func() bool {
		go func() { closed <- a.Close() }()
		return false
	})
	if _, err := a.Read(make([]byte, 10)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	// Read may return before the descriptor itself is closed; Close does not.
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := a.TryWrite(nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write: %v", err)
	}
	if err := a.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("once more: %v", err)
	}
	if _, err := b.Write([]byte{1}); !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("to a closed socket: %v", err)
	}
}

// It works with files that the poller takes, as devices are.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.BeforeWait(func() bool { c.TryWrite([]byte("hello")); return true })
	buf := make([]byte, 10)
	if n, err := c.Read(buf); string(buf[:n]) != "hello" || err != nil {
		t.Errorf("read %q: %v", buf[:n], err)
	}
}

// TestAllocations: a message costs none.
func TestAllocations(t *testing.T) {
	a, b := pair(t)
	b.BeforeWait(func() bool { return false })
	m := make([]byte, 256)
	if n := testing.AllocsPerRun(100, func() {
		a.TryWrite(m)
		b.Read(m)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Who waits to read or to write is woken by Interrupt, and who comes later does not
// wait.
func TestInterrupt(t *testing.T) {
	a, b := pair(t)
	full := make([]byte, 256)
	for {
		if _, err := a.TryWrite(full); err != nil {
			break
		}
	}
	ends := make(chan error, 2)
	go func() { _, err := a.Write(full); ends <- err }()
	a.BeforeWait(func() bool { time.AfterFunc(time.Millisecond, a.Interrupt); return false })
	go func() { _, err := a.Read(make([]byte, 256)); ends <- err }()
	for range 2 {
		if err := <-ends; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	}
	if _, err := a.Read(make([]byte, 256)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("afterwards: %v", err)
	}
	if n, err := b.Read(make([]byte, 256)); n != 256 || err != nil {
		t.Errorf("the other end reads %d bytes: %v", n, err)
	}
}

// Each waits for the other, in turns, and not one message is lost or read twice.
func TestTurns(t *testing.T) {
	a, b := pair(t)
	go func() {
		m := make([]byte, 8)
		for {
			n, err := b.Read(m)
			if err != nil {
				return
			}
			b.Write(m[:n])
		}
	}()
	m := make([]byte, 8)
	for i := range uint64(20000) {
		binary.NativeEndian.PutUint64(m, i)
		if _, err := a.Write(m); err != nil {
			t.Fatal(err)
		}
		if n, err := a.Read(m); n != 8 || err != nil || binary.NativeEndian.Uint64(m) != i {
			t.Fatalf("%d: %d bytes, %d: %v", i, n, binary.NativeEndian.Uint64(m), err)
		}
	}
}
