package umad

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"fabsh/mad/internal/nowait"
)

// Requests of ib_umad: IB_USER_MAD_REGISTER_AGENT2, which implies the P_Key index
// in headers, and IB_USER_MAD_UNREGISTER_AGENT.
const (
	registerAgent2  = 0xc0281b04
	unregisterAgent = 0x40041b02
)

// charDevice is an open character device.
type charDevice struct {
	*nowait.Conn
	path string
}

func openFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	c, err := nowait.New(f)
	if err != nil {
		return nil, err
	}
	return &charDevice{c, path}, nil
}

// accessDevice returns an error if this process may not read and write the file at path,
// which it does not open.
func accessDevice(path string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS); err != nil {
		return &os.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

func (c *charDevice) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.failed("read", err)
}

func (c *charDevice) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.failed("write", err)
}

// failed returns err as a file's own methods would.
func (c *charDevice) failed(op string, err error) error {
	if err != nil {
		err = &os.PathError{Op: op, Path: c.path, Err: err}
	}
	return err
}

func (c *charDevice) beforeWait(f func() (again bool)) (ok bool) {
	c.BeforeWait(f)
	return true
}

func (c *charDevice) register(r *[requestSize]byte) error {
	return c.ioctl(registerAgent2, unsafe.Pointer(r))
}

func (c *charDevice) unregister(agent uint32) error {
	return c.ioctl(unregisterAgent, unsafe.Pointer(&agent))
}

func (c *charDevice) ioctl(request uintptr, argument unsafe.Pointer) error {
	var errno unix.Errno
	err := c.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(argument))
	})
	if err == nil && errno != 0 {
		err = os.NewSyscallError("ioctl", errno)
	}
	return err
}

// readFile reads up to most bytes of a regular file. Most files of sysfs are a short line,
// which it returns whole at the first read (linux fs/kernfs/file.c): the end is not looked for
// behind a line that leaves space in the buffer.
func readFile(path string, most int) ([]byte, error) {
	fd, err := retryEINTR(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	b := make([]byte, 0, min(most, 80))
	for {
		n, err := retryEINTR(func() (int, error) { return unix.Read(fd, b[len(b):cap(b)]) })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		b = b[:len(b)+n]
		if n == 0 || len(b) == most || len(b) < cap(b) && b[len(b)-1] == '\n' {
			return b, nil
		}
		if len(b) == cap(b) {
			b = append(make([]byte, 0, most), b...)
		}
	}
}

// retryEINTR repeats a system call while a signal interrupts it, and returns its result.
func retryEINTR(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}
