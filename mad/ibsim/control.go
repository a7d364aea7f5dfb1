package ibsim

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/nowait"
)

// Options select where to attach.
type Options struct {
	// Socket is ibsim's name: its IBSIM_SOCKNAME, or "" for "sim".
	Socket string
	// Node is the node to attach to, by the name in the net file or by its
	// description; "" is the first of the net file. Of a channel adapter it
	// is always port 1, of a switch port 0.
	Node string
	// QP, above 1, is the queue pair for requests to us (Reports). 0: with ISSM,
	// queue pair 1; otherwise any.
	QP uint32
	// ISSM receives requests to QP 0 and 1 of the node, as its subnet manager
	// does: a node can have one such client.
	ISSM bool
}

const (
	// connectTimeout is long: ibsim may be loading a big net file.
	connectTimeout = 30 * time.Second
	factsTimeout   = 5 * time.Second
	closeTimeout   = 2 * time.Second
)

// control is the socket for requests to ibsim itself.
type control struct {
	*net.UnixConn
	slot uint32

	mu     sync.Mutex // one request at a time
	serial uint32
}

// address returns the address of one of ibsim's abstract sockets. It includes a NUL after the name.
func address(format string, args ...any) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: "@" + fmt.Sprintf(format, args...) + "\x00"}
}

// Attach takes one of ibsim's ten client slots.
func Attach(o Options) (*Transport, error) {
	if o.Socket == "" {
		o.Socket = "sim"
	}
	switch {
	case len(o.Socket) > MaxName:
		return nil, fmt.Errorf("ibsim at %q: the name of a socket has at most %d bytes", o.Socket, MaxName)
	case len(o.Node) >= NodeSize:
		return nil, fmt.Errorf("node %q: too long; ibsim attaches to nodes by names of at most %d bytes", o.Node, NodeSize-1)
	}
	if o.QP == 0 && !o.ISSM { // it distinguishes programs on one node
		o.QP = 2 + rand.Uint32N(1<<24-2)
	}
	t := &Transport{socket: o.Socket, qp: o.QP, issm: o.ISSM}
	id, err := t.open()
	if err != nil {
		return nil, err
	}
	if err := t.connect(o, id); isTimeout(err) {
		go t.abandon()
		return nil, err
	} else if err != nil {
		t.data.Close()
		t.ctl.Close()
		return nil, err
	}
	t.ended, t.end = context.WithCancelCause(context.Background())
	t.watch.Go(t.watchIbsim)
	return t, nil
}

// open creates our two sockets. Both must have their names before CONNECT: ibsim
// exits if it cannot connect to the one for data.
func (t *Transport) open() (id int32, err error) {
	for range 8 { // another client may have this number
		id = 1 + rand.Int32N(1<<31-1)
		t.ctl.UnixConn, err = net.DialUnix("unixgram", address("%s:ctl%d", t.socket, id), address("%s:ctl", t.socket))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			continue
		case errors.Is(err, syscall.ECONNREFUSED):
			return 0, fmt.Errorf("ibsim at %q: no server has this socket in this network namespace; start one with IBSIM_SOCKNAME=%[1]s ibsim -s -n NETFILE, or name the socket of a running one (-F ibsim:NAME)", t.socket)
		case err != nil:
			return 0, fmt.Errorf("ibsim at %q: %w", t.socket, err)
		}
		var data *net.UnixConn
		data, err = net.ListenUnixgram("unixgram", address("%s:in%d", t.socket, id))
		if err == nil {
			t.data, err = nowait.New(data)
		}
		if err == nil {
			t.data.YieldBeforeWait()
			return id, nil
		}
		t.ctl.Close()
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return 0, fmt.Errorf("ibsim at %q: %w", t.socket, err)
}

// connect takes a slot, and connects our data socket to ibsim's socket of that slot:
// only between two sockets that are connected to each other does the kernel not limit
// the queue to net.unix.max_dgram_qlen.
func (t *Transport) connect(o Options, id int32) error {
	reply, err := t.ask(o, id)
	if err != nil {
		return err
	}
	t.ctl.slot = binary.NativeEndian.Uint32(reply[OffClientID:])
	name, _, _ := bytes.Cut(reply[OffNode:][:NodeSize], []byte{0})
	t.node = string(name)
	t.fabsh = isFabsh(reply)

	cerr := t.data.Control(func(fd uintptr) {
		err = syscall.Connect(int(fd), &syscall.SockaddrUnix{Name: address("%s:out%d", t.socket, t.ctl.slot).Name})
	})
	err = cmp.Or(err, cerr)
	if err != nil {
		t.ctl.request(CtlDisconnect, nil, closeTimeout)
		return fmt.Errorf("ibsim at %q: data socket: %w", t.socket, err)
	}
	return nil
}

// abandon keeps our sockets until ibsim answers an abandoned CONNECT.
func (t *Transport) abandon() {
	defer t.data.Close()
	defer t.ctl.Close()
	t.ctl.SetDeadline(time.Time{})
	for {
		reply, err := t.ctl.reply()
		if err == nil {
			t.ctl.slot = binary.NativeEndian.Uint32(reply[OffClientID:])
			t.ctl.request(CtlDisconnect, nil, closeTimeout)
		}
		if err != errStale {
			return
		}
	}
}

