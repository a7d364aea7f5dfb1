package umad

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// request is a Get of attribute 0x11 of the class; with hops, along 0,1,1...
func request(c mad.Class, hops int) *engine.Datagram {
	var call engine.Call
	call.PutSMP(mad.MethodGet, 0x11, 0, nil)
	call.SetLID(7)
	if c == mad.ClassSubnDirected {
		route := make(mad.DirectedRoute, hops+1)
		for i := range hops {
			route[i+1] = 1
		}
		call.SetRoute(route)
	} else if c != mad.ClassSubn {
		call.MAD[mad.ClassOffset] = byte(c)
		call.To.QP = 1
	}
	return &engine.Datagram{Address: call.To, MAD: call.MAD[:], Timeout: time.Second}
}

// Layouts as in linux/ib_user_mad.h; this is what a little-endian host writes.
func TestHeader(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the bytes below are those of a little-endian host")
	}
	gid := mad.MakeGID(0xfe80000000000000, 0x0002c90300000011)
	for _, c := range []struct {
		name string
		d    engine.Datagram
		want string
	}{
		{"directed route", engine.Datagram{Address: engine.Address{LID: mad.PermissiveLID}, Timeout: time.Second},
			"03000000 00000000 e8030000 00000000 00000000 00000000 00000000 ffff0000 00000000" +
				"00000000000000000000000000000000 00000000 0000 000000000000"},
		{"LID", engine.Datagram{Address: engine.Address{LID: 0x1234, QP: 1, SL: 5, PKeyIndex: 0x201}},
			"03000000 00000000 00000000 00000000 00000000 00000001 80010000 12340500 00000000" +
				"00000000000000000000000000000000 00000000 0102 000000000000"},
		{"GRH", engine.Datagram{Address: engine.Address{LID: 2, QP: 1, HasGRH: true, GID: gid, HopLimit: 64, TrafficClass: 9, FlowLabel: 0x12345}, Timeout: 1},
			"03000000 00000000 01000000 00000000 00000000 00000001 80010000 00020000 01004009" +
				"fe800000000000000002c90300000011 00012345 0000 000000000000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := make([]byte, headerSize)
			putHeader(b, 3, &c.d)
			if got, want := hex.EncodeToString(b), strings.ReplaceAll(c.want, " ", ""); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if diff := cmp.Diff(c.d.Address, getAddress(b)); diff != "" {
				t.Errorf("read back (-want +got)\n%s", diff)
			}
		})
	}
}

func TestAgentRequest(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the bytes below are those of a little-endian host")
	}
	const noMethods = "00000000000000000000000000000000"
	for _, c := range []struct {
		class    mad.Class
		userRMPP bool
		want     string
	}{
		{mad.ClassSubn, false, "00000000 00000000 01 01 0000 00000000" + noMethods + "00000000 00 000000"},
		{mad.ClassSubnDirected, false, "00000000 00000000 81 01 0000 00000000" + noMethods + "00000000 00 000000"},
		{mad.ClassSubnAdm, false, "00000000 01000000 03 02 0000 00000000" + noMethods + "00000000 01 000000"},
		{mad.ClassSubnAdm, true, "00000000 01000000 03 02 0000 01000000" + noMethods + "00000000 01 000000"},
		{mad.ClassPerf, false, "00000000 01000000 04 01 0000 00000000" + noMethods + "00000000 00 000000"},
		{0x32, false, "00000000 01000000 32 01 0000 00000000" + noMethods + "05140000 00 000000"},
	} {
		b := agentRequest(c.class, c.userRMPP)
		if got, want := hex.EncodeToString(b[:]), strings.ReplaceAll(c.want, " ", ""); got != want {
			t.Errorf("%v: got  %s\nwant %s", c.class, got, want)
		}
	}
}

