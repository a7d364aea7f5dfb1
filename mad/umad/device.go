package umad

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// device is one open /dev/infiniband/umadN.
type device struct {
	port
	file     file
	agents   map[mad.Class]uint32 // the sender's
	userRMPP bool                 // tests do without the kernel's
	tx, rx   []byte
}

// file is what a device is to us.
type file interface {
	// Read takes one datagram, Write gives one.
	io.ReadWriteCloser
	// beforeWait has Read call f each time before it waits, and look again if
	// f returns true; false where that cannot be.
	beforeWait(f func() (again bool)) (ok bool)
	// register has the kernel carry out a request for an agent.
	register(*[requestSize]byte) error
	// unregister takes an agent back.
	unregister(agent uint32) error
}

// deviceFolder is where udev, or the kernel itself, puts the devices.
const deviceFolder = "/dev/infiniband/"

func (p port) path() string { return deviceFolder + p.umad }

func openDevice(p port, openFile func(path string) (file, error)) (*device, error) {
	f, err := openFile(p.path())
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%v: no permission to open %s: %s", p, p.path(), permit(groupOf(p.path())))
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%v: the kernel has %s, but %s does not exist: udev should make it; a container must be given it (--device %[3]s)", p, p.umad, p.path())
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV):
		return nil, goneError(p, err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return nil, fmt.Errorf("%v: %w: raise the limit (ulimit -n, fs.file-max), or close some", p, err)
	case err != nil:
		return nil, fmt.Errorf("%v: %w", p, err)
	}
	return &device{
		port:   p,
		file:   f,
		agents: map[mad.Class]uint32{},
		tx:     make([]byte, headerSize+mad.Size),
		rx:     make([]byte, headerSize+8*mad.Size),
	}, nil
}

// send writes d.
func (v *device) send(d *engine.Datagram) error {
	class := mad.Class(d.MAD[mad.ClassOffset])
	if err := v.checkRoute(d.MAD); err != nil {
		return &engine.SendError{Err: err}
	}
	if d.QKey != 0 && d.QKey != mad.GeneralQKey { // mad.c, ib_create_send_mad: IB_QP_SET_QKEY
		return &engine.SendError{Err: fmt.Errorf("queue pair %#x wants Q_Key %#x, and the kernel sends management datagrams with %#x only", d.QP, d.QKey, mad.GeneralQKey)}
	}
	agent, ok := v.agents[class]
	if !ok {
		r := agentRequest(class, v.userRMPP)
		if err := v.file.register(&r); err != nil {
			return v.registerError(class, err)
		}
		agent = binary.NativeEndian.Uint32(r[:])
		v.agents[class] = agent
	}
	putHeader(v.tx, agent, d)
	if isTransfer(d.MAD) && !v.userRMPP {
		putTransfer(v.tx)
	}
	v.tx = append(v.tx[:headerSize], d.MAD...)
	if _, err := v.file.Write(v.tx); err != nil {
		return v.writeError(err)
	}
	return nil
}

// accept registers an agent that gets the requests of class c and method m. It
// sends nothing: answers go out by the agent of what we send.
func (v *device) accept(c mad.Class, m mad.Method) (stop func(), err error) {
	r := agentRequest(c, v.userRMPP)
	acceptMethod(&r, m)
	if err := v.file.register(&r); errors.Is(err, syscall.EINVAL) {
		return nil, fmt.Errorf("%v: another program takes each %s of class %v that comes to this port (a subnet manager the traps, an event daemon the Reports), and the kernel gives them to one only: end it (fuser -v %s shows who has the device open), or use another port (-C, -P) (%w)",
			v, m.Name(c, c.Version()), c, v.path(), err)
	} else if err != nil {
		return nil, v.registerError(c, err)
	}
	agent := binary.NativeEndian.Uint32(r[:])
	return func() { v.file.unregister(agent) }, nil // it fails where the device is gone
}

// checkRoute says why a directed route does not begin here. The kernel makes
// the first hop itself, and refuses without a word.
func (v *device) checkRoute(m []byte) error {
	if mad.Class(m[mad.ClassOffset]) != mad.ClassSubnDirected || v.num == 0 {
		return nil
	}
	first := int(m[mad.SMPInitialPathOffset+1])
	if m[mad.HopCountOffset] == 0 || first == v.num {
		return nil
	}
	return fmt.Errorf("the route leaves this node through port %d, but we are on %v: begin with 0,%d, or choose another port (-P)", first, v, v.num)
}