// ask sends CONNECT. ibsim gives no reason for a refusal; requests for less show the
// reason.
func (t *Transport) ask(o Options, id int32) (reply []byte, err error) {
	var info [64]byte
	binary.NativeEndian.PutUint32(info[OffClientID:], uint32(id))
	binary.NativeEndian.PutUint32(info[OffClientQP:], o.QP)
	if o.ISSM {
		binary.NativeEndian.PutUint32(info[OffISSM:], 1)
	}
	copy(info[OffNode:], o.Node)
	reply, err = t.ctl.request(CtlConnect, info[:], connectTimeout)
	if err == nil {
		return reply, nil
	}
	switch {
	case err != errRefused:
		return nil, fmt.Errorf("ibsim at %q: attach: %w", t.socket, err)
	case isFabsh(reply) && reply[OffReason] == ReasonUser:
		return nil, fmt.Errorf("ibsim at %q: attach: another user started this server, and it serves only that user; fabsh sim --any-user serves all", t.socket)
	}
	granted := func() bool {
		reply, err := t.ctl.request(CtlConnect, info[:], connectTimeout)
		if err != nil {
			return false
		}
		t.ctl.slot = binary.NativeEndian.Uint32(reply[OffClientID:])
		t.ctl.request(CtlDisconnect, nil, closeTimeout)
		return true
	}
	clear(info[OffISSM:OffNode])
	if o.ISSM && granted() {
		return nil, fmt.Errorf("ibsim at %q: node %q already has a subnet manager", t.socket, o.Node)
	}
	clear(info[OffNode:][:NodeSize])
	if o.Node != "" && granted() {
		return nil, fmt.Errorf("ibsim at %q: node %q is not in its net file", t.socket, o.Node)
	}
	return nil, fmt.Errorf("ibsim at %q: all 10 slots for clients are in use, perhaps by clients that did not detach; Attached on its console lists them, X with a number frees one", t.socket)
}

// isFabsh reports whether a reply to CONNECT, or a refusal, is from fabsh's own server.
func isFabsh(reply []byte) bool {
	return bytes.HasPrefix(reply[OffServer:], []byte(Fabsh))
}

// errRefused is ibsim's only answer when it refuses.
var errRefused = errors.New("refused")

// request sends a control request and waits for its reply, 64 bytes.
func (c *control) request(kind uint32, info []byte, timeout time.Duration) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	var m [CtlSize]byte
	binary.NativeEndian.PutUint32(m[0:], CtlMagic)
	binary.NativeEndian.PutUint32(m[OffSlot:], c.slot)
	binary.NativeEndian.PutUint32(m[OffType:], kind)
	binary.NativeEndian.PutUint32(m[offSerial:], c.serial)
	copy(m[OffInfo:], info)
	c.SetDeadline(time.Now().Add(timeout))
	if _, err := c.Write(m[:]); err != nil {
		return nil, c.explain(err, timeout)
	}
	for {
		reply, err := c.reply()
		switch err {
		case nil, errRefused:
			return reply, err
		case errStale:
		default:
			return nil, c.explain(err, timeout)
		}
	}
}

// errStale is the error of a reply to an abandoned request.
var errStale = errors.New("stale reply")

// reply reads a reply, 64 bytes.
func (c *control) reply() ([]byte, error) {
	var m [CtlSize]byte
	n, err := c.Read(m[:])
	switch {
	case err != nil:
		return nil, err
	case n != CtlSize || binary.NativeEndian.Uint32(m[offSerial:]) != c.serial:
		return nil, errStale
	case binary.NativeEndian.Uint32(m[OffType:]) == CtlError:
		return m[OffInfo:], errRefused
	}
	return m[OffInfo:], nil
}

func (c *control) explain(err error, timeout time.Duration) error {
	if isTimeout(err) {
		return fmt.Errorf("no reply within %v; it is stopped, or waits for a client that does not read its answers: %w", timeout, err)
	}
	return err
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// Port requests from ibsim the facts of the port that we are attached to.
func (t *Transport) Port() (engine.Port, error) {
	if err := t.cause(); err != nil {
		return engine.Port{}, err
	}
	var node mad.NodeInfo
	var port mad.PortInfo
	var pkeys []byte
	for _, q := range []struct {
		kind uint32
		put  func(reply []byte)
	}{
		{CtlGetNodeInfo, node.Decode},
		{CtlGetPortInfo, port.Decode}, // of port "0": ours
		{CtlGetPKeys, func(reply []byte) { pkeys = reply }},
	} {
		reply, err := t.ctl.request(q.kind, nil, factsTimeout)
		switch {
		case isTimeout(err):
			return engine.Port{}, fmt.Errorf("ibsim at %q: local port: %w", t.socket, err)
		case err != nil:
			return engine.Port{}, t.fail(err)
		}
		q.put(reply)
	}
	p := engine.Port{
		Device:    t.node,
		Num:       port.LocalPortNum,
		NodeGUID:  node.NodeGUID,
		PortGUID:  node.NodeGUID,
		LID:       port.LID,
		LMC:       port.LMC,
		SMLID:     port.MasterSMLID,
		SMSL:      port.MasterSMSL,
		State:     port.PortState,
		GIDPrefix: port.GIDPrefix,
	}
	if node.NodeType != mad.NodeTypeSwitch {
		p.PortGUID += mad.GUID(p.Num) // as the simulated agents report it
	}
	for i := range len(pkeys) / 2 { // up to the last one in use; the index counts
		if key := binary.BigEndian.Uint16(pkeys[2*i:]); key != 0 {
			p.PKeys = append(append(p.PKeys, make([]uint16, i-len(p.PKeys))...), key)
		}
	}
	return p, nil
}
