//go:build linux

package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
)

// nodeInfoRequest is a message that asks the local node for its NodeInfo.
func nodeInfoRequest() *message {
	var call engine.Call
	call.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
	var m message
	b := m[:]
	ibsim.PutLID(b[ibsim.OffDLID:], mad.PermissiveLID)
	ibsim.PutLID(b[ibsim.OffSLID:], mad.PermissiveLID)
	copy(b[ibsim.OffMAD:], call.MAD[:])
	b[ibsim.OffMAD+mad.ClassOffset] = byte(mad.ClassSubnDirected)
	for i := range 4 {
		b[ibsim.OffMAD+mad.SMPDrSLIDOffset+i] = 0xff
	}
	return &m
}

// answers: the server still answers a client.
func (r *raw) answers() {
	r.t.Helper()
	r.write(nodeInfoRequest()[:])
	if m := r.read(); m[ibsim.OffMAD+mad.MethodOffset] != byte(mad.MethodGetResp) || m[ibsim.OffStatus+3] != 0 {
		r.t.Errorf("the answer is\n%x", m[:])
	}
}

// Messages of a wrong size or content have no effect, or come back.
func TestBadMessages(t *testing.T) {
	s := serve(t, "ring:n=3", false)
	r := newRaw(t, s.Name)
	r.connect("", 0, false)
	for _, size := range []int{0, 1, ibsim.MessageSize - 1, ibsim.MessageSize + 1, 4096} {
		r.write(make([]byte, size))
	}
	r.answers()
	for name, change := range map[string]func(b []byte){
		"base version":      func(b []byte) { b[mad.BaseVersionOffset] = 2 },
		"hop pointer":       func(b []byte) { b[mad.HopPointerOffset] = 1 },
		"hop count":         func(b []byte) { b[mad.HopCountOffset] = 255 },
		"direction":         func(b []byte) { b[mad.StatusOffset] = 0x80 },
		"no such port":      func(b []byte) { b[mad.HopCountOffset], b[mad.SMPInitialPathOffset+1] = 1, 77 },
		"unknown method":    func(b []byte) { b[mad.MethodOffset] = 0x7f },
		"LID 0":             func(b []byte) { b[mad.ClassOffset] = byte(mad.ClassSubn) },
		"DrSLID":            func(b []byte) { b[mad.SMPDrSLIDOffset] = 0 },
		"trap to ourselves": func(b []byte) { b[mad.ClassOffset], b[mad.MethodOffset] = byte(mad.ClassSubn), byte(mad.MethodTrap) },
	} {
		m := nodeInfoRequest()
		if change(m[ibsim.OffMAD:]); m[ibsim.OffMAD+mad.ClassOffset] == byte(mad.ClassSubn) {
			ibsim.PutLID(m[ibsim.OffDLID:], 0)
		}
		r.write(m[:])
		if got := r.read(); binary.BigEndian.Uint32(got[ibsim.OffStatus:]) != ibsim.StatusUndelivered || !bytes.Equal(got[ibsim.OffMAD+mad.SMPDataOffset:], m[ibsim.OffMAD+mad.SMPDataOffset:]) {
			t.Errorf("%s: the answer is\n%x", name, got[:])
		}
	}
	r.answers()
}

