//go:build linux

package run

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim"
	"fabsh/mad"
)

// The requests of ioctl.
const (
	register   = 0xc01c1b01
	unregister = 0x40041b02
	register2  = 0xc0281b04
)

// testHost is the port of a host of a small subnet.
type testHost struct {
	*umadPort
	t *testing.T
}

func newHost(t *testing.T) testHost {
	t.Helper()
	f, o, err := sim.Parse("ring:n=3")
	if err != nil {
		t.Fatal(err)
	}
	s := sim.New(f, o)
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; !n.IsSwitch() && i != s.SM.Node() {
			p, err := newUmadPort(s.Programs, i, 1)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			return testHost{p, t}
		}
	}
	t.Fatal("no host")
	return testHost{}
}

func (h testHost) open() *deviceFile { return h.Open(false, func() {}) }

// testAgent is a request for an agent: QP, class, version, methods, OUI, RMPP, flags.
type testAgent struct {
	qp             uint32
	class, version uint8
	method         uint8 // 0: none
	oui            uint32
	rmpp           uint8
	flags          uint32
}

// register2 registers an agent, and returns its ID or the error.
func register2At(f *deviceFile, a testAgent) string {
	b := make([]byte, 40)
	binary.NativeEndian.PutUint32(b[4:], a.qp)
	b[8], b[9], b[36] = a.class, a.version, a.rmpp
	binary.NativeEndian.PutUint32(b[12:], a.flags)
	if a.method > 0 {
		binary.NativeEndian.PutUint64(b[16+8*(a.method>>6):], 1<<(a.method&63))
	}
	binary.NativeEndian.PutUint32(b[32:], a.oui)
	return ioctl(f, register2, b)
}

func ioctl(f *deviceFile, request uint32, b []byte) string {
	changed, offset, errno, commit := f.Ioctl(request, b)
	if commit != nil {
		commit(true)
	}
	if errno != 0 {
		if len(changed) > 0 {
			return fmt.Sprintf("%v, %d at %d", errno, binary.NativeEndian.Uint32(changed), offset)
		}
		return errno.Error()
	}
	if len(changed) == 0 {
		return "ok"
	}
	return fmt.Sprint(binary.NativeEndian.Uint32(changed))
}

// The rules of registration, as a kernel has shown them.
func TestRegister(t *testing.T) {
	h := newHost(t)
	f, other := h.open(), h.open()
	const invalid, full = "invalid argument", "cannot allocate memory"
	for _, c := range []struct {
		f    *deviceFile
		a    testAgent
		want string
	}{
		{f, testAgent{qp: 2, class: 3, version: 2}, invalid},
		{f, testAgent{qp: 1, class: 0x81, version: 1}, invalid},
		{f, testAgent{qp: 0, class: 4, version: 1}, invalid},
		{f, testAgent{qp: 1, class: 0x55, version: 1}, invalid},
		{f, testAgent{qp: 1, class: 0x30, version: 1}, invalid},
		{f, testAgent{qp: 1, class: 3, version: 8}, invalid},
		{f, testAgent{qp: 1, class: 4, version: 1, rmpp: 1}, invalid},
		{f, testAgent{qp: 1, class: 3, version: 2, rmpp: 2}, invalid},
		{f, testAgent{qp: 1, class: 3, version: 2, flags: 6}, invalid + ", 1 at 12"},
		{f, testAgent{qp: 1, class: 0, flags: 1}, invalid},
		{f, testAgent{qp: 1, class: 3, version: 2, oui: 1 << 24}, invalid},
		{f, testAgent{qp: 1, class: 0}, "0"},
		{f, testAgent{qp: 0, class: 0x81, version: 1, method: 5}, "1"},
		{other, testAgent{qp: 0, class: 0x81, version: 1, method: 5}, invalid},
		{other, testAgent{qp: 0, class: 0x01, version: 1, method: 5}, "0"},
		{other, testAgent{qp: 0, class: 0x81, version: 1, method: 3}, "1"},
		{other, testAgent{qp: 0, class: 0x81, version: 2, method: 5}, "2"},
		{f, testAgent{qp: 1, class: 0x30, version: 1, oui: 0x1234, method: 1}, "2"},
		{other, testAgent{qp: 1, class: 0x30, version: 1, oui: 0x1234, method: 1}, invalid},
		{other, testAgent{qp: 1, class: 0x30, version: 1, oui: 0x1235, method: 1, rmpp: 1}, "3"},
		{f, testAgent{qp: 1, class: 3, version: 2, rmpp: 1, flags: 1}, "3"},
	} {
		if got := register2At(c.f, c.a); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.a, got, c.want)
		}
	}
	for _, c := range []struct {
		request uint32
		id      uint32
		want    string
	}{{unregister, 32, invalid}, {unregister, 9, invalid}, {unregister, 1, "ok"}, {unregister, 1, invalid}, {enablePKey, 0, invalid}, {0x1b07, 0, "inappropriate ioctl for device"}} {
		if got := ioctl(f, c.request, binary.NativeEndian.AppendUint32(nil, c.id)); got != c.want {
			t.Errorf("%#x %d: got %s, want %s", c.request, c.id, got, c.want)
		}
	}
	for id := range 40 {
		if want := [...]string{"1", "4"}; id < 2 && register2At(f, testAgent{qp: 1}) != want[id] {
			t.Errorf("agent %d: want ID %s", id, want[id])
		}
	}
	for range 27 {
		register2At(f, testAgent{qp: 1})
	}
	if got := register2At(f, testAgent{qp: 1}); got != full {
		t.Errorf("testAgent 33: got %s", got)
	}
	f.Close()
	if got := register2At(other, testAgent{qp: 0, class: 0x81, version: 1, method: 6}); got != "4" {
		t.Errorf("after the other file was closed: got %s", got)
	}
}

