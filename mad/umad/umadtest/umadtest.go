//go:build linux

// Package umadtest runs tests in a virtual machine, on the kernel's own
// ib_umad: over Soft-RoCE, or over virtual InfiniBand adapters whose fabric is
// a program (testdata/vib).
//
// Main is for the TestMain of a package whose tests run there. Such a test binary boots a
// machine (VM) in QEMU whose first process is itself; what its tests write there is what go
// test sees. AddRoCE makes a Soft-RoCE device in the machine, NewHCA a virtual adapter.
//
// kernel.sh unpacks kernel and QEMU, and compiles the module; rdmacore.sh compiles tools of
// a newer rdma-core.
package umadtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// VM is a machine.
type VM struct {
	// Modules of the kernel are loaded in this order, each after those it
	// depends on; "?crc32_generic" may be missing.
	Modules []string
	// Programs of the peers, or of the host ("opensm"); ibsimtest finds them.
	Programs []string
	// Packages are programs of this module ("fabsh/shell/fabsh"), built for
	// the machine.
	Packages []string
}

// Main runs the tests of m in vm.
func Main(m *testing.M, vm VM) {
	switch {
	case os.Getpid() == 1:
		halt(initGuest())
	case os.Getenv(inGuest) != "":
		os.Exit(m.Run())
	}
	status, err := vm.boot(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "umadtest:", err)
		status = 1
	}
	os.Exit(status)
}

// machineTimeout is how long a machine may run: more than all tests of a package
// take where processors are slow and busy.
const machineTimeout = 25 * time.Minute

// order is what the first process of a machine is to do.
type order struct {
	Modules []string
	Args    []string // of the test binary
}

// boot runs this test binary in a machine and returns its exit status.
func (vm VM) boot(args []string) (int, error) {
	root, err := moduleRoot()
	if err != nil {
		return 0, err
	}
	kernel := filepath.Join(root, ".kernel")
	if _, err := os.Stat(kernel); err != nil {
		return 0, errors.New("no directory .kernel; run make kernel")
	}
	dir, err := os.MkdirTemp("", "umadtest")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	disk, err := vm.disk(root, kernel, dir, args)
	if err != nil {
		return 0, err
	}
	initrd := filepath.Join(dir, "initrd")
	if err := os.WriteFile(initrd, disk, 0o666); err != nil {
		return 0, err
	}
	return run(kernel, initrd)
}

// moduleRoot returns the directory of go.mod.
func moduleRoot() (string, error) {
	d, err := os.Getwd()
	for err == nil {
		if _, e := os.Stat(filepath.Join(d, "go.mod")); e == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			err = errors.New("no go.mod in any directory above the test")
		}
		d = filepath.Dir(d)
	}
	return "", err
}

// disk returns the initial RAM disk, all that the machine has.
func (vm VM) disk(root, kernel, dir string, args []string) ([]byte, error) {
	var a archive
	for _, folder := range []string{"/proc", "/sys", "/dev", "/tmp", "/var/log", "/var/cache/opensm"} {
		a.folder(folder)
	}
	a.add("/dev/console", modeDevice|0o600, 5, 1, nil)
	a.file("/go.mod", 0o644, nil) // for ibsimtest: the root of the module
	o := order{Args: guestArgs(args)}
	var err error
	found := findModules(kernel)
	for _, name := range vm.Modules {
		if o.Modules, err = found.add(&a, o.Modules, name); err != nil {
			return nil, err
		}
	}
	for _, name := range vm.Programs {
		if err := addProgram(&a, filepath.Join(root, ".peers"), name); err != nil {
			return nil, err
		}
	}
	if err := addNewer(&a, root, dir); err != nil {
		return nil, err
	}
	for _, pkg := range vm.Packages {
		b, err := build(root, dir, pkg)
		if err != nil {
			return nil, err
		}
		a.file(programFolder+path.Base(pkg), 0o755, b)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(self)
	if err != nil {
		return nil, err
	}
	a.file("/init", 0o755, b)
	b, err = json.Marshal(o)
	a.file(orderPath, 0o644, b)
	a.end()
	return a.Bytes(), err
}

// guestArgs returns the arguments for the tests in the machine: args without arguments that
// name files of the host.
func guestArgs(args []string) (kept []string) {
	files := regexp.MustCompile(`^-test\.(testlogfile|outputdir|gocoverdir|coverprofile|cpuprofile|memprofile|blockprofile|mutexprofile|trace)=`)
	for _, a := range args {
		if !files.MatchString(a) {
			kept = append(kept, a)
		}
	}
	return kept
}

// build compiles a program, static as all of this module.
func build(root, dir, pkg string) ([]byte, error) {
	out := filepath.Join(dir, path.Base(pkg))
	c := exec.Command("go", "build", "-o", out, pkg)
	c.Dir = root
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", c, err, said)
	}
	return os.ReadFile(out)
}

