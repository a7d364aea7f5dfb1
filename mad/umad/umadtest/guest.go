//go:build linux

package umadtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

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
