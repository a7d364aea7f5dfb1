package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"fabsh/mad"
	"fabsh/mad/internal/erf"
)

// Recording is what a recording holds.
type Recording struct {
	name      string
	simulated bool
	began     time.Time
	ports     []portFacts
	requests  map[string]*request
}

// portFacts are the facts of the local port, from the time of the n-th outcome on.
type portFacts struct {
	mad.Port
	at time.Time
	n  int
}

// request is all that came of one request, each time that it was made.
type request struct{ outcomes []*outcome }

// outcome is what came of one call: its attempts, and what was received.
type outcome struct {
	request     *request
	id          uint32 // mad.CallOf
	attempts    int
	first, last time.Time // attempts
	class       byte
	attribute   mad.AttributeID
	answers     []answer
	gaveUp      bool // the asker, at the end
	ended       time.Time
	place       int // among all outcomes, in the order of their ends
}

// answer is one MAD received, without trailing zeros.
type answer struct {
	tid  uint32
	at   time.Time
	from mad.Address
	mad  []byte
	// segment: it is a part of a table.
	segment bool
}

// Load reads a recording; name is what messages call it.
func Load(r io.Reader, name string) (*Recording, error) {
	l := &loader{
		Recording: Recording{name: name, requests: map[string]*request{}},
		open:      map[uint32]*outcome{},
	}
	if err := l.read(r); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l.order()
	return &l.Recording, nil
}

// loader is a Recording being read.
type loader struct {
	Recording
	open     map[uint32]*outcome // the latest of each id
	outcomes []*outcome
}

func (l *loader) read(r io.Reader) error {
	file, err := erf.NewReader(r)
	if err != nil {
		return err
	}
	for {
		var p erf.Packet
		switch err := file.Read(&p); {
		case err == io.EOF:
			if len(l.ports) == 0 {
				return errNoFacts
			}
			return nil
		case err != nil:
			return err
		}
		if len(p.Payload) != mad.Size {
			return fmt.Errorf("packet %d: %d bytes are no MAD", file.Number(), len(p.Payload))
		}
		if err := l.take(&p); err != nil {
			return fmt.Errorf("packet %d: %w", file.Number(), err)
		}
	}
}

// errNoFacts: a capture, but of something else.
var errNoFacts = errors.New("not recorded by fabsh --record: the facts of the local port are missing")

// take takes in one packet.
func (l *loader) take(p *erf.Packet) error {
	if l.began.IsZero() {
		l.began = p.Time
	}
	switch p.Interface {
	case local, simulated:
		if p.Error {
			l.takeEnd(p)
			return nil
		}
		return l.takePort(p)
	case received:
		l.takeAnswer(p)
	default:
		l.takeRequest(p)
	}
	return nil
}

func (l *loader) takePort(p *erf.Packet) error {
	l.simulated = p.Interface == simulated
	var facts portFacts
	if n := len(l.ports); n > 0 {
		facts = l.ports[n-1]
	}
	first, ok := addPortMAD(&facts.Port, p.Payload)
	switch {
	case !ok, !first && len(l.ports) == 0:
		return errNoFacts
	case first:
		facts.at = p.Time
		l.ports = append(l.ports, facts)
	default:
		l.ports[len(l.ports)-1] = facts
	}
	return nil
}

func (l *loader) takeRequest(p *erf.Packet) {
	if s := segmentOf(p.Payload); s != nil && s.RMPPType != mad.RMPPTypeData {
		return // we acknowledge a table
	}
	h := mad.ParseHeader(p.Payload)
	to := farEnd(p)
	key := keyOf(&to, p.Payload)
	req := l.requests[key]
	if req == nil {
		req = new(request)
		l.requests[key] = req
	}
	id := mad.CallOf(h.TID)
	o := l.open[id]
	if o == nil || o.request != req {
		o = &outcome{request: req, id: id, first: p.Time, class: byte(h.Class), attribute: h.Attribute}
		l.open[id] = o
		req.outcomes = append(req.outcomes, o)
		l.outcomes = append(l.outcomes, o)
	}
	o.attempts++
	o.last = p.Time
}

