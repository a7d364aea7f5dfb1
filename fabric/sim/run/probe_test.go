//go:build linux && (amd64 || arm64)

package run_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"fabsh/mad"
)

// probeVariable makes this test's program the one that TestCalls runs.
const probeVariable = "FABSH_TEST_RUN_PROBE"

// probed is a umad file, whose calls probe prints.
type probed int

func openProbed(flags int) probed {
	fd, err := unix.Open("/dev/infiniband/umad0", unix.O_RDWR|flags, 0)
	if err != nil {
		panic(err)
	}
	return probed(fd)
}

// register registers an agent, and returns its ID.
func (p probed) register(qp uint32, class mad.Class, methods uint64) string {
	var b [40]byte
	ne := binary.NativeEndian
	ne.PutUint32(b[4:], qp)
	b[8], b[9] = byte(class), class.Version()
	ne.PutUint64(b[16:], methods)
	if class == mad.ClassSubnAdm {
		b[36] = 1
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(p), 0xc0281b04, uintptr(unsafe.Pointer(&b))); errno != 0 {
		return errno.Error()
	}
	return fmt.Sprint(ne.Uint32(b[:]))
}

// message is a write of a MAD by LID, or by a directed route if lid is 0xffff.
func (p probed) message(id uint32, lid uint16, class mad.Class, method mad.Method, attribute mad.AttributeID, tid uint64) []byte {
	b := make([]byte, 64+mad.Size)
	binary.NativeEndian.PutUint32(b, id)
	binary.NativeEndian.PutUint32(b[8:], 300)
	if class.Family() != mad.ClassSubn {
		binary.BigEndian.PutUint32(b[20:], 1)
	}
	binary.BigEndian.PutUint16(b[28:], lid)
	h := mad.Header{Class: class, ClassVersion: class.Version(), Method: method, Attribute: attribute, TID: tid}
	h.Put(b[64:])
	if class == mad.ClassSubnDirected {
		binary.BigEndian.PutUint32(b[64+mad.SMPDrSLIDOffset:], 0xffffffff)
	}
	return b
}

func (p probed) write(b []byte) string {
	n, err := unix.Write(int(p), b)
	return fmt.Sprint(n, " ", err)
}

// read reads, and describes what it returned and what is in the buffer.
func (p probed) read(size int) string {
	b := make([]byte, size)
	n, err := unix.Read(int(p), b)
	text := fmt.Sprint(n, " ", err)
	if err == unix.ENOSPC || err == nil {
		ne := binary.NativeEndian
		text += fmt.Sprintf(" status %d length %d P_Key index %d GRH %d method %#x MAD status %#x", ne.Uint32(b[4:]), ne.Uint32(b[16:]), ne.Uint16(b[56:]), b[32], b[64+mad.MethodOffset], binary.BigEndian.Uint16(b[64+mad.StatusOffset:]))
	}
	return text
}

// poll returns the events of the file, after a wait for those to be read.
func (p probed) poll(wait int) string {
	fds := []unix.PollFd{{Fd: int32(p), Events: unix.POLLIN}}
	// Signals of the Go runtime end a poll early.
	for end := time.Now().Add(time.Duration(wait) * time.Millisecond); ; {
		n, err := unix.Poll(fds, int(max(0, time.Until(end).Milliseconds())))
		if n > 0 || err != unix.EINTR && !time.Now().Before(end) {
			break
		}
	}
	fds[0].Events |= unix.POLLOUT
	if _, err := unix.Poll(fds, 0); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%#x", fds[0].Revents)
}

