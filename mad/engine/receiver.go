package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"fabsh/mad"
)

// receiver matches received datagrams with the open calls, and decides the consequences.
// Engine.mu guards it.
type receiver struct {
	calls     *calls
	policy    policy
	whole     bool // Traits.RMPP: tables come as one datagram
	represses bool // Options.Write: traps may be answered
	lmcs      *lmcs
	listeners *listeners
}

// readLoop is the reader goroutine: it reads, and completes calls that have ended.
func (e *Engine) readLoop() {
	s := &e.sender
	d := Datagram{MAD: make([]byte, mad.Size)}
	for n := 1; ; n++ {
		d = Datagram{MAD: d.MAD[:cap(d.MAD)]}
		var began time.Duration
		if !s.fastPath {
			began = e.calls.timers.now()
		}
		if err := e.transport.Recv(&d); err != nil {
			e.fail(err)
			return
		}
		e.mu.Lock()
		now := e.calls.timers.now()
		waited := now-began > time.Microsecond
		if s.fastPath {
			waited = s.reader == readerWaits
			s.reader = readerWorks
		}
		if waited {
			e.calls.flow.bursts++
		}
		e.receiver.receive(&d, now)
		e.unlock()
		if s.fastPath && n%readerBatch == 0 {
			e.sendFromReader(readerLooks)
		}
	}
}

// receive classifies d.
func (r *receiver) receive(d *Datagram, now time.Duration) {
	if len(d.MAD) < mad.HeaderSize {
		r.calls.counts.Foreign++
		return
	}
	tid := uint32(binary.BigEndian.Uint64(d.MAD[mad.TIDOffset:]))
	c := r.calls.slots.lookup(tid)
	h := mad.ParseHeader(d.MAD)
	switch {
	case d.Undelivered: // before the response bit: the answer itself may have been lost
		r.undelivered(c, d, tid, now)
	case !h.IsAnswer():
		r.unsolicited(d, &h, now)
	case c == nil:
		r.stray(d, tid)
	case !r.answers(d, c):
		r.calls.counts.Foreign++
		if d.Took > 0 { // a recording has nothing else for this attempt
			r.undelivered(c, d, tid, now)
		}
	default:
		r.answer(c, d, tid, now)
	}
}

// answer handles a response to c.
func (r *receiver) answer(c *Call, d *Datagram, tid uint32, now time.Duration) {
	if d.Took > 0 {
		c.s.started = now - d.Took
	}
	if c.s.tx != nil {
		if mad.IsSegment(d.MAD) && rmppTypeOf(d.MAD) != mad.RMPPTypeData {
			if tid == c.s.tid {
				r.transferred(c, d.MAD, d.Address, now)
			}
			return
		}
		r.calls.outbox.dropSegments(c) // the answering agent has all, or does not want it
	}
	if c.s.rx == nil {
		switch {
		case tid == c.s.tid && c.s.phase == phaseSent:
			r.calls.flow.sample(c, c.s.silentSince, now)
		case tid&attemptMask == 0 && c.Attempts <= 1<<attemptBits:
			r.calls.flow.sample(c, c.s.firstSent, now)
		}
	}
	if mad.ParseHeader(d.MAD).Status&mad.StatusBusy != 0 && c.s.rx == nil {
		r.calls.counts.Busy++
		if r.policy.retriesBusy(c, now) {
			until := now + backOff(c.s.busy, c.s.timeout)
			c.s.busy++
			c.s.giveUp += until - c.s.silentSince // the agent answered meanwhile
			c.s.silentSince = until
			r.calls.pause(c, until)
			return
		}
	}
	if err := checkLength(d.MAD); err != nil && !d.Cut {
		r.calls.counts.Answered++
		r.calls.end(c, now, err)
		return
	}
	if mad.IsSegment(d.MAD) && !r.whole {
		r.segment(c, d, tid, now)
		return
	}
	if more, err := c.addFragment(d.MAD); err != nil {
		r.calls.counts.Answered++
		r.calls.end(c, now, err)
		return
	} else if more {
		return
	}
	r.finish(c, d, now)
}

