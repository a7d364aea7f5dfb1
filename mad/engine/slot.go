package engine

import (
	cryptorand "crypto/rand"
	"math/rand/v2"
)

// A transaction ID's low 32 bits identify the open call that an answer belongs to.
// Only they come back unchanged: ib_umad replaces the upper 32 bits, ibsim the upper
// 16. From the top: 16 bits that change with each use of the slot, 4 bits of the
// attempt, 12 bits of the slot. Each attempt has its own ID, because ib_umad refuses
// an ID that is still in use, and because an answer must show its attempt: otherwise
// its RTT could not be measured (RFC 6298, section 3).
const (
	slotBits    = 12
	attemptBits = 4
	numSlots    = 1 << slotBits
	attemptMask = (1<<attemptBits - 1) << slotBits
)

// slot is a place for an open call.
type slot struct {
	call *Call
	use  uint16 // counts the calls that had the slot, from a random number on
	had  uint16 // how many calls had it, up to half of the range of use
	// answered is set if the last call that left got an answer.
	answered bool
}

func (s *slot) tid(i uint16, attempt int) uint32 {
	return uint32(s.use)<<(slotBits+attemptBits) | uint32(attempt)<<slotBits&attemptMask | uint32(i)
}

// CallOf returns the part that the transaction IDs of all attempts of a call of an
// engine, and of their answers, have in common.
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

// slots are the places of open calls; at most capacity are used, the limit of the
// transport.
type slots struct {
	table    [numSlots]slot
	free     slotQueue
	capacity int
}

// init takes the first IDs from random: a stranger who knows how many calls there
// were must not know which ID is next.
func (s *slots) init(capacity int, random *rand.Rand) {
	s.capacity = capacity
	first := random.IntN(numSlots)
	for i := range numSlots {
		s.table[i].use = uint16(random.Uint32())
		s.free.push(uint16((first + i) % numSlots))
	}
}

// unguessable returns a random generator with a secret seed.
func unguessable() *rand.Rand {
	var seed [32]byte
	cryptorand.Read(seed[:]) // it never fails
	return rand.New(rand.NewChaCha8(seed))
}

// hasRoom reports whether another call can be opened.
func (s *slots) hasRoom() bool { return s.free.len() > numSlots-s.capacity }

// open assigns a slot to c.
func (s *slots) open(c *Call) {
	i := s.free.pop()
	sl := &s.table[i]
	sl.call = c
	sl.use++
	sl.had = min(sl.had+1, 1<<15)
	c.s.tid = sl.tid(i, 0)
}

// setAttempt gives c, which has a slot, the transaction ID of an attempt.
func (s *slots) setAttempt(c *Call, attempt int) {
	i := uint16(c.s.tid % numSlots)
	c.s.tid = s.table[i].tid(i, attempt)
}

// close takes c's slot from it.
func (s *slots) close(c *Call, answered bool) {
	i := uint16(c.s.tid % numSlots)
	s.table[i].call = nil
	s.table[i].answered = answered
	s.free.push(i)
}

// lookup finds the open call that tid belongs to, whatever the attempt.
func (s *slots) lookup(tid uint32) *Call {
	c := s.table[tid%numSlots].call
	if c == nil || (c.s.tid^tid)&^attemptMask != 0 {
		return nil
	}
	return c
}

// past reports whether a transaction ID of no open call belonged to a call, and whether
// that was the latest of its slot and got an answer.
func (s *slots) past(tid uint32) (known, answered bool) {
	sl := &s.table[tid%numSlots]
	behind := sl.use - uint16(tid>>(slotBits+attemptBits))
	return behind < sl.had, behind < sl.had && behind == 0 && sl.answered
}