// probe makes calls of umad and issm files, and prints what they return.
func probe() {
	p := openProbed(unix.O_NONBLOCK)
	say := func(what string, result ...any) { fmt.Println(append([]any{what + ":"}, result...)...) }
	say("register", p.register(0, mad.ClassSubnDirected, 0), p.register(1, mad.ClassSubnAdm, 0), p.register(1, mad.ClassPerf, 0))
	say("empty", p.poll(0), p.read(320), p.read(63))
	get := func(tid uint64) []byte {
		return p.message(0, 0xffff, mad.ClassSubnDirected, mad.MethodGet, mad.AttrNodeInfo.ID, tid)
	}

	bad := get(1)
	bad[64+mad.HopCountOffset], bad[64+mad.SMPInitialPathOffset+1] = 1, 2
	say("first hop", p.write(bad))
	say("short", p.write(get(1)[:99]), p.write(get(1)[:100]), p.write(nil))
	say("long", p.write(append(get(1), 0)))
	say("agent", p.write(p.message(9, 0xffff, mad.ClassSubnDirected, mad.MethodGet, mad.AttrNodeInfo.ID, 1)), p.write(p.message(40, 0xffff, mad.ClassSubnDirected, mad.MethodGet, mad.AttrNodeInfo.ID, 1)))
	n, err := unix.Writev(int(p), [][]byte{get(1)[:64], get(1)[64:]})
	say("list", n, err)
	say("address", func() string { _, _, errno := unix.Syscall(unix.SYS_WRITE, uintptr(p), 8, 320); return errno.Error() }())
	say("after 36 bytes", p.poll(5000), p.read(1000))

	say("get", p.write(get(2)), p.poll(5000), p.read(319), p.read(320), p.poll(0), p.read(320))
	_, err = unix.Pread(int(p), make([]byte, 320), 0)
	_, seek := unix.Seek(int(p), 0, 0)
	say("position", err, seek)

	table := p.message(1, lid("sm_lid"), mad.ClassSubnAdm, mad.MethodGetTable, mad.AttrNodeRecord.ID, 3)
	say("table", p.write(table), p.poll(5000), p.read(319), p.read(320), p.read(1<<16))

	const vendor mad.Class = 9
	unserved := p.message(2, lid("lid"), vendor, mad.MethodGet, 0x10, 4)
	for _, c := range []struct {
		what   string
		change func(b []byte)
	}{
		{"no agent", func([]byte) {}},
		{"GRH", func(b []byte) {
			b[32] = 1
			binary.BigEndian.PutUint64(b[36:], 0xfe80000000000000)
			binary.BigEndian.PutUint64(b[44:], 0x0002c90310000011)
		}},
		{"GID index", func(b []byte) { b[33] = 1 }},
		{"other host", func(b []byte) { b[32], b[33] = 0, 0; binary.BigEndian.PutUint16(b[28:], lid("lid")+1) }},
		{"P_Key index", func(b []byte) { binary.NativeEndian.PutUint16(b[56:], 1) }}, // the key there is 0
	} {
		c.change(unserved)
		say(c.what, p.write(unserved), p.poll(1000), p.read(320))
	}
	say("other method", p.write(p.message(2, lid("lid"), vendor, mad.MethodReport, 0x10, 5)), p.poll(1000), p.read(320))

	readers(say)
	issm(say)
}

// lid reads a LID of the port's folder.
func lid(name string) (v uint16) {
	b, _ := os.ReadFile("/sys/class/infiniband/ibsim0/ports/1/" + name)
	fmt.Sscanf(string(b), "0x%x", &v)
	return v
}

// probeFast makes calls that the kernel executes with SIM_FAST=1.
func probeFast() {
	p := openProbed(unix.O_NONBLOCK)
	p.register(0, mad.ClassSubnDirected, 0)
	p.register(1, mad.ClassSubnAdm, 0)
	bad := p.message(0, 0xffff, mad.ClassSubnDirected, mad.MethodGet, mad.AttrNodeInfo.ID, 1)
	bad[64+mad.HopCountOffset], bad[64+mad.SMPInitialPathOffset+1] = 1, 2
	fmt.Println("first hop:", p.write(bad), p.poll(5000), p.read(320))
	fmt.Println("short:", p.write(bad[:63]), p.write(bad[:99]), p.poll(500), p.read(63), p.read(320))
	good := p.message(0, 0xffff, mad.ClassSubnDirected, mad.MethodGet, mad.AttrNodeInfo.ID, 1)
	fmt.Println("get:", p.write(good), p.poll(5000), p.read(320), p.poll(0), p.read(320))
	table := p.message(1, lid("sm_lid"), mad.ClassSubnAdm, mad.MethodGetTable, mad.AttrNodeRecord.ID, 3)
	fmt.Println("table:", p.write(table), p.poll(5000), p.read(320))
}

// readers has three threads read one file, of which each gets one entry.
func readers(say func(string, ...any)) {
	p := openProbed(0)
	p.register(0, mad.ClassSubnDirected, 0)
	var all sync.WaitGroup
	got := make(chan string, 3)
	for range 3 {
		all.Go(func() { got <- p.read(320) })
	}
	for tid := range 3 {
		p.write(p.message(0, 0xffff, mad.ClassSubnDirected, mad.MethodGet, mad.AttrNodeInfo.ID, uint64(10+tid)))
	}
	all.Wait()
	for range 3 {
		say("reader", <-got)
	}
}