// Control requests that are malformed, of other clients, or of no client change nothing.
func TestBadControl(t *testing.T) {
	s := serve(t, "ring:n=3", false)
	victim, r := newRaw(t, s.Name), newRaw(t, s.Name)
	victim.connect("", 0, false)
	for _, m := range [][]byte{{}, make([]byte, ibsim.CtlSize), r.control(ibsim.CtlConnect, 0, nil)[:ibsim.CtlSize-1], append(r.control(ibsim.CtlConnect, 0, nil), 0)} {
		r.send(m) // no answer
	}
	refused := func(what string, m []byte) {
		t.Helper()
		if kind, _ := r.ask(m); kind != ibsim.CtlError {
			t.Errorf("%s is granted", what)
		}
	}
	refused("the place of another", r.control(ibsim.CtlSetISSM, victim.slot, []byte{1}))
	refused("to detach another", r.control(ibsim.CtlDisconnect, victim.slot, nil))
	for _, slot := range []uint32{1, 9, 1000, 1<<32 - 1} {
		refused("facts of no client", r.control(ibsim.CtlGetPortInfo, slot, nil))
	}
	long := r.connectInfo("", 0, false)
	copy(long[ibsim.OffNode:ibsim.OffNode+ibsim.NodeSize], bytes.Repeat([]byte{'x'}, ibsim.NodeSize)) // no NUL
	refused("a node id without an end", r.control(ibsim.CtlConnect, 0, long))
	foreign := r.connectInfo("", 0, false)
	binary.NativeEndian.PutUint32(foreign, uint32(victim.id))
	refused("another's socket", r.control(ibsim.CtlConnect, 0, foreign))
	nobody := r.connectInfo("", 0, false)
	binary.NativeEndian.PutUint32(nobody, 12345)
	refused("a socket that is not there", r.control(ibsim.CtlConnect, 0, nobody))
	if kind, info := r.ask(r.control(77, 0, []byte("echo"))); kind != 77 || !bytes.HasPrefix(info, []byte("echo")) {
		t.Errorf("an unknown request: %d, %q", kind, info)
	}
	victim.answers()
	victim.request(ibsim.CtlDisconnect, nil)
	r.connect("", 0, false)
	r.answers()
}

// Nobody but its owner can send from a client's place.
func TestForeignSender(t *testing.T) {
	s := serve(t, "ring:n=3", false)
	r := newRaw(t, s.Name)
	r.connect("", 0, false)
	_, err := net.DialUnix("unixgram", nil, unixAddr("%s:out%d", s.Name, r.slot))
	if !errors.Is(err, syscall.EPERM) {
		t.Errorf("another connects to its socket: %v", err)
	}
	r.answers()
}

// All places may be taken by the dead: they are given to the living.
func TestAllPlaces(t *testing.T) {
	s := serve(t, "ring:n=3", false)
	for range 2 {
		var all []*raw
		for range 128 {
			r := newRaw(t, s.Name)
			r.connect("", 0, false)
			all = append(all, r)
		}
		r := newRaw(t, s.Name)
		if kind, _ := r.ask(r.control(ibsim.CtlConnect, 0, r.connectInfo("", 0, false))); kind != ibsim.CtlError {
			t.Error("a place beyond the last is given")
		}
		all[77].answers()
		for _, r := range all {
			r.close()
		}
	}
	r := newRaw(t, s.Name)
	r.connect("", 0, false)
	r.answers()
}

// A client that floods, and reads nothing, costs the others little, and bounded
// memory.
func TestFlood(t *testing.T) {
	s := serve(t, "ring:n=3", false)
	good := newRaw(t, s.Name)
	good.connect("", 0, false)
	for range 4 {
		flood := newRaw(t, s.Name)
		flood.connect("", 0, false)
		go func() { // its socket is full some time; the end closes it
			m := nodeInfoRequest()
			for {
				if _, err := flood.data.Write(m[:]); err != nil {
					return
				}
			}
		}()
	}
	var before, after runtime.MemStats
	for i := range 2000 {
		good.answers()
		if i == 1000 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
	}
	runtime.GC()
	if runtime.ReadMemStats(&after); after.HeapAlloc > before.HeapAlloc+16<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before.HeapAlloc, after.HeapAlloc)
	}
	s.Do(func() {
		s.Server.mu.Lock()
		defer s.Server.mu.Unlock()
		for _, c := range s.clients {
			if n := len(c.queue) - c.head; n > throttle+batchSize {
				t.Errorf("%d messages wait for client %d", n, c.Slot())
			}
		}
	})
}