// keyOf is what two requests have in common that are the same: where they go
// (their queue pair, but not the way there: service level, partition), and all
// that they say but for the transaction ID.
func keyOf(to *mad.Address, m []byte) string {
	b := make([]byte, 0, 7+16+len(m))
	b = binary.BigEndian.AppendUint16(b, uint16(to.LID))
	b = binary.BigEndian.AppendUint32(b, to.QP)
	if to.HasGRH {
		b = append(b, 1)
		b = append(b, to.GID[:]...)
	} else {
		b = append(b, 0)
	}
	b = append(b, m[:offTID]...)
	b = append(b, m[offTID+8:]...)
	return string(bytes.TrimRight(b, "\x00"))
}

// takeAnswer finds the call that p answers, as an engine does.
func (l *loader) takeAnswer(p *erf.Packet) {
	h := mad.ParseHeader(p.Payload)
	o := l.open[mad.CallOf(h.TID)]
	if o == nil || !h.Method.IsResponse() || byte(h.Class) != o.class || h.Attribute != o.attribute {
		return
	}
	o.answers = append(o.answers, answer{
		tid:     uint32(h.TID),
		at:      p.Time,
		from:    farEnd(p),
		mad:     bytes.Clone(bytes.TrimRight(p.Payload, "\x00")),
		segment: segmentOf(p.Payload) != nil,
	})
}

// takeEnd ends the call that p was an attempt of: what still comes is too late.
func (l *loader) takeEnd(p *erf.Packet) {
	id := mad.CallOf(tidOf(p.Payload))
	if o := l.open[id]; o != nil {
		o.gaveUp = true
		o.ended = p.Time
		delete(l.open, id)
	}
}

// order ends the reading: what came of each call, and in which order.
func (l *loader) order() {
	for _, o := range l.outcomes {
		o.settle()
	}
	slices.SortStableFunc(l.outcomes, func(a, b *outcome) int { return a.ended.Compare(b.ended) })
	for i, o := range l.outcomes {
		o.place = i
	}
	for i := range l.ports {
		f := &l.ports[i]
		f.n, _ = slices.BinarySearchFunc(l.outcomes, f.at, func(o *outcome, at time.Time) int { return o.ended.Compare(at) })
	}
}

// settle keeps, of all answers to o, those that the asker went by: to one
// attempt, and if possible a whole one that was no refusal for the moment.
func (o *outcome) settle() {
	best, rank := 0, 0
	for i := range o.answers {
		a := &o.answers[i]
		if i > 0 && a.segment && slices.ContainsFunc(o.answers[:i], func(b answer) bool { return b.segment && b.tid == a.tid }) {
			continue // of a table that was looked at
		}
		if r := o.rank(i); r > rank || r == rank && r < whole {
			best, rank = i, r
		}
	}
	switch {
	case rank == 0:
	case o.answers[best].segment:
		tid := o.answers[best].tid
		o.answers = slices.DeleteFunc(o.answers[best:], func(a answer) bool { return a.tid != tid })
	default:
		o.answers = o.answers[best:][:1]
	}
	switch {
	case o.gaveUp:
	case rank > partial:
		o.ended = o.answers[len(o.answers)-1].at
	default: // the recording ended, or the asker wanted it no more
		o.ended = o.last.Add(time.Second)
	}
}

// What an answer is worth.
const (
	partial = iota + 1 // some segments of a table
	putOff             // BUSY
	whole              // all there is to know
)

// rank is what the answer is worth that answers[i] is or begins.
func (o *outcome) rank(i int) int {
	a := &o.answers[i]
	if a.isBusy() {
		return putOff
	}
	if !a.segment {
		return whole
	}
	have := map[uint32]bool{}
	last := uint32(0)
	for _, b := range o.answers[i:] {
		if b.tid != a.tid || !b.segment {
			continue
		}
		s := segmentOf(padded(b.mad))
		switch {
		case s.RMPPType != mad.RMPPTypeData:
			return whole // it was stopped or aborted: there is no more
		case s.RMPPFlags&mad.RMPPFlagsLast != 0:
			last = s.SegmentNumber
		}
		if s.SegmentNumber > 0 {
			have[s.SegmentNumber] = true
		}
	}
	if last > 0 && len(have) == int(last) {
		return whole
	}
	return partial
}

func (a *answer) isBusy() bool {
	return !a.segment && mad.ParseHeader(padded(a.mad)).Status&mad.StatusBusy != 0
}

// padded is m with the zeros that it ended in.
func padded(m []byte) []byte { return append(m[:len(m):len(m)], make([]byte, mad.Size-len(m))...) }
