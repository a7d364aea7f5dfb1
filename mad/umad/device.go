package umad

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"
	"time"

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
		return nil, fmt.Errorf("%v: %s: %s", p, p.path(), permissionCause(p.path(), err))
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

// headerSize is the length of the header before each MAD (struct
// ib_user_mad_hdr, with the P_Key index). Fields are in the host's byte order
// unless noted as big endian.
const (
	headerSize = 64

	offAgent        = 0
	offStatus       = 4  // 0, or why our request was returned
	offTimeout      = 8  // ms; 0: no answer is expected
	offRetries      = 12 // the kernel's
	offLength       = 16 // of all, on receive
	offQP           = 20 // big endian from here
	offQKey         = 24
	offLID          = 28
	offSL           = 30
	offGRH          = 32 // 1: present
	offHopLimit     = 34 // after the index of our GID: the first
	offTrafficClass = 35
	offGID          = 36
	offFlowLabel    = 52
	offPKeyIndex    = 56 // host order
)

// putHeader writes the header of d, which goes out through agent.
func putHeader(b []byte, agent uint32, d *engine.Datagram) {
	clear(b[:headerSize])
	ne, be := binary.NativeEndian, binary.BigEndian
	ne.PutUint32(b[offAgent:], agent)
	ne.PutUint32(b[offTimeout:], millis(d.Timeout))
	be.PutUint32(b[offQP:], d.QP)
	if d.QP != 0 {
		be.PutUint32(b[offQKey:], mad.GeneralQKey)
	}
	be.PutUint16(b[offLID:], uint16(d.LID))
	b[offSL] = d.SL
	if d.HasGRH {
		b[offGRH], b[offHopLimit], b[offTrafficClass] = 1, d.HopLimit, d.TrafficClass
		copy(b[offGID:], d.GID[:])
		be.PutUint32(b[offFlowLabel:], d.FlowLabel)
	}
	ne.PutUint16(b[offPKeyIndex:], d.PKeyIndex)
}

// The kernel repeats a segment that is not acknowledged within 2 s, up to
// segmentRetries times (mad_rmpp.c, ib_retry_rmpp). It never does if the timeout
// for the answer is shorter: send_next_seg then leaves an absolute time where the
// relative one should be.
const (
	segmentRetries = 5
	minTransfer    = 2001 // ms
)

// putTransfer sets in header b how often the kernel repeats the segments of a
// request.
func putTransfer(b []byte) {
	ne := binary.NativeEndian
	ne.PutUint32(b[offTimeout:], max(ne.Uint32(b[offTimeout:]), minTransfer))
	ne.PutUint32(b[offRetries:], segmentRetries)
}

// isTransfer reports whether m is a request that is sent by RMPP.
func isTransfer(m []byte) bool {
	return mad.Class(m[mad.ClassOffset]) == mad.ClassSubnAdm && !mad.Method(m[mad.MethodOffset]).IsResponse() &&
		mad.RMPPFlags(m[mad.RMPPFlagsOffset])&mad.RMPPFlagsActive != 0
}

// millis rounds up: 0 would mean that no answer is expected.
func millis(t time.Duration) uint32 {
	return uint32(min((t+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
}

// getAddress reads the remote address in a header: the source of an answer, or the
// destination of our request that was returned.
func getAddress(b []byte) (a engine.Address) {
	ne, be := binary.NativeEndian, binary.BigEndian
	a.LID = mad.LID(be.Uint16(b[offLID:]))
	a.QP = be.Uint32(b[offQP:])
	a.SL = b[offSL]
	a.PKeyIndex = ne.Uint16(b[offPKeyIndex:])
	if b[offGRH] != 0 {
		a.HasGRH = true
		a.HopLimit, a.TrafficClass = b[offHopLimit], b[offTrafficClass]
		a.GID = mad.GID(b[offGID:])
		a.FlowLabel = be.Uint32(b[offFlowLabel:])
	}
	return a
}

// requestSize is the length of a request for an agent (struct
// ib_user_mad_reg_req2). The kernel writes the agent's number into its start.
const requestSize = 40

// openibOUI is in requests for agents of classes with a vendor; answers are
// matched by transaction ID, so the vendor does not matter.
const openibOUI = 0x001405

// agentRequest requests an agent that sends MADs of class c. It receives no
// requests: the masks of methods are empty.
func agentRequest(c mad.Class, userRMPP bool) (b [requestSize]byte) {
	ne := binary.NativeEndian
	if c.Family() != mad.ClassSubn {
		ne.PutUint32(b[4:], 1) // queue pair
	}
	b[8], b[9] = uint8(c), c.Version()
	if c >= 0x30 && c <= 0x4f {
		ne.PutUint32(b[32:], openibOUI)
	}
	if c == mad.ClassSubnAdm {
		b[36] = 1 // RMPP version
		if userRMPP {
			ne.PutUint32(b[12:], 1) // flags: segments and ACKs are left to us
		}
	}
	return b
}

// acceptMethod makes the agent also receive requests of method m.
func acceptMethod(b *[requestSize]byte, m mad.Method) {
	mask := b[16:32] // two words of 64 bits, the first for the lower methods
	ne := binary.NativeEndian
	word := mask[8*(m/64):]
	ne.PutUint64(word, ne.Uint64(word)|1<<(m%64))
}

// permissionRemedy returns how the user can get permission to open a device; group is the
// group that may open it and that the user is not in, or "".
func permissionRemedy(group string) string {
	if group != "" {
		return "run as root; or join its group and log in again: sudo usermod -aG " + group + ` "$USER" (its members can change the fabric)`
	}
	return `run as root; or allow a group to use it by a rule in /etc/udev/rules.d, SUBSYSTEM=="infiniband_mad", KERNEL=="umad*", GROUP="rdma", MODE="0660" (its members can then change the fabric), then: udevadm control --reload && udevadm trigger -s infiniband_mad; fabsh's package brings such a rule, for the group fabsh`
}

// permissionCause returns the cause and the remedy where the system refuses to open the device at
// path with err. What its owner, group and mode allow, something else forbids: the devices
// of a container (EPERM), or a security policy (EACCES).
func permissionCause(path string, err error) string {
	switch {
	case errors.Is(err, syscall.EPERM):
		return "not permitted; pass the device to the container with --device " + path
	case modeAllows(path):
		return "permission denied although its mode allows it; " + forbidden
	}
	return "permission denied; " + permissionRemedy(groupOf(path))
}

// modeAllows reports whether owner, group and mode of the file let this process read and
// write it.
func modeAllows(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	groups, err := os.Getgroups()
	st, ok := info.Sys().(*syscall.Stat_t)
	if err != nil || !ok {
		return false
	}
	bits := info.Mode().Perm()
	switch {
	case int(st.Uid) == os.Geteuid():
		bits >>= 6
	case slices.Contains(append(groups, os.Getegid()), int(st.Gid)):
		bits >>= 3
	}
	return bits&6 == 6
}

// groupOf returns the name of the group that may read and write the file, if this
// process is not in it; otherwise "".
func groupOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	own, err := os.Getgroups()
	if err != nil {
		return ""
	}
	return groupIn(info, append(own, os.Getegid()))
}

// groupIn is groupOf for a process of the groups own.
func groupIn(info fs.FileInfo, own []int) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&0o060 != 0o060 || st.Gid == 0 || slices.Contains(own, int(st.Gid)) {
		return ""
	}
	g, err := user.LookupGroupId(strconv.Itoa(int(st.Gid)))
	if err != nil {
		return ""
	}
	return g.Name
}