// finish ends c with the response in d.
func (r *receiver) finish(c *Call, d *Datagram, now time.Duration) {
	r.calls.counts.Answered++
	if to := redirection(c, d.MAD); to != nil {
		r.calls.end(c, now, to)
		return
	}
	clear(c.MAD[copy(c.MAD[:], d.MAD):])
	r.calls.keys.remove(c.MAD[:], c.Guard)
	status := mad.ParseHeader(c.MAD[:]).Status
	var err error
	switch {
	case status != 0:
		err = statusError(status)
	case d.Cut:
		err = ErrCut
	case isTable(&c.MAD):
		c.Table, err = unsegmented(c, d)
	}
	r.calls.end(c, now, err)
}

// fragments is a table of class version 1 of subnet administration that comes in several MADs, which
// are not acknowledged: how is not public. They must come in order; if one is missing, the call times
// out, and its next attempt begins again.
type fragments struct {
	data  []byte
	next  uint32 // number of the next MAD
	total uint64 // bytes of the table
}

// addFragment adds m, if it is one of several MADs of a table of class version 1, and reports whether
// more must come.
func (c *Call) addFragment(m []byte) (more bool, err error) {
	if len(m) < mad.Size || !isTable((*[mad.Size]byte)(m)) || mad.ParseHeader(m).Status != 0 {
		return false, nil
	}
	h, data, ok := mad.SA1Fragment(m)
	if !ok {
		c.s.fragments = nil
		return false, nil
	}
	if h.FragmentFlag&mad.FragmentFlagFirst != 0 {
		c.s.fragments = &fragments{next: h.SegmentNumber, total: uint64(h.PayloadLength)}
	}
	f := c.s.fragments
	switch {
	case f == nil || f.next != h.SegmentNumber:
		return true, nil
	case len(f.data)+len(data) > c.maxTable():
		return false, rmppTooLong(c.maxTable())
	}
	f.data, f.next = append(f.data, data...), f.next+1
	return h.FragmentFlag&mad.FragmentFlagLast == 0, nil
}

// isTable reports whether m is an answer of any number of records.
func isTable(m *[mad.Size]byte) bool {
	return mad.Class(m[mad.ClassOffset]) == mad.ClassSubnAdm && mad.Method(m[mad.MethodOffset]).IsTable()
}

// unsegmented returns the data of a table that came in one datagram.
func unsegmented(c *Call, d *Datagram) ([]byte, error) {
	switch {
	case c.MAD[mad.ClassVersionOffset] == 1 && c.s.fragments != nil:
		f := c.s.fragments
		return f.data[:min(uint64(len(f.data)), f.total)], nil
	case c.MAD[mad.ClassVersionOffset] == 1:
		table, ok := mad.SA1Table(c.MAD[:])
		if !ok {
			return nil, errors.New("malformed table: its datagram is neither the first nor the last one")
		}
		return table, nil
	case len(d.MAD) > mad.SADataOffset+c.maxTable():
		return nil, rmppTooLong(c.maxTable())
	case len(d.MAD) > mad.Size: // reassembled by the transport
		return slices.Clone(d.MAD[mad.SADataOffset:]), nil
	case mad.IsSegment(d.MAD):
		n := int64(binary.BigEndian.Uint32(c.MAD[mad.PayloadLengthOffset:])) - mad.SegmentHeader
		return c.MAD[mad.SADataOffset:][:min(max(n, 0), mad.SegmentData)], nil
	case len(d.MAD) < mad.Size:
		return c.MAD[mad.SADataOffset:max(mad.SADataOffset, len(d.MAD))], nil
	}
	return nil, errors.New("malformed table: it does not say how long it is")
}

// undelivered handles a datagram of ours that the transport returns, or the answer to
// it.
func (r *receiver) undelivered(c *Call, d *Datagram, tid uint32, now time.Duration) {
	r.calls.counts.Undelivered++
	// Not of an abandoned attempt, nor our ACK of a table that is coming.
	if c == nil || tid != c.s.tid || c.s.phase != phaseSent || d.MAD[mad.ClassOffset] != c.MAD[mad.ClassOffset] {
		return
	}
	loss := r.policy.undelivered(c, d, now)
	if loss != lossIgnored {
		r.calls.flow.leave(c)
	}
	switch loss {
	case lossBackOff:
		c.s.undelivered++
		r.calls.pause(c, min(now+backOff(c.s.undelivered-1, c.s.timeout), c.s.giveUp))
	case lossResent:
		r.calls.resend(c, now)
	case lossFinal:
		r.calls.timedOut(c, now)
	}
}