// Requests that one client leaves unanswered come back to the other, and only so
// many are kept.
func TestUnanswered(t *testing.T) {
	s := serve(t, "ring:n=3", true)
	sm := newRaw(t, s.Name)
	sm.connect("node-0001 HCA-1", 0, true)
	r := newRaw(t, s.Name)
	r.connect("node-0001 HCA-1", 0, false)
	const n = 3000
	ask := nodeInfoRequest()
	binary.BigEndian.PutUint16(ask[ibsim.OffMAD+mad.AttributeOffset:], uint16(mad.AttrSMInfo.ID))
	for i := range n {
		binary.BigEndian.PutUint32(ask[ibsim.OffMAD+mad.TIDOffset+4:], uint32(i))
		r.write(ask[:])
		if got := sm.read(); got[ibsim.OffMAD+mad.MethodOffset] != byte(mad.MethodGet) {
			t.Fatalf("the subnet manager gets\n%x", got[:])
		}
		if i >= 1024 { // the oldest came back
			if got := r.read(); binary.BigEndian.Uint32(got[ibsim.OffStatus:]) != ibsim.StatusUndelivered || binary.BigEndian.Uint32(got[ibsim.OffMAD+mad.TIDOffset+4:]) != uint32(i-1024) {
				t.Fatalf("%d: the answer is\n%x", i, got[:])
			}
		}
	}
	sm.close()
	for i := n - 1024; i < n; i++ {
		if got := r.read(); binary.BigEndian.Uint32(got[ibsim.OffStatus:]) != ibsim.StatusUndelivered || binary.BigEndian.Uint32(got[ibsim.OffMAD+mad.TIDOffset+4:]) != uint32(i) {
			t.Fatalf("%d: the answer is\n%x", i, got[:])
		}
	}
	r.answers()
}

// A client that does not take what others send it loses what is too much.
func TestDeaf(t *testing.T) {
	s := serve(t, "ring:n=3", true)
	sm := newRaw(t, s.Name)
	sm.connect("node-0001 HCA-1", 0, true)
	r := newRaw(t, s.Name)
	r.connect("node-0001 HCA-1", 0, false)
	ask := nodeInfoRequest()
	binary.BigEndian.PutUint16(ask[ibsim.OffMAD+mad.AttributeOffset:], uint16(mad.AttrSMInfo.ID))
	for i := range 2 * maxQueued {
		r.write(ask[:])
		if i >= 1024 {
			r.read() // the oldest that is not answered
		}
	}
	waiting := 0
	s.Do(func() {
		s.Server.mu.Lock()
		defer s.Server.mu.Unlock()
		c := s.clients[sm.slot]
		waiting = len(c.queue) - c.head
	})
	if waiting != maxQueued {
		t.Errorf("%d messages wait, want %d", waiting, maxQueued)
	}
}

// A table for a client that knows segments waits until it reads, however large.
func TestLargeTable(t *testing.T) {
	s := serve(t, "fattree:k=12,levels=3", false)
	e := engine.New(s.attach(t, ibsim.Options{}), engine.Options{})
	defer e.Close()
	f := s.fabric
	got := sweepSA(t, e)
	if want := len(f.Nodes()); got != want {
		t.Errorf("%d NodeRecords, want %d", got, want)
	}
}

// FuzzSocket: no bytes on either socket harm the server.
func FuzzSocket(f *testing.F) {
	f.Add([]byte{}, []byte{})
	r := raw{id: 7}
	f.Add(r.control(ibsim.CtlConnect, 0, r.connectInfo("switch-1", 2, true)), nodeInfoRequest()[:])
	f.Add(r.control(ibsim.CtlSetISSM, 0, []byte{1}), bytes.Repeat([]byte{0xff}, ibsim.MessageSize))
	s := serve(f, "ring:n=3,hosts=2,dup=5%", true)
	f.Fuzz(func(t *testing.T, control, data []byte) {
		r := newRaw(t, s.Name)
		r.connect("", rand.Uint32N(3), false)
		if len(control) >= ibsim.OffInfo {
			binary.NativeEndian.PutUint32(control[ibsim.OffSlot:], r.slot)
		}
		r.ctl.Write(control)
		r.data.Write(data)
		r.data.Write(data)
		check := newRaw(t, s.Name)
		check.connect("switch-1", 0, false)
		m := nodeInfoRequest()
		check.write(m[:])
		for { // others' requests may come too
			got := check.read()
			if mad.Method(got[ibsim.OffMAD+mad.MethodOffset]).IsResponse() {
				break
			}
		}
		check.request(ibsim.CtlDisconnect, nil)
		r.close()
		check.close()
	})
}

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

// send sends a control message unchanged.
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