// testMessage is a write: a header, and a directed-route SMP.
func testMessage(id, timeout, retries uint32, change func(head, m []byte)) []byte {
	b := make([]byte, 64+mad.Size)
	binary.NativeEndian.PutUint32(b, id)
	binary.NativeEndian.PutUint32(b[8:], timeout)
	binary.NativeEndian.PutUint32(b[12:], retries)
	binary.BigEndian.PutUint16(b[28:], 0xffff)
	m := b[64:]
	h := mad.Header{Class: mad.ClassSubnDirected, ClassVersion: 1, Method: mad.MethodGet, Attribute: mad.AttrNodeInfo.ID, TID: 0xabcdef}
	h.Put(m)
	binary.BigEndian.PutUint32(m[mad.SMPDrSLIDOffset:], 0xffffffff)
	if change != nil {
		change(b[:64], m)
	}
	return b
}

// What a write returns.
func TestWrite(t *testing.T) {
	h := newHost(t)
	f := h.open()
	register2At(f, testAgent{qp: 0, class: 0x81, version: 1})
	route := func(path ...byte) func(_, m []byte) {
		return func(_, m []byte) {
			m[mad.HopCountOffset] = byte(len(path) - 1)
			copy(m[mad.SMPInitialPathOffset:], path)
		}
	}
	for _, c := range []struct {
		name string
		b    []byte
		want syscall.Errno
	}{
		{"short", testMessage(0, 0, 0, nil)[:64+35], syscall.EINVAL},
		{"least", testMessage(0, 0, 0, nil)[:64+36], 0},
		{"long", append(testMessage(0, 0, 0, nil), 0), syscall.EINVAL},
		{"no such agent", testMessage(1, 0, 0, nil), syscall.EIO},
		{"no agent", testMessage(32, 0, 0, nil), syscall.EINVAL},
		{"first hop", testMessage(0, 0, 0, route(0, 2)), syscall.EINVAL},
		{"right hop", testMessage(0, 0, 0, route(0, 1, 1)), 0},
		{"64 hops", testMessage(0, 0, 0, func(_, m []byte) { m[mad.HopCountOffset] = 64 }), syscall.EINVAL},
		{"no GID", testMessage(0, 0, 0, func(head, _ []byte) { head[32], head[33] = 1, 3 }), syscall.ENODATA},
		{"GID index", testMessage(0, 0, 0, func(head, _ []byte) { head[32], head[33] = 1, 99 }), syscall.EINVAL},
	} {
		n, errno := f.Write(c.b)
		if errno != c.want || errno == 0 && n != len(c.b) {
			t.Errorf("%s: %d, %v, want %v", c.name, n, errno, c.want)
		}
	}
}

// read reads, and describes what comes.
func read(f *deviceFile, size int) string {
	var b []byte
	n, errno, empty := f.Read(size, func(x []byte) bool { b = append(b, x...); return true }, func() {})
	if empty {
		return "nothing"
	}
	if errno != 0 {
		return fmt.Sprintf("%v, %d bytes", errno, len(b))
	}
	u32 := binary.NativeEndian.Uint32
	return fmt.Sprintf("%d bytes: id %d status %d length %d TID %#x method %#x", n, u32(b), u32(b[4:]), u32(b[16:]), binary.BigEndian.Uint32(b[64+12:]), b[64+mad.MethodOffset])
}