// One agent serves all that is sent of a class.
func TestAgents(t *testing.T) {
	tr, files := openFake(t, fakePort("mlx5_0/1", "active", 0x11, 0), Options{})
	classes := []mad.Class{mad.ClassSubn, mad.ClassPerf, mad.ClassSubnDirected, mad.ClassPerf, mad.ClassSubn, mad.ClassSubnAdm, mad.ClassSubn}
	for _, c := range classes {
		if err := tr.Send(request(c, 1)); err != nil {
			t.Fatal(err)
		}
	}
	f := files["umad0"]
	var got []string
	for i, b := range f.written {
		agent := binary.NativeEndian.Uint32(b)
		got = append(got, fmt.Sprintf("%v by agent %d of %v, %d bytes", classes[i], agent, mad.Class(f.requests[agent][8]), len(b)))
	}
	want := []string{
		"Subn by agent 0 of Subn, 320 bytes",
		"Perf by agent 1 of Perf, 320 bytes",
		"SubnDirected by agent 2 of SubnDirected, 320 bytes",
		"Perf by agent 1 of Perf, 320 bytes",
		"Subn by agent 0 of Subn, 320 bytes",
		"SubnAdm by agent 3 of SubnAdm, 320 bytes",
		"Subn by agent 0 of Subn, 320 bytes",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What the kernel refuses to send, in words.
func TestSendErrors(t *testing.T) {
	const goneText = "mlx5_0/2: the device was removed or reset, or its driver unloaded (%s); start again when it is back"
	for _, c := range []struct {
		name     string
		class    mad.Class
		hops     int
		register error
		write    error
		want     string
		final    bool
	}{
		{"fine", mad.ClassSubnDirected, 0, nil, nil, "<nil>", false},
		{"route", mad.ClassSubnDirected, 2, nil, nil, "the route leaves this node through port 1, but the port in use is mlx5_0/2; begin with 0,2, or choose another port (-P)", false},
		{"no SMI", mad.ClassSubn, 0, syscall.EPROTONOSUPPORT, nil, "mlx5_0/2: the port has no subnet management interface (a virtual function or RoCE port?); choose another (-C, -P) (ioctl: protocol not supported)", false},
		{"class", 0x55, 0, syscall.EINVAL, nil, "mlx5_0/2: the kernel does not send class unknown(0x55); it supports classes 0x01 to 0x4f and 0x81 (ioctl: invalid argument)", false},
		{"agents", mad.ClassPerf, 0, syscall.ENOMEM, nil, "mlx5_0/2: the kernel has no room for an agent of class Perf: a session has up to 32, one for each class; use another session for further classes (ioctl: cannot allocate memory)", false},
		{"policy", mad.ClassPerf, 0, syscall.EACCES, nil, "mlx5_0/2: the host's security policy (SELinux) forbids it; allow it there (ausearch -m avc shows what was forbidden), or run as root (ioctl: permission denied)", false},
		{"policy, write", mad.ClassPerf, 0, nil, syscall.EPERM, "mlx5_0/2: the host's security policy (SELinux) forbids it; allow it there (ausearch -m avc shows what was forbidden), or run as root (write /dev/infiniband/umad0: operation not permitted)", false},
		{"old", mad.ClassPerf, 0, syscall.ENOTTY, nil, "mlx5_0/2: the kernel is older than Linux 3.18; use a newer one (ioctl: inappropriate ioctl for device)", false},
		{"odd", mad.ClassPerf, 0, syscall.E2BIG, nil, "mlx5_0/2: the kernel creates no agent for class Perf (ioctl: argument list too long)", false},
		{"gone, agent", mad.ClassPerf, 0, syscall.EPIPE, nil, fmt.Sprintf(goneText, "ioctl: broken pipe"), true},
		{"gone", mad.ClassPerf, 0, nil, syscall.EIO, fmt.Sprintf(goneText, "write /dev/infiniband/umad0: input/output error"), true},
		{"closed", mad.ClassPerf, 0, nil, os.ErrClosed, "transport closed", true},
		{"invalid", mad.ClassPerf, 0, nil, syscall.EINVAL, "mlx5_0/2: the kernel rejects the address or the MAD as invalid (write /dev/infiniband/umad0: invalid argument)", false},
		{"memory", mad.ClassPerf, 0, nil, syscall.ENOMEM, "mlx5_0/2: the kernel has no memory for it; free some, or reduce the number of outstanding requests (--window) (write /dev/infiniband/umad0: cannot allocate memory)", false},
		{"neighbour", mad.ClassPerf, 0, nil, syscall.ETIMEDOUT, "mlx5_0/2: the kernel has no route to the GID (write /dev/infiniband/umad0: connection timed out)", false},
		{"other", mad.ClassPerf, 0, nil, syscall.E2BIG, "mlx5_0/2: the kernel rejects it (write /dev/infiniband/umad0: argument list too long)", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr, files := openFake(t, fakePort("mlx5_0/2", "active", 0x12, 0), Options{})
			files["umad0"].refuse = c.register
			if c.write != nil {
				if err := tr.Send(request(c.class, 0)); err != nil { // has the agent registered
					t.Fatal(err)
				}
				files["umad0"].refuse = c.write
			}
			err := tr.Send(request(c.class, c.hops))
			if fmt.Sprint(err) != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			var refused *engine.SendError
			if final := err != nil && !errors.As(err, &refused); final != c.final {
				t.Errorf("final %v, want %v", final, c.final)
			}
		})
	}
}

// entry is what is read: a header with status, and m.
func entry(status uint32, m []byte) []byte {
	b := make([]byte, headerSize, headerSize+len(m))
	putHeader(b, 0, &engine.Datagram{Address: engine.Address{LID: 9, QP: 1, SL: 2}})
	binary.NativeEndian.PutUint32(b[offStatus:], status)
	binary.NativeEndian.PutUint32(b[offLength:], uint32(headerSize+len(m)))
	return append(b, m...)
}

func numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

func TestRecv(t *testing.T) {
	tr, files := openFake(t, fakePort("mlx5_0/1", "active", 0x11, 0), Options{})
	from := engine.Address{LID: 9, QP: 1, SL: 2}
	d := engine.Datagram{Timeout: time.Second, Cut: true, MAD: make([]byte, 1)}
	for _, c := range []struct {
		name  string
		entry []byte
		want  engine.Datagram
	}{
		{"answer", entry(0, numbered(256)), engine.Datagram{Address: from, MAD: numbered(256)}},
		{"timed out", entry(110, numbered(24)), engine.Datagram{Address: from, MAD: numbered(24), Undelivered: true}},
		{"table", entry(0, numbered(256+800)), engine.Datagram{Address: from, MAD: numbered(256 + 800)}},
		{"long table", entry(0, numbered(1e6)), engine.Datagram{Address: from, MAD: numbered(1e6)}},
		{"answer after it", entry(0, numbered(256)), engine.Datagram{Address: from, MAD: numbered(256)}},
	} {
		files["umad0"].queue <- c.entry
		if err := tr.Recv(&d); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if !bytes.Equal(c.want.MAD, d.MAD) { // go-cmp is slow with a million bytes
			t.Errorf("%s: %d bytes, not the %d expected", c.name, len(d.MAD), len(c.want.MAD))
		}
		if diff := cmp.Diff(c.want, d, cmpopts.IgnoreFields(d, "MAD")); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}

// TestFull: the kernel has room for so many agents of one open device; what has
// one goes on.
func TestFull(t *testing.T) {
	tr, files := openFake(t, fakePort("mlx5_0/1", "active", 0x11, 0), Options{})
	classes := []mad.Class{mad.ClassSubn, mad.ClassPerf}
	for c := mad.Class(0x30); len(classes) < maxAgents; c++ {
		classes = append(classes, c)
	}
	for _, c := range classes {
		if err := tr.Send(request(c, 0)); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
	}
	files["umad0"].refuseAgents = syscall.ENOMEM
	var refused *engine.SendError
	const want = "mlx5_0/1: the kernel has no room for an agent of class SubnAdm: a session has up to 32, one for each class; use another session for further classes (ioctl: cannot allocate memory)"
	if err := tr.Send(request(mad.ClassSubnAdm, 0)); !errors.As(err, &refused) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for _, c := range classes {
		if err := tr.Send(request(c, 0)); err != nil {
			t.Errorf("afterwards, %v: %v", c, err)
		}
	}
}

// TestNoSpace: a kernel that does not keep its word about the length of a
// datagram ends the session, and not in a loop.
func TestNoSpace(t *testing.T) {
	tr, files := openFake(t, fakePort("mlx5_0/1", "active", 0x11, 0), Options{})
	long := entry(0, numbered(5000))
	binary.NativeEndian.PutUint32(long[offLength:], 4000)
	files["umad0"].queue <- long
	const want = "mlx5_0/1: a datagram of the kernel does not fit in 4000 bytes (read /dev/infiniband/umad0: no space left on device); start again"
	if err := tr.Recv(new(engine.Datagram)); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestRecvErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{os.ErrClosed, "transport closed"},
		{syscall.EIO, "mlx5_0/1: the device was removed or reset, or its driver unloaded (read /dev/infiniband/umad0: input/output error); start again when it is back"},
		{errors.New("not pollable"), "mlx5_0/1: the device was removed or reset, or its driver unloaded (read /dev/infiniband/umad0: not pollable); start again when it is back"},
		{syscall.EBADF, "mlx5_0/1: the kernel delivers no more datagrams (read /dev/infiniband/umad0: bad file descriptor); start again"},
	} {
		tr, files := openFake(t, fakePort("mlx5_0/1", "active", 0x11, 0), Options{})
		files["umad0"].fail(c.err)
		if err := tr.Recv(new(engine.Datagram)); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{syscall.EACCES, `mlx5_0/1: /dev/infiniband/umad99: permission denied; run as root; or allow a group to use it by a rule in /etc/udev/rules.d, SUBSYSTEM=="infiniband_mad", KERNEL=="umad*", GROUP="rdma", MODE="0660" (its members can then change the fabric), then: udevadm control --reload && udevadm trigger -s infiniband_mad; fabsh's package brings such a rule, for the group fabsh`},
		{syscall.EPERM, "mlx5_0/1: /dev/infiniband/umad99: not permitted; pass the device to the container with --device /dev/infiniband/umad99"},
		{syscall.ENOENT, "mlx5_0/1: umad99: the kernel has it, but /dev/infiniband/umad99 does not exist; udev should create it; pass it to a container with --device /dev/infiniband/umad99"},
		{syscall.ENXIO, "mlx5_0/1: the device was removed or reset, or its driver unloaded (open /dev/infiniband/umad99: no such device or address); start again when it is back"},
		{syscall.EMFILE, "mlx5_0/1: open /dev/infiniband/umad99: too many open files; raise the limit (ulimit -n, fs.file-max), or close some files"},
	} {
		p := port{device: "mlx5_0", num: 1, umad: "umad99"}
		_, err := open(sysfs{}, p, p, func(path string) (file, error) {
			return nil, &fs.PathError{Op: "open", Path: path, Err: c.err}
		})
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// Who listens has an agent of its own, of one method, until the end; what is
// sent goes by another.
func TestAccept(t *testing.T) {
	tr, files := openFake(t, fakePort("mlx5_0/1", "active", 0x11, 0), Options{})
	f := files["umad0"]
	stop, err := tr.Accept(mad.ClassSubnAdm, mad.MethodReport)
	if err != nil {
		t.Fatal(err)
	}
	stopTraps, err := tr.Accept(mad.ClassSubn, mad.MethodTrap)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Send(request(mad.ClassSubnAdm, 0)); err != nil {
		t.Fatal(err)
	}
	stopTraps()
	stop()
	var got []string
	for _, r := range f.requests {
		ne := binary.NativeEndian
		got = append(got, fmt.Sprintf("QP %d %v version %d RMPP %d methods %x %x", ne.Uint32(r[4:]), mad.Class(r[8]), r[9], r[36], ne.Uint64(r[16:]), ne.Uint64(r[24:])))
	}
	want := []string{
		"QP 1 SubnAdm version 2 RMPP 1 methods 40 0",
		"QP 0 Subn version 1 RMPP 0 methods 20 0",
		"QP 1 SubnAdm version 2 RMPP 1 methods 0 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("agents (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]uint32{1, 0}, f.ended); diff != "" {
		t.Errorf("given back (-want +got)\n%s", diff)
	}
	if agent := binary.NativeEndian.Uint32(f.written[0]); agent != 2 {
		t.Errorf("sent by agent %d", agent)
	}

	f.refuse = syscall.EINVAL
	_, err = tr.Accept(mad.ClassSubnAdm, mad.MethodReport)
	const taken = "mlx5_0/1: another program receives each Report of class SubnAdm at this port (a subnet manager the traps, an event daemon the Reports), and the kernel delivers them to only one; stop it (fuser -v /dev/infiniband/umad0 shows who has the device open), or use another port (-C, -P) (ioctl: invalid argument)"
	if err == nil || err.Error() != taken {
		t.Errorf("got  %v\nwant %s", err, taken)
	}
	f.refuse = syscall.ENOMEM
	if _, err = tr.Accept(mad.ClassSubnAdm, mad.MethodReport); err == nil || !strings.Contains(err.Error(), "a session has up to 32") {
		t.Errorf("no room: %v", err)
	}
}

// The kernel gets the number of times that it sends segments of requests again.
func TestTransfer(t *testing.T) {
	segmented := func(d *engine.Datagram, n int) *engine.Datagram {
		h := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: mad.RMPPFlagsActive}
		h.Encode(d.MAD[mad.RMPPOffset:])
		d.MAD = append(d.MAD, make([]byte, n)...)
		return d
	}
	for _, c := range []struct {
		name              string
		d                 *engine.Datagram
		timeout           time.Duration
		userRMPP          bool
		length            int
		wantMS, wantAgain uint32
	}{
		{"short request", request(mad.ClassSubnAdm, 0), 100 * time.Millisecond, false, 256, 100, 0},
		{"SMP", request(mad.ClassSubn, 0), 100 * time.Millisecond, false, 256, 100, 0},
		{"long request", segmented(request(mad.ClassSubnAdm, 0), 1000), 5 * time.Second, false, 1256, 5000, 5},
		{"in a hurry", segmented(request(mad.ClassSubnAdm, 0), 1000), 100 * time.Millisecond, false, 1256, 2001, 5},
		{"segment of the engine's", segmented(request(mad.ClassSubnAdm, 0), 0), 100 * time.Millisecond, true, 256, 100, 0},
	} {
		tr, files := openFake(t, fakePort("mlx5_0/1", "active", 0x11, 0), Options{})
		tr.gsi.userRMPP = c.userRMPP
		c.d.Timeout = c.timeout
		if err := tr.Send(c.d); err != nil {
			t.Fatal(err)
		}
		b := files["umad0"].written[0]
		ne := binary.NativeEndian
		got := fmt.Sprint(len(b)-headerSize, ne.Uint32(b[offTimeout:]), ne.Uint32(b[offRetries:]))
		if want := fmt.Sprint(c.length, c.wantMS, c.wantAgain); got != want {
			t.Errorf("%s: got %s, want %s", c.name, got, want)
		}
	}
}

// TestPermit: a device of a group says which to join; any other how to make one.
func TestPermit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "umad0")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const daemon = 1 // a group of every Debian, and of most others
	if os.Chown(name, -1, daemon) != nil {
		t.Skip("needs root, to give a file to a group")
	}
	for _, c := range []struct {
		mode  os.FileMode
		own   []int
		group string
	}{
		{0o660, []int{1000}, "daemon"},
		{0o660, []int{1000, daemon}, ""}, // it is something else that forbids
		{0o600, []int{1000}, ""},
		{0o640, []int{1000}, ""},
	} {
		if err := os.Chmod(name, c.mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Sys().(*syscall.Stat_t).Gid != daemon {
			t.Skip("this file system keeps no groups")
		}
		if got := groupIn(info, c.own); got != c.group {
			t.Errorf("mode %v, groups %v: got %q, want %q", c.mode, c.own, got, c.group)
		}
	}
	if got := permissionRemedy("rdma"); !strings.Contains(got, `sudo usermod -aG rdma "$USER"`) || !strings.Contains(got, "run as root") {
		t.Errorf("of a group: %s", got)
	}
	if got := permissionRemedy(""); !strings.Contains(got, `GROUP="rdma"`) || !strings.Contains(got, "udevadm trigger") {
		t.Errorf("of none: %s", got)
	}
}

// TestDenied: what owner, group and mode allow, a policy forbids.
func TestDenied(t *testing.T) {
	name := filepath.Join(t.TempDir(), "umad0")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const policy = "permission denied although its mode allows it; the host's security policy (SELinux) forbids it; allow it there (ausearch -m avc shows what was forbidden), or run as root"
	if got := permissionCause(name, syscall.EACCES); got != policy {
		t.Errorf("owner: %s", got)
	}
	if err := os.Chmod(name, 0o400); err != nil {
		t.Fatal(err)
	}
	if got := permissionCause(name, syscall.EACCES); !strings.HasPrefix(got, "permission denied; run as root") {
		t.Errorf("mode: %s", got)
	}
}
