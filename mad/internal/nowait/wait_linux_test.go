package nowait

import (
	"testing"
	"time"
)

// What comes while nobody waits wakes nothing: the descriptor is not in the
// runtime's poller, and its own says so only when asked.
func TestUnarmed(t *testing.T) {
	a, b := pair(t)
	wakes := func() (yes bool) {
		b.in.ready.hold(func(epoll uintptr) { yes = reported(epoll) })
		return yes
	}
	a.TryWrite([]byte{1})
	if wakes() {
		t.Error("it woke before anybody waited")
	}
	m := make([]byte, 8)
	b.Read(m)
	written := make(chan struct{})
	b.BeforeWait(func() bool {
		time.AfterFunc(time.Millisecond, func() { a.TryWrite([]byte{2}); close(written) })
		return false
	})
	if n, err := b.Read(m); n != 1 || m[0] != 2 || err != nil {
		t.Fatalf("%d bytes, %d: %v", n, m[0], err)
	}
	<-written
	a.TryWrite([]byte{3})
	if wakes() {
		t.Error("it wakes after who waited has gone on")
	}
}
