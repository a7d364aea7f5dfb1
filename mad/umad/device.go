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
	agents   map[mad.Class]uint32 // of the sender
	userRMPP bool                 // tests do not use the kernel's RMPP
	tx, rx   []byte
}

// file is an open device.
type file interface {
	// Read receives one datagram, Write sends one.
	io.ReadWriteCloser
	// beforeWait makes Read call f each time before it waits, and try again if f
	// returns true; it returns false if that is unsupported.
	beforeWait(f func() (again bool)) (ok bool)
	// register makes the kernel execute a request for an agent.
	register(*[requestSize]byte) error
	// unregister removes an agent.
	unregister(agent uint32) error
}

// deviceFolder is the directory where udev, or the kernel itself, creates the devices.
const deviceFolder = "/dev/infiniband/"

func (p port) path() string { return deviceFolder + p.umad }

func openDevice(p port, openFile func(path string) (file, error)) (*device, error) {
	f, err := openFile(p.path())
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%v: %s: %s", p, p.path(), denied(p.path(), err))
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%v: %s: the kernel has it, but %s does not exist; udev should create it; pass it to a container with --device %[3]s", p, p.umad, p.path())
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV):
		return nil, goneError(p, err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return nil, fmt.Errorf("%v: %w; raise the limit (ulimit -n, fs.file-max), or close some files", p, err)
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
		return &engine.SendError{Err: fmt.Errorf("queue pair %#x requires Q_Key %#x; the kernel sends management datagrams only with %#x", d.QP, d.QKey, mad.GeneralQKey)}
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

// accept registers an agent that receives the requests of class c and method m. It
// sends nothing: answers are sent by the sender's agent.
func (v *device) accept(c mad.Class, m mad.Method) (stop func(), err error) {
	r := agentRequest(c, v.userRMPP)
	acceptMethod(&r, m)
	if err := v.file.register(&r); errors.Is(err, syscall.EINVAL) {
		return nil, fmt.Errorf("%v: another program receives each %s of class %v at this port (a subnet manager the traps, an event daemon the Reports), and the kernel delivers them to only one; stop it (fuser -v %s shows who has the device open), or use another port (-C, -P) (%w)",
			v, m.Name(c, c.Version()), c, v.path(), err)
	} else if err != nil {
		return nil, v.registerError(c, err)
	}
	agent := binary.NativeEndian.Uint32(r[:])
	return func() { v.file.unregister(agent) }, nil // fails if the device is gone
}

// checkRoute returns an error if a directed route does not begin here. The kernel
// makes the first hop itself, and refuses without an error.
func (v *device) checkRoute(m []byte) error {
	if mad.Class(m[mad.ClassOffset]) != mad.ClassSubnDirected || v.num == 0 {
		return nil
	}
	first := int(m[mad.SMPInitialPathOffset+1])
	if m[mad.HopCountOffset] == 0 || first == v.num {
		return nil
	}
	return fmt.Errorf("the route leaves this node through port %d, but the port in use is %v; begin with 0,%d, or choose another port (-P)", first, v, v.num)
}

// recv reads into d.
func (v *device) recv(d *engine.Datagram) error {
	n, err := v.file.Read(v.rx)
	for errors.Is(err, syscall.ENOSPC) {
		// A table: it stays first in the queue, and the header that was filled
		// in has its length.
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

// readError describes an error of a read; all are final. If the device disappears,
// the runtime's poller may notice first; then the error is its own, not an errno.
func (v *device) readError(err error) error {
	var errno syscall.Errno
	if e := v.gone(err); e != nil {
		return e
	} else if !errors.As(err, &errno) {
		return goneError(v.port, err)
	}
	if errno == syscall.ENOSPC { // never seen
		return fmt.Errorf("%v: a datagram of the kernel does not fit in %d bytes (%w); start again", v, len(v.rx), err)
	}
	return fmt.Errorf("%v: the kernel delivers no more datagrams (%w); start again", v, err)
}

func (v *device) close() { v.file.Close() }

// gone returns an error if err means that the device can no longer be used.
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
	return fmt.Errorf("%v: the device was removed or reset, or its driver unloaded (%w); start again when it is back", p, err)
}

// writeError describes an error of a write; it concerns one datagram.
func (v *device) writeError(err error) error {
	if e := v.gone(err); e != nil {
		return e
	}
	var what string
	switch {
	case errors.Is(err, syscall.EINVAL):
		what = "the kernel rejects the address or the MAD as invalid"
	case errors.Is(err, syscall.ENOMEM):
		what = "the kernel has no memory for it; free some, or reduce the number of outstanding requests (--window)"
	case errors.Is(err, fs.ErrPermission):
		what = forbidden
	case errors.Is(err, syscall.ENODATA), errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		what = "the kernel has no route to the GID"
	default:
		what = "the kernel rejects it"
	}
	return &engine.SendError{Err: fmt.Errorf("%v: %s (%w)", v, what, err)}
}

// registerError describes why the kernel created no agent for class c.
func (v *device) registerError(c mad.Class, err error) error {
	if e := v.gone(err); e != nil {
		return e
	}
	var what string
	switch {
	case errors.Is(err, syscall.EPROTONOSUPPORT):
		what = "the port has no subnet management interface (a virtual function or RoCE port?); choose another (-C, -P)"
	case errors.Is(err, syscall.EINVAL):
		what = fmt.Sprintf("the kernel does not send class %v; it supports classes 0x01 to 0x4f and 0x81", c)
	case errors.Is(err, syscall.ENOMEM):
		what = fmt.Sprintf("the kernel has no room for an agent of class %v: a session has up to %d, one for each class; use another session for further classes", c, maxAgents)
	case errors.Is(err, fs.ErrPermission):
		what = forbidden
	case errors.Is(err, syscall.ENOTTY):
		what = "the kernel is older than Linux 3.18; use a newer one"
	default:
		what = fmt.Sprintf("the kernel creates no agent for class %v", c)
	}
	return &engine.SendError{Err: fmt.Errorf("%v: %s (%w)", v, what, err)}
}

// forbidden describes a device whose use something other than its mode forbids.
const forbidden = "the host's security policy (SELinux) forbids it; allow it there (ausearch -m avc shows what was forbidden), or run as root"

// maxAgents is the number of agents of one open file (IB_UMAD_MAX_AGENTS). The
// kernel does not support classes above 0x4f (mad_priv.h, MAX_MGMT_CLASS), except
// for directed routes.
const maxAgents = 32