// stray counts a response that no open call waits for.
func (r *receiver) stray(d *Datagram, tid uint32) {
	known, answered := r.calls.slots.past(tid)
	switch {
	case answered:
		r.calls.counts.Duplicate++
	case known:
		r.calls.counts.Late++
	default:
		r.calls.counts.Foreign++
		return
	}
	r.straySegment(d, answered)
}

// Answers reports whether answer may be the answer to request: from is the source of
// answer, to the destination of request. Only the headers of both are compared. A matching
// transaction ID is not enough: a stranger may guess it, and an old answer may come late.
// So an answer to a request without a directed route comes from a LID of the port that got
// the request, and where the modifier selects a port or a block, the selections are equal.
//
// An answer comes from the queue pair of the request; where a redirection named that queue
// pair, it may also come from queue pair 1, of the agent that redirected. It has the base
// and class version of the request, unless its status is that the agent does not support
// the version.
//
// A redirection may have the attribute ID of ClassPortInfo; an answer with records of
// another attribute has the ID of the records (IBA 15.2.5.20). lmc is the LMC of the port
// that the request went to; MaxLMC if it is unknown.
func Answers(request, answer []byte, to, from *Address, lmc uint8) bool {
	asked, h := mad.ParseHeader(request), mad.ParseHeader(answer)
	sameVersion := answer[mad.BaseVersionOffset] == request[mad.BaseVersionOffset] && h.ClassVersion == asked.ClassVersion
	switch {
	case h.Class != asked.Class:
		return false
	case !sameVersion && !h.Status.IsBadVersion():
		return false
	case from.QP != to.QP && (to.QP <= 1 || from.QP != 1):
		return false
	case h.Class != mad.ClassSubnDirected && !to.SamePort(from, lmc):
		return false
	case h.Status&mad.StatusRedirect != 0 && h.Attribute == mad.AttrPerfClassPortInfo.ID:
		return true
	case h.Attribute == asked.Attribute && h.Modifier == asked.Modifier:
		return true
	}
	a := mad.LookupVersion(h.Class, h.ClassVersion, asked.Attribute)
	switch {
	case h.Attribute != asked.Attribute:
		return a != nil && a.Answer != nil && a.Answer.ID == h.Attribute
	case a == nil:
		return true // its modifier is unknown
	}
	return (h.Modifier^asked.Modifier)&a.Place() == 0
}

// SamePort reports whether from may be another address of the port at a, which has that
// LMC. With a global route header the GIDs are compared, otherwise the LIDs. Any port
// receives requests to the permissive LID.
func (a *Address) SamePort(from *Address, lmc uint8) bool {
	switch {
	case a.HasGRH && from.HasGRH:
		return a.GID == from.GID
	case a.LID == from.LID, a.LID == mad.PermissiveLID:
		return true
	}
	return a.LID != 0 && from.LID != 0 && (a.LID^from.LID)>>lmc == 0
}

// answers reports whether d may be the answer to c.
func (r *receiver) answers(d *Datagram, c *Call) bool {
	return Answers(c.MAD[:], d.MAD, &c.s.to, &d.Address, r.lmcs.of(c.s.to.LID))
}

// lmcs are the LMCs of ports, from KnowLMCs. It is safe for concurrent use.
type lmcs struct{ known atomic.Pointer[lmcTable] }

// lmcTable has the LMC of each LID, or unknownLMC.
type lmcTable [mad.MaxUnicastLID + 1]uint8

const unknownLMC = 0xff

// MaxLMC is the largest LMC: the LIDs of one port differ in no more bits
// (IBA 14.2.5.6).
const MaxLMC = 7

// set replaces the known LMCs.
func (l *lmcs) set(ports iter.Seq2[mad.LID, uint8]) {
	t := new(lmcTable)
	for i := range t {
		t[i] = unknownLMC
	}
	for lid, lmc := range ports {
		lmc = min(lmc, MaxLMC)
		first := lid >> lmc << lmc
		for i := range mad.LID(1) << lmc {
			if at := first + i; at <= mad.MaxUnicastLID && (t[at] == unknownLMC || t[at] < lmc) {
				t[at] = lmc
			}
		}
	}
	l.known.Store(t)
}

