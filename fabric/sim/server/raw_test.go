//go:build linux

package server

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
	"time"

	"fabsh/mad/ibsim"
)

// raw is a client that says what it likes.
type raw struct {
	t         testing.TB
	name      string
	id        int32
	slot      uint32
	ctl, data *net.UnixConn
}

func unixAddr(format string, args ...any) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: "@" + fmt.Sprintf(format, args...) + "\x00"}
}

func newRaw(t testing.TB, name string) *raw {
	t.Helper()
	r := &raw{t: t, name: name, id: 1 + rand.Int32N(1<<31-1)}
	var err error
	if r.ctl, err = net.DialUnix("unixgram", unixAddr("%s:ctl%d", name, r.id), unixAddr("%s:ctl", name)); err != nil {
		t.Fatal(err)
	}
	if r.data, err = net.ListenUnixgram("unixgram", unixAddr("%s:in%d", name, r.id)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

func (r *raw) close() {
	r.ctl.Close()
	r.data.Close()
}

// send sends a control message as it is.
func (r *raw) send(m []byte) {
	r.t.Helper()
	if _, err := r.ctl.Write(m); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) control(kind, slot uint32, info []byte) []byte {
	var m [ibsim.CtlSize]byte
	binary.NativeEndian.PutUint32(m[0:], ibsim.CtlMagic)
	binary.NativeEndian.PutUint32(m[ibsim.OffSlot:], slot)
	binary.NativeEndian.PutUint32(m[ibsim.OffType:], kind)
	copy(m[ibsim.OffInfo:], info)
	return m[:]
}

// ask sends a control request and returns type and data of the answer.
func (r *raw) ask(m []byte) (kind uint32, info []byte) {
	r.t.Helper()
	r.send(m)
	r.ctl.SetReadDeadline(time.Now().Add(time.Minute))
	b := make([]byte, 2*ibsim.CtlSize)
	n, err := r.ctl.Read(b)
	if err != nil || n != ibsim.CtlSize {
		r.t.Fatalf("answer of %d bytes: %v", n, err)
	}
	return binary.NativeEndian.Uint32(b[ibsim.OffType:]), b[ibsim.OffInfo:ibsim.CtlSize]
}

// request is ask for what must be granted.
func (r *raw) request(kind uint32, info []byte) []byte {
	r.t.Helper()
	got, reply := r.ask(r.control(kind, r.slot, info))
	if got != kind {
		r.t.Fatalf("request %d is refused", kind)
	}
	return reply
}

func (r *raw) connectInfo(node string, qp uint32, issm bool) []byte {
	var info [64]byte
	binary.NativeEndian.PutUint32(info[ibsim.OffClientID:], uint32(r.id))
	binary.NativeEndian.PutUint32(info[ibsim.OffClientQP:], qp)
	if issm {
		info[ibsim.OffISSM] = 1
	}
	copy(info[ibsim.OffNode:], node)
	return info[:]
}

// connect attaches, and returns the client's number.
func (r *raw) connect(node string, qp uint32, issm bool) uint32 {
	r.t.Helper()
	reply := r.request(ibsim.CtlConnect, r.connectInfo(node, qp, issm))
	r.slot = binary.NativeEndian.Uint32(reply)
	sys, err := r.data.SyscallConn()
	if err != nil {
		r.t.Fatal(err)
	}
	sys.Control(func(fd uintptr) {
		err = syscall.Connect(int(fd), &syscall.SockaddrUnix{Name: unixAddr("%s:out%d", r.name, r.slot).Name})
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.slot
}

// write sends a data message.
func (r *raw) write(b []byte) {
	r.t.Helper()
	if _, err := r.data.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

// read reads a data message.
func (r *raw) read() *message {
	r.t.Helper()
	// Less than the server waits for answers of others.
	r.data.SetReadDeadline(time.Now().Add(8 * time.Second))
	var m message
	if n, err := r.data.Read(m[:]); err != nil || n != ibsim.MessageSize {
		r.t.Fatalf("message of %d bytes: %v", n, err)
	}
	return &m
}
