package engine

// A transaction ID's low 32 bits say which open call an answer belongs to.
// Only they come back untouched: ib_umad replaces the upper 32 bits, ibsim the
// upper 16. From the top: 16 bits that change with each use of the slot, 4
// bits of the attempt, 12 bits of the slot. Each attempt has its own ID, for
// ib_umad refuses one that is still out, and so that a round trip is never
// measured from the wrong attempt.
const (
	slotBits    = 12
	attemptBits = 4
	numSlots    = 1 << slotBits
	attemptMask = (1<<attemptBits - 1) << slotBits
)

// slot is a place for an open call.
type slot struct {
	call *Call
	use  uint16 // counts the calls that had the slot
	// answered: the last call that left got an answer.
	answered bool
}

func (s *slot) tid(i uint16, attempt int) uint32 {
	return uint32(s.use)<<(slotBits+attemptBits) | uint32(attempt)<<slotBits&attemptMask | uint32(i)
}

// CallOf is what the transaction IDs of all attempts of one of an engine's
// calls, and of their answers, have in common.
func CallOf(tid uint64) uint32 { return uint32(tid) &^ attemptMask }

// slotQueue holds the free slots; the one free longest is used next, so that
// an ID comes again after 2^28 calls only.
type slotQueue struct {
	ring       [numSlots]uint16
	head, tail uint32
}

func (q *slotQueue) len() int        { return int(q.tail - q.head) }
func (q *slotQueue) push(i uint16)   { q.ring[q.tail%numSlots] = i; q.tail++ }
func (q *slotQueue) pop() (i uint16) { i = q.ring[q.head%numSlots]; q.head++; return i }

// openSlot gives c a slot.
func (e *Engine) openSlot(c *Call) {
	i := e.free.pop()
	s := &e.slots[i]
	s.call = c
	s.use++
	c.s.tid = s.tid(i, 0)
}

// closeSlot takes c's slot from it.
func (e *Engine) closeSlot(c *Call, answered bool) {
	i := uint16(c.s.tid % numSlots)
	e.slots[i].call = nil
	e.slots[i].answered = answered
	e.free.push(i)
}

// lookup finds the open call that tid belongs to, whatever the attempt.
func (e *Engine) lookup(tid uint32) *Call {
	c := e.slots[tid%numSlots].call
	if c == nil || (c.s.tid^tid)&^attemptMask != 0 {
		return nil
	}
	return c
}