// of returns the LMC of the port with a LID; MaxLMC if it is unknown.
func (l *lmcs) of(lid mad.LID) uint8 {
	if t := l.known.Load(); t != nil && lid <= mad.MaxUnicastLID && t[lid] != unknownLMC {
		return t[lid]
	}
	return MaxLMC
}

// KnowLMCs sets the LIDs of ports, and replaces the LIDs that an earlier call set: ports
// are pairs of a LID and an LMC. Answers of a port must then come from the LIDs of that
// port. If several ports claim a LID the larger LMC counts.
func (e *Engine) KnowLMCs(ports iter.Seq2[mad.LID, uint8]) { e.lmcs.set(ports) }

// LMC returns the LMC of the port with a LID; MaxLMC if it is unknown.
func (e *Engine) LMC(lid mad.LID) uint8 { return e.lmcs.of(lid) }

// maxTable is the default limit of an answer, in bytes: far above the records of a
// full subnet's ports, but it stops a sender that never ends.
const maxTable = 64 << 20

// table is an answer of many segments that is coming.
type table struct {
	rmppAssembly
	from Address
}

// segment handles a part of the answer to c.
func (r *receiver) segment(c *Call, d *Datagram, tid uint32, now time.Duration) {
	var m [mad.Size]byte
	copy(m[:], d.MAD)
	h := rmppHeaderOf(m[:])
	if h.RMPPType != mad.RMPPTypeData || d.Cut {
		r.endOfSegments(c, m[:], &h, d.Address, now)
		return
	}
	if c.s.rx == nil {
		// Segments of the latest attempt may overtake the first one; segments of an
		// earlier attempt are the rest of an abandoned answer.
		if n := h.SegmentNumber; n != 1 && (tid != c.s.tid || n > rmppWindow) {
			r.calls.counts.Duplicate++
			return
		}
		c.s.rx = &table{newRMPPAssembly(m[:], c.maxTable()), d.Address}
	}
	a := c.s.rx
	if a.TID() != tid {
		// The answer to another attempt: one is enough.
		r.calls.counts.Duplicate++
		r.calls.outbox.answer(m[:], d.Address, rmppAbort(mad.RMPPStatusUnspecified))
		return
	}
	progress, ack, err := a.Add(m[:])
	if ack {
		r.calls.outbox.acknowledge(a)
	}
	switch {
	case err != nil:
		r.calls.counts.Answered++
		r.calls.end(c, now, err)
	case !progress:
		r.calls.counts.Duplicate++
	case a.Done():
		r.finishTable(c, a, now)
	default:
		if r.calls.outbox.noACK { // a lost segment will need all of them again
			c.s.giveUp += now - c.s.silentSince
		} else {
			c.s.giveUp = max(c.s.giveUp, min(now+c.s.totalTimeout(), c.s.lastEnd))
		}
		c.s.silentSince = now
		r.calls.await(c, now, c.s.timeout)
	}
}

// endOfSegments ends c, whose answer will not continue: m, with header h, is a STOP or
// an ABORT, or data that the transport has truncated.
func (r *receiver) endOfSegments(c *Call, m []byte, h *mad.RMPPHeader, from Address, now time.Duration) {
	var err error = ErrCut
	switch h.RMPPType {
	case mad.RMPPTypeData:
		r.calls.outbox.answer(m, from, rmppAbort(mad.RMPPStatusUnspecified))
	case mad.RMPPTypeStop, mad.RMPPTypeAbort:
		err = newPeerError("sender", "table", h)
		if c.Payload != nil && c.s.rx == nil {
			err = newPeerError("receiver", "request", h)
		}
	default:
		r.calls.counts.Foreign++
		return
	}
	r.calls.counts.Answered++
	c.s.rx = nil // nothing left to abort
	r.calls.end(c, now, err)
}

// finishTable ends c with all segments of its answer.
func (r *receiver) finishTable(c *Call, a *table, now time.Duration) {
	r.calls.counts.Answered++
	copy(c.MAD[:], a.Head())
	clear(c.MAD[mad.SADataOffset+copy(c.MAD[mad.SADataOffset:], a.Table()):])
	status := mad.ParseHeader(c.MAD[:]).Status
	var err error
	if status != 0 {
		err = statusError(status)
	} else if isTable(&c.MAD) {
		c.Table = a.Table()
	}
	c.s.rx = nil // nothing left to abort
	r.calls.end(c, now, err)
}

