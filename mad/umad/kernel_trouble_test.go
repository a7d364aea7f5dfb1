//go:build linux && (amd64 || arm64)

package umad

import (
	"fmt"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

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
	time.Sleep(50 * time.Millisecond) // it waits in the kernel's poll
	tr.Close()
	if err := <-done; err != engine.ErrClosed {
		t.Errorf("got %v, want %v", err, engine.ErrClosed)
	}
}
