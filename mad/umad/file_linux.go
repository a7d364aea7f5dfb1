package umad

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of ib_umad: IB_USER_MAD_REGISTER_AGENT2, which brings the P_Key index
// in headers with it, and IB_USER_MAD_UNREGISTER_AGENT.
const (
	registerAgent2  = 0xc0281b04
	unregisterAgent = 0x40041b02
)

// character is an open character device. It waits in the runtime's poller,
// which Close wakes; its Fd method would end that.
type character struct{ *os.File }

func openFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return character{f}, nil
}

func (c character) register(r *[requestSize]byte) error {
	return c.ioctl(registerAgent2, unsafe.Pointer(r))
}

func (c character) unregister(agent uint32) error {
	return c.ioctl(unregisterAgent, unsafe.Pointer(&agent))
}

func (c character) ioctl(request uintptr, argument unsafe.Pointer) error {
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
