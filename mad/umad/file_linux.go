package umad

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"fabsh/mad/internal/nowait"
)

// Requests of ib_umad: IB_USER_MAD_REGISTER_AGENT2, which brings the P_Key index
// in headers with it, and IB_USER_MAD_UNREGISTER_AGENT.
const (
	registerAgent2  = 0xc0281b04
	unregisterAgent = 0x40041b02
)

// character is an open character device. It waits in the runtime's poller,
// which Close wakes; its Fd method would end that.
type character struct {
	*os.File
	fast *nowait.Conn
}

func openFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	fast, err := nowait.New(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &character{f, fast}, nil
}

func (c *character) Read(b []byte) (int, error) {
	n, err := c.fast.Read(b)
	if err != nil {
		return 0, c.failed("read", err)
	}
	return n, nil
}

func (c *character) Write(b []byte) (int, error) {
	n, err := c.fast.Write(b)
	if err != nil {
		return 0, c.failed("write", err)
	}
	return n, nil
}

// failed is what the file's own method would say. What is no errno comes from
// the poller: the file was closed, or the device is gone.
func (c *character) failed(op string, err error) error {
	if _, ok := err.(syscall.Errno); !ok {
		if _, e := c.File.Read(make([]byte, 1)); e != nil {
			return e
		}
	}
	return &os.PathError{Op: op, Path: c.Name(), Err: err}
}

func (c *character) beforeWait(f func() (again bool)) (ok bool) {
	c.fast.BeforeWait(f)
	return true
}

func (c *character) register(r *[requestSize]byte) error {
	return c.ioctl(registerAgent2, unsafe.Pointer(r))
}

func (c *character) unregister(agent uint32) error {
	return c.ioctl(unregisterAgent, unsafe.Pointer(&agent))
}

func (c *character) ioctl(request uintptr, argument unsafe.Pointer) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var errno unix.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(argument))
	})
	if err == nil && errno != 0 {
		err = os.NewSyscallError("ioctl", errno)
	}
	return err
}
