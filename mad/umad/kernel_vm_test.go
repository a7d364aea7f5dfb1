//go:build kerneltest

package umad

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/umad/umadtest"
)

// hostDevice is the device that tests open.
const hostDevice = "rxe0"

func TestMain(m *testing.M) {
	umadtest.Main(m, umadtest.VM{Modules: []string{"?crc32_generic", "ib_umad", "rdma_rxe", "dummy"}})
}

// openHost makes the device and opens it.
func openHost(t *testing.T) *Transport {
	t.Helper()
	if err := umadtest.AddRoCE("rxe0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeRoCE(t) })
	tr, err := Open(Options{Device: hostDevice})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// removeRoCE removes the Soft-RoCE device, if it still exists, and waits until it is gone.
func removeRoCE(t *testing.T) {
	t.Helper()
	umadtest.RemoveRoCE("rxe0")
	for range 1000 {
		if _, err := os.Stat(deviceClass + "/rxe0"); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond) // polls: sysfs does not signal the removal
	}
	t.Fatal("rxe0 does not go")
}

// What sysfs of the real kernel says.
func TestKernelPort(t *testing.T) {
	tr := openHost(t)
	p, err := tr.Port()
	if err != nil {
		t.Fatal(err)
	}
	p.NodeGUID, p.PortGUID = 0, 0 // by chance
	want := engine.Port{Device: "rxe0", Num: 1, State: mad.PortStateActive, GIDPrefix: 0xfe80000000000000, PKeys: []uint16{0xffff}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	const noPort = "no InfiniBand port is up: rxe0/1 (RoCE); check cable and switch, or name a device to use it anyway (-C); fabsh ports lists them"
	if _, err := Open(Options{}); fmt.Sprint(err) != noPort {
		t.Errorf("got  %v\nwant %s", err, noPort)
	}
}

// What the kernel refuses, with its own errno.
func TestKernelRefusals(t *testing.T) {
	tr := openHost(t)
	send := func(d *engine.Datagram) string {
		err := tr.Send(d)
		var refused *engine.SendError
		if err != nil && !errors.As(err, &refused) {
			t.Errorf("%v is final", err)
		}
		return fmt.Sprint(err)
	}
	get := func(c mad.Class, to engine.Address) *engine.Datagram {
		m := vendorGets(to, 1)[0].MAD
		m[mad.ClassOffset] = byte(c)
		return &engine.Datagram{Address: to, MAD: m[:], Timeout: time.Millisecond}
	}
	to := toSelf(t, tr)
	for _, c := range []struct {
		name string
		d    *engine.Datagram
		want string
	}{
		{"SMP", request(mad.ClassSubn, 0), "rxe0/1: the port has no subnet management interface (a virtual function or RoCE port?); choose another (-C, -P) (ioctl: protocol not supported)"},
		{"class", get(0x55, to), "rxe0/1: the kernel does not send class unknown(0x55); it supports classes 0x01 to 0x4f and 0x81 (ioctl: invalid argument)"},
		{"RoCE without GID", get(mad.ClassPerf, engine.Address{LID: 1, QP: 1}), "rxe0/1: the kernel rejects the address or the MAD as invalid (write /dev/infiniband/umad0: invalid argument)"},
		{"fine", get(mad.ClassPerf, to), "<nil>"},
	} {
		if got := send(c.d); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
	sent := len(tr.gsi.agents)
	const full = "rxe0/1: the kernel has no room for an agent of class Vendor(0x4f): a session has up to 32, one for each class; use another session for further classes (ioctl: cannot allocate memory)"
	for c := mad.Class(0x30); sent < maxAgents; c++ {
		if got := send(get(c, to)); got != "<nil>" {
			t.Fatalf("class %v: %s", c, got)
		}
		sent++
	}
	if got := send(get(0x4f, to)); got != full {
		t.Errorf("agent %d:\ngot  %s\nwant %s", maxAgents+1, got, full)
	}
	if got := send(get(mad.ClassPerf, to)); got != "<nil>" {
		t.Errorf("afterwards: %s", got)
	}
}

// A device that goes ends what waits, what comes later, and hinders no Close.
func TestKernelRemoval(t *testing.T) {
	tr := openHost(t)
	serve(t, tr, vendor, func([]byte) []byte { return nil })
	e := newEngine(t, tr, engine.Options{Timeout: time.Minute})
	calls := vendorGets(toSelf(t, tr), 2)
	done := make(chan error)
	go func() { done <- e.Do(t.Context(), calls...) }()
	for int(e.Stats().Sent) < len(calls) {
		time.Sleep(time.Millisecond) // polls: nothing signals the count
	}
	began := time.Now()
	removeRoCE(t)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Logf("calls ended %v after the removal began", time.Since(began).Round(time.Millisecond))
	later := vendorGets(calls[0].To, 1)
	e.Do(t.Context(), later...)
	const want = ": rxe0/1: the device was removed or reset, or its driver unloaded ("
	for i, c := range append(calls, later...) {
		if c.Err == nil || !strings.Contains(c.Err.Error(), want) {
			t.Fatalf("call %d:\ngot  %v\nwant %s...", i, c.Err, want)
		}
	}
	if _, err := tr.Port(); err == nil || !strings.HasPrefix(err.Error(), "rxe0/1: the device was removed or reset, or its driver unloaded (") {
		t.Errorf("Port: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(Options{}); err != ErrNoDevice {
		t.Errorf("Open: %v", err)
	}
}

// The error of a user without permission names the file, and how to get access.
func TestKernelPermission(t *testing.T) {
	const child = "UMAD_TEST_CHILD"
	if os.Getenv(child) != "" {
		if os.Getenv(child) == "policy" {
			if err := forbidWrites(); err != nil {
				fmt.Print(err)
				os.Exit(0)
			}
		}
		_, err := Open(Options{Device: hostDevice})
		list, _ := HostPorts(nil)
		fmt.Print(err, "|", list[0].Unusable) // <nil> if there is none
		os.Exit(0)
	}
	tr := openHost(t)
	open := func(kind string) string {
		c := exec.Command("/init", "-test.run=^TestKernelPermission$")
		c.Env = append(os.Environ(), child+"="+kind)
		c.Stderr = os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	const want = "rxe0/1: /dev/infiniband/umad0: permission denied; run as root; or "
	for _, allowed := range []bool{false, true, false} { // granted, and revoked
		mode := os.FileMode(0o600)
		if allowed {
			mode = 0o666
		}
		if err := os.Chmod(tr.gsi.path(), mode); err != nil {
			t.Fatal(err)
		}
		if got := open("mode"); allowed && got != "<nil>|not InfiniBand" || !allowed && !strings.HasPrefix(got, want) {
			t.Errorf("mode %v: got %s\nwant %s...", mode, got, want)
		}
	}
	if err := os.Chmod(tr.gsi.path(), 0o666); err != nil {
		t.Fatal(err)
	}
	const policy = "rxe0/1: /dev/infiniband/umad0: permission denied although its mode allows it; the host's security policy (SELinux) forbids it; "
	if got := open("policy"); !strings.HasPrefix(got, policy) {
		t.Errorf("policy: got %s\nwant %s...", got, policy)
	}
}

// forbidWrites makes the kernel refuse to open files for writing with EACCES, as SELinux
// does, by Landlock: it needs no policy of the system.
func forbidWrites() error {
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("prctl: %w", errno)
	}
	rules := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_WRITE_FILE}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules.Handled_access_fs), 0)
	if errno != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return nil
}

// TestKernelNoDevice: the kernel has the device, and the container does not.
func TestKernelNoDevice(t *testing.T) {
	tr := openHost(t)
	tr.Close()
	path := tr.gsi.path()
	if err := os.Rename(path, "/dev/hidden"); err != nil {
		t.Fatal(err)
	}
	defer os.Rename("/dev/hidden", path)
	const want = "rxe0/1: umad0: the kernel has it, but /dev/infiniband/umad0 does not exist; udev should create it; pass it to a container with --device /dev/infiniband/umad0"
	if _, err := Open(Options{Device: hostDevice}); fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestKernelNoModule(t *testing.T) {
	tr := openHost(t)
	tr.Close()
	if err := unix.DeleteModule("ib_umad", 0); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Options{Device: hostDevice})
	if err == nil || !strings.HasPrefix(err.Error(), "the kernel module ib_umad is not loaded (no /sys/class/infiniband_mad); ") {
		t.Errorf("got %v", err)
	}
	if list, err := HostPorts(nil); err == nil || len(list) != 1 || list[0].Unusable != "not InfiniBand" {
		t.Errorf("ports: %+v, %v", list, err)
	}
	if err := umadtest.LoadModule("ib_umad"); err != nil {
		t.Fatal(err)
	}
}
