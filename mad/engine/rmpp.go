package engine

import (
	"encoding/binary"
	"fmt"
	"time"

	"fabsh/mad"
)

const (
	rmppData  = 1
	rmppACK   = 2
	rmppStop  = 3
	rmppAbort = 4

	rmppActive = 1
	rmppFirst  = 2
	rmppLast   = 4
)

// Reasons to abort a transfer (IBA 13.6.2.1, table 180).
const (
	rmppTooLong     = 118 // total time too long
	rmppBadLength   = 119 // last segment and payload length disagree
	rmppBadFirst    = 120 // first segment and segment number disagree
	rmppUnknownType = 121
	rmppTooMany     = 126 // retries
	rmppUnspecified = 127
)

var rmppWords = map[uint8]string{
	1:   "resources exhausted",
	118: "total time too long",
	119: "inconsistent last segment and payload length",
	120: "inconsistent first segment and segment number",
	121: "bad RMPP type",
	122: "new window too small",
	123: "segment number too big",
	124: "illegal status",
	125: "unsupported RMPP version",
	126: "too many retries",
	127: "unspecified",
}

const (
	segmentData = mad.Size - mad.SADataOffset // bytes of the table in a segment
	// rmppClassHeader is what PayloadLength counts of each segment beyond
	// the table: SM_Key, AttributeOffset, ComponentMask.
	rmppClassHeader = mad.SADataOffset - mad.RMPPOffset - 12
	// rmppWindow is how many segments we let the sender be ahead of our
	// ACK, and how far out of order they may come.
	rmppWindow = 64
	// maxTable in bytes: ten times the routing tables of a full subnet
	// would not come near it, but a sender that never ends would.
	maxTable = 1 << 30
)

// isSegment: m is part of an RMPP transfer. OpenSM on ibsim's client library
// sets the flag but not the version: nobody has segmented that.
func isSegment(m []byte) bool {
	return len(m) >= mad.SADataOffset && mad.Class(m[mad.ClassOffset]) == mad.ClassSubnAdm &&
		m[mad.RMPPFlagsOffset]&rmppActive != 0 && m[mad.RMPPVersionOffset] != 0
}

// assembly puts the segments of one transfer together.
type assembly struct {
	tid     uint32
	to      Address                // the sender
	head    [mad.SADataOffset]byte // of segment 1, or of the first that came
	next    uint32                 // all segments before it are here
	ahead   uint64                 // bit i: segment next+i is here; bit 0 never stays set
	last    uint32                 // 0: not seen yet
	tail    int                    // bytes of the table in the last segment
	claim   uint32                 // PayloadLength of segment 1; 0: unknown
	acked   uint32                 // segments acknowledged
	granted uint32                 // the sender may send up to this one
	data    []byte
}

func newAssembly(m []byte, from Address) *assembly {
	a := &assembly{to: from, next: 1, granted: 1, tid: uint32(binary.BigEndian.Uint64(m[mad.TIDOffset:]))}
	copy(a.head[:], m)
	return a
}

// abortError is a violation of the protocol, and the status that tells the sender.
type abortError struct {
	status uint8
	text   string
}

func (e *abortError) Error() string { return e.text }

func abortf(status uint8, format string, args ...any) error {
	return &abortError{status, fmt.Sprintf("malformed table: "+format, args...)}
}