// straySegment answers a segment that no open call waits for: otherwise its sender
// would continue for long. If the call had all, our last ACK was lost.
func (r *receiver) straySegment(d *Datagram, answered bool) {
	if r.whole || !mad.IsSegment(d.MAD) || rmppTypeOf(d.MAD) != mad.RMPPTypeData {
		return
	}
	if h := rmppHeaderOf(d.MAD); !answered {
		r.calls.outbox.answer(d.MAD, d.Address, rmppAbort(mad.RMPPStatusTotalTimeTooLong))
	} else if h.RMPPFlags&mad.RMPPFlagsLast != 0 {
		r.calls.outbox.answer(d.MAD, d.Address, rmppACK(h.SegmentNumber, h.SegmentNumber+rmppWindow))
	}
}

// transferred handles m, the receiver's reply to the segments of c's request.
func (r *receiver) transferred(c *Call, m []byte, to Address, now time.Duration) {
	t := c.s.tx
	reply, err := t.Receive(m, c.s.timeout)
	if err != nil {
		r.calls.counts.Answered++
		r.calls.end(c, now, err)
		return
	}
	if reply == replyProgress {
		c.s.giveUp = max(c.s.giveUp, min(c.s.giveUp+now-c.s.silentSince, c.s.lastEnd))
		c.s.silentSince = now
	}
	switch {
	case reply == replyOvertaken:
		r.calls.counts.Duplicate++
	case t.Done():
		// The transfer turns round: the ACK of nothing says how many segments
		// of the answer we take (IBA 13.6.6.3; Linux mad_rmpp.c, ack_ds_ack).
		r.calls.outbox.answer(m, to, rmppACK(0, 1))
		if reply == replyNoNews {
			r.calls.counts.Duplicate++
			return
		}
		r.calls.outbox.stopSegments(c)
		r.calls.await(c, now, c.s.timeout)
	case t.More():
		r.calls.sendMore(c)
	case reply == replyProgress && c.s.phase == phaseSent:
		r.calls.await(c, now, t.RTO())
	}
}

// checkLength returns an error if m, a received MAD, ends before its required content:
// zeros in place of the rest would be read as values. Some transports report the lengths
// of MADs. A refusal needs only its header.
func checkLength(m []byte) error {
	if len(m) >= mad.Size {
		return nil
	}
	h := mad.ParseHeader(m)
	if need, what := minSize(&h, m); len(m) < need {
		return fmt.Errorf("truncated answer: %d bytes; %s needs %d", len(m), what, need)
	}
	return nil
}

// minSize returns the required length of a MAD with header h, in bytes, and the content
// that requires it.
// A record of the subnet administrator may be shorter than its attribute: AttributeOffset
// is then its length, in units of 8 bytes (IBA 15.2.1.1).
func minSize(h *mad.Header, m []byte) (n int, what string) {
	a := mad.LookupVersion(h.Class, h.ClassVersion, h.Attribute)
	data := h.DataOffset()
	switch {
	case h.Status != 0:
		return mad.HeaderSize, "a refusal"
	case mad.IsSegment(m):
		return segmentSize(m), "its segment"
	case a == nil, h.Class == mad.ClassSubnAdm && h.Method.IsTable():
		return data, "its header"
	}
	size := a.Size
	if offset := mad.SAPlacesIn(h.ClassVersion).AttrOffset; h.Class == mad.ClassSubnAdm && len(m) >= data {
		if record := 8 * int(binary.BigEndian.Uint16(m[offset:])); record > 0 {
			size = min(size, record)
		}
	}
	return min(data+size, mad.Size), a.Name
}

// segmentSize returns the required length of m, a segment of a table: only the last may
// end earlier, with its data.
func segmentSize(m []byte) int {
	h := rmppHeaderOf(m)
	switch {
	case h.RMPPType != mad.RMPPTypeData:
		return mad.SADataOffset
	case h.RMPPFlags&mad.RMPPFlagsLast == 0:
		return mad.Size
	}
	n := min(int64(h.PayloadLength), mad.SegmentHeader+mad.SegmentData)
	return mad.SAKeyOffset + int(max(n, mad.SegmentHeader))
}
