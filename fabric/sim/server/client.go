package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"fabsh/fabric/sim"
	"fabsh/mad/ibsim"
)

// client is a program that is attached.
type client struct {
	*sim.Client
	socket  socket
	id      int32   // of its sockets
	control address // the source of its control requests
	node    string  // where it is attached
	index   int     // of that node

	reads, writes bool // what the poller waits for
	gone          bool

	// Under the Server's lock:
	queue []message // to it, from head on
	head  int
	dirty bool
}

const (
	// batchSize is how many datagrams one system call reads or writes.
	batchSize = 64
	// maxQueued is how many messages may wait for a client; further ones are lost, as in
	// the buffers of a port. While throttle messages wait, its own requests are left in
	// its socket.
	maxQueued = 4096
	throttle  = maxQueued / 2
)

// receive queues a message for c.
func (s *Server) receive(c *client, m *sim.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(c.queue)-c.head >= maxQueued {
		return
	}
	if c.head > 0 && len(c.queue) == cap(c.queue) {
		c.queue = c.queue[:copy(c.queue, c.queue[c.head:])]
		c.head = 0
	}
	c.queue = append(c.queue, message{})
	c.queue[len(c.queue)-1].encode(m)
	if !c.dirty {
		c.dirty = true
		s.dirty = append(s.dirty, c)
		if !s.working {
			s.poll.wake()
		}
	}
}

// readClient executes what c has sent, a batch of it, and returns how much it was.
func (s *Server) readClient(c *client) int {
	if !c.reads {
		return 0
	}
	n, err := c.socket.read(&s.in)
	switch {
	case errors.Is(err, errAgain), errors.Is(err, errGone): // push and dropDead notice when the other end is gone
		return 0
	case err != nil:
		s.drop(c, err.Error())
		return 0
	}
	for i := range n {
		if m := s.in.message(i); m != nil && !c.gone && s.serves(s.in.user(i)) {
			m.decode(&s.incoming)
			c.Send(&s.incoming)
		}
	}
	s.busy = c
	return n
}

// push sends what is queued for c, as much as it takes.
func (s *Server) push(c *client) {
	for {
		n, err := s.pushBatch(c)
		if n == 0 && err == nil && !c.More(batchSize) && !s.pending(c) {
			s.watch(c, false)
			return
		}
		if errors.Is(err, errAgain) {
			s.watch(c, true)
			return
		}
		if err != nil {
			s.drop(c, "it has ended without a word")
			return
		}
	}
}

// pushBatch sends up to batchSize messages.
func (s *Server) pushBatch(c *client) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.head == len(c.queue) {
		return 0, nil
	}
	n, err := c.socket.write(&s.out, c.queue[c.head:])
	c.head += n
	if c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
		if cap(c.queue) > throttle {
			c.queue = nil
		}
	}
	return n, err
}

func (s *Server) pending(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.head < len(c.queue)
}

// watch makes the poller wait until c takes messages, or stops that; and until c sends
// some, if not too many wait for it.
func (s *Server) watch(c *client, writes bool) {
	s.mu.Lock()
	reads := len(c.queue)-c.head < throttle
	s.mu.Unlock()
	if reads != c.reads || writes != c.writes {
		c.reads, c.writes = reads, writes
		if err := s.poll.change(c.socket, int32(c.Slot()), reads, writes); err != nil {
			s.drop(c, err.Error())
		}
	}
}

// dropDead drops the clients whose programs have ended without detaching.
func (s *Server) dropDead() {
	for _, c := range s.clients {
		if c != nil && c.socket.connect(s.clientSocket(c.id)) != nil {
			s.drop(c, "it has ended without a word")
		}
	}
}

// drop ends a client's attachment, and logs the reason unless the client detached.
func (s *Server) drop(c *client, why string) {
	if c.gone {
		return
	}
	c.gone = true
	c.socket.close()
	c.Detach()
	s.clients[c.Slot()] = nil
	if why != "" {
		s.log("client %d on %q is detached: %s", c.Slot(), c.node, why)
	}
	s.mu.Lock()
	c.queue, c.head = nil, 0
	s.mu.Unlock()
}

// readControl answers some control requests. Malformed ones are not answered, as by
// ibsim.
func (s *Server) readControl() {
	for range batchSize {
		var m [ibsim.CtlSize + 1]byte
		var from address
		n, user, err := s.control.readFrom(m[:], &from)
		if errors.Is(err, errAgain) {
			return
		}
		if err != nil || n != ibsim.CtlSize || binary.NativeEndian.Uint32(m[:]) != ibsim.CtlMagic {
			continue
		}
		if !s.serves(user) {
			err = fmt.Errorf("a client of user %d is refused: only the user who started the server is served; --any-user admits others", user)
			m[ibsim.OffInfo+ibsim.OffReason] = ibsim.ReasonUser
		} else {
			err = s.execute(m[:ibsim.CtlSize], &from)
		}
		if err != nil {
			binary.NativeEndian.PutUint32(m[ibsim.OffType:], ibsim.CtlError)
			s.log("%v", err)
		}
		if kind := binary.NativeEndian.Uint32(m[ibsim.OffType:]); kind == ibsim.CtlError || kind == ibsim.CtlConnect {
			copy(m[ibsim.OffInfo+ibsim.OffServer:], ibsim.Fabsh)
		}
		s.control.writeTo(m[:ibsim.CtlSize], &from)
	}
}

