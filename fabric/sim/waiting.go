package sim

import (
	"encoding/binary"
	"time"

	"fabsh/mad"
)

// A host's kernel returns a request to its program if there is no answer in time.
// libumad2sim does not, and OpenSM waits for ever for lost answers. So requests that
// clients have not answered are returned when these clients detach, or take too long.

const (
	// waitFor is how long a client may take to answer. OpenSM takes seconds for
	// tables of large subnets.
	waitFor = 10 * time.Second
	// maxWaiting is how many requests may wait for one client; beyond it the oldest one
	// is returned.
	maxWaiting = 1024
)

// waiting is a request that a client has not answered yet.
type waiting struct {
	from    *Client
	message Message
	until   time.Time
	early   bool // the client did not get it yet
}

// expect notes that c is to answer m, from another client.
func (c *Client) expect(m *Message, from *Client) *waiting {
	if len(c.waiting) == maxWaiting {
		c.giveUp(1)
	}
	c.waiting = append(c.waiting, waiting{from: from, message: *m, until: time.Now().Add(waitFor)})
	return &c.waiting[len(c.waiting)-1]
}

// takeEarly gives c the requests that came for it before it had sent anything. OpenSM
// announces that it is a subnet manager, and loses requests in the milliseconds until its
// first sweep begins: another OpenSM that requests its SMInfo would wait for the answer.
func (c *Client) takeEarly() {
	for i := range c.waiting {
		if w := &c.waiting[i]; w.early {
			w.early = false
			c.receive(&w.message)
		}
	}
}

// settle notes that c has answered with m.
func (c *Client) settle(m *Message, to *Client) {
	tid := binary.BigEndian.Uint64(m.MAD[mad.TIDOffset:])
	for i := range c.waiting {
		if w := &c.waiting[i]; w.from == to && binary.BigEndian.Uint64(w.message.MAD[mad.TIDOffset:]) == tid {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			return
		}
	}
}

// giveUp returns the first n requests that wait for c.
func (c *Client) giveUp(n int) {
	for i := range c.waiting[:n] {
		w := &c.waiting[i]
		if slot := w.from.slot; slot < len(c.clients.list) && c.clients.list[slot] == w.from {
			w.message.Undelivered = true
			w.from.receive(&w.message)
		}
	}
	c.waiting = append(c.waiting[:0], c.waiting[n:]...)
}

// GiveUp returns the requests that clients should have answered by now.
func (h *Clients) GiveUp(now time.Time) {
	h.using.Lock()
	defer h.using.Unlock()
	h.agents.Subnet.Lock()
	defer h.agents.Subnet.Unlock()
	for _, c := range h.list {
		if c == nil {
			continue
		}
		n := 0
		for n < len(c.waiting) && now.After(c.waiting[n].until) {
			n++
		}
		c.giveUp(n)
	}
}