// recv reads into d.
func (v *device) recv(d *engine.Datagram) error {
	n, err := v.file.Read(v.rx)
	for errors.Is(err, syscall.ENOSPC) {
		// A table: it stays first in the queue, and the header, which was
		// filled in, says how long it is.
		need := int(binary.NativeEndian.Uint32(v.rx[offLength:]))
		if need <= len(v.rx) {
			break
		}
		v.rx = make([]byte, need)
		n, err = v.file.Read(v.rx)
	}
	if err == nil && n < headerSize+mad.HeaderSize {
		err = syscall.EMSGSIZE // never seen
	}
	if err != nil {
		return v.readError(err)
	}
	d.Address = getAddress(v.rx)
	d.Timeout, d.Cut = 0, false
	// The status is ETIMEDOUT; then only the MAD's header comes back.
	d.Undelivered = binary.NativeEndian.Uint32(v.rx[offStatus:]) != 0
	d.MAD = append(d.MAD[:0], v.rx[headerSize:n]...)
	return nil
}

// readError: every one is final. Of a device that went the runtime's poller may
// hear before the kernel is asked; then the error is its own, and no errno.
func (v *device) readError(err error) error {
	var errno syscall.Errno
	if e := v.gone(err); e != nil {
		return e
	} else if !errors.As(err, &errno) {
		return goneError(v.port, err)
	}
	if errno == syscall.ENOSPC { // never seen
		return fmt.Errorf("%v: the kernel has a datagram of %d bytes, which does not fit in as many (%w); start again", v, len(v.rx), err)
	}
	return fmt.Errorf("%v: the kernel gives no more datagrams (%w); start again", v, err)
}

func (v *device) close() { v.file.Close() }

// gone says that the device can be used no longer, if that is what err means.
func (v *device) gone(err error) error {
	switch {
	case errors.Is(err, os.ErrClosed):
		return engine.ErrClosed
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.EPIPE), errors.Is(err, fs.ErrNotExist):
		return goneError(v.port, err)
	}
	return nil
}

func goneError(p port, err error) error {
	return fmt.Errorf("%v is gone: the device was removed or reset, or its driver unloaded (%w); start again when it is back", p, err)
}

// writeError: what the kernel refuses concerns one datagram.
func (v *device) writeError(err error) error {
	if e := v.gone(err); e != nil {
		return e
	}
	var what string
	switch {
	case errors.Is(err, syscall.EINVAL):
		what = "the kernel finds the address or the MAD invalid"
	case errors.Is(err, syscall.ENOMEM):
		what = "the kernel has no memory for it: free some, or have less under way (--window)"
	case errors.Is(err, fs.ErrPermission):
		what = forbidden
	case errors.Is(err, syscall.ENODATA), errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		what = "the kernel finds no way to the GID"
	default:
		what = "the kernel refuses it"
	}
	return &engine.SendError{Err: fmt.Errorf("%v: %s (%w)", v, what, err)}
}

// registerError says why there is no agent for class c.
func (v *device) registerError(c mad.Class, err error) error {
	if e := v.gone(err); e != nil {
		return e
	}
	var what string
	switch {
	case errors.Is(err, syscall.EPROTONOSUPPORT):
		what = "the port has no subnet management interface, as virtual functions and RoCE ports have none: choose another (-C, -P)"
	case errors.Is(err, syscall.EINVAL):
		what = fmt.Sprintf("the kernel sends nothing of class %v: its classes are 0x01 to 0x4f and 0x81", c)
	case errors.Is(err, syscall.ENOMEM):
		what = fmt.Sprintf("the kernel has no room for an agent of class %v: it gives a session %d, one for each class; use another session for further classes", c, maxAgents)
	case errors.Is(err, fs.ErrPermission):
		what = forbidden
	case errors.Is(err, syscall.ENOTTY):
		what = "the kernel is older than Linux 3.18: use a newer one"
	default:
		what = fmt.Sprintf("the kernel gives no agent for class %v", c)
	}
	return &engine.SendError{Err: fmt.Errorf("%v: %s (%w)", v, what, err)}
}

// forbidden: the device was opened, and now may not be used.
const forbidden = "the host's security policy (SELinux) forbids it: allow it there (ausearch -m avc tells what was forbidden), or run as root"

// maxAgents of one open file (IB_UMAD_MAX_AGENTS). Classes above 0x4f it does
// not know (mad_priv.h, MAX_MGMT_CLASS), but for directed routes.
const maxAgents = 32