// exitPort is where the machine writes its exit status: QEMU ends with twice
// that, plus 1.
const exitPort = 0xf4

// run boots a machine; its console is our standard output.
func run(kernel, initrd string) (status int, err error) {
	qemu, err := find("qemu-system-x86_64", append(below(kernel, "usr/bin"), "/usr/bin", "/usr/local/bin"))
	if err != nil {
		return 0, err
	}
	accelerator, processor := accelerate()
	ctx, cancel := context.WithTimeout(context.Background(), machineTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, qemu, "-nodefaults", "-no-user-config", "-no-reboot",
		"-display", "none", "-vga", "none", "-monitor", "none", "-serial", "stdio",
		"-device", fmt.Sprintf("isa-debug-exit,iobase=%#x,iosize=4", exitPort),
		"-M", "pc", "-smp", "1", "-m", "512", "-accel", accelerator, "-cpu", processor,
		"-kernel", filepath.Join(kernel, "kernel"), "-initrd", initrd,
		// Under emulation the check of the timer may fail where the host is busy.
		"-append", "console=ttyS0 quiet loglevel=3 oops=panic panic=-1 no_timer_check reboot=t random.trust_cpu=on mitigations=off")
	if strings.HasPrefix(qemu, kernel) {
		c.Args = append(c.Args, "-L", filepath.Join(kernel, "usr/share/qemu"), "-L", filepath.Join(kernel, "usr/share/seabios"))
		c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(below(kernel, "usr"+libraryFolder, libraryFolder), ":"))
	}
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = c.Run()
	switch code := c.ProcessState.ExitCode(); {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("the machine was still running after %v", machineTimeout)
	case code > 0 && code%2 == 1:
		return code / 2, nil
	}
	return 0, fmt.Errorf("the machine ended without an exit status (%v)", err)
}

// accelerate returns KVM where it runs an ordinary kernel. That /dev/kvm opens is
// not enough: within some machines it runs only kernels made for it. Where
// processors are emulated, the plainest is the fastest: programs that find AVX
// or SSE 4.2 use them, at many times the price of what they replace.
func accelerate() (accelerator, processor string) {
	info, _ := os.ReadFile("/proc/cpuinfo")
	if regexp.MustCompile(`(?m)^flags\s*:.*\b(vmx|svm)\b`).Match(info) {
		if f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err == nil {
			f.Close()
			return "kvm", "max"
		}
	}
	return "tcg", "qemu64"
}

const (
	orderPath = "/order.json"
	// inGuest is set in the environment of the tests in the machine.
	inGuest = "UMADTEST_IN_GUEST"
)

// initGuest is the first process: it makes the machine ready, runs the tests
// in another process, and returns their exit status.
func initGuest() int {
	status, err := prepareAndRun()
	if err != nil {
		fmt.Println("umadtest: in the machine:", err)
		return 1
	}
	return status
}

func prepareAndRun() (int, error) {
	for _, m := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}} {
		if err := unix.Mount(m[0], m[1], m[0], 0, ""); err != nil {
			return 0, fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	if err := plainLines(); err != nil {
		return 0, err
	}
	b, err := os.ReadFile(orderPath)
	if err != nil {
		return 0, err
	}
	var o order
	if err := json.Unmarshal(b, &o); err != nil {
		return 0, err
	}
	for _, name := range o.Modules {
		if err := LoadModule(name); err != nil {
			return 0, err
		}
	}
	if err := up("lo", nil); err != nil {
		return 0, err
	}
	c := exec.Command("/init", o.Args...)
	c.Env = []string{inGuest + "=1", "PATH=" + programFolder, "HOME=/tmp", "TMPDIR=/tmp"}
	c.Dir = "/tmp"
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	err = c.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// plainLines has the console end lines as programs do.
func plainLines() error {
	t, err := unix.IoctlGetTermios(1, unix.TCGETS)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	t.Oflag &^= unix.OPOST
	return unix.IoctlSetTermios(1, unix.TCSETSW, t)
}

// LoadModule loads a kernel module of the machine.
func LoadModule(name string) error {
	f, err := os.Open(modulePath(name))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil {
		return fmt.Errorf("module %s: %w", name, err)
	}
	return nil
}

// halt ends the machine.
func halt(status int) {
	unix.IoctlSetInt(1, unix.TCSBRK, 1) // wait until the console has written all
	if f, err := os.OpenFile("/dev/port", os.O_WRONLY, 0); err == nil {
		f.WriteAt([]byte{byte(status)}, exitPort)
	}
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}