// add takes in a DATA segment: m has Size bytes. progress: it was new;
// ack: the sender is to be told how far we are.
func (a *assembly) add(m []byte) (progress, ack bool, err error) {
	n := binary.BigEndian.Uint32(m[mad.SegmentNumberOffset:])
	length := binary.BigEndian.Uint32(m[mad.PayloadLengthOffset:])
	flags := m[mad.RMPPFlagsOffset]
	last := flags&rmppLast != 0
	switch {
	case m[mad.RMPPVersionOffset] != 1:
		return false, false, abortf(125, "RMPP version %d", m[mad.RMPPVersionOffset])
	case m[mad.RMPPStatusOffset] != 0:
		return false, false, abortf(124, "segment %d has RMPP status %d", n, m[mad.RMPPStatusOffset])
	case n == 0 || n == 1 != (flags&rmppFirst != 0):
		return false, false, abortf(rmppBadFirst, "segment number %d does not go with the flag of the first segment", n)
	case last && (length < rmppClassHeader || length > rmppClassHeader+segmentData):
		return false, false, abortf(rmppBadLength, "last segment with payload length %d", length)
	case a.last != 0 && (n > a.last || last != (n == a.last)):
		return false, false, abortf(rmppBadLength, "segment %d, but the last was %d", n, a.last)
	case n < a.next:
		// A segment we have acknowledged comes again: the ACK was lost.
		return false, n <= a.acked, nil
	case n-a.next >= rmppWindow || a.ahead>>(n-a.next)&1 != 0:
		return false, false, nil
	case int64(n)*segmentData > maxTable:
		return false, false, abortf(rmppUnspecified, "longer than %d bytes", maxTable)
	}
	if n == 1 {
		copy(a.head[:], m)
		if !last {
			a.claim = length
		}
	}
	if last {
		if a.ahead>>(n-a.next) != 0 {
			return false, false, abortf(rmppBadLength, "segment %d is the last, but there are later ones", n)
		}
		a.last, a.tail = n, int(length)-rmppClassHeader
	}
	a.grow(int(n))
	copy(a.data[(int(n)-1)*segmentData:], m[mad.SADataOffset:mad.Size])
	for a.ahead |= 1 << (n - a.next); a.ahead&1 != 0; a.ahead >>= 1 {
		a.next++
	}
	switch {
	case a.done():
		if most := uint64(a.last) * (segmentData + rmppClassHeader); uint64(a.claim) > most {
			return true, false, abortf(rmppBadLength, "%d bytes at most have come, of %d that the first segment announced", most, a.claim)
		}
		ack = true
	case a.next > a.granted:
		a.granted = a.next - 1 + rmppWindow
		ack = true
	}
	return true, ack, nil
}

// grow makes room for n segments. Memory grows with what has come, twofold at
// most, whatever the first segment promises.
func (a *assembly) grow(n int) {
	need := n * segmentData
	if need > cap(a.data) {
		claim := int(a.claim / (segmentData + rmppClassHeader) * segmentData)
		size := max(need, min(2*need, claim+segmentData))
		if claim < need {
			size = 2 * need // it promised nothing
		}
		a.data = append(make([]byte, 0, size), a.data...)
	}
	if need > len(a.data) {
		a.data = a.data[:need]
	}
}

// done: all segments are here.
func (a *assembly) done() bool { return a.last != 0 && a.next > a.last }

// table is the data of all segments.
func (a *assembly) table() []byte { return a.data[:int(a.last-1)*segmentData+a.tail] }

// segment takes in a part of the answer to c.
func (e *Engine) segment(c *Call, d *Datagram, tid uint32, now time.Duration, ended *callList) {
	var m [mad.Size]byte
	copy(m[:], d.MAD)
	n := binary.BigEndian.Uint32(m[mad.SegmentNumberOffset:])
	if m[mad.RMPPTypeOffset] != rmppData || d.Cut {
		e.breakOff(c, m[:], d, now, ended)
		return
	}
	if c.s.rx == nil {
		// Of the latest attempt segments may overtake the first one; of an
		// earlier attempt, they are the rest of what was given up.
		if n != 1 && (tid != c.s.tid || n > rmppWindow) {
			e.stats.Duplicate++
			return
		}
		c.s.rx = newAssembly(m[:], d.Address)
	}
	a := c.s.rx
	if a.tid != uint32(tid) {
		// The answer to another attempt: one is enough.
		e.stats.Duplicate++
		e.abort(m[:], d.Address, rmppUnspecified)
		return
	}
	progress, ack, err := a.add(m[:])
	if ack {
		e.acknowledge(a)
	}
	switch {
	case err != nil:
		e.stats.Answered++
		e.end(c, now, err, ended)
	case !progress:
		e.stats.Duplicate++
	case a.done():
		e.finishTable(c, a, now, ended)
	default:
		if e.traits.NoACK { // a lost segment will need all of them again
			c.s.giveUp += now - c.s.silentSince
		} else {
			c.s.giveUp = max(c.s.giveUp, min(now+c.s.patience(), c.s.lastEnd()))
		}
		c.s.silentSince = now
		e.expectSegment(c, now)
	}
}

// expectSegment gives the next segment of the answer to c a timeout.
func (e *Engine) expectSegment(c *Call, now time.Duration) {
	c.s.due = min(now+c.s.timeout, c.s.giveUp)
	e.setTimer(c, c.s.due)
}