// Requests that nothing answers come back after all attempts, answers at once; a second
// request with its transaction ID is refused meanwhile.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		f := h.open()
		register2At(f, testAgent{qp: 0, class: 0x81, version: 1})
		lost := testMessage(0, 100, 2, func(_, m []byte) {
			m[mad.HopCountOffset] = 5
			copy(m[mad.SMPInitialPathOffset:], []byte{0, 1, 99})
		})
		var got []string
		note := func(s string) { got = append(got, s) }
		write := func(b []byte) {
			n, errno := f.Write(b)
			note(fmt.Sprint(n, errno))
		}
		write(lost)
		write(lost)
		time.Sleep(299 * time.Millisecond)
		note(read(f, 320))
		time.Sleep(2 * time.Millisecond)
		note(read(f, 87))
		note(read(f, 320))
		write(lost)
		note(ioctl(f, unregister, make([]byte, 4)))
		time.Sleep(time.Second)
		note(read(f, 320))
		register2At(f, testAgent{qp: 0, class: 0x81, version: 1})
		write(testMessage(0, 100, 0, nil))
		note(read(f, 63))
		note(read(f, 319))
		note(read(f, 320))
		write(testMessage(0, 0, 0, nil))
		note(read(f, 320))
		time.Sleep(time.Second)
		note(read(f, 320))
		want := strings.Split(strings.TrimSpace(`
320 errno 0
0 invalid argument
nothing
invalid argument, 0 bytes
88 bytes: id 0 status 110 length 0 TID 0xabcdef method 0x1
320 errno 0
ok
nothing
320 errno 0
invalid argument, 0 bytes
invalid argument, 0 bytes
320 bytes: id 0 status 0 length 320 TID 0xabcdef method 0x81
320 errno 0
nothing
nothing`), "\n")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// Agents of subnet management answer at queue pair 0 only (IBA 14.2.1); what stays on the
// host, the kernel passes to its agent without a queue pair.
func TestQueuePair(t *testing.T) {
	for _, c := range []struct {
		name  string
		class mad.Class
		hops  byte
		qp    uint32
		want  string
	}{
		{"directed", mad.ClassSubnDirected, 1, 0, "0"},
		{"directed, queue pair 1", mad.ClassSubnDirected, 1, 1, "110"},
		{"directed, here", mad.ClassSubnDirected, 0, 5, "0"},
		{"by LID", mad.ClassSubn, 0, 0, "0"},
		{"by LID, queue pair 1", mad.ClassSubn, 0, 1, "110"},
		{"by LID, queue pair 5", mad.ClassSubn, 0, 5, "110"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(t)
			f := h.open()
			register2At(f, testAgent{qp: 0, class: uint8(c.class), version: 1})
			if _, errno := f.Write(testMessage(0, 100, 0, func(head, m []byte) {
				m[mad.ClassOffset] = byte(c.class)
				m[mad.HopCountOffset], m[mad.SMPInitialPathOffset+1] = c.hops, 1
				if c.class == mad.ClassSubn {
					clear(m[mad.HopCountOffset-1 : mad.TIDOffset])
					clear(m[mad.SMPDrSLIDOffset:])
					binary.BigEndian.PutUint16(head[28:], uint16(h.Client().PortInfo(0).MasterSMLID))
				}
				binary.BigEndian.PutUint32(head[20:], c.qp)
			})); errno != 0 {
				t.Fatal(errno)
			}
			time.Sleep(time.Second)
			if got := strings.Fields(read(f, 320)); len(got) < 6 || got[5] != c.want {
				t.Errorf("%s: got %s, want status %s", c.name, got, c.want)
			}
		})
	}
}

