package ibsim

import (
	"os"
	"syscall"

	"fabsh/mad"
)

// prompt reads and writes a socket, and knows when that would take waiting. The
// functions are made once: each would be an allocation.
type prompt struct {
	raw        syscall.RawConn
	recv       func(fd uintptr) (done bool)
	send       func(fd uintptr)
	beforeWait func()
	n          int // what recv read
	recvErr    error
	sendErr    error
}

// open makes ready for the data socket of t.
func (p *prompt) open(t *Transport) (err error) {
	if p.raw, err = t.data.SyscallConn(); err != nil {
		return err
	}
	p.recv = func(fd uintptr) bool {
		for {
			switch p.n, p.recvErr = syscall.Read(int(fd), t.rx[:]); p.recvErr {
			case syscall.EINTR:
			case syscall.EAGAIN:
				if p.beforeWait != nil {
					p.beforeWait()
				}
				return false
			default:
				return true
			}
		}
	}
	p.send = func(fd uintptr) {
		for {
			if _, p.sendErr = syscall.Write(int(fd), t.tx[:]); p.sendErr != syscall.EINTR {
				return
			}
		}
	}
	return nil
}

// read waits for a message.
func (p *prompt) read() (int, error) {
	if err := p.raw.Read(p.recv); err != nil {
		return 0, err
	}
	return p.n, os.NewSyscallError("read", p.recvErr)
}

// BeforeWait has Recv call f before it waits.
func (t *Transport) BeforeWait(f func()) bool {
	t.prompt.beforeWait = f
	return true
}

// TrySend is Send, unless ibsim's queue is full. It goes around the lock of
// writers, one of whom may be waiting.
func (t *Transport) TrySend(d *mad.Datagram) (bool, error) {
	if err := t.message(d); err != nil {
		return false, err
	}
	p := &t.prompt
	if err := p.raw.Control(p.send); err != nil {
		return false, t.fail(err)
	}
	switch p.sendErr {
	case nil:
		return true, nil
	case syscall.EAGAIN:
		return false, nil
	}
	return false, t.fail(os.NewSyscallError("write", p.sendErr))
}
