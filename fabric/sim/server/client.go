package server

import (
	"errors"

	"fabsh/fabric/sim"
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