// breakOff ends c, of whose answer there will be no more.
func (e *Engine) breakOff(c *Call, m []byte, d *Datagram, now time.Duration, ended *callList) {
	var err error = ErrCut
	switch m[mad.RMPPTypeOffset] {
	case rmppData:
		e.abort(m, d.Address, rmppUnspecified)
	case rmppStop, rmppAbort:
		err = &peerError{"sender", "table", m[mad.RMPPTypeOffset], m[mad.RMPPStatusOffset]}
		if c.Payload != nil && c.s.rx == nil {
			err = &peerError{"receiver", "request", m[mad.RMPPTypeOffset], m[mad.RMPPStatusOffset]}
		}
	default:
		e.stats.Foreign++
		return
	}
	e.stats.Answered++
	c.s.rx = nil // nothing to abort any more
	e.end(c, now, err, ended)
}

// finishTable ends c with all segments of its answer.
func (e *Engine) finishTable(c *Call, a *assembly, now time.Duration, ended *callList) {
	e.stats.Answered++
	copy(c.MAD[:], a.head[:])
	clear(c.MAD[mad.SADataOffset+copy(c.MAD[mad.SADataOffset:], a.table()):])
	status := mad.ParseHeader(c.MAD[:]).Status
	var err error
	if status != 0 {
		err = statusError(status)
	} else if isTable(&c.MAD) {
		c.Table = a.table()
	}
	c.s.rx = nil // nothing to abort any more
	e.end(c, now, err, ended)
}

// control is an RMPP segment without data, which the writer is to send.
type control struct {
	to   Address
	head [mad.SADataOffset]byte
}

// maxControl are queued at most; ACKs may be lost like all datagrams.
const maxControl = 4 * rmppWindow

// acknowledge tells the sender how far we are and how far it may go.
func (e *Engine) acknowledge(a *assembly) {
	a.acked = a.next - 1
	e.reply(a.head[:], a.to, rmppACK, 0, a.acked, max(a.granted, a.acked))
}

// abort tells the sender of segment m to send no more.
func (e *Engine) abort(m []byte, to Address, status uint8) { e.reply(m, to, rmppAbort, status, 0, 0) }

// reply queues a control segment. Its header is that of segment m with the
// response bit turned over: Linux matches it so (mad_rmpp.c, format_ack and
// nack_recv).
func (e *Engine) reply(m []byte, to Address, kind, status uint8, segment, newWindowLast uint32) {
	if e.putControl(m, to, kind, status, segment, newWindowLast) {
		e.control[len(e.control)-1].head[mad.MethodOffset] ^= byte(mad.Response)
	}
}

// putControl queues a control segment with the header of m, if there is room.
func (e *Engine) putControl(m []byte, to Address, kind, status uint8, segment, newWindowLast uint32) bool {
	if e.traits.NoACK || len(e.control) >= maxControl {
		return false
	}
	s := control{to: to}
	copy(s.head[:], m)
	s.head[mad.RMPPVersionOffset] = 1
	s.head[mad.RMPPTypeOffset] = kind
	s.head[mad.RMPPFlagsOffset] = s.head[mad.RMPPFlagsOffset]&^7 | rmppActive
	s.head[mad.RMPPStatusOffset] = status
	binary.BigEndian.PutUint32(s.head[mad.SegmentNumberOffset:], segment)
	binary.BigEndian.PutUint32(s.head[mad.NewWindowLastOffset:], newWindowLast)
	e.control = append(e.control, s)
	return true
}

// straySegment answers a segment that no open call waits for: its sender
// would go on for long. If the call had all, what got lost is our last ACK.
func (e *Engine) straySegment(d *Datagram, answered bool) {
	if e.traits.RMPP || !isSegment(d.MAD) || d.MAD[mad.RMPPTypeOffset] != rmppData {
		return
	}
	if n := binary.BigEndian.Uint32(d.MAD[mad.SegmentNumberOffset:]); !answered {
		e.abort(d.MAD, d.Address, rmppTooLong)
	} else if d.MAD[mad.RMPPFlagsOffset]&rmppLast != 0 {
		e.reply(d.MAD, d.Address, rmppACK, 0, n, n+rmppWindow)
	}
}