// issm opens the issm file: the second open fails, or waits for the close.
func issm(say func(string, ...any)) {
	open := func(flags int) (int, error) {
		return unix.Open("/dev/infiniband/issm0", unix.O_RDONLY|flags, 0)
	}
	first, err := open(0)
	_, second := open(unix.O_NONBLOCK)
	_, write := unix.Write(first, []byte{1})
	_, read := unix.Read(first, make([]byte, 400))
	say("issm", err, "second:", second, "write:", write, "read:", read)
	opened := make(chan error)
	go func() {
		_, err := open(0)
		opened <- err
	}()
	unix.Close(first)
	say("third", <-opened)
}

// Calls return what they do on a kernel.
func TestCalls(t *testing.T) {
	checkProbe(t, probeVariable+"=all", wantCalls)
}

// With SIM_FAST=1 the kernel executes most calls: what is invalid comes back as if nothing
// had answered, and so do requests whose answer has several segments.
func TestFastCalls(t *testing.T) {
	checkProbe(t, "SIM_FAST=1 "+probeVariable+"=fast", wantFast)
}

func checkProbe(t *testing.T, variables, want string) {
	t.Helper()
	got := on(t, "fattree:k=4").sh(t, variables+" "+programFolder+"/fabsh")
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split("\n"+got, "\n")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

const wantCalls = `
register: 0 1 2
empty: 0x4 -1 resource temporarily unavailable -1 invalid argument
first hop: -1 invalid argument
short: -1 invalid argument 100 <nil> -1 invalid argument
long: -1 invalid argument
agent: -1 input/output error -1 invalid argument
list: -1 invalid argument
address: bad address
after 36 bytes: 0x5 320 <nil> status 0 length 320 P_Key index 0 GRH 0 method 0x81 MAD status 0x8000
get: 320 <nil> 0x5 -1 invalid argument 320 <nil> status 0 length 320 P_Key index 0 GRH 0 method 0x81 MAD status 0x8000 0x4 -1 resource temporarily unavailable
position: illegal seek illegal seek
table: 320 <nil> 0x5 -1 invalid argument -1 no space left on device status 0 length 1688 P_Key index 0 GRH 0 method 0x92 MAD status 0x0 1688 <nil> status 0 length 1688 P_Key index 0 GRH 0 method 0x92 MAD status 0x0
no agent: 320 <nil> 0x5 320 <nil> status 0 length 320 P_Key index 0 GRH 0 method 0x81 MAD status 0xc
GRH: 320 <nil> 0x5 320 <nil> status 0 length 320 P_Key index 0 GRH 1 method 0x81 MAD status 0xc
GID index: -1 no data available 0x4 -1 resource temporarily unavailable
other host: 320 <nil> 0x5 320 <nil> status 0 length 320 P_Key index 0 GRH 0 method 0x81 MAD status 0xc
P_Key index: 320 <nil> 0x5 88 <nil> status 110 length 0 P_Key index 1 GRH 0 method 0x1 MAD status 0x0
other method: 320 <nil> 0x5 88 <nil> status 110 length 0 P_Key index 0 GRH 0 method 0x6 MAD status 0x0
reader: 320 <nil> status 0 length 320 P_Key index 0 GRH 0 method 0x81 MAD status 0x8000
reader: 320 <nil> status 0 length 320 P_Key index 0 GRH 0 method 0x81 MAD status 0x8000
reader: 320 <nil> status 0 length 320 P_Key index 0 GRH 0 method 0x81 MAD status 0x8000
issm: <nil> second: resource temporarily unavailable write: invalid argument read: invalid argument
third: <nil>
`

const wantFast = `
first hop: 320 <nil> 0x5 88 <nil> status 110 length 0 P_Key index 0 GRH 0 method 0x1 MAD status 0x0
short: -1 invalid argument -1 invalid argument 0x4 -1 invalid argument -1 resource temporarily unavailable
get: 320 <nil> 0x5 320 <nil> status 0 length 320 P_Key index 0 GRH 0 method 0x81 MAD status 0x8000 0x4 -1 resource temporarily unavailable
table: 320 <nil> 0x5 88 <nil> status 110 length 0 P_Key index 0 GRH 0 method 0x12 MAD status 0x0
`
