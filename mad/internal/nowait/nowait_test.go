package nowait

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// pair is two sockets of datagrams that are connected to each other, and their
// ends.
func pair(t *testing.T) (a, b *net.UnixConn, ca, cb *Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		conns[i] = c.(*net.UnixConn)
	}
	var ends [2]*Conn
	for i, c := range conns {
		if ends[i], err = New(c); err != nil {
			t.Fatal(err)
		}
	}
	return conns[0], conns[1], ends[0], ends[1]
}

// Each message is read once, and before it waits, Read says so.
func TestRead(t *testing.T) {
	_, _, a, b := pair(t)
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
	_, conn, a, b := pair(t)
	b.YieldBeforeWait()
	conn.SetReadDeadline(time.Now().Add(time.Minute)) // else it would wait for ever
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
	_, _, a, b := pair(t)
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
	conn, _, a, b := pair(t)
	closed := make(chan error)
	a.BeforeWait(func() bool {
		go func() { closed <- conn.Close() }()
		return false
	})
	if _, err := a.Read(make([]byte, 10)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	// Read may return before the descriptor itself is closed; Close does not.
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := a.TryWrite(nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write: %v", err)
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
	defer f.Close()
	c, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	c.BeforeWait(func() bool { c.TryWrite([]byte("hello")); return true })
	buf := make([]byte, 10)
	if n, err := c.Read(buf); string(buf[:n]) != "hello" || err != nil {
		t.Errorf("read %q: %v", buf[:n], err)
	}
}

// TestAllocations: a message costs none.
func TestAllocations(t *testing.T) {
	_, _, a, b := pair(t)
	b.BeforeWait(func() bool { return false })
	m := make([]byte, 256)
	if n := testing.AllocsPerRun(100, func() {
		a.TryWrite(m)
		b.Read(m)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