// A table that does not fit in the reader's buffer stays, and its beginning is copied.
func TestLargeTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		f := h.open()
		register2At(f, testAgent{qp: 1, class: 3, version: 2, rmpp: 1})
		query := testMessage(0, 1000, 0, func(head, m []byte) {
			clear(m)
			hdr := mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodGetTable, Attribute: mad.AttrNodeRecord.ID, TID: 7}
			hdr.Put(m)
			binary.BigEndian.PutUint32(head[20:], 1)
			binary.BigEndian.PutUint16(head[28:], uint16(h.Client().PortInfo(0).MasterSMLID))
		})
		if _, errno := f.Write(query); errno != 0 {
			t.Fatal(errno)
		}
		synctest.Wait()
		const size = 64 + 56 + 6*112
		got := []string{read(f, 319), read(f, 320), read(f, size-1), read(f, size), read(f, size)}
		want := []string{"invalid argument, 0 bytes", "no space left on device, 320 bytes", "no space left on device, 320 bytes",
			fmt.Sprintf("%d bytes: id 0 status 0 length %d TID 0x7 method 0x92", size, size), "nothing"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// One program has the issm file; the port shows it.
func TestISSM(t *testing.T) {
	h := newHost(t)
	isSM := func() bool { return h.Client().PortInfo(0).CapabilityMask&mad.CapabilityMaskIsSM != 0 }
	got := []any{isSM(), h.OpenSM(), isSM(), h.OpenSM()}
	h.CloseSM()
	got = append(got, isSM(), h.OpenSM())
	want := []any{false, syscall.Errno(0), true, syscall.EAGAIN, false, syscall.Errno(0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// kinds are MADs of every kind that the device treats in its own way: class, method, and
// the RMPP header of the MADs that have one.
var kinds = []struct {
	class  mad.Class
	method mad.Method
	rmpp   mad.RMPPHeader
}{
	{class: mad.ClassSubnDirected, method: mad.MethodGet},
	{class: mad.ClassSubn, method: mad.MethodTrap},
	{class: mad.ClassSubn, method: mad.MethodTrapRepress},
	{class: mad.ClassPerf, method: mad.MethodGet},
	{class: 7, method: mad.MethodSend},
	{class: mad.ClassBM, method: mad.MethodSend},
	{class: 9, method: mad.MethodGet},
	{class: 0x32, method: mad.MethodGet},
	{class: 0x50, method: mad.MethodGet},
	{class: mad.ClassSubnAdm, method: mad.MethodGetTable},
	{class: mad.ClassSubnAdm, method: mad.MethodGet | mad.Response},
	{class: mad.ClassDevMgt, method: mad.MethodGet, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: 3, SegmentNumber: 1}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: 7, SegmentNumber: 1, PayloadLength: 40}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: 1, SegmentNumber: 2}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetTable | mad.Response, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: 5, SegmentNumber: 3, PayloadLength: 1}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeACK, RMPPFlags: 1, SegmentNumber: 1, PayloadLength: 9}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeACK, RMPPFlags: 1, PayloadLength: 1}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeStop, RMPPFlags: 1, RMPPStatus: mad.RMPPStatusResourcesExhausted}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeAbort, RMPPFlags: 1, RMPPStatus: mad.RMPPStatusUnspecified}},
	{class: mad.ClassSubnAdm, method: mad.MethodGetMulti, rmpp: mad.RMPPHeader{RMPPVersion: 2, RMPPType: 9, RMPPFlags: 7}},
}

// Writes of any bytes, after any registration, end: to the own port, where two agents
// receive all requests of two classes, to the subnet's agents, and to its administrator.
func FuzzWrite(f *testing.F) {
	for _, flags := range []byte{0, 1} {
		for _, k := range kinds {
			request := make([]byte, 40)
			request[8], request[9], request[36], request[12] = byte(k.class), k.class.Version(), 0, flags
			if k.class.Family() != mad.ClassSubn {
				request[4] = 1
			}
			if k.class == mad.ClassSubnAdm || k.class == mad.ClassDevMgt {
				request[36] = 1
			}
			if k.class.HasOUI() {
				request[32] = 7
			}
			b := testMessage(0, 1, 1, func(head, m []byte) {
				if k.class == mad.ClassSubnDirected {
					return
				}
				clear(m)
				binary.BigEndian.PutUint16(head[28:], 0) // the fuzzed function's own
				h := mad.Header{Class: k.class, ClassVersion: k.class.Version(), Method: k.method, Attribute: mad.AttrNodeRecord.ID, TID: 7}
				h.Put(m)
				k.rmpp.Encode(m[mad.RMPPOffset:])
				if k.class.HasOUI() {
					m[mad.VendorOUIOffset+2] = 7
				}
			})
			f.Add(request, b)
			f.Add(request, append(b, make([]byte, 300)...))
			withGRH := append([]byte(nil), b...)
			withGRH[32] = 1
			f.Add(request, withGRH)
		}
	}
	f.Fuzz(func(t *testing.T, request, b []byte) {
		h := newHost(t)
		file, server := h.open(), h.open()
		defer file.Close()
		defer server.Close()
		for _, class := range []mad.Class{mad.ClassSubnAdm, 9} {
			request := make([]byte, 40)
			request[4], request[8], request[9] = 1, byte(class), class.Version()
			binary.NativeEndian.PutUint64(request[16:], ^uint64(0)>>1)
			if class == mad.ClassSubnAdm {
				request[36] = 1
			}
			ioctl(server, register2, request)
		}
		if len(request) >= 40 {
			ioctl(file, register2, request[:40])
			ioctl(file, register, request[:28])
		}
		port := h.Client().PortInfo(0)
		for _, lid := range []mad.LID{0, port.LID, port.MasterSMLID} {
			b := append([]byte(nil), b...)
			if lid > 0 && len(b) > 30 {
				binary.BigEndian.PutUint16(b[28:], uint16(lid))
			}
			file.Write(b)
			file.WriteAccepted(b)
			file.Read(1<<16, func([]byte) bool { return true }, func() {})
			server.Read(1<<16, func([]byte) bool { return true }, func() {})
		}
	})
}
