package engine

import (
	"encoding/binary"

	"fabsh/mad"
)

// outbox is the datagrams to send beside the attempts of calls. Engine.mu guards it.
type outbox struct {
	noACK    bool     // Traits.NoACK: control must not be sent
	control  []packet // RMPP ACKs and ABORTs, of which the headers count
	replies  []packet // to requests of others
	segments callList // calls with more segments of their requests to send
}

// packet is a datagram that no call waits for.
type packet struct {
	to  Address
	mad [mad.Size]byte
}

// maxControl and maxReplies limit the queues. ACKs may be lost like all datagrams, and
// a sender without a reply sends again.
const (
	maxControl = 4 * rmppWindow
	maxReplies = 64
)

// pending reports whether there is something to send.
func (o *outbox) pending() bool {
	return len(o.control) > 0 || len(o.replies) > 0 || o.segments.head != nil
}

// acknowledge sends the sender an ACK, with the last segment that it may send.
func (o *outbox) acknowledge(t *table) { o.answer(t.Head(), t.from, rmppACK(t.Acknowledge())) }

// answer queues a control segment with header h that answers segment m.
func (o *outbox) answer(m []byte, to Address, h mad.RMPPHeader) { o.add(m, to, h, true) }

// add queues a control segment with the headers of m and RMPP header h, if there is room
// and ACKs may be sent.
func (o *outbox) add(m []byte, to Address, h mad.RMPPHeader, answers bool) {
	if o.noACK || len(o.control) >= maxControl {
		return
	}
	o.control = append(o.control, packet{to: to})
	head := (*[mad.SADataOffset]byte)(o.control[len(o.control)-1].mad[:])
	putRMPPControl(head, m, h, answers)
}

// reply queues the answer to d by a method, if there is room and a path back. It is d
// with another method (opensm, osm_resp.c, resp_make_resp_smp; Linux's ib_mad.c keeps
// its transaction ID).
func (o *outbox) reply(d *Datagram, m mad.Method) {
	if len(o.replies) >= maxReplies || d.LID == 0 || d.LID == mad.PermissiveLID {
		return
	}
	r := packet{to: d.Address}
	copy(r.mad[:], d.MAD)
	r.mad[mad.MethodOffset] = byte(m)
	binary.BigEndian.PutUint16(r.mad[mad.StatusOffset:], 0)
	o.replies = append(o.replies, r)
}

// take puts the first of queue, which is not empty, in d.
func (d *Datagram) take(queue *[]packet) {
	p := &(*queue)[0]
	d.Address, d.Timeout = p.to, 0
	d.MAD = append(d.MAD[:0], p.mad[:]...)
	*queue = append((*queue)[:0], (*queue)[1:]...)
}

// dropSegments ends the transfer of c's request: it has arrived, another attempt
// begins, or the call ends.
func (o *outbox) dropSegments(c *Call) {
	o.stopSegments(c)
	c.s.tx = nil
}

// stopSegments stops sending segments of c's request.
func (o *outbox) stopSegments(c *Call) {
	if c.s.phase == phaseSegments {
		o.segments.remove(c)
		c.s.phase = phaseSent
	}
}