// execute turns a control request into its answer. An error refuses it.
func (s *Server) execute(m []byte, from *address) error {
	kind, info := binary.NativeEndian.Uint32(m[ibsim.OffType:]), m[ibsim.OffInfo:]
	if kind == ibsim.CtlConnect {
		return s.connect(info, from)
	}
	if kind > ibsim.CtlGetPKeys {
		return nil // ibsim echoes it
	}
	slot := binary.NativeEndian.Uint32(m[ibsim.OffSlot:])
	if int64(slot) >= int64(len(s.clients)) || s.clients[slot] == nil {
		if kind == ibsim.CtlDisconnect {
			return nil
		}
		return fmt.Errorf("control request %d for client %d, which is not attached", kind, slot)
	}
	c := s.clients[slot]
	if c.control != *from {
		return fmt.Errorf("control request %d for client %d from a socket that is not its own", kind, slot)
	}
	c.Starting()
	switch kind {
	case ibsim.CtlDisconnect:
		s.drop(c, "")
	case ibsim.CtlGetPort:
		lid, state := c.Port()
		binary.NativeEndian.PutUint16(info, uint16(lid))
		info[2] = byte(state)
	case ibsim.CtlGetVendor:
		i := c.NodeInfo()
		clear(info)
		binary.NativeEndian.PutUint32(info, i.VendorID)
		binary.NativeEndian.PutUint32(info[4:], uint32(i.DeviceID))
		binary.NativeEndian.PutUint32(info[8:], i.Revision)
		binary.NativeEndian.PutUint64(info[16:], 1) // version of the firmware
	case ibsim.CtlGetGID:
		i := c.PortInfo(0)
		binary.BigEndian.PutUint64(info, i.GIDPrefix)
		binary.NativeEndian.PutUint64(info[8:], uint64(c.NodeInfo().NodeGUID))
	case ibsim.CtlGetGUID:
		binary.NativeEndian.PutUint64(info, uint64(c.NodeInfo().NodeGUID))
	case ibsim.CtlGetNodeInfo:
		i := c.NodeInfo()
		clear(info)
		i.Encode(info)
	case ibsim.CtlGetPortInfo:
		i := c.PortInfo(int(info[0]))
		clear(info)
		i.Encode(info)
	case ibsim.CtlSetISSM:
		is := binary.NativeEndian.Uint32(info) != 0
		if c.SetSM(is); is && c.index == s.subnet.SM.Node() {
			s.log("client %d is a subnet manager on the node of the subnet's own, which it does not see: attach it to another node (SIM_HOST), or serve the subnet with --bare", c.Slot())
		}
	case ibsim.CtlGetPKeys:
		c.ReadPKeys(info)
	}
	return nil
}

// connect attaches a client.
func (s *Server) connect(info []byte, from *address) error {
	id := int32(binary.NativeEndian.Uint32(info[ibsim.OffClientID:]))
	name, _, _ := bytes.Cut(info[ibsim.OffNode:][:ibsim.NodeSize], []byte{0})
	node, err := s.names.Find(string(name))
	if err != nil {
		return fmt.Errorf("a client is refused: %w", err)
	}
	c := &client{id: id, control: *from, node: string(name), index: node}
	options := sim.ClientOptions{
		Node: node, QP: binary.NativeEndian.Uint32(info[ibsim.OffClientQP:]), General: binary.NativeEndian.Uint32(info[ibsim.OffISSM:]) != 0,
		Receive: func(m *sim.Message) { s.receive(c, m) },
	}
	if c.Client, err = s.subnet.Programs.AttachClient(options); err != nil {
		s.dropDead() // dead clients may occupy the slot
		if c.Client, err = s.subnet.Programs.AttachClient(options); err != nil {
			return fmt.Errorf("a client is refused: %w", err)
		}
	}
	slot := c.Slot()
	if c.socket, err = bind(fmt.Sprintf("%s:out%d", s.Name, slot)); err == nil {
		if err = c.socket.connect(s.clientSocket(id)); err == nil {
			err = s.poll.add(c.socket, int32(slot))
		}
		if err != nil {
			c.socket.close()
		}
	}
	if err != nil {
		c.Detach()
		return fmt.Errorf("the sockets of client %d: %w", id, err)
	}
	c.reads = true
	for len(s.clients) <= slot {
		s.clients = append(s.clients, nil)
	}
	s.clients[slot] = c
	binary.NativeEndian.PutUint32(info[ibsim.OffClientID:], uint32(slot))
	if c.node == "" {
		c.node = c.Name()
		clear(info[ibsim.OffNode:][:ibsim.NodeSize])
		copy(info[ibsim.OffNode:][:ibsim.NodeSize-1], c.node)
	}
	s.log("client %d is attached to %q", slot, c.node)
	return nil
}

// clientSocket is the name of the data socket of a client.
func (s *Server) clientSocket(id int32) string { return fmt.Sprintf("%s:in%d", s.Name, id) }
